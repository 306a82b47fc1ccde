"""Short ways to write scalar expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from npusmith.ir.nodes import Binary, BinOp, Call, Const, Expr, ScalarFn

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
