"""Short ways to write scalar expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from npusmith.ir.nodes import Binary, BinOp, Call, Const, Expr, ScalarFn
from npusmith.ir.rebuild import map_children

ZERO, ONE = Const(0), Const(1)


def product(items: Iterable[Expr]) -> Expr:
    """Left to right, factors of 1 left out; two numbers that meet become one."""
    result: Expr | None = None
    for item in items:
        if item == ONE:
            continue
        if isinstance(result, Const) and isinstance(item, Const):
            result = Const(result.value * item.value)
        else:
            result = item if result is None else Binary(BinOp.MUL, result, item)
    return ONE if result is None else result


def times(a: Expr, b: Expr) -> Expr:
    return ZERO if ZERO in (a, b) else product((a, b))


def plus(a: Expr, b: Expr) -> Expr:
    if a == ZERO:
        return b
    return a if b == ZERO else Binary(BinOp.ADD, a, b)


def minus(a: Expr, b: Expr) -> Expr:
    return a if b == ZERO else Binary(BinOp.SUB, a, b)


def quotient(a: Expr, b: Expr) -> Expr:
    return a if b == ONE else Binary(BinOp.FLOORDIV, a, b)


def remainder(a: Expr, b: Expr) -> Expr:
    return Binary(BinOp.MOD, a, b)


_WHOLE = {BinOp.ADD: int.__add__, BinOp.SUB: int.__sub__, BinOp.MUL: int.__mul__}
_SIGNS = {BinOp.ADD: 1, BinOp.SUB: -1}


def settled(size: Expr) -> Expr:
    """A size with its numbers worked out: `(n + 2 - 2) * 4 // 2` is `n * 2`; for integers alone.

    Sizes of a network's layers stand in those of the next ones, hundreds of levels deep.
    """
    inner = map_children(size, settled)
    match inner:
        case Binary(op, Const(int(a)), Const(int(b))) if op in _WHOLE:
            return Const(_WHOLE[op](a, b))
        case Binary(BinOp.FLOORDIV, Const(int(a)), Const(int(b))) if b > 0:
            return Const(a // b)
        case Binary(
            (BinOp.ADD | BinOp.SUB) as outer,
            Binary((BinOp.ADD | BinOp.SUB) as near, left, Const(int(a))),
            Const(int(b)),
        ):
            total = _SIGNS[near] * a + _SIGNS[outer] * b
            return minus(left, Const(-total)) if total < 0 else plus(left, Const(total))
        case Binary(BinOp.FLOORDIV, Binary(BinOp.MUL, left, right), Const(int(b))) if b > 0:
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Const) and isinstance(one.value, int) and one.value % b == 0:
                    return times(Const(one.value // b), other)
            return inner
        case Binary(BinOp.ADD, left, right):
            return plus(left, right)
        case Binary(BinOp.SUB, left, right):
            return minus(left, right)
        case Binary(BinOp.MUL, left, right):
            return times(left, right)
        case Binary(BinOp.FLOORDIV, left, right):
            return quotient(left, right)
        case _:
            return inner


def all_of(tests: Iterable[Expr]) -> Expr:
    """Whether all of them hold; there is at least one."""
    return reduce(lambda a, b: Binary(BinOp.AND, a, b), dict.fromkeys(tests))


def parts_of(test: Expr) -> Iterator[Expr]:
    """The tests that have to hold together."""
    match test:
        case Binary(BinOp.AND, left, right):
            yield from parts_of(left)
            yield from parts_of(right)
        case _:
            yield test


def same(a: Expr, b: Expr) -> Expr:
    return Binary(BinOp.EQ, a, b)


def divides(a: Expr, b: Expr) -> Expr:
    """Whether `b` is a whole multiple of `a`, which may be 0."""
    whole = same(remainder(b, a), ZERO)
    return whole if isinstance(a, Const) else Binary(BinOp.AND, Binary(BinOp.GT, a, ZERO), whole)


def least(a: Expr, b: Expr) -> Expr:
    return Call(ScalarFn.MIN, (a, b))


def largest(a: Expr, b: Expr) -> Expr:
    return Call(ScalarFn.MAX, (a, b))


def shares(a: Expr, b: Expr) -> Expr:
    return a if b == ONE else Call(ScalarFn.CEIL_DIV, (a, b))


def floating(a: Expr) -> Expr:
    return Call(ScalarFn.FLOAT, (a,))
