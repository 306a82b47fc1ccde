"""Halves are computed in halves where that gives the same bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from modules import capture

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Op
from npusmith.ir.walk import statements
from npusmith.lang import interpret
from npusmith.plan import write
from npusmith.target.chips import find_chip
from npusmith.target.intrinsics import INTRINSICS, Form

CHIP = find_chip("910B2")
Fn = Callable[..., torch.Tensor]


def halves(*sizes: int) -> torch.Tensor:
    """From subnormal numbers to those whose sums and products overflow."""
    return (torch.randn(*sizes) * torch.exp2(torch.randint(-26, 17, sizes))).half()


def casts(fn: Fn, *args: torch.Tensor, error: float = 0.0) -> int:
    """How many there are in the program, which gives PyTorch's own bits."""
    made = write(capture(fn, *args), "op_custom", CHIP)
    expected = fn(*args)
    inputs = [item.numpy() for item in args]
    (y,) = interpret(made.program, CHIP, inputs, [(tuple(expected.shape), DType.FLOAT16)])
    torch.testing.assert_close(
        torch.from_numpy(y), expected, rtol=error, atol=error, equal_nan=True
    )
    body = statements(made.program.kernel.body)
    ops = [stmt for stmt in body if isinstance(stmt, Op) and INTRINSICS[stmt.name].form is Form.MAP]
    return sum(op.name == "cast" for op in ops)


SAME: dict[str, Fn] = {
    "absolute values": lambda x, y: x.abs() * y,
    "sum": lambda x, y: x + y,
    "difference of itself and another": lambda x, y: x - torch.maximum(x, y),
    "product by a half": lambda x, y: torch.minimum(x, y).clamp(-2, 3) * 0.5,
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_rounded_once_has_no_casts(name: str) -> None:
    assert casts(SAME[name], halves(5, 4001), halves(5, 4001)) == 0


OTHER: dict[str, Fn] = {
    "two roundings": lambda x, y: (x.float() * y.float() + x.float()).half(),
    "a number that is no half": lambda x, y: torch.maximum(x, y) + 0.1,
    "a result that is read again": lambda x, y: ((x.float() + y.float()).relu() * 0.5).half(),
}


@pytest.mark.parametrize("name", OTHER)
def test_what_is_rounded_twice_stays_float(name: str) -> None:
    assert casts(OTHER[name], halves(5, 4001), halves(5, 4001), error=1e-3) == 3


def test_numbers_are_read_from_halves() -> None:
    limits = torch.tensor([-1.5]).half(), torch.tensor([2e4]).half()
    assert casts(lambda x, low, high: x.maximum(low).minimum(high), halves(5, 4001), *limits) == 0
    # a number that is rounded is none of a half
    assert casts(lambda x, low: x.maximum(low + 0.1), halves(5, 4001), limits[0], error=1e-3) > 0
