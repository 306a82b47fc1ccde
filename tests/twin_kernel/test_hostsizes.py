"""Functions of the host side of the library: scratch sizes and tiling structs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from native import INCLUDE, ROOT, Runtime

FOLDER = Path(__file__).parent


def test_every_scratch_function_and_tiling_function_answers(
    runtime: Runtime, tmp_path: Path
) -> None:
    program = tmp_path / "host"
    sources = [str(FOLDER / "hostsizes.cpp")]
    sources += [
        str(ROOT / f"runtime/host/{name}.cpp") for name in ("tilingdata", "platform", "context")
    ]
    command = ["g++", *runtime.flags, "-O1", f"-I{INCLUDE}", *sources, "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "good\n")
