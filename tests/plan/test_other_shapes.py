"""A program at shapes that it was not captured at, against one that was captured there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import capture

from npusmith.plan import Plan, write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.shrink import Shrunk
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")
MOST = 1.5  # times as long, within a factor of 64 in every size
Shape = tuple[int, int]


def captured(model: Callable[..., Any], shape: Shape) -> Plan:
    return write(capture(model, torch.empty(shape, device="meta")), "op_custom", CHIP)


def us(made: Plan, at: Plan) -> float:
    """The estimate of a program at the shapes that another was captured at."""
    ports = at.spec.inputs, at.spec.outputs
    inputs, outputs = (tuple(port.shape for port in row) for row in ports)
    return Evaluator(made.spec, CHIP, Shrunk(inputs, outputs)).time(made.program).kernel_us


@pytest.mark.parametrize(
    ("model", "at", "to"),
    [
        (lambda x: x.softmax(1), (512, 1024), (8, 65_536)),
        (lambda x: x.softmax(1), (8, 65_536), (512, 4096)),
        (lambda x: F.layer_norm(x, x.shape[1:]), (512, 1024), (8, 65_536)),
        (lambda x: x.sum(1), (512, 1024), (8, 65_536)),
        (lambda x: x.sum(0), (512, 1024), (4096, 64)),
        (lambda x: x.softmax(0), (64, 4096), (4096, 64)),
        (lambda x: x.cumsum(1), (512, 1024), (8, 65_536)),
        (lambda x: x + x.select(0, 0), (512, 1024), (8, 65_536)),
        (lambda x: x.t() * 2, (512, 1024), (64, 8192)),
    ],
    ids=[
        "softmax", "softmax of shorter rows", "layer norm", "sum", "sum of rows",
        "softmax of columns", "scan", "bias", "transposition",
    ],
)  # fmt: skip
def test_a_program_is_quick_at_other_shapes(
    model: Callable[..., Any], at: Shape, to: Shape
) -> None:
    made, there = captured(model, at), captured(model, to)
    assert us(made, there) <= MOST * us(there, there)
