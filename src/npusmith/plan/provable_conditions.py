"""Conditions over sizes that hold whatever the sizes are: `always(condition)`; or that never do.

Sums, multiples and quotients of one size go on after a period as they did before, but for a step
that stays the same: `n == (n + 1) // 2 + n // 2` holds for ever if it holds for two sizes in a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm, prod

from npusmith.ir.nodes import Binary, BinOp, Call, Const, Dim, Expr, If, ScalarFn, Stmt
from npusmith.ir.rebuild import map_children, with_bodies
from npusmith.ir.walk import bodies, subexpressions
from npusmith.lang.bounds import const_int
from npusmith.lang.extents import extent
from npusmith.lower.fold import fold
from npusmith.lower.kinds import Kind
from npusmith.plan.index import poly
from npusmith.plan.scalars import parts_of

_LONGEST = 64  # a period; longer ones are left as conditions
_FARTHEST = 1000  # the sum of the numbers of a comparison that is solved

_HOLDS = {
    BinOp.EQ: lambda apart, rise: apart == 0 and rise == 0,
    BinOp.GE: lambda apart, rise: apart >= 0 and rise >= 0,
    BinOp.GT: lambda apart, rise: apart > 0 and rise >= 0,
    BinOp.LE: lambda apart, rise: apart <= 0 and rise <= 0,
    BinOp.LT: lambda apart, rise: apart < 0 and rise <= 0,
}


def always(expr: Expr) -> bool:
    """Whether a condition holds at all sizes from 0 on, as far as that can be told."""
    if fold(expr, lambda _: Kind.INT) == Const(True):
        return True
    if not isinstance(expr, Binary) or expr.op not in _HOLDS:
        return False
    if _alike(expr.left, expr.right):
        return bool(_HOLDS[expr.op](0, 0))
    if expr.op is BinOp.EQ and expr.right == Const(0) and _is_multiple(expr.left):
        return True
    difference = Binary(BinOp.SUB, expr.left, expr.right)
    sizes = {item for item in subexpressions(difference) if isinstance(item, Dim)}
    period = _period(difference)
    if len(sizes) != 1 or period is None or period > _LONGEST or min(s.index for s in sizes) < 0:
        return False
    (size,) = sizes
    apart = [
        extent(difference, {size.tensor: (0,) * size.index + (at,)}) for at in range(2 * period)
    ]
    rise = apart[period] - apart[0]
    return all(_HOLDS[expr.op](item, rise) for item in apart[:period])


def _alike(left: Expr, right: Expr) -> bool:
    """Whether two sizes are the same sum of products."""
    parts = (*subexpressions(left), *subexpressions(right))
    whole = all(isinstance(item.value, int) for item in parts if isinstance(item, Const))
    return left == right or (whole and poly(left) == poly(right))


def _is_multiple(expr: Expr) -> bool:
    """Whether it is the rest of what is a multiple whatever the sizes: `2 * a * 3 % 6`."""
    match expr:
        case Binary(BinOp.MOD, whole, Const(int() as unit)) if unit > 0:
            return all(number % unit == 0 for _, number in poly(whole).terms)
    return False


def without_implied(tests: Iterable[Expr]) -> tuple[Expr, ...]:
    """Conditions without those that follow from sizes that others say are equal, or numbers.

    `a == 6`, `a // 2 * b == 3 * b`: the second holds where the first does.
    """
    asked = tuple(dict.fromkeys(map(_solved, tests)))
    known: dict[Expr, Expr] = {}

    def put_in(expr: Expr) -> Expr:
        return put_in(known[expr]) if expr in known else map_children(expr, put_in)

    kept: set[Expr] = set()
    for is_definition in (_is_number, _is_same, lambda expr: True):
        for expr in asked:
            if expr in kept or not is_definition(expr):
                continue
            now = fold(put_in(expr), lambda _: Kind.INT)
            if not always(now):
                kept.add(expr)
                if isinstance(now, Binary) and (_is_number(now) or _is_same(now)):
                    size, other = now.left, now.right
                    known[size if isinstance(size, Dim) else other] = (
                        other if isinstance(size, Dim) else size
                    )
    return tuple(expr for expr in asked if expr in kept)


def _solved(expr: Expr) -> Expr:
    """A comparison in which one size is added to, and the larger or smaller is taken of, as the
    least size at which it holds: `max(n - 1 - max(n, 1), 0) >= 0` as `n >= 2`.

    Such sums go on by one step behind the last place where another of two is the larger one: a
    place is a difference of numbers in them over one of steps.
    """
    if not isinstance(expr, Binary) or expr.op not in (BinOp.GE, BinOp.GT):
        return expr
    sizes = {item for item in subexpressions(expr) if isinstance(item, Dim)}
    apart = Binary(BinOp.SUB, expr.left, expr.right)
    reach = _reach(apart)
    if len(sizes) != 1 or reach is None or reach > _FARTHEST or isinstance(expr.left, Dim):
        return expr
    (size,) = sizes
    if size.index < 0:
        return expr
    values = [
        extent(apart, {size.tensor: (0,) * size.index + (at,)}) for at in range(2 * reach + 3)
    ]
    holds = [bool(_HOLDS[expr.op](value, 0)) for value in values]
    first = holds.index(True) if True in holds else len(holds)
    if first > 2 * reach or not all(holds[first:]) or values[-1] < values[-2]:
        return expr
    return Binary(BinOp.GE, size, Const(first))


def _reach(expr: Expr) -> int | None:
    """The sum of the numbers in sums, differences and the smaller or larger of two; or None."""
    match expr:
        case Const(int(value)):
            return abs(value)
        case Dim():
            return 0
        case Binary(BinOp.ADD | BinOp.SUB, left, right) | Call(
            ScalarFn.MAX | ScalarFn.MIN, (left, right)
        ):
            one, two = _reach(left), _reach(right)
            return None if one is None or two is None else one + two
        case _:
            return None


def _is_number(expr: Expr) -> bool:
    match expr:
        case Binary(BinOp.EQ, Dim(), Const()) | Binary(BinOp.EQ, Const(), Dim()):
            return True
    return False


def _is_same(expr: Expr) -> bool:
    match expr:
        case Binary(BinOp.EQ, Dim(), Dim()):
            return True
    return False


def _period(expr: Expr) -> int | None:
    """After how many sizes an expression has gone on by the same step; None: not known."""
    match expr:
        case Const(int()) | Dim():
            return 1
        case Binary(BinOp.ADD | BinOp.SUB, left, right):
            one, two = _period(left), _period(right)
            return None if one is None or two is None else lcm(one, two)
        case Binary(BinOp.MUL, Const(int()), other) | Binary(BinOp.MUL, other, Const(int())):
            return _period(other)
        case Binary(BinOp.FLOORDIV | BinOp.MOD, inner, Const(int() as unit)) | Call(
            ScalarFn.CEIL_DIV, (inner, Const(int() as unit))
        ) if unit > 0:
            period = _period(inner)
            return None if period is None else period * unit
        case _:
            return None


def live(block: tuple[Stmt, ...], tile: int) -> tuple[Stmt, ...]:
    """The same without branches that no size takes, now that TILE is known.

    What stands in them may be illegal: 34 rows of whole blocks, behind a test that they fit into
    128 elements.
    """
    kept: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, If) and stmt.orelse and _never(stmt.cond, tile):
            kept += live(stmt.orelse, tile)
        else:
            kept.append(with_bodies(stmt, tuple(live(body, tile) for body in bodies(stmt))))
    return tuple(kept)


def _never(condition: Expr, tile: int) -> bool:
    """Whether one of its parts asks for more elements than there can be."""
    parts = [part for part in parts_of(condition) if isinstance(part, Binary)]
    filled = {part.left for part in parts if part.op is BinOp.GT and part.right == Const(0)}
    return any(
        least is not None and most is not None and least > most
        for part in parts
        if part.op is BinOp.LE
        for least, most in [(_least(part.left, filled), const_int(part.right, {"TILE": tile}))]
    )


def _least(expr: Expr, filled: set[Expr]) -> int | None:
    """The smallest value where all of `filled` are at least 1; None where it is not known."""
    if expr in filled:
        return 1
    match expr:
        case Const(int(value)):
            return value
        case Binary(BinOp.MUL, left, right):
            factors = [_least(item, filled) for item in (left, right)]
            known = [item for item in factors if item is not None and item > 0]
            return prod(known) if len(known) == len(factors) else None
        case Call(ScalarFn.ALIGN_UP, (inner, Const(int(step)))) if step > 0:
            least = _least(inner, filled)
            return None if least is None else -(-least // step) * step
        case _:
            return None
