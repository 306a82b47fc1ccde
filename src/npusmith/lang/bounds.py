"""What is known about ints before a run: values of constant expressions, and largest values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    Choice,
    Const,
    Expr,
    For,
    Name,
    Negate,
    Program,
    ScalarFn,
)
from npusmith.ir.walk import statements

Number = int | float
_LIMIT = 2**63

_INTS: dict[BinOp | ScalarFn, Callable[[int, int], int]] = {
    BinOp.ADD: operator.add,
    BinOp.SUB: operator.sub,
    BinOp.MUL: operator.mul,
    BinOp.FLOORDIV: operator.floordiv,
    BinOp.MOD: operator.mod,
    ScalarFn.MIN: min,
    ScalarFn.MAX: max,
    ScalarFn.CEIL_DIV: lambda a, b: -(-a // b),
    ScalarFn.ALIGN_UP: lambda a, b: -(-a // b) * b,
}
_FLOATS: dict[BinOp | ScalarFn, Callable[[float, float], float]] = {
    BinOp.ADD: operator.add,
    BinOp.SUB: operator.sub,
    BinOp.MUL: operator.mul,
    BinOp.DIV: operator.truediv,
}
_DIVIDES = (BinOp.FLOORDIV, BinOp.MOD, BinOp.DIV, ScalarFn.CEIL_DIV, ScalarFn.ALIGN_UP)


def fold_const(expr: Expr, consts: Mapping[str, Number]) -> Number | None:
    """The value of an expression of literals and constants; None when it is not one."""
    match expr:
        case Const(bool()):
            return None
        case Const(value):
            return value
        case Name(name):
            return consts.get(name)
        case Negate(inner):
            folded = fold_const(inner, consts)
            return None if folded is None else _kept(-folded)
        case Binary(op, left, right):
            return _apply(op, fold_const(left, consts), fold_const(right, consts))
        case Call(fn, (left, right)):
            return _apply(fn, fold_const(left, consts), fold_const(right, consts))
        case _:
            return None


def _apply(op: BinOp | ScalarFn, a: Number | None, b: Number | None) -> Number | None:
    if a is None or b is None or (op in _DIVIDES and b == 0):
        return None
    if isinstance(a, int) and isinstance(b, int):
        return _kept(_INTS[op](a, b)) if op in _INTS else None
    if isinstance(a, float) and isinstance(b, float) and op in _FLOATS:
        return _kept(_FLOATS[op](a, b))
    return None


def _kept(value: Number) -> Number | None:
    """Only what the language could write as a literal."""
    if isinstance(value, int):
        return value if -_LIMIT <= value < _LIMIT else None
    return value if value == value else None


def const_int(expr: Expr, consts: Mapping[str, Number]) -> int | None:
    """The value of a constant int expression; None when it is not one."""
    value = fold_const(expr, consts)
    return value if isinstance(value, int) else None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Constant values and largest values of int expressions in the kernel."""

    consts: Mapping[str, Number]
    once: Mapping[str, Expr]  # variables with a single assignment

    @classmethod
    def of(cls, program: Program) -> Bounds:
        seen: dict[str, list[Expr | None]] = {}
        for stmt in statements(program.kernel.body):
            if isinstance(stmt, Assign):
                seen.setdefault(stmt.target, []).append(stmt.value)
            elif isinstance(stmt, For):
                seen.setdefault(stmt.var, []).append(None)
        once = {name: items[0] for name, items in seen.items() if len(items) == 1 and items[0]}
        return cls(dict(program.consts), once)

    def exact(self, expr: Expr) -> int | None:
        """The value that the expression has in every run; None when it varies or is unknown."""
        if isinstance(expr, Name) and expr.id in self.once:
            expr = self.once[expr.id]
        return const_int(expr, self.consts)

    def most(self, expr: Expr, depth: int = 8) -> int | None:
        """A number that the expression never exceeds; None when none is known."""
        value = fold_const(expr, self.consts)
        if isinstance(value, int):
            return value
        if depth == 0:
            return None
        match expr:
            case Name(name) if name in self.once:
                return self.most(self.once[name], depth - 1)
            case Call(ScalarFn.MIN, args):
                known = [self.most(arg, depth - 1) for arg in args]
                limits = [item for item in known if item is not None]
                return min(limits) if limits else None
            case Choice(_, then, other):
                first, second = self.most(then, depth - 1), self.most(other, depth - 1)
                return None if first is None or second is None else max(first, second)
            case Call(ScalarFn.ALIGN_UP, (inner, unit)):
                limit, step = self.most(inner, depth - 1), const_int(unit, self.consts)
                return None if limit is None or not step else -(-limit // step) * step
            case _:
                return None
