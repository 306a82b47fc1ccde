"""The type of every scalar: int (64-bit), float (float32) or bool."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from npusmith.errors import LowerError
from npusmith.ir.nodes import (
    INT_FNS,
    Assign,
    Binary,
    BinOp,
    Call,
    Choice,
    Const,
    CoreCount,
    CoreId,
    Dim,
    Expr,
    For,
    Name,
    Negate,
    Program,
    ScalarFn,
    Size,
    Value,
)
from npusmith.ir.walk import Block, statements


class Kind(Enum):
    """`value` is the C++ type."""

    INT = "int64_t"
    FLOAT = "float"
    BOOL = "bool"


Kinds = Mapping[str, Kind]

_TRUTH = {BinOp.LT, BinOp.LE, BinOp.GT, BinOp.GE, BinOp.EQ, BinOp.NE, BinOp.AND, BinOp.OR}
_INT_FNS = {ScalarFn.CEIL_DIV, ScalarFn.ALIGN_UP, ScalarFn.INT, *INT_FNS}


def infer(expr: Expr, known: Kinds, floats: frozenset[str]) -> Kind:
    """The kind of `expr`; `floats` names the buffers whose elements are floats."""
    match expr:
        case Const(bool()):
            return Kind.BOOL
        case Const(value):
            return Kind.INT if isinstance(value, int) else Kind.FLOAT
        case Name(name):
            if name not in known:
                raise LowerError("lower-name", f"{name!r} has no value here", seen=name)
            return known[name]
        case Binary(op, left, right):
            if op in _TRUTH:
                return Kind.BOOL
            if op is BinOp.DIV:
                return Kind.FLOAT
            return _wider(infer(left, known, floats), infer(right, known, floats))
        case Negate(value):
            return _wider(infer(value, known, floats), Kind.INT)
        case Call(fn, args):
            if fn in _INT_FNS:
                return Kind.INT
            if fn is ScalarFn.FLOAT:
                return Kind.FLOAT
            return _wider(*(infer(arg, known, floats) for arg in args))
        case Choice(_, then, other):
            first, second = infer(then, known, floats), infer(other, known, floats)
            return first if first is second else _wider(first, second)
        case Value(source):
            return Kind.FLOAT if source.buffer in floats else Kind.INT
        case CoreId() | CoreCount() | Dim() | Size():
            return Kind.INT
        case _:  # ChipFact
            return Kind.INT


def _wider(*kinds: Kind) -> Kind:
    return Kind.FLOAT if Kind.FLOAT in kinds else Kind.INT


def host_kinds(program: Program) -> dict[str, Kind]:
    """The kind of every name that the host function may read."""
    loops = (item.loop for item in program.host.launches if item.loop is not None)
    known = _constants(program) | {loop.var: Kind.INT for loop in loops}
    return _grow(program.host.body, known, frozenset())


def kernel_kinds(program: Program) -> dict[str, Kind]:
    """The kind of every name that the kernel may read."""
    known = _constants(program)
    for scalar in program.kernel.scalars:
        known[scalar.name] = Kind.FLOAT if scalar.is_float else Kind.INT
    return _grow(program.kernel.body, known, float_buffers(program))


def float_buffers(program: Program) -> frozenset[str]:
    """Names of the buffers that hold floats."""
    return frozenset(item.name for item in program.kernel.buffers if item.dtype.is_float)


def _constants(program: Program) -> dict[str, Kind]:
    return {
        name: Kind.INT if isinstance(value, int) else Kind.FLOAT for name, value in program.consts
    }


def _grow(body: Block, known: dict[str, Kind], floats: frozenset[str]) -> dict[str, Kind]:
    """Program order suffices: a variable is assigned before it is read."""
    for stmt in statements(body):
        if isinstance(stmt, For):
            known.setdefault(stmt.var, Kind.INT)
        elif isinstance(stmt, Assign):
            known.setdefault(stmt.target, infer(stmt.value, known, floats))
    return known
