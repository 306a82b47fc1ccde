"""Integer arithmetic that is equal to PyTorch's bit for bit, wrap-around included.

Every integer has a span: the smallest and largest value that it can have, from its element type or
narrower. What stays below 2**24 is computed in float32, what int32 has room for (or wraps in) in
int32, and the rest as int64, element by element on the scalar unit (dag.Kind.LONG).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from npusmith.ir.dtypes import DType
from npusmith.lang.scalars import wrapped
from npusmith.plan.dag import EXACT, Dag, Kind, Value, held, remembered, small_integer
from npusmith.target.meaning import integer_limits

Span = tuple[int, int]

_INT32: Span = (-(2**31), 2**31 - 1)
_INT64: Span = (-(2**63), 2**63 - 1)
_FLOAT: Span = (1 - EXACT, EXACT - 1)
_POSITION: Span = (0, 1 << 22)
_TRUTH: Span = (0, 1)
_DIVIDED: Span = (1 - (1 << 22), (1 << 22) - 1)  # float32 divides these exactly enough


def limits(dtype: DType) -> Span:
    """The values of an integer type."""
    return _TRUTH if dtype is DType.BOOL else integer_limits(dtype)


def _within(span: Span, other: Span) -> bool:
    return other[0] <= span[0] and span[1] <= other[1]


def _union(*spans: Span) -> Span:
    return min(low for low, _ in spans), max(high for _, high in spans)


def span_of(dag: Dag, value: Value) -> Span:
    """Between which numbers a value lies."""
    if value in dag.spans:
        return dag.spans[value]
    match value.op:
        case "const":
            return int(value.number), int(value.number)
        case "load" if value.dtype is not None and not value.dtype.is_float:
            return limits(value.dtype)
        case "index" | "count":
            return _POSITION
        case "at" | "to_int" | "to_long" | "to_float" if value.args[0].kind is not Kind.FLOAT:
            return _clipped(span_of(dag, value.args[0]), value.kind)
        case "at":
            return span_of(dag, value.args[0])
        case "select":
            return _union(*(span_of(dag, arg) for arg in value.args[1:]))
        case "mul" | "max" if all(span_of(dag, arg) == _TRUTH for arg in value.args):
            return _TRUTH  # both hold, or one does
        case "reduce" | "running" if value.text in ("max", "min"):
            return span_of(dag, value.args[0])
        case _:
            return {Kind.INT: _INT32, Kind.LONG: _INT64}.get(value.kind, _FLOAT)


def _clipped(span: Span, kind: Kind) -> Span:
    most = {Kind.INT: _INT32, Kind.LONG: _INT64}.get(kind, _INT64)
    return span if _within(span, most) else most


def _known(dag: Dag, value: Value, span: Span) -> Value:
    """Say what is known of a value that has just been made."""
    if value.op != "const" and (value not in dag.spans or _within(span, dag.spans[value])):
        dag.spans[value] = span
    return value


def constant(dag: Dag, number: int, dtype: DType) -> Value:
    """A number as an element of a type."""
    if dtype is not DType.BOOL:
        number = wrapped(number, dtype.bytes * 8, dtype is not DType.UINT8)
    span = (number, number)
    kind = Kind.FLOAT if _within(span, _FLOAT) else Kind.INT if _within(span, _INT32) else Kind.LONG
    return dag.const(number, kind)


# ------------------------------------------------------------------------------------- arithmetic

_REACH: dict[str, Callable[[Span, Span], Span]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": lambda a, b: (
        min(x * y for x in a for y in b), max(x * y for x in a for y in b),
    ),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
}  # fmt: skip
_PLAIN: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
}


def arithmetic(dag: Dag, op: str, a: Value, b: Value, dtype: DType) -> Value:
    """add, sub, mul, max or min of two integers, as an element of `dtype`."""
    if a.op == "const" and b.op == "const":
        return constant(dag, _PLAIN[op](int(a.number), int(b.number)), dtype)
    own = [span_of(dag, a), span_of(dag, b)]
    reach = _REACH[op](*own)
    kind = _kind(dag, op, (a, b), _union(reach, *own), dtype)
    if kind is Kind.LONG:
        return _known(dag, scalar(dag, op, Kind.LONG, a, b), _fitting(reach, dtype))
    value = dag.make(op, held(dag, a, kind), held(dag, b, kind), kind=kind)
    return _fitted(dag, value, reach, dtype)


def _kind(dag: Dag, op: str, args: Sequence[Value], most: Span, dtype: DType) -> Kind:
    """In what a sum of these is exact, or wraps as its type does."""
    floats = all(arg.kind is Kind.FLOAT for arg in args)
    if floats and (_within(most, _FLOAT) or positional(dag.make(op, *args))):
        return Kind.FLOAT
    if _within(most, _FLOAT) and all(arg.kind is not Kind.LONG for arg in args):
        return Kind.INT
    return Kind.INT if dtype is not DType.INT64 or _within(most, _INT32) else Kind.LONG


@remembered
def positional(value: Value) -> bool:
    """Arithmetic on positions, which are taken to be small, whatever they are multiplied by."""
    if value.kind is not Kind.FLOAT or not small_integer(value):
        return False
    leaf = value.op in ("index", "count", "const")
    return leaf or (bool(value.args) and all(positional(arg) for arg in value.args))


def _fitting(reach: Span, dtype: DType) -> Span:
    return reach if _within(reach, limits(dtype)) else limits(dtype)


def _fitted(dag: Dag, value: Value, reach: Span, dtype: DType) -> Value:
    """A value that lies within `reach`, or is right modulo 2**32, as an element of a type."""
    bits, signed = dtype.bytes * 8, dtype is not DType.UINT8
    if _within(reach, limits(dtype)) or dtype is DType.INT64:
        return _known(dag, value, reach)
    if value.kind is Kind.FLOAT and dtype is not DType.INT32:
        moved = dag.shifted(value, 2 ** (bits - 1)) if signed else value
        turns = dag.unary("floor", dag.scaled(moved, 0.5**bits))
        value = dag.sub(value, dag.scaled(turns, 2**bits))
    elif value.kind is Kind.INT and bits < 32:
        value = shift_right(dag, shift_left(dag, value, 32 - bits), 32 - bits)
        if not signed:  # 2**bits more where it is negative
            value = dag.sub(value, dag.scaled(shift_right(dag, value, 31), 2**bits))
    return _known(dag, value, limits(dtype))


def converted(dag: Dag, value: Value, dtype: DType) -> Value:
    """An integer as one of another type: the bits that it has room for."""
    if value.op == "const":
        return constant(dag, int(value.number), dtype)
    span = span_of(dag, value)
    if _within(span, limits(dtype)):
        return value
    if value.kind is Kind.LONG:  # set() keeps the low 32 bits
        value, span = scalar(dag, "copy", Kind.INT, value), _INT32
    return _fitted(dag, value, span, dtype)


def whole(dag: Dag, value: Value, dtype: DType) -> Value:
    """A float as an integer, towards zero."""
    if dtype is DType.INT64:
        return dag.make("to_long", value, kind=Kind.LONG)
    return _fitted(dag, dag.make("to_int", value, kind=Kind.INT), _INT32, dtype)


def scalar(dag: Dag, name: str, kind: Kind, *args: Value) -> Value:
    """An operation of the scalar unit, element by element (scalar_unit.py)."""
    return dag.make("scalar", *args, text=name, kind=kind)


def shift_left(dag: Dag, x: Value, by: int) -> Value:
    """An int32 value by a number of bits, modulo 2**32."""
    return dag.make("shift_left", x, number=by, kind=Kind.INT)


def shift_right(dag: Dag, x: Value, by: int) -> Value:
    """An int32 value by a number of bits, rounded down."""
    return dag.make("shift_right", x, number=by, kind=Kind.INT) if by else x


# -------------------------------------------------------------------------------------- comparing


def compared(dag: Dag, mode: str, a: Value, b: Value) -> Value:
    """The truth of a comparison of two integers."""
    spans = span_of(dag, a), span_of(dag, b)
    floats = a.kind is Kind.FLOAT and b.kind is Kind.FLOAT
    if floats or any(_within(span, _FLOAT) for span in spans):
        # rounding keeps order, and a number below 2**24 is not what a larger one is rounded to
        return dag.test(mode, held(dag, a, Kind.FLOAT), held(dag, b, Kind.FLOAT))
    if not all(_within(span, _INT32) for span in spans):
        return _known(dag, scalar(dag, mode, Kind.FLOAT, a, b), (0, 1))
    a, b = held(dag, a, Kind.INT), held(dag, b, Kind.INT)
    if mode in ("eq", "ne"):
        return _zero(dag, mode, dag.sub(a, b))
    # the larger less one of them is 0 where that one is the larger, and may wrap where not
    rest = dag.sub(dag.max(a, b), a if mode in ("lt", "ge") else b)
    return _zero(dag, "ne" if mode in ("lt", "gt") else "eq", rest)


def _zero(dag: Dag, mode: str, value: Value) -> Value:
    return dag.test(mode, held(dag, value, Kind.FLOAT), dag.const(0.0))


def sign(dag: Dag, a: Value) -> Value:
    zero, one = dag.const(0.0), dag.const(1.0)
    x = held(dag, a, Kind.FLOAT)
    below = dag.select(dag.compare("lt", x, zero), dag.const(-1.0), zero)
    return _known(dag, dag.select(dag.compare("gt", x, zero), one, below), (-1, 1))


def chosen(dag: Dag, truth: Value, a: Value, b: Value) -> Value:
    """`a` where a truth value is 1, else `b`."""
    span = _union(span_of(dag, a), span_of(dag, b))
    return _known(dag, dag.where(truth, a, b), span)


# --------------------------------------------------------------------------------------- division


def divided(dag: Dag, name: str, a: Value, b: Value, dtype: DType) -> Value:
    """floordiv, truncdiv, mod (of floor) or fmod (of truncation) of two integers."""
    spans = span_of(dag, a), span_of(dag, b)
    if (bits := _power_of_two(b)) and name in ("floordiv", "mod") and a.kind is not Kind.LONG:
        return _divided_by_power(dag, name, a, bits, dtype)
    small = all(_within(span, _DIVIDED) for span in spans)
    if small and a.kind is Kind.FLOAT and b.kind is Kind.FLOAT:
        rounded = dag.unary("floor" if name in ("floordiv", "mod") else "trunc", dag.div(a, b))
        value = rounded if name.endswith("div") else dag.sub(a, dag.mul(b, rounded))
        return _fitted(dag, value, _quotients(name, *spans), dtype)
    kind = Kind.INT if all(_within(span, _INT32) for span in spans) else Kind.LONG
    return _fitted(dag, scalar(dag, name, kind, a, b), _quotients(name, *spans), dtype)


def _power_of_two(b: Value) -> int:
    """Of which power of two a value is; 0 where it is none, or 1."""
    number = int(b.number) if b.op == "const" else 0
    return number.bit_length() - 1 if number > 0 and number & (number - 1) == 0 else 0


def _divided_by_power(dag: Dag, name: str, a: Value, bits: int, dtype: DType) -> Value:
    """Rounded down: exact in float32, and a shift of an int32."""
    low, high = (end >> bits for end in span_of(dag, a))
    if a.kind is Kind.FLOAT:
        quotient = _known(dag, dag.unary("floor", dag.scaled(a, 0.5**bits)), (low, high))
        back = dag.scaled(quotient, 2.0**bits)
    else:
        quotient = _known(dag, shift_right(dag, a, bits), (low, high))
        back = shift_left(dag, quotient, bits)
    if name == "floordiv":
        return _fitted(dag, quotient, (low, high), dtype)
    return _fitted(dag, dag.sub(a, back), (0, (1 << bits) - 1), dtype)


def _quotients(name: str, a: Span, b: Span) -> Span:
    most = max(abs(end) for end in (a if name.endswith("div") else b))
    low = 0 if a[0] >= 0 and b[0] >= 0 else -most
    return low, most


# ------------------------------------------------------------------------------------------- bits


def inverted(dag: Dag, a: Value, dtype: DType) -> Value:
    top = limits(dtype)[1] if dtype is DType.UINT8 else -1
    return arithmetic(dag, "sub", constant(dag, top, dtype), a, dtype)


def bits(dag: Dag, name: str, a: Value, b: Value, dtype: DType) -> Value:
    """and, or, xor."""
    if name == "and" and a.op == "const":
        a, b = b, a
    spans = span_of(dag, a), span_of(dag, b)
    low = int(b.number) + 1 if b.op == "const" else 0
    if name == "and" and low > 0 and low & (low - 1) == 0 and _within(spans[0], _DIVIDED):
        return divided(dag, "mod", a, constant(dag, low, DType.INT64), dtype)
    kind = Kind.INT if all(_within(span, _INT32) for span in spans) else Kind.LONG
    return _known(dag, scalar(dag, name, kind, a, b), limits(dtype))


def shifted(dag: Dag, name: str, a: Value, b: Value, dtype: DType) -> Value:
    """left or right; by less than 0 or too much: everything is shifted out."""
    size = dtype.bytes * 8
    top = size if dtype is DType.UINT8 else size - 1
    if b.op == "const":
        return _shifted_by(dag, name, a, int(b.number), dtype)
    kind = Kind.LONG if dtype is DType.INT64 else Kind.INT
    most = constant(dag, size - 1 if name == "left" else top, DType.INT64)
    value = scalar(dag, name, kind, a, b, most)
    reach = span_of(dag, a) if name == "right" else {Kind.INT: _INT32}.get(kind, _INT64)
    return _fitted(dag, value, _union(reach, (0, 0)), dtype)


def _shifted_by(dag: Dag, name: str, a: Value, amount: int, dtype: DType) -> Value:
    size = dtype.bytes * 8
    out = not 0 <= amount < size
    if name == "left":
        by = constant(dag, 0 if out else 1 << amount, dtype)
        return arithmetic(dag, "mul", a, by, dtype)
    if out:
        amount = size - 1
    low, high = span_of(dag, a)
    reach = (low >> amount, high >> amount)
    if a.kind is Kind.FLOAT:
        return _known(dag, dag.unary("floor", dag.scaled(a, 0.5**amount)), reach)
    if a.kind is Kind.INT:
        return _known(dag, shift_right(dag, a, amount), reach)
    by = constant(dag, amount, DType.INT64)
    return _known(dag, scalar(dag, "right", Kind.LONG, a, by, by), reach)


def power(dag: Dag, x: Value, exponent: int, dtype: DType) -> Value:
    if exponent == 0:
        return constant(dag, 1, dtype)
    if exponent == 1:
        return x
    half = power(dag, x, exponent // 2, dtype)
    square = arithmetic(dag, "mul", half, half, dtype)
    return arithmetic(dag, "mul", square, x, dtype) if exponent % 2 else square


def raised(dag: Dag, a: Value, b: Value, dtype: DType) -> Value:
    """a ** b, modulo what the type holds; below 0 a fraction: 0 but for powers of 1 and -1.

    By squares, as many as the exponent's type, or what is known of it, has bits.
    """
    zero, one = constant(dag, 0, dtype), constant(dag, 1, dtype)
    if a.op == "const" and a.number == 2:
        return shifted(dag, "left", one, b, dtype)
    low, high = span_of(dag, b)
    exponent = arithmetic(dag, "max", b, zero, dtype) if low < 0 else b
    found, square = one, a
    for bit in range(high.bit_length()):
        if bit:
            square = arithmetic(dag, "mul", square, square, dtype)
        # a factor, not a choice of products: what is found so far is made first, then one bit
        factor = chosen(dag, _is_odd(dag, exponent, bit, dtype), square, one)
        found = arithmetic(dag, "mul", found, factor, dtype)
    if low >= 0:
        return found
    turned = chosen(dag, _is_odd(dag, b, 0, dtype), a, one)  # of -1
    minus = compared(dag, "eq", a, constant(dag, -1, dtype))
    fraction = chosen(dag, minus, turned, chosen(dag, compared(dag, "eq", a, one), one, zero))
    return chosen(dag, compared(dag, "lt", b, zero), fraction, found)


def _is_odd(dag: Dag, x: Value, bit: int, dtype: DType) -> Value:
    """The truth of one bit."""
    one = constant(dag, 1, dtype)
    lowest = bits(dag, "and", _shifted_by(dag, "right", x, bit, dtype), one, dtype)
    return compared(dag, "ne", lowest, constant(dag, 0, dtype))
