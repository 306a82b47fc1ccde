"""Conditions over sizes that hold whatever the sizes are, and branches that no size takes."""

from __future__ import annotations

import pytest

from npusmith.ir.nodes import Assign, Binary, BinOp, Call, Const, Dim, Expr, If, Name, ScalarFn
from npusmith.plan.provable_conditions import always, live, without_implied
from npusmith.plan.scalars import all_of

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


def equal(a: Expr, b: Expr | int) -> Expr:
    return Binary(BinOp.EQ, a, Const(b) if isinstance(b, int) else b)


def times(a: Expr, b: Expr) -> Expr:
    return Binary(BinOp.MUL, a, b)


def largest(a: Expr, b: Expr) -> Expr:
    return Call(ScalarFn.MAX, (a, b))


ONE_LESS = Binary(BinOp.SUB, N, Const(1))
MIRRORED = Binary(BinOp.SUB, ONE_LESS, largest(ONE_LESS, Const(1)))  # of a border of one
K = Dim("w", 0)


@pytest.mark.parametrize(
    ("tests", "kept"),
    [
        ([equal(N, 6), equal(Binary(BinOp.MOD, N, Const(2)), 0)], [equal(N, 6)]),
        ([equal(Binary(BinOp.MOD, N, Const(4)), 0), equal(N, 6)], None),  # they never hold
        ([equal(N, M), equal(times(N, K), times(K, M))], [equal(N, M)]),
        ([equal(N, M), equal(M, 3), equal(N, 3)], [equal(M, 3), equal(N, 3)]),
        ([equal(N, M), equal(M, K), equal(N, K)], [equal(N, M), equal(M, K)]),
        ([equal(N, M), equal(M, K)], None),
        ([Binary(BinOp.GE, MIRRORED, Const(0))], [Binary(BinOp.GE, N, Const(2))]),
        ([Binary(BinOp.GE, largest(MIRRORED, Const(0)), Const(0))], []),
        (  # holds from 4 to 6 alone
            [Binary(BinOp.GE, Binary(BinOp.SUB, Const(6), largest(N, Const(4))), Const(0))],
            None,
        ),
        ([equal(Binary(BinOp.MOD, times(times(N, Const(2)), Const(3)), Const(6)), 0)], []),
        ([equal(Binary(BinOp.MOD, times(N, Const(2)), Const(6)), 0)], None),
    ],
)
def test_conditions_that_follow_from_others_are_left_out(
    tests: list[Expr], kept: list[Expr] | None
) -> None:
    assert list(without_implied(tests)) == (tests if kept is None else kept)


ROWS, TILE = Name("rows"), Name("TILE")
FILLED = Binary(BinOp.GT, ROWS, Const(0))
BLOCKS = Call(ScalarFn.ALIGN_UP, (ROWS, Const(8)))


def at_most(left: Expr, right: Expr) -> Expr:
    return Binary(BinOp.LE, left, right)


@pytest.mark.parametrize(
    ("parts", "taken"),
    [
        # 34 rows of a whole block each are 272 elements
        ([FILLED, at_most(Binary(BinOp.MUL, Const(34), BLOCKS), TILE)], False),
        ([FILLED, at_most(Binary(BinOp.MUL, Const(32), BLOCKS), TILE)], True),
        # without rows there are none of them
        ([at_most(Binary(BinOp.MUL, Const(34), BLOCKS), TILE)], True),
        ([FILLED, at_most(Const(65), Binary(BinOp.FLOORDIV, TILE, Const(4)))], False),
        # of what is not known to be there, nothing is said
        ([FILLED, at_most(Binary(BinOp.MUL, Name("x"), Const(999)), TILE)], True),
    ],
)
def test_a_branch_that_asks_for_more_than_a_tile_is_left_out(
    parts: list[Expr], taken: bool
) -> None:
    short, long = Assign("a", Const(1)), Assign("a", Const(2))
    choice = If(all_of(parts), (short,), (long,))
    assert live((choice,), 256) == ((choice,) if taken else (long,))
    inner = If(Binary(BinOp.LT, ROWS, Const(9)), (choice,))
    assert live((inner,), 256)[0].then == ((choice,) if taken else (long,))
