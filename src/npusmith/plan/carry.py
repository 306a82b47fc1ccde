"""Scans: what was folded so far is carried from turn to turn of the loop that they run along.

Along the last axis a tile is scanned on chip and the carry is a scalar; along another axis whole
rows are accumulated and the running row is the carry.
"""

from __future__ import annotations

from npusmith.ir import nodes as ir
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Assign, Binary, BinOp, Const, Expr, Name, View
from npusmith.plan.block import Block, Path
from npusmith.plan.dag import Value
from npusmith.plan.loops import mixed
from npusmith.plan.scalars import ONE, ZERO, minus
from npusmith.plan.writer import Writer, op

_NEUTRAL = {"sum": Const(0.0), "prod": Const(1.0)}
_JOIN = {"sum": BinOp.ADD, "prod": BinOp.MUL}


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
    path[-1].items.append(op(name, (target, source, spare), (start,), count, value.mode))
    return source, target


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
    step = op(f"accumulate_{value.text}", (row, source), (), count)
    target = w.stored.pop(value, None)
    if value.mode == "exclusive":
        target = target or w.like(value)
        path[-1].items += [_copy(target, row, count), step]
    else:
        path[-1].items.append(step)
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
