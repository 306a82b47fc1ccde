"""Resizing by interpolation as index maps: nearest, linear, cubic, and antialiased.

Along every axis an output has taps: the elements that it takes, and their weights. Places and
weights follow from the index along that one axis, in float32, as PyTorch computes them. One axis is
resized after the other, so that what is read of a row more than once can be held on chip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Expr
from npusmith.plan.axes import Dim, extent
from npusmith.plan.dag import Dag, Value
from npusmith.plan.index import clamp, floor_div, simple
from npusmith.plan.reader import Reader, Result, Rule, Tensor
from npusmith.plan.scalars import ONE, ZERO, largest, least, minus, plus, times
from npusmith.plan.slices import with_dim

CUBIC = -0.75  # PyTorch's
_SMOOTH_CUBIC = -0.5  # of antialiased cubic resizing
_MOST_TAPS = 12
_MOST_OVER = 64  # of a factor; 0.7 is no short fraction, and its products are rounded


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis that is resized."""

    near: Value  # the index along the output
    pace: Value  # input elements for each output
    size: Value  # of the input
    ratio: float  # the pace as captured
    align: bool


@dataclass(frozen=True, slots=True)
class Taps:
    """The elements that every output takes: `first`, the next ones, and their weights."""

    first: Value  # a whole number
    shift: int  # of the first tap
    weights: tuple[Value, ...]


def _resize(kind: str, rank: int) -> Rule:
    flagged = kind not in ("nearest", "exact")

    def rule(r: Reader) -> Result:
        assert r.node is not None
        x = r.tensor(r.argument(0))
        if not x.dtype.is_float:
            r.refuse("plan-dtype", f"resizing is written for floats, not {x.dtype.value}")
        align = bool(r.argument(2, "align_corners", False)) if flagged else False
        factors = _factors(r, 3 if flagged else 2, rank)
        out = _sizes(r, kind, factors)
        result = Tensor(r.floating(x), x.dims, x.dtype)
        for i in range(rank):
            result = _along(r, result, 2 + i, out[i], factors[i], kind, align)
        return Tensor(result.value, result.dims, x.dtype)

    return rule


def _sizes(
    r: Reader, kind: str, factors: tuple[float | None, ...]
) -> list[tuple[int, Expr | None]]:
    """How long the result is along every axis, and what that follows from."""
    assert r.node is not None
    sizes, asked = r.node.shape[2:], r.argument(1)
    if not isinstance(asked, tuple) or any(factors) or kind in _WINDOWS:
        return [(size, None) for size in sizes]
    found = r.measures(asked)
    return [(size, None if isinstance(expr, Const) else expr) for size, expr in found]


def _factors(r: Reader, at: int, rank: int) -> tuple[float | None, ...]:
    """Outputs for an input along every axis, where the model says so."""
    assert r.node is not None
    given = r.argument(at, "scale_factors")
    if isinstance(given, tuple):
        return tuple(r.number(item) for item in given)
    found = (r.argument(at + i) for i in range(rank))
    return tuple(None if item is None else r.number(item) for item in found)


def _along(
    r: Reader, x: Tensor, at: int, out: tuple[int, Expr | None], factor: float | None, kind: str,
    align: bool,
) -> Tensor:  # fmt: skip
    """`x` resized along one dimension."""
    count, follows = out
    have, whole = extent(x.dims[at]), r.size(x.dims[at])
    if have == 0 or count == 0:
        r.refuse("plan-reshape", "an axis without elements is not resized")
    exact = None if factor is None else Fraction(factor)
    if exact is not None and exact.denominator <= _MOST_OVER:
        parts = times(whole, Const(exact.numerator))
        new: Dim = r.axis(count, floor_div(parts, Const(exact.denominator)))
    else:
        new = r.axis(count, follows) if count != 1 or follows is not None else ()
        if factor is not None or kind in _WINDOWS:  # taps are as many as the sizes ask for
            r.fix(x.dims[at])
    near, size = r.position(r.index(new)), r.position(whole)
    ratio = 1.0 / factor if factor else have / count
    if align:
        ratio = (have - 1) / (count - 1) if count > 1 else 0.0
        most = r.position(minus(r.size(new), ONE))
        pace = r.dag.div(r.dag.shifted(size, -1.0), r.dag.max(most, r.dag.const(1.0)))
    elif factor is not None:
        pace = r.dag.const(1.0 / factor)
    else:
        pace = r.dag.div(size, r.position(r.size(new)))
    taps = _KINDS[kind](r.dag, Axis(near, pace, size, ratio, align))
    if len(taps.weights) > _MOST_TAPS:
        r.refuse(
            "plan-unsupported-op", f"each output takes in {len(taps.weights)} elements",
            legal=f"at most {_MOST_TAPS} along an axis", hint="resize in two steps",
        )  # fmt: skip
    dims = with_dim(x.dims, at, new)
    first = r.element(Tensor(taps.first, (new,), DType.INT64))
    may_stay = kind == "linear" and (have == count or (factor is None and follows is None))
    found: Value | None = None
    for i, weight in enumerate(taps.weights):
        step: Expr = Const(i + taps.shift)
        if may_stay and i:  # of an axis that keeps its size PyTorch takes one element twice
            change = minus(r.size(new), whole)
            step = least(largest(change, minus(ZERO, change)), ONE)
        place = clamp(plus(first, simple(step)), ZERO, minus(whole, ONE))
        read = r.placed(x, dims, {at: place}, mode="kept").value if x.dims[at] else x.value
        part = r.dag.mul(read, weight)
        found = part if found is None else r.dag.add(found, part)
    assert found is not None
    return Tensor(found, dims, x.dtype)


# ----------------------------------------------------------------------------------- places


def _nearest(dag: Dag, axis: Axis) -> Taps:
    return Taps(dag.unary("floor", dag.mul(axis.near, axis.pace)), 0, (dag.const(1.0),))


def _exact(dag: Dag, axis: Axis) -> Taps:
    place = dag.mul(dag.shifted(axis.near, 0.5), axis.pace)
    return Taps(dag.unary("floor", place), 0, (dag.const(1.0),))


def _place(dag: Dag, axis: Axis) -> Value:
    """Where an output stands among the inputs."""
    if axis.align:
        return dag.mul(axis.near, axis.pace)
    return dag.shifted(dag.mul(dag.shifted(axis.near, 0.5), axis.pace), -0.5)


def _linear(dag: Dag, axis: Axis) -> Taps:
    place = dag.max(_place(dag, axis), dag.const(0.0))
    low = dag.unary("floor", place)
    part = dag.sub(place, low)
    return Taps(low, 0, (dag.sub(dag.const(1.0), part), part))


def _cubic(dag: Dag, axis: Axis) -> Taps:
    place = _place(dag, axis)
    low = dag.unary("floor", place)
    return Taps(low, -1, cubic_weights(dag, dag.sub(place, low), CUBIC))


def cubic_weights(dag: Dag, part: Value, a: float) -> tuple[Value, ...]:
    """Keys' kernel at the distances of four elements, of which `part` is that of the second."""
    other = dag.sub(dag.const(1.0), part)
    return (
        _far(dag, dag.shifted(part, 1.0), a),
        _close(dag, part, a),
        _close(dag, other, a),
        _far(dag, dag.shifted(other, 1.0), a),
    )


def _close(dag: Dag, x: Value, a: float) -> Value:
    """((a + 2) x - (a + 3)) x x + 1, for distances up to 1."""
    inner = dag.mul(dag.shifted(dag.scaled(x, a + 2), -(a + 3)), dag.mul(x, x))
    return dag.shifted(inner, 1.0)


def _far(dag: Dag, x: Value, a: float) -> Value:
    """((a x - 5 a) x + 8 a) x - 4 a, for distances from 1 to 2."""
    inner = dag.mul(dag.shifted(dag.scaled(x, a), -5 * a), x)
    return dag.shifted(dag.mul(dag.shifted(inner, 8 * a), x), -4 * a)


def _smooth(cubic: bool, dag: Dag, axis: Axis) -> Taps:
    """Weights of a filter that is as wide as the outputs lie apart; they add up to 1."""
    one, zero = dag.const(1.0), dag.const(0.0)
    reach = 2.0 if cubic else 1.0
    count = 2 * math.ceil(reach * max(axis.ratio, 1.0)) + 1
    scale = dag.max(axis.pace, one)
    centre = dag.mul(dag.shifted(axis.near, 0.5), axis.pace)
    first = dag.shifted(dag.sub(centre, dag.scaled(scale, reach)), 0.5)
    first = dag.max(dag.unary("trunc", first), zero)
    weights: list[Value] = []
    for tap in range(count):
        place = dag.shifted(first, float(tap))
        away = dag.div(dag.sub(dag.shifted(place, 0.5), centre), scale)
        away = dag.unary("abs", away)
        if cubic:
            far = dag.select(
                dag.compare("lt", away, dag.const(2.0)), _far(dag, away, _SMOOTH_CUBIC), zero
            )
            close = _close(dag, away, _SMOOTH_CUBIC)
            weight = dag.select(dag.compare("lt", away, one), close, far)
        else:
            weight = dag.max(dag.sub(one, away), zero)
        weights.append(dag.select(dag.compare("lt", place, axis.size), weight, zero))
    total = weights[0]
    for weight in weights[1:]:
        total = dag.add(total, weight)
    return Taps(first, 0, tuple(dag.div(weight, total) for weight in weights))


def _triangle(dag: Dag, axis: Axis) -> Taps:
    return _smooth(False, dag, axis)


def _smooth_cubic(dag: Dag, axis: Axis) -> Taps:
    return _smooth(True, dag, axis)


_KINDS = {
    "nearest": _nearest,
    "exact": _exact,
    "linear": _linear,
    "cubic": _cubic,
    "triangle": _triangle,
    "smooth cubic": _smooth_cubic,
}
_WINDOWS = ("triangle", "smooth cubic")

RULES: dict[str, Rule] = {
    **{f"upsample_nearest{rank}d": _resize("nearest", rank) for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d": _resize("exact", rank) for rank in (1, 2, 3)},
    "upsample_linear1d": _resize("linear", 1),
    "upsample_bilinear2d": _resize("linear", 2),
    "upsample_trilinear3d": _resize("linear", 3),
    "upsample_bicubic2d": _resize("cubic", 2),
    "_upsample_bilinear2d_aa": _resize("triangle", 2),
    "_upsample_bicubic2d_aa": _resize("smooth cubic", 2),
}
