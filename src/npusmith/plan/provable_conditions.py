"""Conditions over sizes that hold whatever the sizes are: `always(condition)`.

Sums, multiples and quotients of one size go on after a period as they did before, but for a step
that stays the same: `n == (n + 1) // 2 + n // 2` holds for ever if it holds for two sizes in a row.
"""

from __future__ import annotations

from math import lcm

from npusmith.ir.nodes import Binary, BinOp, Call, Const, Dim, Expr, ScalarFn
from npusmith.ir.walk import subexpressions
from npusmith.lang.extents import extent
from npusmith.lower.fold import fold
from npusmith.lower.kinds import Kind
from npusmith.plan.index import poly

_LONGEST = 64  # a period; longer ones are left as conditions

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
