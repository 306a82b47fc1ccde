"""Windows of a reduction found in a tile: which axes they move along, and what they pool there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from npusmith.ir.nodes import Const, Expr, Name
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.dag import Kind, Value
from npusmith.plan.held_values import Env, Reading
from npusmith.plan.index import poly, simple, steps
from npusmith.plan.lane_space import LANE, LOOP, OUTSIDE, TURN, Axis, Lanes, dependencies
from npusmith.plan.reader import ELEMENT
from npusmith.plan.scalars import ZERO, largest, minus, plus, times
from npusmith.plan.space import Group
from npusmith.plan.window_axes import WindowAxis, Windowed
from npusmith.plan.window_shapes import Along, Outside, Rows, Shape, made, needs_rows

_SPAN = 128  # elements of a window along an axis that is cut: any tile has room for some
_START, _ADD, _GATHER, _REPEAT = 24, 2, 12, 64  # cycles, and elements (target/costs.py)
_TILE = 6144  # elements of a usual tile
_MANY = 1 << 20  # elements: more than any tile


def windowed(r: Reading, value: Value, given: Windowed, env: Env) -> Value | None:
    """The reduction over what the windows of a tile take in; None where windows do not fit it."""
    w = r.w
    if w.tail(w.frame) or value.kind is not Kind.FLOAT:
        return None
    found = [_place(r, axis, env) for axis in given.axes]
    if any(item is None for item in found):
        return None
    places = [item for item in found if item is not None and item.leaf is not None]
    along = [item for item in places if item.lane is not None]
    outer = [item for item in along if any(n.startswith(OUTSIDE) for n in names(item.start))]
    if outer and w.block != TURN:
        return None
    if not _innermost(w, [item.lane for item in along if item.lane is not None]):
        return None
    key = f"window {[(a.size, a.stride, a.padding, a.dilation) for a in given.axes]}"
    key += f" {[item.at for item in places]}"
    inner = dict(env)
    held = [_held(w, key, item) for item in along]
    for item, each in zip(along, held, strict=True):
        assert item.leaf is not None
        inner[item.leaf] = simple(plus(each.low, Name(f"{LANE}{each.held}")))
    outside = []
    for item in places:
        if item.lane is None:
            assert item.leaf is not None
            inner[item.leaf] = item.start
            if item.axis.size > 1 or item.axis.reaches:
                outside.append(_outside(w, item))
                inner[item.leaf] = Name(f"{LOOP}{outside[-1].group}")
    operand = r.value(given.value, inner)
    own = w.domain(operand)
    first = min(item.lane for item in held)
    before = tuple(lane for lane in own if lane < first)
    if not own or set(own) - set(before) - {item.held for item in held}:
        return None
    if any(item.op in ("reduce", "window") for item in dependencies([operand], w.elements)):
        return None
    plain = [Along(lane, lane, w.size(lane)) for lane in before]
    along_all = (*plain, *held)
    shape = Shape(along_all, tuple(outside), _rows(w, along_all))
    if not _fits(w, shape):
        return None
    last = shape.along[-1].held
    if needs_rows(shape) and w.captured((last,)) % 8 and (last,) not in w.padded:
        w.padded.append((last,))
    return made(w, shape, value.text, operand)


@dataclass(frozen=True, slots=True)
class Place:
    """A window in a tile: its first place, and the axis of the tile that it moves along."""

    axis: WindowAxis
    leaf: Atom | None  # what is pooled runs along it; None: one element, and no window
    lane: int | None
    start: Expr  # of the first window in the tile
    at: Expr


def _place(r: Reading, axis: WindowAxis, env: Env) -> Place | None:
    own = leaves(axis.x)
    if not own and axis.plain:
        return Place(axis, None, None, ZERO, ZERO)
    if len(own) != 1:
        return None
    at: Expr = ZERO
    for leaf in leaves(axis.out):
        at = plus(times(at, r.w.known[leaf]), r.index(leaf, env))
    at = simple(at)
    if any(name.startswith((ELEMENT, LOOP)) for name in names(at)):
        return None
    along = r.w.spread(at)
    lane, base = None, at
    if along:
        lane = min(along)
        apart = steps(at, [f"{LANE}{lane}"])
        if len(along) > 1 or lane not in r.w.frame or apart is None:
            return None
        base, by = apart
        if by[f"{LANE}{lane}"].number != 1:
            return None
    start = poly(minus(times(base, Const(axis.stride)), Const(axis.padding)))
    first = start.expr() if start.number is None else Const(start.number)
    return Place(axis, own[0], lane, first, at)


def _innermost(w: Lanes, lanes: list[int]) -> bool:
    """Whether windows move along the innermost axes of the tile, in their order."""
    return bool(lanes) and tuple(lanes) == w.frame[-len(lanes) :]


def _held(w: Lanes, key: str, item: Place) -> Along:
    """An axis of what is pooled: all of it, or what the tile needs along the axis that is cut."""
    axis, leaf, lane = item.axis, item.leaf, item.lane
    assert leaf is not None and lane is not None
    extent = w.known[leaf]
    number = w.kept.get((key, leaf), len(w.tiling.lanes))
    found = Along(
        lane, number, extent, item.start, axis.size, axis.stride, axis.dilation, axis.reaches,
        f"places{number}" if lane == 0 else "",
    )  # fmt: skip
    if (key, leaf) not in w.kept:
        w.kept[key, leaf] = number
        size, captured = extent, leaf.size
        if lane == 0:
            size, captured = found.reach(w.height), _MANY
            places = minus(found.stop(Name("m")), found.low)
            w.parts[found.rows] = largest(simple(places) if not found.reaches else places, ZERO)
        new = Axis(size, captured, f"{LANE}{number}", found.rows)
        w.tiling = replace(w.tiling, kept=(*w.tiling.kept, new))
    return found


def _outside(w: Lanes, item: Place) -> Outside:
    assert item.leaf is not None
    number = len(w.space.groups)
    extent, axis = w.known[item.leaf], item.axis
    w.space.groups = (*w.space.groups, Group(number, f"inside{number}", extent))
    return Outside(number, item.start, extent, axis.size, axis.dilation, axis.reaches)


def _rows(w: Lanes, along: tuple[Along, ...]) -> Rows:
    """How windows of rows are folded, by an estimate in cycles for a row of the result."""
    if len(along) < 2 or along[-2].size == 1:
        return Rows.NONE
    item, last = along[-2:]
    if item.stride == 1:
        return Rows.WHOLE
    cols, width = w.captured((last.lane,)), w.captured((last.held,))
    one = _START + width * _ADD / _REPEAT  # an instruction for a row
    share = 2 * _START * item.stride * width / _TILE  # of a gather's start, and of a join's
    taps = last.size * (cols * _GATHER / _REPEAT + share)
    surrounded = any(other.reaches for other in along)
    gathered = item.size * taps + (item.stride * one if surrounded else 0)
    padded = item.stride * one if width % 8 else 0
    return Rows.EACH if item.size * one + taps + padded < gathered else Rows.NONE


def _fits(w: Lanes, shape: Shape) -> bool:
    last = shape.along[-1]
    if shape.reaches and not last.rows:
        aligned = isinstance(last.start, Const) and last.start.value <= 0
        if not aligned:
            return False
    return last.lane != 0 or last.span <= _SPAN
