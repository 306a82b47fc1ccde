"""No attack comes through: by all layers or one kind alone, as root and as nobody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import npusmith
from npusmith.sandbox.probe import LAYERS, probe

from .attacks import ATTACKS, BOXES

HERE, SOURCE = Path(__file__).parent, Path(npusmith.__file__).parent
NOBODY = 65534
IS_FINE = (  # setpriv itself may still start what nobody cannot
    "import os, sys; name = os.readlink('/proc/self/exe');"
    "sys.exit(sys.version_info < (3, 11) or not os.access(name, os.X_OK))"
)
# Attributes and flags are not there on every file system.
FILE_SYSTEM = ("remove-attribute", "read-attribute", "inode-flags", "project-id")
FACTS = probe()
# Which layers a box is about; where this machine lacks one, there is nothing to be said.
NEEDED = {
    "f": LAYERS, "m": LAYERS, "p": LAYERS, "w": LAYERS, "n": [x for x in LAYERS if "-" in x],
    "l": ["landlock"], "s": ["seccomp"],
}  # fmt: skip


def python_of_nobody() -> str:
    """An interpreter that every user may start; "" without one or without the right to try."""
    for name in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        command = [*as_nobody(), name, "-c", IS_FINE]
        if shutil.which(name) and not subprocess.run(command, capture_output=True).returncode:
            return name
    return ""


def as_nobody() -> list[str]:
    user = str(NOBODY)
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]


def told(command: list[str], path: str, home: Path) -> dict[str, dict[str, Any]]:
    env = {**os.environ, "PYTHONPATH": path, "HOME": str(home), "TMPDIR": "/tmp"}
    runner = [*command, "-B", str(HERE / "attack_runner.py")]
    if command[0] == "setpriv":  # the tests may lie where others cannot look
        runner[-1] = str(home / "attack_runner.py")
    done = subprocess.run(runner, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module", params=["self", "nobody"])
def results(request: pytest.FixtureRequest) -> Any:
    home = Path("/tmp", f"npusmith-attacks-home-{os.getpid()}")
    home.mkdir(mode=0o755)
    try:
        if request.param == "self":
            yield told([sys.executable], f"{SOURCE.parent}:{HERE}", home)
            return
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            pytest.skip("only root can become nobody")
        python = python_of_nobody()
        if not python:
            pytest.skip("no Python 3.11 that every user may start")
        (home / "npusmith").mkdir()
        for name in ("__init__.py", "errors.py", "version.py"):
            shutil.copy(SOURCE / name, home / "npusmith" / name)
        shutil.copytree(SOURCE / "codes", home / "npusmith" / "codes")
        shutil.copytree(SOURCE / "sandbox", home / "npusmith" / "sandbox")
        for name in ("attacks.py", "attack_runner.py"):
            shutil.copy(HERE / name, home / name)
        yield told([*as_nobody(), python], str(home), home)
    finally:
        shutil.rmtree(home)


@pytest.mark.parametrize("box", BOXES)
def test_nothing_comes_through(results: dict[str, dict[str, Any]], box: str) -> None:
    lacking = [layer for layer in NEEDED[box] if not FACTS.get(layer)]
    if lacking:
        pytest.skip(f"this machine lacks {lacking}")
    found = results[box]
    wanted = {row.name for row in ATTACKS if box in row.boxes}
    through = {name: said for name, said in found["said"].items() if said.startswith("through")}
    assert through == {}
    assert set(found["said"]) == wanted  # each was tried
    assert found["changed"] == [] and found["alive"]
    if box != "l" and box != "n":
        assert found["set_id"] == []


def test_the_suite_is_a_suite() -> None:
    assert len({row.name for row in ATTACKS}) == len(ATTACKS) >= 200
    assert all(sum(letter in row.boxes for row in ATTACKS) >= 80 for letter in BOXES)


def test_most_attacks_succeed_where_there_is_no_box(tmp_path: Path) -> None:
    """A text with a mistake in it would be stopped by everything: those that may run do succeed."""
    text = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import attack_runner, json; print(json.dumps(attack_runner.unboxed()))"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", text, str(HERE)], env=env, capture_output=True, text=True,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    failed = {name: what for name, what in said.items() if not what.startswith("through")}
    assert len(said) >= 60
    assert set(failed) <= {"link-a-handle", *FILE_SYSTEM}, failed
