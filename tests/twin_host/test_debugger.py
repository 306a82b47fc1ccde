"""`npusmith run --gdb`: stops at findings with lines, variables and tensors of the kernel's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.sandbox.probe import probe
from npusmith.target.chips import Chip
from npusmith.twin import build, read_project, run
from npusmith.twin.debugger import find_debugger
from npusmith.twin.launch import LaunchOptions
from npusmith.twin.options import BuildOptions
from npusmith.twin.watch import Watch

PROJECTS = Path(__file__).parents[1] / "projects"

SOURCE = """#include "acl/acl.h"
#include "kernel_operator.h"
using namespace AscendC;
__global__ __aicore__ void doubled(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buf;
  pipe.InitBuffer(buf, 256);
  LocalTensor<float> local = buf.Get<float>();
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float *)x + 64 * GetBlockIdx(), 64);
  to.SetGlobalBuffer((__gm__ float *)y + 64 * GetBlockIdx(), 64);
  const int tile = 7;
  DataCopy(local, from, 64);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Muls(local, local, 2.0f, 64);
  DataCopy(to, local, 64);
}
int main() {
  aclInit(nullptr);
  aclrtSetDevice(0);
  float given[128];
  for (int i = 0; i < 128; ++i) given[i] = i;
  void *x, *y;
  for (void **p : {&x, &y}) aclrtMalloc(p, sizeof given, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x, sizeof given, given, sizeof given, ACL_MEMCPY_HOST_TO_DEVICE);
  doubled<<<2, nullptr, nullptr>>>((GM_ADDR)x, (GM_ADDR)y);
  return 0;
}
"""
LINE = SOURCE.split("\n").index("  DataCopy(to, local, 64);") + 1
needs_gdb = pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not on this machine")


def session(folder: Path, commands: str, *more: str) -> str:
    file = folder / "doubled.asc"
    file.write_text(SOURCE)
    done = subprocess.run(
        [sys.executable, "-m", "npusmith", "run", str(file), "--gdb", *more],
        input=commands, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@needs_gdb
def test_it_stops_at_the_finding_and_shows_line_variables_and_ub(tmp_path: Path) -> None:
    if not probe()["private-proc"]:
        pytest.skip("this machine gives the box no /proc of its own")
    said = session(tmp_path, "ub local 3\nub 8 float 2\nup\nquit\n", "--core", "1")
    finding = said.index("error[hazard]: DataCopy on MTE3 reads UB bytes 0..255")
    assert f"doubled.asc:{LINE} in doubled" in said[finding:]
    assert f"-> {LINE:5}    DataCopy(to, local, 64);" in said
    assert "tile = 7" in said
    where = "local = LocalTensor<float> at VECCALC byte 0, 256 B: 0, 2, 4, 6, 8, 10, 12, 14, ..."
    assert where in said
    assert "VECCALC byte 0, 256 B: 0, 2, 4, ..." in said
    assert "UB byte 8, float: 4, 6" in said


@needs_gdb
def test_it_stops_where_a_block_begins(tmp_path: Path) -> None:
    if not probe()["private-proc"]:
        pytest.skip("this machine gives the box no /proc of its own")
    said = session(tmp_path, "continue\nnext\nprint pipe\nquit\n", "--core", "1")
    assert said.index("error[hazard]") < said.index("block 1 begins")
    assert "->     5    TPipe pipe;" in said[said.index("block 1 begins") :]


@needs_gdb
def test_an_operator_whose_host_side_has_a_process_of_its_own_stops_in_its_kernel(
    chip: Chip, capsys: pytest.CaptureFixture[str]
) -> None:
    if not probe()["private-proc"]:
        pytest.skip("this machine gives the box no /proc of its own")
    project = read_project(PROJECTS / "scale", options=BuildOptions(debug=True))
    made = build(project, chip, (DType.FLOAT32,) * 3)
    x, factor = np.ones(64, np.float32), np.full(1, 3, np.float32)
    watch = Watch(debugger=find_debugger([PROJECTS / "scale"], core=0))
    done = run(
        made,
        [x, factor],
        [((64,), DType.FLOAT32)],
        {"alpha": 3},
        options=LaunchOptions(watch=watch),
    )
    assert done.findings == []  # gdb ended at the end of its input, before the kernel did
    said = capsys.readouterr().out
    assert "block 0 begins" in said
    assert f"{project.kernel.name}:" in said[said.index("block 0 begins") :]


def test_a_machine_without_gdb_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TwinError) as error:
        find_debugger([tmp_path])
    assert error.value.code == "debugger-missing"
    assert "apt install gdb" in error.value.render()


def test_a_gdb_without_python_is_not_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gdb").write_text("#!/bin/sh\necho 'Python scripting is not supported'\n")
    (tmp_path / "gdb").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(TwinError, match="no Python"):
        find_debugger([tmp_path])
