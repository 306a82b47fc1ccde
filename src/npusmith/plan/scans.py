"""Scans of core ATen: running sums, products and extremes, with the moves that turn them around.

`x.flip(d).cumsum(d).flip(d)` runs from the end, and zeros in front of a scan that lacks its last
element are the exclusive scan: neither moves data. Other flips, cuts and joins are index maps
(moves.py).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from npusmith.ir.dtypes import DType
from npusmith.plan import integer_folds, integers, moves, slices
from npusmith.plan.axes import Dim, extent, leaves
from npusmith.plan.dag import Kind
from npusmith.plan.reader import Move, Moved, Reader, Result, Rule, Tensor
from npusmith.plan.views import convert
from npusmith.task.graph import Node, Ref

_NEUTRAL = {"sum": 0.0, "prod": 1.0}  # scans that have an exclusive form


def _scan(text: str) -> Rule:
    """cumsum and cumprod. A flip of the same dimension reverses the scan, and stays around it."""

    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        if not x.dims:
            return Tensor(convert(r, x, r.dtype), (), r.dtype)
        at = r.dim(r.argument(1, "dim"), len(x.dims))
        moved = x.moved
        if moved is not None and moved.move is Move.FRONT:
            if (moved.at, moved.number) == (at, _NEUTRAL.get(text)):
                return _behind(r, x, _scanned(r, text, moved.source, at, "forward"), at)
            moved, x = None, replace(x, moved=None)
        plain = x if moved is None else moved.source
        turned = moved is not None and (moved.move, moved.at) == (Move.FLIP, at)
        scanned = _scanned(r, text, plain, at, "reverse" if turned else "forward")
        return _moved_alike(r, x, scanned)

    return rule


def _scanned(r: Reader, text: str, x: Tensor, at: int, mode: str) -> Tensor:
    value = convert(r, Tensor(x.value, x.dims, x.dtype), r.dtype)
    axes = leaves(x.dims[at])
    if r.dtype.is_float:
        return Tensor(r.dag.running(text, value, axes, mode), x.dims, r.dtype)
    fold = partial(r.dag.running, "sum", axes=axes, mode=mode)
    joined = integer_folds.multiplied if text == "prod" else integer_folds.summed
    scanned, most = joined(r.dag, value, fold, extent(axes))
    r.limit(axes, most)
    return Tensor(integers.converted(r.dag, scanned, r.dtype), x.dims, r.dtype)


def _behind(r: Reader, x: Tensor, scanned: Tensor, at: int) -> Tensor:
    """A scan of what stands behind a neutral element, which stays in front."""
    assert x.moved is not None
    front = convert(r, Tensor(r.dag.const(x.moved.number), (), DType.FLOAT32), r.dtype)
    one: Dim = ()
    head = Tensor(front, (one,) * len(x.dims), r.dtype)
    return moves.joined(r, [head, scanned], at, x.dims[at])


def _extreme(text: str) -> Rule:
    """cummax and cummin: the extreme so far, and the last place that holds it (or NaN)."""

    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        if x.value.kind is not Kind.FLOAT:
            r.refuse(
                "plan-dtype", f"a running {text} of {x.dtype.value} is not supported",
                hint="clamp to 24 bits or convert to float32 first",
            )  # fmt: skip
        if not x.dims:
            return x, Tensor(r.dag.const(0.0), (), DType.INT64)
        axes = leaves(x.dims[r.dim(r.argument(1, "dim"), len(x.dims))])
        value, none = r.floating(x), r.dag.const(0.0)
        if not axes:
            return x, Tensor(none, x.dims, DType.INT64)
        found = r.dag.running(text, value, axes, "forward")
        place = r.dag.make("index", axes=axes)
        here = r.dag.select(r.dag.compare("eq", value, found), place, none)
        here = r.dag.select(r.dag.compare("eq", value, value), here, place)
        last = r.dag.running("max", here, axes, "forward")
        return Tensor(found, x.dims, x.dtype), Tensor(last, x.dims, DType.INT64)

    return rule


def _moved_alike(r: Reader, x: Tensor, scanned: Tensor) -> Tensor:
    """The scan of what `x` is before it is moved, moved as `x` is."""
    if x.moved is None:
        return scanned
    assert x.value.op == "at"
    at = x.value
    value = r.dag.make("at", scanned.value, axes=at.axes, index=at.index, parts=at.parts)
    r.fixed[value] = r.fixed.get(at, [])
    return Tensor(value, x.dims, scanned.dtype, replace(x.moved, source=scanned))


def _flipped(r: Reader, x: Tensor, at: int) -> Tensor:
    assert r.node is not None
    found = moves.flipped(r, x, (at,))
    return Tensor(found.value, found.dims, x.dtype, Moved(r.node, at, Move.FLIP, x))


def flip(r: Reader) -> Result:
    """A second flip of the same dimension takes back the first."""
    x = r.tensor(r.argument(0))
    rank = len(x.dims)
    turned = {i % rank for i in r.integers(r.argument(1)) if extent(x.dims[i % rank]) != 1}
    if not turned:
        return x
    if len(turned) > 1:
        return moves.flipped(r, x, tuple(turned))
    (at,) = turned
    if x.moved is not None and (x.moved.move, x.moved.at) == (Move.FLIP, at):
        return x.moved.source
    return _flipped(r, x, at)


def cut(r: Reader) -> Result:
    """A slice of everything but the last elements may be part of an exclusive scan.

    One along another dimension leaves a neutral element in front of a scan where it is.
    """
    assert r.node is not None
    x = r.tensor(r.argument(0))
    found = slices.sliced(r, x)
    rank = len(x.dims)
    at = r.dim(r.argument(1, "dim", 0), rank) if rank else 0
    if x.moved is not None and x.moved.move is Move.FRONT and found is not x:
        if at == x.moved.at:
            return found
        return replace(found, moved=replace(x.moved, source=slices.sliced(r, x.moved.source)))
    start, step = r.argument(2, "start"), r.argument(4, "step", 1)
    if found is x or start not in (None, 0) or step != 1:
        return found
    missing = extent(x.dims[at]) - r.node.shape[at]
    return Tensor(found.value, found.dims, x.dtype, Moved(r.node, at, Move.CUT, x, missing))


def cat(r: Reader) -> Result:
    """Neutral elements before a scan that lacks as many at its end: the exclusive scan."""
    tensors = r.argument(0)
    items = tensors if isinstance(tensors, tuple) else ()
    parts = [r.tensor(item) for item in items if isinstance(item, Ref)]
    if len(parts) == 2 and parts[0].dims:
        head, at = parts[0], r.dim(r.argument(1, "dim", 0), len(parts[0].dims))
        if head.value.op == "const" and at < len(head.dims) and extent(head.dims[at]) == 1:
            found = _exclusive(r, parts[1], at, head.value.number)
            if found is not None:
                return found
            if extent(parts[1].dims[at]) and parts[1].dtype is r.dtype:
                joined = moves.cat(r)
                assert isinstance(joined, Tensor)
                number = float(head.value.number)
                return replace(joined, moved=Moved(_node(r), at, Move.FRONT, parts[1], 0, number))
    return moves.cat(r)


def _node(r: Reader) -> Node:
    assert r.node is not None
    return r.node


def pad(r: Reader) -> Result:
    """The same as a padding by one element in front."""
    x = r.tensor(r.argument(0))
    widths = r.integers(r.argument(1))
    first = [i for i, width in enumerate(widths) if width]
    if len(first) == 1 and first[0] % 2 == 0 and widths[first[0]] == 1:
        at = len(x.dims) - 1 - first[0] // 2
        found = _exclusive(r, x, at, r.number(r.argument(2, "value", 0)))
        if found is not None:
            return found
    return moves.constant_pad(r)


def _exclusive(r: Reader, x: Tensor, at: int, number: float) -> Tensor | None:
    moved = x.moved
    if moved is None or (moved.move, moved.at, moved.missing) != (Move.CUT, at, 1):
        return None
    source = moved.source
    value = source.value
    scanned = value.op == "running" and leaves(value.axes) == leaves(source.dims[at])
    if not scanned or value.mode != "forward" or number != _NEUTRAL.get(value.text):
        return None
    made = r.dag.running(value.text, value.args[0], value.axes, "exclusive")
    return Tensor(made, source.dims, x.dtype)


RULES: dict[str, Rule] = {
    "cumsum": _scan("sum"),
    "cumprod": _scan("prod"),
    "logcumsumexp": _scan("logsumexp"),
    "cummax": _extreme("max"),
    "cummin": _extreme("min"),
    "flip": flip,
    "slice": cut,
    "cat": cat,
    "constant_pad_nd": pad,
}
