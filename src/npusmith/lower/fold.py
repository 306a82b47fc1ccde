"""Constant folding of int and bool expressions, with the meaning that Python gives them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from npusmith.ir.nodes import Binary, BinOp, Call, Choice, Const, Expr, Name, Negate, ScalarFn
from npusmith.ir.rebuild import map_children
from npusmith.lower.kinds import Kind

KindOf = Callable[[Expr], Kind]

_ARITHMETIC: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.ADD: operator.add,
    BinOp.SUB: operator.sub,
    BinOp.MUL: operator.mul,
    BinOp.FLOORDIV: operator.floordiv,
    BinOp.MOD: operator.mod,
    BinOp.LT: operator.lt,
    BinOp.LE: operator.le,
    BinOp.GT: operator.gt,
    BinOp.GE: operator.ge,
    BinOp.EQ: operator.eq,
    BinOp.NE: operator.ne,
}

_FUNCTIONS: dict[ScalarFn, Callable[[int, int], int]] = {
    ScalarFn.MIN: min,
    ScalarFn.MAX: max,
    ScalarFn.CEIL_DIV: lambda a, b: -(-a // b),
    ScalarFn.ALIGN_UP: lambda a, b: -(-a // b) * b,
}

_STOPS = {BinOp.AND: False, BinOp.OR: True}
_DIVIDES = (BinOp.FLOORDIV, BinOp.MOD, ScalarFn.CEIL_DIV, ScalarFn.ALIGN_UP)


def evaluate(expr: Expr, consts: Mapping[str, int | float]) -> int | None:
    """The value of an int expression over literals and constants; None when it is not one."""

    def substitute(item: Expr) -> Expr:
        if isinstance(item, Name) and item.id in consts:
            return Const(consts[item.id])
        return map_children(item, substitute)

    return _literal(fold(substitute(expr), lambda _: Kind.INT))


def fold(expr: Expr, kind_of: KindOf) -> Expr:
    """`expr` with int and bool constants worked out and neutral ints dropped."""
    inner = map_children(expr, lambda child: fold(child, kind_of))
    match inner:
        case Negate(Const(value)) if not isinstance(value, bool):
            return Const(-value)
        case Binary(op, left, right):
            return _binary(op, left, right, kind_of)
        case Call(fn, (left, right)):
            return _call(fn, left, right)
        case Choice(Const(bool() as cond), then, other):
            return then if cond else other
        case _:
            return inner


def _literal(expr: Expr) -> int | None:
    if isinstance(expr, Const) and isinstance(expr.value, int) and expr.value is not True:
        return None if expr.value is False else expr.value
    return None


def _binary(op: BinOp, left: Expr, right: Expr, kind_of: KindOf) -> Expr:
    a, b = _literal(left), _literal(right)
    if a is not None and b is not None and op in _ARITHMETIC:
        undefined = op in _DIVIDES and b == 0  # left for the run to report
        return Binary(op, left, right) if undefined else Const(_ARITHMETIC[op](a, b))
    if op in _STOPS:
        return _logic(_STOPS[op], Binary(op, left, right))
    kept = Binary(op, left, right)
    if kind_of(kept) is not Kind.INT:
        return kept
    match op, a, b:
        case (BinOp.ADD | BinOp.SUB, _, 0) | (BinOp.MUL | BinOp.FLOORDIV, _, 1):
            return left
        case (BinOp.ADD, 0, _) | (BinOp.MUL, 1, _):
            return right
        case (BinOp.MUL, 0, _) | (BinOp.MUL, _, 0):
            return Const(0)
        case (BinOp.SUB, _, _) if left == right:
            return Const(0)
        case (BinOp.EQ, _, _) if (sides := _without_factor(left, right)) is not None:
            return Binary(op, *sides)
        case (BinOp.MOD, _, int()) if b and _is_multiple(left, b):
            return Const(0)
        case _:
            return kept


def _without_factor(left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    """What is left of `a * 3` and `b * 3`."""
    match left, right:
        case Binary(BinOp.MUL, a, Const(one)), Binary(BinOp.MUL, b, Const(two)):
            return (a, b) if one == two and one else None
        case _:
            return None


def _is_multiple(expr: Expr, of: int) -> bool:
    """Whether an int is a multiple of a number whatever its sizes are, as far as its form says."""
    match expr:
        case Const():
            value = _literal(expr)
            return value is not None and value % of == 0
        case Binary(BinOp.MUL, left, right):
            return _is_multiple(left, of) or _is_multiple(right, of)
        case Binary(BinOp.ADD | BinOp.SUB, left, right):
            return _is_multiple(left, of) and _is_multiple(right, of)
        case _:
            return abs(of) == 1


def _logic(stop: bool, expr: Binary) -> Expr:
    """What is left of `and` (`or`) where a side is known: it is over at the first `stop`."""
    if isinstance(expr.left, Const):
        return expr.left if expr.left.value is stop else expr.right
    return expr.left if expr.right == Const(not stop) else expr


def _call(fn: ScalarFn, left: Expr, right: Expr) -> Expr:
    a, b = _literal(left), _literal(right)
    if a is None or b is None or (fn in _DIVIDES and b == 0) or fn not in _FUNCTIONS:
        return Call(fn, (left, right))
    return Const(_FUNCTIONS[fn](a, b))
