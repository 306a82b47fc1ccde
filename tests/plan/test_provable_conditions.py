"""Conditions over sizes that hold whatever the sizes are."""

from __future__ import annotations

import pytest

from npusmith.ir.nodes import Binary, BinOp, Call, Const, Dim, Expr, ScalarFn
from npusmith.plan.provable_conditions import always

N, M = Dim("x", 1), Dim("x", 0)


def half(expr: Expr) -> Expr:
    return Binary(BinOp.FLOORDIV, expr, Const(2))


def plus(a: Expr, b: Expr) -> Expr:
    return Binary(BinOp.ADD, a, b)


UPPER = half(plus(N, Const(1)))


@pytest.mark.parametrize(
    "condition",
    [
        Binary(BinOp.EQ, N, N),
        Binary(  # a border that is put around and taken off again
            BinOp.EQ,
            Binary(BinOp.MUL, Binary(BinOp.SUB, plus(N, Const(2)), Const(2)), M),
            Binary(BinOp.MUL, N, M),
        ),
        Binary(BinOp.EQ, N, plus(UPPER, half(N))),
        Binary(BinOp.EQ, Call(ScalarFn.CEIL_DIV, (N, Const(2))), UPPER),
        Binary(BinOp.GE, Binary(BinOp.SUB, N, UPPER), Const(0)),
        Binary(BinOp.LT, Binary(BinOp.MOD, N, Const(3)), Const(3)),
        Binary(BinOp.LE, Const(2), Const(3)),
    ],
)
def test_what_holds_at_every_size_is_no_condition(condition: Expr) -> None:
    assert always(condition)


@pytest.mark.parametrize(
    "condition",
    [
        Binary(BinOp.EQ, N, M),
        Binary(BinOp.EQ, UPPER, half(N)),  # of even sizes alone
        Binary(BinOp.GE, N, Const(1)),
        Binary(BinOp.LE, N, Const(1 << 40)),
        Binary(BinOp.GE, Binary(BinOp.MUL, N, M), Const(0)),  # of two sizes: not tried
        Binary(BinOp.EQ, Binary(BinOp.MOD, N, Const(1000)), N),
        Binary(BinOp.NE, N, N),
    ],
)
def test_what_may_not_hold_stays_a_condition(condition: Expr) -> None:
    assert not always(condition)
