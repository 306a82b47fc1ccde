"""Windows of core ATen as reductions over index maps: maximum, average and adaptive pooling.

Output i takes in the elements `i * stride - padding + k * dilation`. Places outside of the input
are clamped into it, and the neutral element stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Expr
from npusmith.plan.axes import Atom, Dims, extent
from npusmith.plan.dag import EXACT, Value
from npusmith.plan.index import clamp, floor_div, simple
from npusmith.plan.moves import inside
from npusmith.plan.reader import Reader, Result, Rule, Tensor
from npusmith.plan.scalars import ONE, ZERO, largest, least, minus, plus, times
from npusmith.plan.slices import with_dim
from npusmith.plan.window_axes import WindowAxis, Windowed

_BEYOND = float(EXACT - 1)  # behind every place


@dataclass(frozen=True, slots=True)
class Windows:
    """An input read through its windows: over the axes of `dims` and `inner`."""

    x: Tensor
    dims: Dims  # of the output
    inner: tuple[Atom, ...]  # along the windows
    places: tuple[Expr, ...]  # in the last dimensions of x, not clamped
    sizes: tuple[Expr, ...]  # of those dimensions
    axes: tuple[WindowAxis, ...] = ()  # ... and their windows, where a step leads to the next

    def within(self, r: Reader, value: Value, other: Value) -> Value:
        """`value` where a place is in the input, `other` elsewhere."""
        for place, size in zip(self.places, self.sizes, strict=True):
            value = inside(r, place, size, value, other)
        return value


def _each(r: Reader, at: int, name: str, rank: int, default: Sequence[int]) -> tuple[int, ...]:
    """A number for every axis of the window."""
    found = r.argument(at, name)
    items = r.integers(found) if found is not None and found != () else tuple(default)
    return items * rank if len(items) == 1 else items


def _windows(
    r: Reader, x: Tensor, size: Sequence[int], step: Sequence[int], pad: Sequence[int],
    spread: Sequence[int], ceil: bool,
) -> Windows:  # fmt: skip
    shape = _shape(r)
    rank, dims, maps = len(size), x.dims, {}
    inner: list[Atom] = []
    places: list[Expr] = []
    sizes: list[Expr] = []
    axes: list[WindowAxis] = []
    for i in range(rank):
        at = len(x.dims) - rank + i
        have = r.size(x.dims[at])
        if extent(x.dims[at]) == 0:
            r.refuse("plan-reshape", "a pooling of an axis without elements is not supported")
        reach = spread[i] * (size[i] - 1) + 1 - 2 * pad[i]
        more = Const(-reach)
        if ceil:  # a last window is not whole, and begins within the input or the padding before it
            more = Const(min(step[i] - reach, pad[i]) - 1)
        formula = plus(floor_div(plus(have, more), Const(step[i])), ONE)
        out, window = r.axis(shape[at], simple(formula)), r.axis(size[i])
        start = minus(times(r.index(out), Const(step[i])), Const(pad[i]))
        place = plus(start, times(r.index(window), Const(spread[i])))
        maps[at] = clamp(place, ZERO, largest(minus(have, ONE), ZERO))
        inside_ = pad[i] == 0 and not ceil
        if not inside_:
            places.append(place)
            sizes.append(have)
        dims = with_dim(dims, at, out)
        if inside_:
            maps[at] = place
        inner += window
        axes.append(WindowAxis(x.dims[at], out, size[i], step[i], pad[i], spread[i], not inside_))
    read = r.placed(x, dims, maps)
    return Windows(read, dims, tuple(inner), tuple(places), tuple(sizes), tuple(axes))


def _shape(r: Reader) -> tuple[int, ...]:
    """The shape of the result, or of the first of several."""
    assert r.node is not None
    if r.node.shape or r.node.dtype is not None:
        return r.node.shape
    name = r.node.name
    found = [
        node.shape
        for node in r.graph.nodes
        if node.op.endswith("getitem") and getattr(node.args[0], "ref", "") == name
    ]
    if not found:
        r.refuse("plan-unsupported-op", "nobody reads its results")
    return found[0]


def _float(r: Reader, x: Tensor) -> Value:
    if not x.dtype.is_float:
        r.refuse("plan-dtype", f"pooling is written for floats, not {x.dtype.value}")
    return r.floating(x)


def _folded(
    r: Reader, text: str, value: Value, windows: Windows, pooled: Value | None = None
) -> Value:
    """Alone, a window may be of any size: it is a loop inside a tile.

    `pooled`: what the windows take in, over its own axes, where that is all that they do.
    """
    if not windows.inner:
        return value
    mode = "loop" if len(r.graph.eager) == 1 else ""
    found = r.dag.make("reduce", value, text=text, axes=windows.inner, mode=mode)
    if pooled is not None and windows.axes:
        r.windows[found] = Windowed(pooled, windows.axes)
    return found


def _hit(r: Reader, value: Value, best: Value, flat: Expr) -> Value:
    """Whose smallest is the place wanted: places of the largest, and those of NaN as -1 - place."""
    here = r.position(simple(flat))
    hit = r.dag.select(r.dag.compare("eq", value, best), here, r.dag.const(_BEYOND))
    nan = r.dag.shifted(r.dag.scaled(here, -1.0), -1.0)
    return r.dag.select(r.dag.compare("eq", value, value), hit, nan)


def _place(r: Reader, hit: Value) -> Value:
    """The place that the smallest of `_hit` stands for."""
    nan = r.dag.shifted(r.dag.scaled(hit, -1.0), -1.0)
    return r.dag.select(r.dag.compare("lt", hit, r.dag.const(0.0)), nan, hit)


def _max_pool(rank: int) -> Rule:
    """The largest of each window, and where it stands: the first, or the last of several NaNs."""

    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        size = _each(r, 1, "kernel_size", rank, ())
        step = _each(r, 2, "stride", rank, size)
        pad = _each(r, 3, "padding", rank, (0,))
        spread = _each(r, 4, "dilation", rank, (1,))
        ceil = bool(r.argument(5, "ceil_mode", False))
        planes = x.dims[len(x.dims) - rank :]
        windows = _windows(r, x, size, step, pad, spread, ceil)
        value = windows.within(r, _float(r, windows.x), r.dag.const(float("-inf")))
        best = _folded(r, "max", value, windows, _float(r, x))
        largest_ = Tensor(best, windows.dims, x.dtype)
        flat: Expr = ZERO
        index = _unclamped(r, windows, x, size, step, pad, spread)
        for dim, place in zip(planes, index, strict=True):
            flat = plus(times(flat, r.size(dim)), place)
        beyond = r.dag.const(_BEYOND)
        hit = windows.within(r, _hit(r, value, best, flat), beyond)
        where = _place(r, _folded(r, "min", hit, windows))
        return (largest_, Tensor(where, windows.dims, DType.INT64))

    return rule


def _unclamped(
    r: Reader, windows: Windows, x: Tensor, size: Sequence[int], step: Sequence[int],
    pad: Sequence[int], spread: Sequence[int],
) -> list[Expr]:  # fmt: skip
    found = []
    rank = len(size)
    for i in range(rank):
        out = windows.dims[len(x.dims) - rank + i]
        start = minus(times(r.index(out), Const(step[i])), Const(pad[i]))
        found.append(plus(start, times(r.index((windows.inner[i],)), Const(spread[i]))))
    return found


def _avg_pool(rank: int) -> Rule:
    """The sum of each window by the number of its elements, padding included or not."""

    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        size = _each(r, 1, "kernel_size", rank, ())
        step = _each(r, 2, "stride", rank, size)
        pad = _each(r, 3, "padding", rank, (0,))
        ceil = bool(r.argument(4, "ceil_mode", False))
        padded = bool(r.argument(5, "count_include_pad", True))
        divisor = r.argument(6, "divisor_override")
        windows = _windows(r, x, size, step, pad, (1,) * rank, ceil)
        zero = r.dag.const(0.0)
        taken = windows.within(r, _float(r, windows.x), zero)
        total = _folded(r, "sum", taken, windows, _float(r, x))
        number = 1
        for each in size:
            number *= each
        if divisor is not None:
            count = r.dag.const(r.number(divisor))
        elif not windows.places or (padded and not ceil):
            count = r.dag.const(float(number))
        elif padded:
            count = _reach(r, x, windows, size, step, pad)
        else:
            count = _inside(r, windows)
        return Tensor(r.dag.div(total, count), windows.dims, x.dtype)

    return rule


def _reach(
    r: Reader, x: Tensor, windows: Windows, size: Sequence[int], step: Sequence[int],
    pad: Sequence[int],
) -> Value:  # fmt: skip
    """Elements of a window within the padded input: the last ones of ceil_mode reach beyond it."""
    count = r.dag.const(1.0)
    for i, each in enumerate(size):
        at = len(x.dims) - len(size) + i
        start = times(r.index(windows.dims[at]), Const(step[i]))
        whole = plus(windows.sizes[i], Const(2 * pad[i]))
        left = r.position(simple(minus(whole, start)))
        count = r.dag.mul(count, r.dag.min(left, r.dag.const(float(each))))
    return count


def _inside(r: Reader, windows: Windows) -> Value:
    """Elements of a window within the input."""
    count = r.dag.const(1.0)
    for axis in windows.axes:
        start = minus(times(r.index(axis.out), Const(axis.stride)), Const(axis.padding))
        stop = least(plus(start, Const(axis.size)), r.size(axis.x))
        here = r.position(simple(minus(stop, largest(start, ZERO))))
        count = r.dag.mul(count, here if axis.reaches else r.dag.const(float(axis.size)))
    return count


def _adaptive(r: Reader, x: Tensor, rank: int) -> Windows:
    """Windows from floor(i * n / out) to ceil((i + 1) * n / out), and where they end."""
    shape = _shape(r)
    turns = [(extent(x.dims[at]), shape[at]) for at in range(len(x.dims) - rank, len(x.dims))]
    if all(count > 1 and have and have % count == 0 for have, count in turns):
        return _even(r, x, [have // count for have, count in turns])
    dims, maps = x.dims, {}
    inner: list[Atom] = []
    places: list[Expr] = []
    ends: list[Expr] = []
    for i in range(rank):
        at = len(x.dims) - rank + i
        have, count = extent(x.dims[at]), shape[at]
        if have == 0 or count == 0:
            r.refuse("plan-reshape", "a pooling of an axis without elements is not supported")
        r.fix(x.dims[at])
        out = r.axis(count) if count != 1 else ()
        here = r.index(out)
        start = floor_div(times(here, Const(have)), Const(count))
        stop = floor_div(plus(times(plus(here, ONE), Const(have)), Const(count - 1)), Const(count))
        longest = max(-(-(j + 1) * have // count) - j * have // count for j in range(count))
        window = r.axis(longest) if longest != 1 else ()
        place = plus(start, r.index(window))
        even = have % count == 0
        maps[at] = place if even else clamp(place, ZERO, Const(have - 1))
        places.append(simple(place))
        ends.append(simple(stop) if not even else ZERO)
        dims = with_dim(dims, at, out)
        inner += window
    return Windows(r.placed(x, dims, maps), dims, tuple(inner), tuple(places), tuple(ends))


def _even(r: Reader, x: Tensor, size: Sequence[int]) -> Windows:
    """Windows that are equally long, side by side: those of a pooling of that size."""
    rank = len(size)
    for dim in x.dims[len(x.dims) - rank :]:
        r.fix(dim)
    found = _windows(r, x, size, size, (0,) * rank, (1,) * rank, False)
    places = (
        plus(times(r.index(axis.out), Const(axis.size)), r.index((window,)))
        for axis, window in zip(found.axes, found.inner, strict=True)
    )
    return replace(found, places=tuple(places), sizes=(ZERO,) * rank)


def _ahead(r: Reader, windows: Windows, value: Value, other: Value) -> Value:
    """`value` before the end of a window, `other` behind it."""
    for place, stop in zip(windows.places, windows.sizes, strict=True):
        if stop != ZERO:
            ahead = r.dag.compare("lt", r.position(place), r.position(stop))
            value = r.dag.select(ahead, value, other)
    return value


def _adaptive_avg(rank: int) -> Rule:
    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        windows = _adaptive(r, x, rank)
        zero, one = r.dag.const(0.0), r.dag.const(1.0)
        values = _ahead(r, windows, _float(r, windows.x), zero)
        total = _folded(r, "sum", values, windows, _float(r, x))
        number = r.dag.count(windows.inner)
        if any(stop != ZERO for stop in windows.sizes):
            number = _folded(r, "sum", _ahead(r, windows, one, zero), windows)
        return Tensor(r.dag.div(total, number), windows.dims, x.dtype)

    return rule


def _adaptive_max(rank: int) -> Rule:
    """The largest of each window, and where it stands: the first, or the last of several NaNs."""

    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        planes = x.dims[len(x.dims) - rank :]
        windows = _adaptive(r, x, rank)
        low, beyond = r.dag.const(float("-inf")), r.dag.const(_BEYOND)
        value = _ahead(r, windows, _float(r, windows.x), low)
        best = _folded(r, "max", value, windows, _float(r, x))
        flat: Expr = ZERO
        for dim, place in zip(planes, windows.places, strict=True):
            flat = plus(times(flat, r.size(dim)), place)
        hit = _ahead(r, windows, _hit(r, value, best, flat), beyond)
        where = _place(r, _folded(r, "min", hit, windows))
        return (
            Tensor(best, windows.dims, x.dtype),
            Tensor(where, windows.dims, DType.INT64),
        )

    return rule


RULES: dict[str, Rule] = {
    "max_pool2d_with_indices": _max_pool(2),
    "max_pool3d_with_indices": _max_pool(3),
    "avg_pool1d": _avg_pool(1),
    "avg_pool2d": _avg_pool(2),
    "avg_pool3d": _avg_pool(3),
    "_adaptive_avg_pool2d": _adaptive_avg(2),
    "_adaptive_avg_pool3d": _adaptive_avg(3),
    "adaptive_max_pool2d": _adaptive_max(2),
    "adaptive_max_pool3d": _adaptive_max(3),
}
