"""`a + c * x` is one instruction where `a` is nobody else's, and has the bits of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import agrees, plan

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Name, Op, Stage, StageKind, View
from npusmith.ir.walk import Block, statements
from npusmith.plan.block import Part, Temp
from npusmith.plan.fused_products import Touched, fuse_products
from npusmith.plan.writer import op

X, Y = torch.linspace(-2, 2, 3001), torch.linspace(3, -1, 3001)


def instructions(fn: Callable[..., Any], *args: torch.Tensor) -> list[str]:
    body = plan(fn, *args).program.kernel.body
    return [stmt.name for stmt in statements(body) if isinstance(stmt, Op)]


@pytest.mark.parametrize(
    "fn",
    [lambda x, y: x.exp() + y * 0.3, lambda x, y: y * 0.3 + x.exp(), lambda x, y: x.exp() - y * 7],
    ids=["sum", "product first", "difference"],
)
def test_a_product_with_a_number_is_added_by_one_instruction(fn: Callable[..., Any]) -> None:
    assert instructions(fn, X, Y) == ["exp", "axpy"]
    agrees(plan(fn, X, Y), fn, X, Y)


def test_sums_of_products_are_one_instruction_each() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.exp() + y * 0.25 + x * 0.5 - y * y * 3.0

    assert instructions(fn, X, Y) == ["exp", "axpy", "axpy", "mul", "axpy"]
    agrees(plan(fn, X, Y), fn, X, Y)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: (x.exp() + y * 0.3) * x.exp(),
        lambda x, y: x + y * 0.3,
        lambda x, y: (x.exp() + y * 0.3, y * 0.3),
        lambda x, y: x.exp() + (y * 0.3).floor(),
        lambda x, y: (x * 0.3 + x * 0.3) * y,
    ],
    ids=["the addend", "an input", "the product", "not the product itself", "the product twice"],
)
def test_what_is_read_again_is_not_added_to(fn: Callable[..., Any]) -> None:
    assert "axpy" not in instructions(fn, X, Y)
    agrees(plan(fn, X, Y), fn, X, Y)


N = Const(64)


def fused(*between: Op) -> list[str]:
    """`a + 2 * x`, with operations between the product and the sum."""
    stmts = (
        op("exp", ("a", "x"), (), N), op("muls", ("p", "x"), (Const(2.0),), N), *between,
        op("add", ("t", "a", "p"), (), N), op("exp", ("y", "t"), (), N),
    )  # fmt: skip
    temps = {name: Temp(name, DType.FLOAT32, Part.SCRATCH, True) for name in "axpty"}
    body, _ = fuse_products((Stage(StageKind.COMPUTE, stmts),), temps, Touched())
    return [stmt.name for stmt in statements(body) if isinstance(stmt, Op)]


def test_a_factor_that_is_written_over_before_the_sum_stays_two_instructions() -> None:
    assert fused() == ["exp", "axpy", "exp"]
    assert fused(op("exp", ("y", "x"), (), N)) == ["exp", "exp", "axpy", "exp"]
    assert "axpy" not in fused(op("exp", ("x", "x"), (), N))


def test_a_sum_of_other_lanes_stays_two_instructions() -> None:
    short = op("muls", ("p", "x"), (Const(2.0),), Name("n"))
    whole = op("add", ("t", "a", "p"), (), N)
    shifted = op("add", ("t", View("a", Const(64)), "p"), (), N)
    temps = {name: Temp(name, DType.FLOAT32, Part.SCRATCH, True) for name in "axpt"}
    for total in (whole, shifted):
        block: Block = (op("exp", ("a", "x"), (), N), short, total)
        assert fuse_products(block, temps, Touched()) == (block, {})
