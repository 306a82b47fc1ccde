"""Scans: what was folded so far is carried from turn to turn of the loop that they run along.

Along the last axis a tile is scanned on chip and the carry is a scalar; along another axis whole
rows are accumulated and the running row is the carry.
"""

from __future__ import annotations

import math

from npusmith.ir import nodes as ir
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Assign, Binary, BinOp, Const, Expr, For, If, Name, Negate, View
from npusmith.plan.block import Block, Path, staged
from npusmith.plan.dag import Value
from npusmith.plan.loops import mixed
from npusmith.plan.scalars import ONE, ZERO, floating, minus, times
from npusmith.plan.writer import Writer, op
from npusmith.target.intrinsics import INTRINSICS

_INF = Const(math.inf)
_NEUTRAL: dict[str, Expr] = {
    "sum": Const(0.0), "prod": Const(1.0), "max": Negate(_INF), "min": _INF,
    "logsumexp": Negate(_INF),
}  # fmt: skip
_JOIN = {"sum": BinOp.ADD, "prod": BinOp.MUL}  # of scans that have an exclusive form
_STEPS = Binary(BinOp.ADD, Name("FOLDS"), Const(4))  # doublings that reach across a tile


def running(w: Writer, path: Path, value: Value) -> None:
    """Compute a scan, whose operand is at hand, in the last list of `path`."""
    axis = value.axes[0]
    if axis == w.space.last and any(block.resident for block in path):
        _tile(w, path, value, _NEUTRAL[value.text])  # the whole row is on chip
        return
    outer = _outside(path, axis)
    if not w.space.axes(value) - {axis} <= outer[-1].opened:
        mixed(w, value)
    if axis == w.space.last:
        _along(w, path, outer[-1], value)
    else:
        _down(w, path, outer, value)


def _outside(path: Path, axis: int) -> Path:
    """The lists around all turns of the loop over a group."""
    turns = next(i for i, block in enumerate(path) if axis in block.opened)
    while path[turns - 1].stretch:
        turns -= 1
    return path[:turns]


def _along(w: Writer, path: Path, outer: Block, value: Value) -> None:
    """A tile of the last axis, from what the tiles before it left."""
    carry = Name(w.fresh("carry_"))
    start = w.start(path, value)
    assert not isinstance(start, str)
    outer.items.append(Assign(carry.id, start or _NEUTRAL[value.text]))
    source, target = _tile(w, path, value, carry)
    left = _left(value, target, source, w.count(path, True))
    path[-1].items.append(Assign(carry.id, left))


def _tile(w: Writer, path: Path, value: Value, start: Expr) -> tuple[str, str]:
    """Buffers of the tile and of its scan."""
    count = w.count(path, True)
    source = w.vector(path, value.args[0], True)
    target = w.stored.pop(value, None) or w.like(value)
    spare = w.temp(DType.FLOAT32, True, hint="spare")
    path[-1].buffers[value] = target
    name = f"running_{value.text}"
    if name in INTRINSICS:
        path[-1].items.append(op(name, (target, source, spare), (start,), count, value.mode))
    else:
        _doubled(w, path, value, source, target, spare, start)
    return source, target


def _doubled(
    w: Writer, path: Path, value: Value, source: str, target: str, spare: str, start: Expr
) -> None:
    """Elements joined with those 1, 2, 4 ... before them, then with what stands before the tile.

    An element that has none so far before it is joined with the neutral number.
    """
    count = w.count(path, True)
    place, mask = w.temp(DType.FLOAT32, True), w.temp(DType.UINT8, True, mask=True)
    offset = w.temp(DType.INT32, True)
    shift = w.fresh("shift_")
    items = path[-1].items
    items += [_copy(target, source, count), op("create_index", (place,), (Const(0.0),), count)]
    items.append(Assign(shift, ONE))
    far = floating(Name(shift))
    neutral = _NEUTRAL[value.text]
    turn = Block(path[-1].opened)
    turn.items += [
        op("adds", (spare, place), (minus(Const(0.0), far),), count),
        op("maxs", (spare, spare), (Const(0.0),), count),
        op("muls", (spare, spare), (Const(4.0),), count),
        op("cast", (offset, spare), (), count, "rint"),
        op("gather", (spare, target, offset), (ZERO,), count),
        op("compares", (mask, place), (far,), count, "ge"),
        op("selects", (spare, mask, spare), (neutral,), count),
        *_joined(w, value.text, target, spare, count, True),
    ]
    near = Block(path[-1].opened)
    near.items += [If(Binary(BinOp.LT, Name(shift), count), staged(turn.items))]
    near.items += [Assign(shift, times(Name(shift), Const(2)))]
    items.append(For(w.fresh("doubling_"), ZERO, _STEPS, ONE, staged(near.items)))
    items.append(op("duplicate", (spare,), (start,), count))
    items += _joined(w, value.text, target, spare, count, True)


def _joined(w: Writer, text: str, target: str, other: str, count: Expr, wide: bool) -> list[ir.Op]:
    """The target joined with another buffer."""
    if text != "logsumexp":
        return [op(f"accumulate_{text}", (target, other), (), count)]
    # max + log1p(exp(min - max)); equal ones, infinities too, lie 0 apart
    low, high, one, zero = (w.temp(DType.FLOAT32, wide) for _ in range(4))
    mask = w.temp(DType.UINT8, wide, mask=True)
    return [
        op("min", (low, target, other), (), count),
        op("max", (high, target, other), (), count),
        op("compare", (mask, low, high), (), count, "eq"),
        op("sub", (low, low, high), (), count),
        op("duplicate", (zero,), (Const(0.0),), count),
        op("select", (low, mask, zero, low), (), count),
        op("exp", (low, low), (), count),
        # ln(1 + e) = ln(u) + (e - (u - 1)) / u, where u is 1 + e rounded
        op("adds", (one, low), (Const(1.0),), count),
        op("adds", (zero, one), (Const(-1.0),), count),
        op("sub", (low, low, zero), (), count),
        op("div", (low, low, one), (), count),
        op("ln", (one, one), (), count),
        op("add", (one, one, low), (), count),
        op("add", (target, one, high), (), count),
    ]


def _left(value: Value, target: str, source: str, count: Expr) -> Expr:
    """What a tile leaves to the next one."""
    last = ZERO if value.mode == "reverse" else minus(count, ONE)
    folded = ir.Value(View(target, last))
    if value.mode != "exclusive":
        return folded
    return Binary(_JOIN[value.text], folded, ir.Value(View(source, last)))


def _down(w: Writer, path: Path, outer: Path, value: Value) -> None:
    """A row of another axis: it is accumulated into the running row."""
    wide = w.space.wide(value)
    count = w.count(path, wide)
    row = w.temp(DType.FLOAT32, wide, hint="acc")
    outer[-1].items.append(_start(w, outer, value, row, w.count(outer, wide)))
    source = w.vector(path, value.args[0], wide)
    step = _joined(w, value.text, row, source, count, wide)
    target = w.stored.pop(value, None)
    if value.mode == "exclusive":
        target = target or w.like(value)
        path[-1].items += [_copy(target, row, count), *step]
    else:
        path[-1].items += step
        if target is not None:
            path[-1].items.append(_copy(target, row, count))
    path[-1].buffers[value] = target or row


def _start(w: Writer, path: Path, value: Value, row: str, count: Expr) -> ir.Op:
    start = w.start(path, value)
    if isinstance(start, str):
        return _copy(row, start, count)
    return op("duplicate", (row,), (start or _NEUTRAL[value.text],), count)


def _copy(target: str, source: str, count: Expr) -> ir.Op:
    return op("muls", (target, source), (Const(1.0),), count)
