"""A verdict, a program and a result folder made by hand, with hostile text in every place."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.errors import Level
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Buffer,
    Const,
    Host,
    Kernel,
    Launch,
    Program,
    Role,
    Scalar,
    Tensor,
    TensorRole,
)
from npusmith.task.verdict import Rung, Trial, Verdict
from npusmith.twin.finding import Finding

HOSTILE = (
    '<script>document.title="owned"</script><img src=http://127.0.0.1:9/x onerror=alert(1)>\x1b[31m'
)

CPP = """// the largest value of a row is subtracted, so that Exp cannot overflow
#include "kernel_operator.h"

constexpr int32_t TILE = 4096;

class Softmax {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y) {
    pipe.InitBuffer(inQueue, 2, TILE * sizeof(float));
    /* a comment
       over two lines */
    const char *text = "<b>no markup</b>";
  }
};
"""

TILE = '''"""softmax over the last axis"""
TILE = 4096

@kernel
def softmax(x: input(float32), y: output(float32), rows: int):
    xt = ub(TILE, float32)  # loaded
    for row in range(0, rows):
        top = -1.5e3
'''


def make_trial(name: str, passed: bool = True, **more: object) -> Trial:
    fields: dict[str, object] = {
        "name": name, "kind": "random", "seed": 7, "shapes": [[1024, 1024]], "passed": passed,
        "max_abs_error": 2.98e-8, "mean_abs_error": 1.1e-9, "max_rel_error": 3.2e-6,
        "mean_rel_error": 1.5e-7, "elements": 1048576,
    }  # fmt: skip
    return Trial.model_validate(fields | more)


@pytest.fixture
def verdict() -> Verdict:
    """One that failed, with everything a verdict can hold."""
    finding = Finding(
        code="chip-unknown",
        message=f"DataCopy of 100 B is not a multiple of 32 B {HOSTILE}",
        file="/elsewhere/build/op_kernel/softmax_custom.cpp",
        line=9,
        core=2,
        step=3,
        count=48,
        seen="tensor x in UB, offset 64 B",
        legal="length % 32 == 0 on this chip",
        hint="pad to 128 B, or DataCopyPad",
    )
    warning = finding.model_copy(update={"level": Level.WARNING, "file": "gone.cpp", "count": 1})
    return Verdict(
        verdict="fail",
        rung=Rung.RAN,
        compiled=True,
        correct=False,
        task="softmax",
        tolerance="multikernelbench",
        chip="910B2",
        trials=[
            *(make_trial(f"random {index}") for index in range(5)),
            make_trial(f"shape {HOSTILE}", False, message=HOSTILE, mismatched=17,
                       max_abs_error=float("inf"), shapes=[[1], [], [3, 5, 7, 11, 13, 17]]),
            make_trial("nan", skipped="the reference raises"),
        ],
        max_abs_error=float("inf"),
        findings=[finding, warning],
        weak_task=["a kernel that returns zeros", HOSTILE],
        project="out/softmax",
        program="out/softmax/softmax_custom.tile.py",
        provenance={"npusmith": "0.1.0", "compiler": "g++ 12.2.0", "seeds": [0, 1, 2, 3, 4],
                    "hostile": HOSTILE, "sandbox missing": []},
        seconds={"compile": 0.62, "run": 1.9},
    )  # fmt: skip


@pytest.fixture
def passing() -> Verdict:
    return Verdict(
        verdict="pass", rung=Rung.VALUES, compiled=True, correct=True, task="softmax",
        tolerance="multikernelbench", chip="910B2", max_abs_error=2.98e-8,
        trials=[make_trial(f"random {index}") for index in range(5)],
        project="out/softmax", program="out/softmax/softmax_custom.tile.py",
    )  # fmt: skip


def _buffer(name: str, role: Role, depth: int, length: int = 4096) -> Buffer:
    return Buffer(name, DType.FLOAT32, Const(length), role, depth)


@pytest.fixture
def lowered() -> Program:
    """What lowering leaves of a softmax: lengths are numbers, loads and stores double buffered."""
    kernel = Kernel(
        name="softmax",
        tensors=(
            Tensor("x", DType.FLOAT32, TensorRole.INPUT),
            Tensor("y", DType.FLOAT32, TensorRole.OUTPUT),
        ),
        scalars=(Scalar("rows"), Scalar("rows_per_core")),
        buffers=(
            _buffer("xt", Role.VECIN, 2),
            _buffer("yt", Role.VECOUT, 2),
            _buffer("et", Role.VECCALC, 1),
            _buffer("tmp", Role.VECCALC, 1),
            _buffer("part", Role.VECCALC, 1, 9),
        ),
        body=(),
    )
    return Program((), Host("host", ("x", "y"), (), (Launch("softmax", Const(1), ()),)), (kernel,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A result folder as lowering leaves it."""
    for name, text in (
        ("op_kernel/softmax_custom.cpp", CPP),
        ("op_host/softmax_custom.cpp", CPP),
        ("op_host/softmax_custom_tiling.h", "#pragma once\n"),
        ("softmax_custom.tile.py", TILE),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path
