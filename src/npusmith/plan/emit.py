"""One value -> vector operations, in the list where its groups are open."""

from __future__ import annotations

import math
from collections.abc import Callable

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Choice,
    Const,
    Expr,
    Load,
    Negate,
    Span,
    Stmt,
    View,
)
from npusmith.lang.scalars import wrapped
from npusmith.plan.block import Part, Path
from npusmith.plan.carry import running
from npusmith.plan.dag import COMPARES, ROUNDINGS, Kind, Value
from npusmith.plan.scalar_unit import scalar_loop
from npusmith.plan.scalars import floating
from npusmith.plan.writer import Writer, negated, op
from npusmith.target.intrinsics import INTRINSICS

_SCALAR_FORM = {"add": "adds", "mul": "muls", "max": "maxs", "min": "mins"}
_SWAPPED = {"lt": "gt", "gt": "lt", "eq": "eq", "le": "ge", "ge": "le"}


def emit(w: Writer, path: Path, value: Value) -> None:
    """Compute `value`, whose arguments are at hand, in the last list of `path`."""
    rule = w.rules.get(value.op) or _RULES.get(value.op, _unary)
    with w.along(value):
        w.apply(rule, path, value)


def _target(w: Writer, path: Path, value: Value) -> str:
    """The buffer that a value is computed in: its output's, when it has one here."""
    buffer = w.stored.pop(value, None) or w.like(value)
    path[-1].buffers[value] = buffer
    return buffer


def _add(path: Path, *items: Stmt) -> None:
    path[-1].items.extend(items)


# ------------------------------------------------------------------------------------------- load


def buffer_dtype(dtype: DType) -> DType:
    """What a tensor of this type is on the chip: a bool is a byte."""
    return DType.UINT8 if dtype is DType.BOOL else dtype


def load(w: Writer, path: Path, value: Value, part: Part) -> str:
    """Bring the elements of an input that stand at the open indices on chip, as they are."""
    assert value.dtype is not None
    wide = w.space.wide(value)
    buffer = w.temp(buffer_dtype(value.dtype), wide, part, hint=w.tensors[value.text])
    span = Span(w.tensors[value.text], w.address(path, tuple(value.axes), value.index))
    _add(path, Load(View(buffer), span, w.count(path, wide)))
    return buffer


def widening(value: Value) -> tuple[tuple[DType, str], ...]:
    """Casts, with their modes, from what an input is to what is computed with."""
    dtype = value.dtype
    assert dtype is not None
    if value.kind is Kind.LONG:
        return ()
    known: dict[DType, tuple[tuple[DType, str], ...]] = {
        DType.FLOAT32: (),
        DType.INT32: (),
        DType.FLOAT16: ((DType.FLOAT32, "none"),),
        DType.BFLOAT16: ((DType.FLOAT32, "none"),),
        DType.INT16: ((DType.FLOAT32, "none"),),
        DType.INT64: ((DType.FLOAT32, "rint"),),
    }
    return known.get(dtype, ((DType.FLOAT16, "none"), (DType.FLOAT32, "none")))


def _load(w: Writer, path: Path, value: Value) -> None:
    buffer = load(w, path, value, Part.LOADED)
    count = w.count(path, w.space.wide(value))
    assert value.dtype is not None
    for dtype, mode in widening(value):
        wider = w.temp(dtype, w.space.wide(value))
        _add(path, op("cast", (wider, buffer), (), count, mode))
        buffer = wider
    path[-1].buffers[value] = buffer


# --------------------------------------------------------------------------------------------- map


def _unary(w: Writer, path: Path, value: Value) -> None:
    assert value.op in INTRINSICS, value.op
    wide = w.space.wide(value)
    sources = [w.vector(path, arg, wide) for arg in value.args]
    target = _target(w, path, value)
    _add(path, op(value.op, (target, *sources), (), w.count(path, wide)))


def _rounded(w: Writer, path: Path, value: Value) -> None:
    wide = w.space.wide(value)
    source = w.vector(path, value.args[0], wide)
    _add(path, op("cast", (_target(w, path, value), source), (), w.count(path, wide), value.op))


def _converted(w: Writer, path: Path, value: Value) -> None:
    wide = w.space.wide(value)
    kinds = (value.args[0].kind, value.kind)
    mode = "rint" if value.kind is Kind.FLOAT else "trunc" if Kind.FLOAT in kinds else "none"
    source = w.vector(path, value.args[0], wide)
    _add(path, op("cast", (_target(w, path, value), source), (), w.count(path, wide), mode))


def _narrow(w: Writer, path: Path, value: Value) -> None:
    """Round to a 16-bit type and come back."""
    assert value.dtype is not None
    wide = w.space.wide(value)
    count = w.count(path, wide)
    half = w.temp(value.dtype, wide)
    source = w.vector(path, value.args[0], wide)
    _add(path, op("cast", (half, source), (), count, "rint"))
    _add(path, op("cast", (_target(w, path, value), half), (), count, "none"))


def _arithmetic(w: Writer, path: Path, value: Value) -> None:
    """add, mul, max and min have a form with a scalar; sub becomes an addition of one."""
    a, b = value.args
    wide = w.space.wide(value)
    count = w.count(path, wide)
    if w.is_number(a, wide) and not w.is_number(b, wide) and value.op != "sub":
        a, b = b, a
    if w.is_number(b, wide) and not w.is_number(a, wide):
        number = _addend(w, path, b) if value.op == "sub" else w.number(path, b)
        name = _SCALAR_FORM["add" if value.op == "sub" else value.op]
        source = w.vector(path, a, wide)
        _add(path, op(name, (_target(w, path, value), source), (number,), count))
        return
    apart = value.op == "sub" and w.is_number(a, wide) and not w.is_number(b, wide)
    if apart and not w.is_spread(path, a, wide):  # a - b = b * -1 + a
        number, source = w.number(path, a), w.vector(path, b, wide)
        flipped = w.temp(DType.INT32 if value.kind is Kind.INT else DType.FLOAT32, wide)
        minus_one = Const(-1) if value.kind is Kind.INT else Const(-1.0)
        _add(path, op("muls", (flipped, source), (minus_one,), count))
        _add(path, op("adds", (_target(w, path, value), flipped), (number,), count))
        return
    sources = (w.vector(path, a, wide), w.vector(path, b, wide))
    _add(path, op(value.op, (_target(w, path, value), *sources), (), count))


def _addend(w: Writer, path: Path, value: Value) -> Expr:
    """What is added where a number is subtracted; the lowest int32 has no negative of its own."""
    if value.kind is not Kind.INT:
        return negated(w.number(path, value))
    if value.op == "const":
        return Const(wrapped(-int(value.number), 32))
    number = w.number(path, value)
    lowest = Const(-(2**31))
    return Choice(Binary(BinOp.EQ, number, lowest), lowest, Negate(number))


def _shifted(w: Writer, path: Path, value: Value) -> None:
    wide = w.space.wide(value)
    source, amount = w.vector(path, value.args[0], wide), Const(int(value.number))
    _add(path, op(value.op, (_target(w, path, value), source), (amount,), w.count(path, wide)))


def _scalar(w: Writer, path: Path, value: Value) -> None:
    scalar_loop(w, path, value, _target(w, path, value))


def _divide(w: Writer, path: Path, value: Value) -> None:
    """By a power of two: a product, which is exact. Otherwise a division of buffers."""
    a, b = value.args
    wide = w.space.wide(value)
    count = w.count(path, wide)
    if b.op == "const" and _is_power_of_two(b.number) and not w.is_number(a, wide):
        source = w.vector(path, a, wide)
        inverse = Const(1.0 / float(b.number))
        _add(path, op("muls", (_target(w, path, value), source), (inverse,), count))
        return
    sources = (w.vector(path, a, wide), w.vector(path, b, wide))
    _add(path, op("div", (_target(w, path, value), *sources), (), count))


def _is_power_of_two(number: float) -> bool:
    mantissa, exponent = math.frexp(number)
    return abs(mantissa) == 0.5 and -120 < exponent < 120


def _leaky(w: Writer, path: Path, value: Value) -> None:
    wide = w.space.wide(value)
    source = w.vector(path, value.args[0], wide)
    slope = w.number(path, value.args[1])
    _add(path, op("leaky_relu", (_target(w, path, value), source), (slope,), w.count(path, wide)))


# -------------------------------------------------------------------------------------- selecting


def _compare(w: Writer, path: Path, value: Value) -> None:
    a, b = value.args
    wide = w.space.wide(value)
    mode, count = value.op, w.count(path, wide)
    if w.is_number(a, wide) and not w.is_number(b, wide):
        a, b, mode = b, a, _SWAPPED[mode]
    source = w.vector(path, a, wide)
    if w.is_number(b, wide):
        number = w.number(path, b)
        _add(path, op("compares", (_target(w, path, value), source), (number,), count, mode))
        return
    other = w.vector(path, b, wide)
    _add(path, op("compare", (_target(w, path, value), source, other), (), count, mode))


def _select(w: Writer, path: Path, value: Value) -> None:
    mask, yes, no = value.args
    wide = w.space.wide(value)
    bits, source = w.held(path, mask), w.vector(path, yes, wide)
    count = w.count(path, wide)
    if w.is_number(no, wide):
        number = w.number(path, no)
        _add(path, op("selects", (_target(w, path, value), bits, source), (number,), count))
        return
    other = w.vector(path, no, wide)
    _add(path, op("select", (_target(w, path, value), bits, source, other), (), count))


def _fill(w: Writer, path: Path, value: Value) -> None:
    """One number on every element of the tile."""
    number = w.number(path, value.args[0])
    _add(path, op("duplicate", (_target(w, path, value),), (number,), w.count(path, True)))


def _index(w: Writer, path: Path, value: Value) -> None:
    """Positions along the last group; other groups' positions are scalars."""
    first = floating(w.index(path, value.axes[0]))
    _add(path, op("create_index", (_target(w, path, value),), (first,), w.count(path, True)))


_RULES: dict[str, Callable[[Writer, Path, Value], None]] = {
    "load": _load,
    "narrow": _narrow,
    "to_int": _converted,
    "to_long": _converted,
    "shift_left": _shifted,
    "shift_right": _shifted,
    "scalar": _scalar,
    "to_float": _converted,
    "div": _divide,
    "leaky_relu": _leaky,
    "select": _select,
    "fill": _fill,
    "index": _index,
    "running": running,
    **dict.fromkeys(("add", "sub", "mul", "max", "min"), _arithmetic),
    **dict.fromkeys(ROUNDINGS, _rounded),
    **dict.fromkeys(COMPARES, _compare),
}
