"""Samples of a tensor at places of a grid as index maps, and the grid of an affine map.

Every output takes the elements around a place that the grid says: one (nearest), two (linear) or
four (cubic) along each axis, with weights. What lies outside is zero, the border, or reflected.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as pairs

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Expr
from npusmith.plan.axes import Dims, extent
from npusmith.plan.dag import EXACT, Value
from npusmith.plan.index import clamp
from npusmith.plan.interpolation import CUBIC, cubic_weights
from npusmith.plan.reader import Reader, Result, Rule, Tensor
from npusmith.plan.scalars import ONE, ZERO, minus, plus

_LINEAR, _NEAREST, _CUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
_FAR = float(EXACT >> 3)  # further outside is as good: an index stays exact


@dataclass(frozen=True, slots=True)
class Tap:
    """An element along one axis: where it stands, its weight, and whether it is inside."""

    place: Expr  # inside
    weight: Value | None
    inside: Value | None  # a mask; None: always


@dataclass(frozen=True, slots=True)
class Line:
    """One axis of what is sampled."""

    r: Reader
    dims: Dims  # of the samples
    whole: Expr  # elements
    align: bool
    padding: int
    rank: int  # axes that are sampled

    @property
    def size(self) -> Value:
        return self.r.position(self.whole)

    def scaled(self, place: Value) -> Value:
        """From -1 ... 1 to 0 ... size - 1, or to the outer edges of these."""
        dag = self.r.dag
        raised = dag.shifted(place, 1.0)
        if self.align:
            return dag.mul(dag.scaled(raised, 0.5), dag.shifted(self.size, -1.0))
        return dag.scaled(dag.shifted(dag.mul(raised, self.size), -1.0), 0.5)

    def within(self, place: Value) -> Value:
        """A place moved inside, as the padding says; with zeros it stays.

        NaN is moved as well: PyTorch's kernels take the first element for it where two axes are
        sampled, the last one where three are; of zeros only the latter know that it is outside.
        """
        dag = self.r.dag
        if self.padding != _ZEROS:
            last = dag.shifted(self.size, -1.0)
            return self.moved(self._number(place, last if self.rank == 3 else dag.const(0.0)))
        return self._number(place, dag.const(-_FAR)) if self.rank == 3 else place

    def moved(self, place: Value) -> Value:
        """The same of a number."""
        dag = self.r.dag
        if self.padding == _ZEROS:
            return place
        if self.padding == _REFLECTION:
            place = self._reflected(place)
        return dag.min(dag.max(place, dag.const(0.0)), dag.shifted(self.size, -1.0))

    def _number(self, place: Value, other: Value) -> Value:
        dag = self.r.dag
        return dag.select(dag.compare("eq", place, place), place, other)

    def _reflected(self, place: Value) -> Value:
        dag, zero = self.r.dag, self.r.dag.const(0.0)
        low = 0.0 if self.align else -0.5
        span = dag.shifted(self.size, -1.0) if self.align else self.size
        away = dag.unary("abs", dag.shifted(place, -low))
        turns = dag.unary("floor", dag.div(away, dag.max(span, dag.const(1.0))))
        rest = dag.sub(away, dag.mul(turns, span))
        half = dag.unary("floor", dag.scaled(turns, 0.5))
        odd = dag.compare("gt", dag.sub(turns, dag.scaled(half, 2.0)), zero)
        found = dag.shifted(dag.select(odd, dag.sub(span, rest), rest), low)
        return dag.select(dag.compare("gt", span, zero), found, zero)

    def near(self, place: Value) -> Value:
        """A place whose index is exact; NaN is outside."""
        dag = self.r.dag
        number = self._number(place, dag.const(-_FAR))
        return dag.min(dag.max(number, dag.const(-_FAR)), dag.const(_FAR))

    def tap(self, whole: Value, weight: Value | None) -> Tap:
        """The element at a whole number."""
        dag = self.r.dag
        first = self.r.element(Tensor(whole, self.dims, DType.INT64))
        place = clamp(first, ZERO, minus(self.whole, ONE))
        if self.padding != _ZEROS:
            return Tap(place, weight, None)
        last = dag.shifted(self.size, -1.0)
        room = dag.min(whole, dag.sub(last, whole))
        return Tap(place, weight, dag.compare("ge", room, dag.const(0.0)))

    def next(self, whole: Value, first: Expr, shift: int, weight: Value) -> Tap:
        """The element so many behind a whole number, whose index is `first`.

        Behind the last element there is none, even where places were moved inside: its weight is 0
        there, but PyTorch does not multiply it by an infinity.
        """
        dag = self.r.dag
        number = dag.shifted(whole, float(shift))
        inside = self.tap(number, weight).inside
        if shift > 0 and inside is None:
            rest = dag.sub(dag.shifted(self.size, -1.0), number)
            inside = dag.compare("ge", rest, dag.const(0.0))
        place = clamp(plus(first, Const(shift)), ZERO, minus(self.whole, ONE))
        return Tap(place, weight, inside)


def _taps(line: Line, place: Value, mode: int) -> list[Tap]:
    dag = line.r.dag
    if mode == _CUBIC:
        place = line.scaled(place)
        weights = cubic_weights(dag, dag.sub(place, dag.unary("floor", place)), CUBIC)
        low = dag.unary("floor", line.near(place))
        places = [line.moved(dag.shifted(low, float(i - 1))) for i in range(4)]
        return [line.tap(place, w) for place, w in zip(places, weights, strict=True)]
    place = line.within(line.scaled(place))
    if mode == _NEAREST:
        return [line.tap(dag.unary("rint", line.near(place)), None)]
    low = dag.unary("floor", line.near(place))
    part = dag.sub(place, low)
    first = line.r.element(Tensor(low, line.dims, DType.INT64))
    other = dag.sub(dag.const(1.0), part)
    return [line.next(low, first, i, weight) for i, weight in enumerate((other, part))]


def _sampled(rank: int) -> Rule:
    def rule(r: Reader) -> Result:
        x, grid = r.tensor(r.argument(0)), r.tensor(r.argument(1))
        mode, padding = (r.integers(r.argument(i))[0] for i in (2, 3))
        align = bool(r.argument(4, "align_corners", False))
        if not x.dtype.is_float or not grid.dtype.is_float:
            r.refuse("plan-dtype", "samples are written for floats")
        if any(extent(dim) == 0 for dim in x.dims[2:]):
            r.refuse("plan-reshape", "an axis without elements is not sampled")
        lines, coordinates = [], []
        for i in range(rank):
            at = len(grid.dims) - 1
            found = r.placed(grid, grid.dims[:at], {at: Const(rank - 1 - i)})
            coordinates.append(r.floating(found))
            lines.append(Line(r, grid.dims[:at], r.size(x.dims[2 + i]), align, padding, rank))
        r.fix(grid.dims[-1], now=True)
        same = (Tensor(item.value, item.dims[:1], item.dtype) for item in (x, grid))
        dims: Dims = (*r.broadcast(*same), x.dims[1], *grid.dims[1:-1])
        apart = [_taps(line, c, mode) for line, c in zip(lines, coordinates, strict=True)]
        plain = Tensor(r.floating(x), x.dims, x.dtype)
        zero, total = r.dag.const(0.0), None
        for taps in pairs(*apart):
            places = {2 + i: tap.place for i, tap in enumerate(taps)}
            value = r.placed(plain, dims, places).value
            for tap in taps:
                if tap.inside is not None:
                    value = r.dag.select(tap.inside, value, zero)
            for tap in taps:
                if tap.weight is not None:
                    value = r.dag.mul(value, tap.weight)
            total = value if total is None else r.dag.add(total, value)
        assert total is not None
        return Tensor(total, dims, x.dtype)

    return rule


def affine_grid(r: Reader) -> Result:
    """theta (x, y, 1) for x, y from -1 to 1; with a third axis likewise."""
    assert r.node is not None
    theta = r.tensor(r.argument(0))
    align = bool(r.argument(2, "align_corners", False))
    spots = r.node.shape[1:-1]
    axes = tuple(r.axis(count) if count != 1 else () for count in spots)
    dims: Dims = (theta.dims[0], *axes, theta.dims[1])
    steps = [
        _spread(r, count, r.index(axis), align) for count, axis in zip(spots, axes, strict=True)
    ]
    total: Value | None = None
    for i, step in enumerate([*reversed(steps), r.dag.const(1.0)]):
        number = r.placed(theta, theta.dims[:-1], {2: Const(i)})
        part = r.dag.mul(step, r.floating(number))
        total = part if total is None else r.dag.add(total, part)
    r.fix(theta.dims[-1], now=True)
    assert total is not None
    return Tensor(total, dims, theta.dtype)


def _spread(r: Reader, count: int, index: Expr, align: bool) -> Value:
    """Positions 0, 1, ... as numbers from -1 to 1."""
    at = r.position(index)
    if align:
        if count == 1:
            return r.dag.const(0.0)
        return r.dag.shifted(r.dag.scaled(at, 2.0 / (count - 1)), -1.0)
    return r.dag.shifted(r.dag.scaled(at, 2.0 / count), 1.0 / count - 1.0)


RULES: dict[str, Rule] = {
    "grid_sampler_2d": _sampled(2),
    "grid_sampler_3d": _sampled(3),
    "affine_grid_generator": affine_grid,
}
