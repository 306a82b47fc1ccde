"""The value of scalar expressions: ints of 64 bits, floats rounded to float32 after every step.

An expression becomes a function of its scope once, however often it is evaluated: closures of
closures, one for each node.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

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


class Scope(Protocol):
    """Who evaluates: variables by name, and an error at the place that evaluates now."""

    @property
    def names(self) -> dict[str, Scalar]: ...

    @property
    def fail(self) -> Fail: ...


S = TypeVar("S", bound=Scope)
T = TypeVar("T", bound=Scalar)
Read = Callable[[S], Scalar]

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


class Closures(Generic[S]):
    """From expressions to functions; `leaf` makes those of shapes, cores and values."""

    def __init__(self, leaf: Callable[[Expr], Read[S]]) -> None:
        self.leaf = leaf

    def value(self, expr: Expr) -> Read[S]:
        match expr:
            case Name():
                return self.named(expr.id)
            case Const():
                number = expr.value
                return self.constant(np.float32(number) if isinstance(number, float) else number)
            case Binary():
                a, b = self.value(expr.left), self.value(expr.right)
                return self.folded(_binary(expr.op, a, b), a, b)
            case Call():
                parts = [self.value(arg) for arg in expr.args]
                return self.folded(_call(expr.fn, parts), *parts)
            case Choice():
                parts = [self.value(item) for item in (expr.cond, expr.then, expr.other)]
                return self.folded(_choice(*parts), *parts)
            case Negate():
                part = self.value(expr.value)
                return self.folded(_negated(part), part)
            case _:
                return self.leaf(expr)

    def integer(self, expr: Expr) -> Callable[[S], int]:
        """The value of an expression that has to be an int."""
        read = self.value(expr)

        def integer(scope: S) -> int:
            value = read(scope)
            if type(value) is not int:  # nor a bool
                raise scope.fail("lang-type", f"an int is needed here, not {value!r}")
            return value

        return self.folded(integer, read)

    def named(self, name: str) -> Read[S]:
        def read(scope: S) -> Scalar:
            try:
                return scope.names[name]
            except KeyError:
                raise scope.fail("lang-unknown-name", f"{name!r} has no value here") from None

        return read

    def constant(self, value: T) -> Callable[[S], T]:
        return lambda scope: value

    def folded(self, read: Callable[[S], T], *parts: Read[S]) -> Callable[[S], T]:
        """`read`, which computes from `parts`."""
        return read


class Folding(Closures[S]):
    """Where variables of all scopes keep one value: what follows from those and from literals is
    worked out once, too.

    What has no value stays a function: it is an error at the statement that needs it.
    """

    def __init__(self, leaf: Callable[[Expr], Read[S]], fixed: Mapping[str, Scalar]) -> None:
        super().__init__(leaf)
        self.fixed = fixed
        self.known: dict[Callable[[S], Scalar], Scalar] = {}

    def named(self, name: str) -> Read[S]:
        return self.constant(self.fixed[name]) if name in self.fixed else super().named(name)

    def constant(self, value: T) -> Callable[[S], T]:
        read = super().constant(value)
        self.known[read] = value
        return read

    def folded(self, read: Callable[[S], T], *parts: Read[S]) -> Callable[[S], T]:
        if not all(part in self.known for part in parts):
            return read
        try:
            return self.constant(read(cast(S, _NOWHERE)))
        except LangError:
            return read


@dataclass(frozen=True, slots=True)
class Scalars:
    """Evaluates once: `names` holds variables, `leaf` answers for shapes, cores and values."""

    names: dict[str, Scalar]
    leaf: Callable[[Expr], Scalar]
    fail: Fail

    def value(self, expr: Expr) -> Scalar:
        return _ONCE.value(expr)(self)

    def integer(self, expr: Expr) -> int:
        """The value of an expression that has to be an int."""
        return _ONCE.integer(expr)(self)


def _nothing(expr: Expr) -> Scalar:
    raise AssertionError(expr)


_NOWHERE = Scalars({}, _nothing, LangError)
_ONCE: Closures[Scalars] = Closures(lambda expr: lambda scalars: scalars.leaf(expr))


def _negated(value: Read[S]) -> Read[S]:
    return lambda scope: _kept(-value(scope), scope)


def _choice(cond: Read[S], then: Read[S], other: Read[S]) -> Read[S]:
    return lambda scope: then(scope) if cond(scope) else other(scope)


def _kept(value: Scalar, scope: Scope) -> Scalar:
    if isinstance(value, int) and not _LOW <= value <= _HIGH:
        raise scope.fail("lang-overflow", "an int leaves the range of 64 bits")
    return value


# --------------------------------------------------------------------------------------- operators


def _binary(op: BinOp, a: Read[S], b: Read[S]) -> Read[S]:
    if op is BinOp.AND:
        return lambda scope: bool(a(scope)) and bool(b(scope))
    if op is BinOp.OR:
        return lambda scope: bool(a(scope)) or bool(b(scope))
    if op in _COMPARE:
        compare = _COMPARE[op]
        return lambda scope: bool(compare(a(scope), b(scope)))
    if op in _ARITHMETIC:
        return _arithmetic(_ARITHMETIC[op], a, b)
    return _quotient(op, a, b)


def _arithmetic(compute: Callable[..., Scalar], a: Read[S], b: Read[S]) -> Read[S]:
    def result(scope: S) -> Scalar:
        value = compute(a(scope), b(scope))
        # an int in its range first: most are
        return value if type(value) is int and _LOW <= value <= _HIGH else _kept(value, scope)

    return result


def _quotient(op: BinOp, a: Read[S], b: Read[S]) -> Read[S]:
    divide = operator.floordiv if op is BinOp.FLOORDIV else operator.mod

    def quotient(scope: S) -> Scalar:
        number, unit = a(scope), b(scope)
        if unit == 0:
            raise scope.fail("lang-divide", f"{number} {op.value} 0")
        return _kept(divide(number, unit), scope)

    return quotient


# --------------------------------------------------------------------------------------- functions


def _call(fn: ScalarFn, args: list[Read[S]]) -> Read[S]:
    if fn in _CONVERT:
        convert, (only,) = _CONVERT[fn], args
        return lambda scope: convert(only(scope), scope)
    a, b = args
    match fn:
        case ScalarFn.MAX | ScalarFn.MIN:
            return _extreme(_COMPARE[BinOp.GT if fn is ScalarFn.MAX else BinOp.LT], a, b)
        case ScalarFn.CEIL_DIV | ScalarFn.ALIGN_UP:
            return lambda scope: _rounded_up(fn, int(a(scope)), int(b(scope)), scope)
        case ScalarFn.LEFT_SHIFT | ScalarFn.RIGHT_SHIFT:
            return lambda scope: _shifted(fn, int(a(scope)), int(b(scope)), scope)
        case _:
            compute = _BITS[fn]
            return lambda scope: wrapped(compute(int(a(scope)), int(b(scope))), 64)


def _extreme(wins: Callable[..., bool], a: Read[S], b: Read[S]) -> Read[S]:
    def extreme(scope: S) -> Scalar:
        first, second = a(scope), b(scope)
        return first if wins(first, second) or first != first else second

    return extreme


def _to_float(value: Scalar, scope: Scope) -> Scalar:
    # through int64, so that the number is rounded once
    return np.float32(np.int64(value)) if isinstance(value, int) else value


def _truncated(value: Scalar, scope: Scope) -> Scalar:
    if not math.isfinite(value):
        raise scope.fail("lang-overflow", f"int({value}) has no value")
    return _kept(int(value), scope)


_CONVERT = {ScalarFn.FLOAT: _to_float, ScalarFn.INT: _truncated}


def _shifted(fn: ScalarFn, number: int, places: int, scope: Scope) -> Scalar:
    if not 0 <= places <= 63:
        raise scope.fail("lang-range", f"a shift by {places} bits")
    return wrapped(_BITS[fn](number, places), 64)


def _rounded_up(fn: ScalarFn, number: int, unit: int, scope: Scope) -> Scalar:
    if unit < 1:
        raise scope.fail("lang-divide", f"{fn.value}({number}, {unit})")
    parts = -(-number // unit)
    return _kept(parts if fn is ScalarFn.CEIL_DIV else parts * unit, scope)
