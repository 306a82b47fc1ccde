"""The value of scalar expressions: ints of 64 bits, floats rounded to float32 after every step."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from npusmith.errors import LangError
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Call,
    Choice,
    Const,
    Expr,
    Name,
    Negate,
    ScalarFn,
)

Scalar = int | bool | np.float32
Fail = Callable[[str, str], LangError]  # code and message to an error with a place

_LOW, _HIGH = -(2**63), 2**63 - 1

_ARITHMETIC: dict[BinOp, Callable[..., Scalar]] = {
    BinOp.ADD: operator.add,
    BinOp.SUB: operator.sub,
    BinOp.MUL: operator.mul,
    BinOp.DIV: operator.truediv,
}
_COMPARE: dict[BinOp, Callable[..., bool]] = {
    BinOp.LT: operator.lt,
    BinOp.LE: operator.le,
    BinOp.GT: operator.gt,
    BinOp.GE: operator.ge,
    BinOp.EQ: operator.eq,
    BinOp.NE: operator.ne,
}
_BITS: dict[ScalarFn, Callable[[int, int], int]] = {
    ScalarFn.WRAP_ADD: operator.add,
    ScalarFn.WRAP_SUB: operator.sub,
    ScalarFn.WRAP_MUL: operator.mul,
    ScalarFn.BITWISE_AND: operator.and_,
    ScalarFn.BITWISE_OR: operator.or_,
    ScalarFn.BITWISE_XOR: operator.xor,
    ScalarFn.LEFT_SHIFT: operator.lshift,
    ScalarFn.RIGHT_SHIFT: operator.rshift,
}


def wrapped(value: int, bits: int, signed: bool = True) -> int:
    """The number of so many bits that is equal to `value` modulo 2**bits."""
    low = value % (1 << bits)
    return low - (1 << bits) if signed and low >> (bits - 1) else low


@dataclass(frozen=True, slots=True)
class Scalars:
    """Evaluates: `names` holds variables, `leaf` answers for shapes, cores and values."""

    names: dict[str, Scalar]
    leaf: Callable[[Expr], Scalar]
    fail: Fail

    def value(self, expr: Expr) -> Scalar:
        match expr:
            case Const(value):
                return np.float32(value) if isinstance(value, float) else value
            case Name(name):
                return self._name(name)
            case Binary(op, left, right):
                return self._binary(op, left, right)
            case Negate(inner):
                return self._kept(-self.value(inner))
            case Call(fn, args):
                return self._call(fn, [self.value(arg) for arg in args])
            case Choice(cond, then, other):
                return self.value(then if self.value(cond) else other)
            case _:
                return self.leaf(expr)

    def integer(self, expr: Expr) -> int:
        """The value of an expression that has to be an int."""
        value = self.value(expr)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fail("lang-type", f"an int is needed here, not {value!r}")
        return value

    def _name(self, name: str) -> Scalar:
        if name not in self.names:
            raise self.fail("lang-unknown-name", f"{name!r} has no value here")
        return self.names[name]

    def _binary(self, op: BinOp, left: Expr, right: Expr) -> Scalar:
        a = self.value(left)
        if op is BinOp.AND:
            return bool(a) and bool(self.value(right))
        if op is BinOp.OR:
            return bool(a) or bool(self.value(right))
        b = self.value(right)
        if op in _COMPARE:
            return bool(_COMPARE[op](a, b))
        if op in _ARITHMETIC:
            return self._kept(_ARITHMETIC[op](a, b))
        if b == 0:
            raise self.fail("lang-divide", f"{a} {op.value} 0")
        return self._kept(a // b if op is BinOp.FLOORDIV else a % b)

    def _kept(self, value: Scalar) -> Scalar:
        if isinstance(value, int) and not _LOW <= value <= _HIGH:
            raise self.fail("lang-overflow", "an int leaves the range of 64 bits")
        return value

    def _call(self, fn: ScalarFn, args: list[Scalar]) -> Scalar:
        match fn:
            case ScalarFn.MAX:
                return args[0] if args[0] > args[1] or args[0] != args[0] else args[1]
            case ScalarFn.MIN:
                return args[0] if args[0] < args[1] or args[0] != args[0] else args[1]
            case ScalarFn.FLOAT:
                # through int64, so that the number is rounded once
                number = args[0]
                return np.float32(np.int64(number)) if isinstance(number, int) else number
            case ScalarFn.INT:
                return self._truncated(args[0])
            case ScalarFn.CEIL_DIV | ScalarFn.ALIGN_UP:
                return self._rounded_up(fn, int(args[0]), int(args[1]))
            case _:
                return self._bits(fn, int(args[0]), int(args[1]))

    def _bits(self, fn: ScalarFn, a: int, b: int) -> Scalar:
        if fn in (ScalarFn.LEFT_SHIFT, ScalarFn.RIGHT_SHIFT) and not 0 <= b <= 63:
            raise self.fail("lang-range", f"a shift by {b} bits")
        return wrapped(_BITS[fn](a, b), 64)

    def _truncated(self, value: Scalar) -> int:
        if not np.isfinite(value):
            raise self.fail("lang-overflow", f"int({value}) has no value")
        return int(self._kept(int(value)))

    def _rounded_up(self, fn: ScalarFn, number: int, unit: int) -> Scalar:
        if unit < 1:
            raise self.fail("lang-divide", f"{fn.value}({number}, {unit})")
        parts = -(-number // unit)
        return self._kept(parts if fn is ScalarFn.CEIL_DIV else parts * unit)
