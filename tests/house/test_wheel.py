"""What users install holds everything that the program reads at run time."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import npusmith

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_every_file_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    wanted = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "npusmith").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".gch"
    }
    assert wanted - set(wheel.namelist()) == set()


def test_headers_runtime_templates_and_type_mark_are_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert "npusmith/py.typed" in names
    assert "npusmith/report/page.html.j2" in names
    assert "npusmith/report/style.css" in names
    assert any(name.startswith("npusmith/twin/include/") for name in names)
    assert any(name.startswith("npusmith/twin/runtime/") for name in names)


def test_the_wheel_holds_the_package_the_command_and_the_licence_only(
    wheel: zipfile.ZipFile,
) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    info = f"npusmith-{npusmith.__version__}.dist-info"
    assert tops == {"npusmith", info}
    assert b"npusmith = npusmith.cli.main:main" in wheel.read(f"{info}/entry_points.txt")
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


def test_no_dependency_is_pinned_to_one_version(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    needs = [
        line for line in wheel.read(name).decode().splitlines() if line.startswith("Requires-Dist")
    ]
    assert needs
    assert not [line for line in needs if "==" in line.split(";")[0]]


def test_the_version_is_written_once() -> None:
    assert npusmith.__version__ not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    try:
        installed = metadata.version("npusmith")
    except metadata.PackageNotFoundError:
        pytest.skip("npusmith is not installed here: run from the source tree")
    assert installed == npusmith.__version__
