"""Scans of core ATen: running sums and products, with the moves that turn them around.

`x.flip(d).cumsum(d).flip(d)` runs from the end, and zeros in front of a scan that lacks its last
element are the exclusive scan: neither moves data. Flips and cuts without a scan are refused.
"""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.plan.axes import extent, leaves, sizes
from npusmith.plan.reader import Move, Moved, Reader, Result, Rule, Tensor
from npusmith.plan.views import convert, whole_slice
from npusmith.task.graph import Argument, Ref

_NEUTRAL = {"sum": 0.0, "prod": 1.0}


def _source(r: Reader, arg: Argument) -> Tensor:
    """A tensor that may have moved."""
    return r.seen(arg) if isinstance(arg, Ref) else r.tensor(arg)


def _scan(text: str) -> Rule:
    """cumsum and cumprod. A move along another dimension stays; a flip of this one reverses."""

    def rule(r: Reader) -> Result:
        x = _source(r, r.argument(0))
        if not r.dtype.is_float:
            r.refuse(
                "plan-dtype", f"a running {text} in {r.dtype.value} is not written",
                hint="convert to float32 first",
            )  # fmt: skip
        if not x.dims:
            return x
        at = r.axis(r.argument(1, "dim"), len(x.dims))
        turned = x.moved is not None and x.moved.move is Move.FLIP and x.moved.at == at
        plain = Tensor(x.value, x.dims, x.dtype)
        value = convert(r, plain, r.dtype if r.dtype.is_float else DType.FLOAT32)
        mode = "reverse" if turned else "forward"
        scanned = r.dag.running(text, value, leaves(x.dims[at]), mode)
        return Tensor(scanned, x.dims, r.dtype, x.moved)

    return rule


def flip(r: Reader) -> Result:
    """A second flip of the same dimension takes back the first."""
    assert r.node is not None
    x = _source(r, r.argument(0))
    rank = len(x.dims)
    turned = [i % rank for i in r.integers(r.argument(1)) if extent(x.dims[i % rank]) != 1]
    if not turned:
        return x
    if len(turned) > 1:
        r.refuse("plan-data-movement", "it reverses several dimensions")
    if x.moved is None:
        return Tensor(x.value, x.dims, x.dtype, Moved(r.node, turned[0], Move.FLIP))
    if x.moved.move is not Move.FLIP or x.moved.at != turned[0]:
        r.refuse("plan-data-movement", "it reverses elements that have moved already")
    return Tensor(x.value, x.dims, x.dtype)


def cut(r: Reader) -> Result:
    """A slice of everything but the last elements; other slices that are not whole are refused."""
    assert r.node is not None
    x = r.tensor(r.argument(0))
    rank = len(x.dims)
    at = r.axis(r.argument(1, "dim", 0), rank) if rank else 0
    start, step = r.argument(2, "start"), r.argument(4, "step", 1)
    if sizes(x.dims) == r.node.shape or start not in (None, 0) or step != 1:
        return whole_slice(r)
    missing = extent(x.dims[at]) - r.node.shape[at]
    return Tensor(x.value, x.dims, x.dtype, Moved(r.node, at, Move.CUT, missing))


def cat(r: Reader) -> Result:
    """Neutral elements before a scan that lacks as many at its end: the exclusive scan."""
    tensors = r.argument(0)
    if not isinstance(tensors, tuple) or not all(isinstance(item, Ref) for item in tensors):
        r.refuse("plan-data-movement", "joining tensors moves data")
    parts = [_source(r, item) for item in tensors if isinstance(item, Ref)]
    at = r.axis(r.argument(1, "dim", 0), len(parts[0].dims))
    head = parts[0]
    if len(parts) != 2 or head.value.op != "const" or extent(head.dims[at]) != 1:
        r.refuse("plan-data-movement", "joining tensors moves data")
    return _exclusive(r, parts[1], at, head.value.number)


def pad(r: Reader) -> Result:
    """The same as a padding by one element in front."""
    x = _source(r, r.argument(0))
    widths = r.integers(r.argument(1))
    first = [i for i, width in enumerate(widths) if width]
    if len(first) != 1 or first[0] % 2 or widths[first[0]] != 1:
        r.refuse("plan-data-movement", "padding moves data")
    at = len(x.dims) - 1 - first[0] // 2
    return _exclusive(r, x, at, r.number(r.argument(2, "value", 0)))


def _exclusive(r: Reader, x: Tensor, at: int, number: float) -> Tensor:
    value, moved = x.value, x.moved
    shifted = moved is not None and (moved.move, moved.at, moved.missing) == (Move.CUT, at, 1)
    scanned = value.op == "running" and leaves(value.axes) == leaves(x.dims[at])
    if not shifted or not scanned or value.mode != "forward" or number != _NEUTRAL[value.text]:
        r.refuse(
            "plan-data-movement", "it moves elements",
            legal="one neutral element before a scan that lacks its last element",
        )  # fmt: skip
    made = r.dag.running(value.text, value.args[0], value.axes, "exclusive")
    return Tensor(made, x.dims, x.dtype)


RULES: dict[str, Rule] = {
    "cumsum": _scan("sum"),
    "cumprod": _scan("prod"),
    "flip": flip,
    "slice": cut,
    "cat": cat,
    "constant_pad_nd": pad,
}
