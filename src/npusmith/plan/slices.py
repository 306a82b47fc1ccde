"""Slices: `x[..., a:b:c]`, `x[..., i]`, pieces of a split, as index maps.

Ends are numbers of the model, or follow from sizes; the sizes at which they mean the same are the
ones that the operator serves.
"""

from __future__ import annotations

from collections.abc import Iterable

from npusmith.ir.nodes import Const, Expr
from npusmith.plan.axes import Dim, Dims, extent, leaves, pin
from npusmith.plan.index import floor_div, simple
from npusmith.plan.reader import Measure, Reader, Result, Rule, Tensor
from npusmith.plan.scalars import ONE, ZERO, minus, plus, times
from npusmith.task.graph import Argument

_END = 1 << 62  # PyTorch's "to the end"


def with_dim(dims: Dims, at: int, new: Dim) -> Dims:
    return (*dims[:at], new, *dims[at + 1 :])


def cut(r: Reader, x: Tensor, at: int, first: Measure, last: Measure, step: int = 1) -> Tensor:
    """Elements first, first + step, ... before last; both lie on the axis."""
    dim, have = x.dims[at], extent(x.dims[at])
    if first[0] == 0 and last == (have, r.size(dim)) and step == 1:
        return x
    size = -(-max(last[0] - first[0], 0) // step)
    if not dim:
        new: Dim = () if size == 1 else r.axis(size)
        return Tensor(x.value, with_dim(x.dims, at, new), x.dtype)
    if size:
        r.require(last[1], first[1] if step == 1 else plus(first[1], ONE))
        length = simple(plus(minus(last[1], first[1]), Const(step - 1)))
        length = simple(floor_div(length, Const(step)))
        new = r.axis(size, length)
    else:
        r.fix(dim)
        new = r.axis(size)
    place = plus(first[1], times(r.index(new), Const(step)))
    return r.placed(x, with_dim(x.dims, at, new), {at: place})


def edges(
    r: Reader, dim: Dim, start: Argument, stop: Argument, stays: bool = False
) -> tuple[Measure, Measure]:
    """Where a slice begins and ends.

    An end that lies outside of the axis as captured, or inside, does so at all sizes served; where
    the axis ends, it is inside if the slice `stays` as long while the axis varies.
    """
    first, last = (None if item is None else r.measures(item)[0] for item in (start, stop))
    r.hold(dim, *(item[1] for item in (first, last) if item is not None and item[0] < _END))
    begin: Measure = (0, ZERO) if first is None else _edge(r, dim, first)
    end: Measure = (extent(dim), r.size(dim))
    return begin, _edge(r, dim, last, stays) if last is not None and last[0] < _END else end


def _edge(r: Reader, dim: Dim, edge: Measure, inside: bool = False) -> Measure:
    """An end of a slice, clamped into the axis, as PyTorch does."""
    (number, expr), have, whole = edge, extent(dim), r.size(dim)
    if expr == ZERO:
        return 0, ZERO
    if number < 0:
        r.require(Const(-1), expr)
    else:
        r.require(expr, ZERO)
    if number < 0 and number <= -have:
        r.require(times(Const(-1), expr), whole)
        return 0, ZERO
    if number < 0:
        r.require(whole, times(Const(-1), expr))
        return have + number, plus(whole, expr)
    if number > have or (number == have and not inside):
        r.require(expr, whole)
        return have, whole
    r.require(whole, expr)
    return number, expr


def slice_(r: Reader) -> Result:
    return sliced(r, r.tensor(r.argument(0)))


def sliced(r: Reader, x: Tensor) -> Tensor:
    """The slice that the node takes, of `x`."""
    at = r.dim(r.argument(1, "dim", 0), len(x.dims))
    start, stop = r.argument(2, "start"), r.argument(3, "end")
    stays = stop == extent(x.dims[at]) and _stays(r, at, x.dims[at])
    first, last = edges(r, x.dims[at], start, stop, stays)
    return cut(r, x, at, first, last, r.integers(r.argument(4, "step", 1))[0])


def _stays(r: Reader, at: int, dim: Dim) -> bool:
    """Whether a slice had as many elements in captures with other sizes of its axis."""
    assert r.node is not None
    return any(leaf.varied for leaf in leaves(dim)) and (r.node.name, at) not in r.graph.varied


def select(r: Reader) -> Result:
    """`x[..., i, ...]`"""
    x = r.tensor(r.argument(0))
    at = r.dim(r.argument(1), len(x.dims))
    left = (*x.dims[:at], *x.dims[at + 1 :])
    if extent(x.dims[at]) == 1:
        pin(x.dims[at])
        return Tensor(x.value, left, x.dtype)
    if extent(x.dims[at]) == 0:
        r.fix(x.dims[at])
    return r.placed(x, left, {at: place_on(r, x.dims[at], r.argument(2))})


def place_on(r: Reader, dim: Dim, asked: Argument) -> Expr:
    """An index of an axis: it is on the axis at all sizes served, and counted from the same end."""
    ((number, place),) = r.measures(asked)
    if place not in (ZERO, Const(-1)):
        r.hold(dim, place)
    if number >= 0:
        r.require(place, ZERO)
        r.require(r.size(dim), plus(place, ONE))
        return place
    r.require(Const(-1), place)
    r.require(plus(r.size(dim), place), ZERO)
    return plus(r.size(dim), place)


def split(r: Reader) -> Result:
    x = r.tensor(r.argument(0))
    at = r.dim(r.argument(2, "dim", 0), len(x.dims))
    asked, whole = r.argument(1), (extent(x.dims[at]), r.size(x.dims[at]))
    if isinstance(asked, tuple):
        sizes = r.measures(asked)
        r.sized.append((x.dims[at], simple(_sum(expr for _, expr in sizes))))
    else:  # as many pieces at all sizes
        each, expr = r.measures(asked)[0]
        count = max(-(-whole[0] // max(each, 1)), 1)
        before = (count - 1) * each, times(Const(count - 1), expr)
        if whole[0] == count * each:  # the last is no shorter
            r.sized.append((x.dims[at], simple(times(Const(count), expr))))
            sizes = ((each, expr),) * count
        else:
            r.require(whole[1], plus(before[1], ONE if whole[0] else ZERO))
            sizes = (
                *[(each, expr)] * (count - 1),
                (whole[0] - before[0], minus(whole[1], before[1])),
            )
        r.require(times(Const(count), expr), whole[1])
    r.hold(x.dims[at], *(expr for _, expr in sizes))
    parts = []
    start: Measure = (0, ZERO)
    for size, expr in sizes:
        stop = start[0] + size, simple(plus(start[1], expr))
        parts.append(cut(r, x, at, start, _edge(r, x.dims[at], stop)))
        start = stop
    return tuple(parts)


def _sum(items: Iterable[Expr]) -> Expr:
    total: Expr = ZERO
    for item in items:
        total = plus(total, item)
    return total


def unbind(r: Reader) -> Result:
    x = r.tensor(r.argument(0))
    at = r.dim(r.argument(1, "dim", 0), len(x.dims))
    r.fix(x.dims[at])
    left = (*x.dims[:at], *x.dims[at + 1 :])
    return tuple(r.placed(x, left, {at: Const(i)}) for i in range(extent(x.dims[at])))


RULES: dict[str, Rule] = {
    "slice": slice_,
    "select": select,
    "split_with_sizes": split,
    "split": split,
    "unbind": unbind,
}
