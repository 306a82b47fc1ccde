"""Expressions of the tile language as C++.

One printer serves kernel, host and binding code: they differ in their leaves (what a name, a
dimension or a buffer element is called) and in two function names, which a Dialect holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from npusmith.ir.nodes import (
    INT_FNS,
    Binary,
    BinOp,
    Call,
    Choice,
    Const,
    Expr,
    Negate,
    ScalarFn,
)
from npusmith.lower.facts import Fact
from npusmith.lower.kinds import Kind


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one place of the project spells things."""

    leaf: Callable[[Expr], str]  # Name, Dim, Size, ChipFact, CoreId, CoreCount, Value
    kind: Callable[[Expr], Kind]
    fact: Callable[[Expr], Fact]
    least: str  # of two ints
    most: str
    infinity: str


_OPERATORS: dict[BinOp, tuple[str, int]] = {
    BinOp.OR: ("||", 1),
    BinOp.AND: ("&&", 2),
    BinOp.EQ: ("==", 3),
    BinOp.NE: ("!=", 3),
    BinOp.LT: ("<", 4),
    BinOp.LE: ("<=", 4),
    BinOp.GT: (">", 4),
    BinOp.GE: (">=", 4),
    BinOp.ADD: ("+", 5),
    BinOp.SUB: ("-", 5),
    BinOp.MUL: ("*", 6),
    BinOp.DIV: ("/", 6),
    BinOp.FLOORDIV: ("/", 6),
    BinOp.MOD: ("%", 6),
}
_UNARY, _ATOM = 7, 8
_FLOORING = {BinOp.FLOORDIV: "FloorDiv", BinOp.MOD: "FloorMod"}
_LOGICAL = (BinOp.AND, BinOp.OR)


def show(expr: Expr, dialect: Dialect) -> str:
    """The C++ text of `expr`, with no more parentheses than it needs."""
    return _show(expr, dialect)[0]


def show_as(expr: Expr, kind: Kind, dialect: Dialect) -> str:
    """The same, as a value of another kind."""
    return _as(expr, kind, dialect)[0]


def show_factor(expr: Expr, dialect: Dialect) -> str:
    """The same, ready to be multiplied."""
    text, level = _show(expr, dialect)
    return text if level >= _OPERATORS[BinOp.MUL][1] else f"({text})"


def real(value: float, infinity: str) -> str:
    """A float32 literal that reads back as exactly this value."""
    single = np.float32(value)
    if np.isinf(single):
        return infinity if single > 0 else f"-{infinity}"
    return f"{single!s}f"


def _show(expr: Expr, dialect: Dialect) -> tuple[str, int]:
    match expr:
        case Const(value):
            return _constant(value, dialect)
        case Binary():
            return _binary(expr, dialect)
        case Negate(value):
            text, level = _show(value, dialect)
            # a second minus sign must not become a decrement
            safe = level >= _UNARY and not text.startswith("-")
            return (f"-{text}" if safe else f"-({text})"), _UNARY
        case Call(fn, args):
            return _call(fn, args, dialect)
        case Choice(cond, Const(False), Const(True)):
            return _negated(cond, dialect)
        case Choice(cond, then, other):
            kind = dialect.kind(expr)
            parts = (_as(then, kind, dialect)[0], _as(other, kind, dialect)[0])
            return f"({_show(cond, dialect)[0]} ? {parts[0]} : {parts[1]})", _ATOM
        case _:
            return dialect.leaf(expr), _ATOM


def _negated(cond: Expr, dialect: Dialect) -> tuple[str, int]:
    """`not cond`, which the tile language writes as a choice between False and True."""
    flipped = {BinOp.EQ: BinOp.NE, BinOp.NE: BinOp.EQ}
    if isinstance(cond, Binary) and cond.op in flipped:
        return _binary(Binary(flipped[cond.op], cond.left, cond.right), dialect)
    text, level = _show(cond, dialect)
    return (f"!{text}" if level >= _UNARY else f"!({text})"), _UNARY


def _constant(value: float, dialect: Dialect) -> tuple[str, int]:
    if isinstance(value, bool):
        return ("true" if value else "false"), _ATOM
    if value == -(2**63) and isinstance(value, int):
        return (
            "(-9223372036854775807 - 1)",
            _ATOM,
        )  # a literal would be the negation of what int64_t cannot hold
    text = str(value) if isinstance(value, int) else real(value, dialect.infinity)
    return text, _UNARY if text.startswith("-") else _ATOM


def _as(expr: Expr, kind: Kind, dialect: Dialect) -> tuple[str, int]:
    """`expr` with an explicit conversion where its own kind is another one."""
    if dialect.kind(expr) is kind:
        return _show(expr, dialect)
    if isinstance(expr, Const) and kind is Kind.FLOAT:
        return _constant(float(expr.value), dialect)
    return f"static_cast<{kind.value}>({_show(expr, dialect)[0]})", _ATOM


def _operand_kind(expr: Binary, dialect: Dialect) -> Kind:
    """Both sides of an operator are brought to one kind."""
    if expr.op in _LOGICAL:
        return Kind.BOOL
    kinds = (dialect.kind(expr.left), dialect.kind(expr.right))
    if expr.op is BinOp.DIV or Kind.FLOAT in kinds:
        return Kind.FLOAT
    return Kind.BOOL if kinds == (Kind.BOOL, Kind.BOOL) else Kind.INT


def _binary(expr: Binary, dialect: Dialect) -> tuple[str, int]:
    kind = _operand_kind(expr, dialect)
    left, left_level = _as(expr.left, kind, dialect)
    right, right_level = _as(expr.right, kind, dialect)
    if expr.op in _FLOORING and not _truncates_alike(expr, dialect):
        return f"{_FLOORING[expr.op]}({left}, {right})", _ATOM
    sign, level = _OPERATORS[expr.op]
    # && inside || is right without parentheses, but compilers and readers ask for them
    mixed = {expr.op, getattr(expr.left, "op", expr.op)} == set(_LOGICAL)
    if left_level < level or mixed:
        left = f"({left})"
    if right_level <= level or {expr.op, getattr(expr.right, "op", expr.op)} == set(_LOGICAL):
        right = f"({right})"
    return f"{left} {sign} {right}", level


def _truncates_alike(expr: Binary, dialect: Dialect) -> bool:
    """C++ rounds towards zero and Python towards minus infinity: equal when nothing is negative."""
    return None not in (dialect.fact(expr.left).low, dialect.fact(expr.right).low)


def _call(fn: ScalarFn, args: tuple[Expr, ...], dialect: Dialect) -> tuple[str, int]:
    match fn:
        case ScalarFn.FLOAT:
            return _as(args[0], Kind.FLOAT, dialect)
        case ScalarFn.INT:
            return _as(args[0], Kind.INT, dialect)
        case ScalarFn.MIN | ScalarFn.MAX:
            kind = dialect.kind(Call(fn, args))
            if kind is Kind.FLOAT:
                name = "FloatMin" if fn is ScalarFn.MIN else "FloatMax"
            else:
                name = dialect.least if fn is ScalarFn.MIN else dialect.most
        case ScalarFn.CEIL_DIV:
            kind, name = Kind.INT, "CeilDiv"
        case fn if fn in INT_FNS:
            return _bits(fn, args, dialect), _ATOM
        case _:
            kind, name = Kind.INT, "AlignUp"
    return f"{name}({', '.join(_as(arg, kind, dialect)[0] for arg in args)})", _ATOM


_BITS: dict[ScalarFn, str] = {
    ScalarFn.WRAP_ADD: "+",
    ScalarFn.WRAP_SUB: "-",
    ScalarFn.WRAP_MUL: "*",
    ScalarFn.BITWISE_AND: "&",
    ScalarFn.BITWISE_OR: "|",
    ScalarFn.BITWISE_XOR: "^",
    ScalarFn.LEFT_SHIFT: "<<",
    ScalarFn.RIGHT_SHIFT: ">>",
}


def _bits(fn: ScalarFn, args: tuple[Expr, ...], dialect: Dialect) -> str:
    """In uint64_t, which wraps where int64_t is undefined; a right shift keeps the sign."""
    left, right = (_as(arg, Kind.INT, dialect)[0] for arg in args)
    if fn is ScalarFn.RIGHT_SHIFT:
        return f"(static_cast<int64_t>({left}) >> ({right}))"
    unsigned = f"static_cast<uint64_t>({left}) {_BITS[fn]} static_cast<uint64_t>({right})"
    return f"static_cast<int64_t>({unsigned})"
