"""build.sh of a project: which way it goes with which toolkit, and what it says without one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from toolkits import environment, make_toolkit


def build(project: Path, **given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(project / "build.sh")], env=given, capture_output=True, text=True, timeout=60
    )


def test_a_toolkit_with_the_package_builds_this_folder(project: Path, tmp_path: Path) -> None:
    home, calls = make_toolkit(tmp_path, asc=True, msopgen=True), tmp_path / "calls"
    done = build(project, **environment(home, calls))
    assert done.returncode == 0, done.stderr
    assert "it has the CMake package ASC" in done.stdout
    first, second = calls.read_text().splitlines()
    assert first.startswith("cmake -S . -B build_out ")
    assert f"-DASCEND_CANN_PACKAGE_PATH={home}" in first
    assert second.startswith("cmake --build build_out --target binary package")
    assert (project / "build_out" / "custom_opp_ubuntu_x86_64.run").is_file()


def test_an_older_toolkit_gets_msopgens_frame_with_our_sources_alone(
    project: Path, tmp_path: Path
) -> None:
    home, calls = make_toolkit(tmp_path, msopgen=True), tmp_path / "calls"
    (project / "build_out").mkdir()
    (project / "build_out" / "left.run").touch()  # of an earlier build
    done = build(project, **environment(home, calls))
    assert done.returncode == 0, done.stderr
    assert "msopgen makes the frame" in done.stdout
    gen, inner, _ = calls.read_text().splitlines()
    assert gen == (
        "msopgen gen -i max_pool2d.json -c ai_core-Ascend910B2 -lan cpp -out build_out/frame"
    )
    assert inner.split()[1:] == [
        "op_host/CMakeLists.txt", "op_host/max_pool2d.cpp", "op_kernel/CMakeLists.txt",
        "op_kernel/max_pool2d.cpp", "op_kernel/max_pool2d_tiling.h",
    ]  # fmt: skip
    frame = project / "build_out" / "frame"
    presets = json.loads((frame / "CMakePresets.json").read_text())
    assert presets["ASCEND_CANN_PACKAGE_PATH"]["value"] == str(home)
    assert presets["vendor_name"]["value"] == "customize"
    assert (frame / "op_kernel" / "CMakeLists.txt").read_text() == ""  # msopgen's, not ours
    assert [path.name for path in (project / "build_out").glob("*.run")] == [
        "custom_opp_ubuntu_x86_64.run"
    ]


def test_msopgen_is_given_the_operator_that_the_sources_define(project: Path) -> None:
    (row,) = json.loads((project / "max_pool2d.json").read_text())
    assert row["op"] == "MaxPool2d"
    assert "OP_ADD(MaxPool2d);" in (project / "op_host" / "max_pool2d.cpp").read_text()


@pytest.mark.parametrize("name", ["ASCEND_TOOLKIT_HOME", "ASCEND_INSTALL_PATH"])
def test_other_variables_and_set_env_lead_to_the_toolkit(
    name: str, project: Path, tmp_path: Path
) -> None:
    home, calls = make_toolkit(tmp_path, asc=True), tmp_path / "calls"
    (home / "set_env.sh").write_text('echo "sourced $UNSET_BY_ALL" >> "$CALLS"\n')
    given = environment(home, calls)
    given[name] = given.pop("ASCEND_HOME_PATH")
    done = build(project, **given)
    assert done.returncode == 0, done.stderr
    assert calls.read_text().splitlines()[0] == "sourced "


def test_a_default_place_is_found_without_variables(project: Path, tmp_path: Path) -> None:
    home, calls = make_toolkit(tmp_path, asc=True), tmp_path / "calls"
    place = tmp_path / "Ascend" / "ascend-toolkit" / "latest"
    place.parent.mkdir(parents=True)
    place.symlink_to(home)
    given = environment(home, calls)
    del given["ASCEND_HOME_PATH"]
    done = build(project, **given)
    assert (done.returncode, f"CANN is {place}" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("none", 3, "no CANN found"),
        ("gone", 3, "nowhere is no folder"),
        ("bare", 4, "has neither the CMake package ASC nor msopgen"),
        ("no cmake", 5, "cmake is not installed"),
        ("no package", 6, "the build ended without a package"),
        ("compiler", 2, "error: expected ';'"),
    ],
)
def test_what_is_missing_is_said_and_has_a_code(
    kind: str, code: int, said: str, project: Path, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    home = make_toolkit(tmp_path, asc=kind != "bare")
    given = environment(None if kind == "none" else home, calls)
    if kind == "gone":
        given["ASCEND_HOME_PATH"] = str(tmp_path / "nowhere")
    elif kind == "no cmake":
        (home / "bin" / "cmake").unlink()
        for name in ("bash", "dirname", "grep", "ls", "rm", "mkdir", "env"):
            (home / "bin" / name).symlink_to(f"/bin/{name}")
        given["PATH"] = str(home / "bin")
    elif kind == "no package":
        given["NO_PACKAGE"] = "1"
    elif kind == "compiler":
        given["COMPILER_SAYS"] = "max_pool2d.cpp:9:3: error: expected ';'"
    done = build(project, **given)
    assert (done.returncode, said in done.stderr) == (code, True), done.stdout + done.stderr
