"""Windows of rows: the neutral element around what is held, and folds of whole rows and planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Call,
    Const,
    Expr,
    For,
    Name,
    Op,
    ScalarFn,
    Stage,
    StageKind,
    Stmt,
    View,
)
from npusmith.plan.block import Path
from npusmith.plan.index import simple
from npusmith.plan.index_vectors import tile_buffer
from npusmith.plan.lane_space import Lanes
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    largest,
    least,
    minus,
    plus,
    product,
    shares,
    times,
)
from npusmith.plan.sinks import IDENTITY
from npusmith.plan.window_shapes import Along, Shape, clamped
from npusmith.plan.writer import op

JOIN = {"sum": "add", "max": "max", "min": "min"}
_BLOCK = Const(8)  # elements of 32 bytes
Loop = tuple[str, Expr, Expr, int]  # variable, from, before, and step


@dataclass(frozen=True, slots=True)
class HeldWindow:
    """Where the places of all windows stand on chip."""

    buffer: str
    steps: tuple[Expr, ...]  # elements from one place to the next, along each axis
    origin: Expr  # where the first window of the tile starts
    whole: Expr  # elements in use
    place: Expr | None = None  # where the first place of the input stands, of rows that are padded


@dataclass(frozen=True, slots=True)
class Columns:
    """What a row of windows takes in, in a buffer of the neutral element."""

    pitch: Expr  # elements from one row to the next
    first: Expr  # where the first window of a row starts
    place: Expr  # where the first place of the input stands, on a multiple of 32 bytes
    count: Expr  # elements of the input

    @property
    def within(self) -> Expr:
        """The same, said so that a row is seen to end before the next one begins."""
        return least(self.count, self.pitch)


def _columns(w: Lanes, path: Path, shape: Shape, counts: dict[int, Expr]) -> Columns:
    last = shape.along[-1]
    reach = plus(last.reach(_most(w, last)), Const(7))
    pitch = w.sizes.named(Call(ScalarFn.ALIGN_UP, (reach, _BLOCK)))
    start = _scalar(w, path, "left_", last.start)
    low = _scalar(w, path, "low_", clamped(start))
    stop = last.stop(counts[last.lane])
    if not last.reaches:
        stop = simple(plus(last.start, last.reach(counts[last.lane])))
    cols = _scalar(w, path, "cols_", largest(simple(minus(stop, low)), ZERO))
    before = simple(minus(low, start))
    if before == ZERO:
        return Columns(pitch, ZERO, ZERO, cols)
    place = _scalar(w, path, "put_", Call(ScalarFn.ALIGN_UP, (before, _BLOCK)))
    return Columns(pitch, simple(minus(place, before)), place, cols)


def surrounded(
    w: Lanes, path: Path, text: str, shape: Shape, held: HeldWindow, counts: dict[int, Expr]
) -> HeldWindow:
    """The same with the neutral element wherever windows reach out of the input."""
    above, columns = shape.along[:-1], _columns(w, path, shape, counts)
    steps: list[Expr] = [ONE]
    step = columns.pitch
    for item in reversed(above):
        steps.insert(0, step)
        step = times(step, item.reach(_most(w, item)))
    whole = product((*(item.reach(counts[item.lane]) for item in above), columns.pitch))
    buffer = neutral(w, path, text, shape, whole)
    to: Expr = columns.place
    source: Expr = ZERO
    loops: list[Loop] = []
    for item, far, near in zip(above, steps, held.steps, strict=False):
        name = w.fresh("row_")
        first, low = w.scalar(path, item.start), w.scalar(path, item.low)
        begin = clamped(first)
        loops.append((name, ZERO, simple(minus(item.stop(counts[item.lane]), begin)), 1))
        to = plus(plus(to, times(simple(minus(begin, first)), far)), times(Name(name), far))
        source = plus(source, times(simple(plus(minus(begin, low), Name(name))), near))
    views = View(buffer, to), View(held.buffer, source)
    move = Op("muls", views, (Const(1.0),), "", columns.within)
    path[-1].items.append(nested(loops, move))
    return HeldWindow(buffer, tuple(steps), columns.first, whole, columns.place)


def by_planes(
    w: Lanes,
    path: Path,
    text: str,
    shape: Shape,
    held: HeldWindow,
    counts: dict[int, Expr],
    at: int,
) -> tuple[HeldWindow, Shape]:
    """Windows along an axis outside of the rows, folded by all that stands inside of it."""
    item, above = shape.along[at], shape.along[:at]
    if item.size == item.stride == 1 and not item.reaches:
        return held, shape
    inner, steps = held.steps[at], list(held.steps[at:])
    step = times(inner, _most(w, item))
    for other in reversed(above):
        steps.insert(0, step)
        step = times(step, w.size(other.held))
    places = [_places(w, path, other) for other in above]
    buffer = neutral(w, path, text, shape, product((*places, counts[item.lane], inner)))
    to: Expr = ZERO
    source: Expr = ZERO
    loops: list[Loop] = []
    for size, far, near in zip(places, steps, held.steps, strict=False):
        name = w.fresh("plane_")
        loops.append((name, ZERO, size, 1))
        to = plus(to, times(Name(name), far))
        source = plus(source, times(Name(name), near))
    window, place, turns = _turns(w, path, item, counts[item.lane])
    loops += turns
    to = plus(to, times(window, inner))
    source = plus(source, times(place, inner))
    views = View(buffer, to), View(held.buffer, source)
    path[-1].items.append(nested(loops, Op(f"accumulate_{text}", views, (), "", inner)))
    done = Along(item.lane, item.lane, w.size(item.lane))
    new = replace(shape, along=(*above, done, *shape.along[at + 1 :]))
    origin = held.origin if item.rows else minus(held.origin, times(item.start, inner))
    whole = product((*places, counts[item.lane], inner))
    return HeldWindow(buffer, tuple(steps), simple(origin), whole), new


def _turns(w: Lanes, path: Path, item: Along, count: Expr) -> tuple[Expr, Expr, list[Loop]]:
    """Which window, where among what is held its place is, and loops over places, then windows.

    No turn of the inner loop touches what another one does: it needs no barriers.
    """
    one, tap = Name(w.fresh("window_")), Name(w.fresh("tap_"))
    start = simple(plus(w.scalar(path, item.start), times(tap, Const(item.dilation))))
    stride = Const(item.stride)
    begin = shares(largest(minus(ZERO, start), ZERO), stride) if item.reaches else ZERO
    stop = least(count, shares(largest(simple(minus(item.extent, start)), ZERO), stride))
    place = simple(minus(plus(start, times(one, stride)), w.scalar(path, item.low)))
    return one, place, [(tap.id, ZERO, Const(item.size), 1), (one.id, begin, stop, 1)]


def row_by_row(
    w: Lanes, path: Path, text: str, shape: Shape, held: HeldWindow, counts: dict[int, Expr]
) -> tuple[HeldWindow, Shape]:
    """Windows of rows, folded row by row over the neutral element."""
    item, above = shape.along[-2], shape.along[:-2]
    columns = _columns(w, path, shape, counts)
    steps: list[Expr] = [ONE]
    step = columns.pitch
    for other in (item, *reversed(above)):
        steps.insert(0, step)
        step = times(step, _most(w, other))
    whole = product((*(counts[other.lane] for other in (*above, item)), columns.pitch))
    buffer = neutral(w, path, text, shape, whole)
    to: Expr = columns.place
    source: Expr = ZERO
    loops: list[Loop] = []
    for other, far, near in zip(above, steps, held.steps, strict=False):
        name = w.fresh("plane_")
        loops.append((name, ZERO, counts[other.lane], 1))
        to = plus(to, times(Name(name), far))
        source = plus(source, times(Name(name), near))
    window, place, turns = _turns(w, path, item, counts[item.lane])
    loops += turns
    to = plus(to, times(window, columns.pitch))
    source = plus(source, times(place, held.steps[-2]))
    views = View(buffer, to), View(held.buffer, source)
    path[-1].items.append(nested(loops, Op(f"accumulate_{text}", views, (), "", columns.within)))
    done = replace(item, size=1, stride=1, dilation=1, start=ZERO, reaches=False)
    new = replace(shape, along=(*above, done, shape.along[-1]))
    return HeldWindow(buffer, tuple(steps), columns.first, whole), new


def by_rows(
    w: Lanes, path: Path, text: str, shape: Shape, held: HeldWindow, counts: dict[int, Expr]
) -> tuple[HeldWindow, Shape]:
    """Windows of rows, folded by whole vectors: every row starts one.

    Of several planes in one sweep. Windows that run over into the next plane are of no use, but
    what comes after may read them.
    """
    item, above = shape.along[-2], shape.along[:-2]
    row = held.steps[-2]
    origin = held.origin
    first: Expr = ZERO
    if not shape.reaches and not item.rows:
        first = times(item.start, row)
        origin = minus(origin, first)
    with w.among(shape.held), w.whole_tile():
        buffer = tile_buffer(w, DType.FLOAT32)
    count = times(counts[item.lane], row)
    if above:
        rest = times(Const((item.size - 1) * item.dilation), row)
        count = simple(minus(held.whole, plus(first, rest)))
    next_ = plus(first, times(Const(item.dilation), row))
    views = View(buffer), View(held.buffer, first), View(held.buffer, next_)
    body: tuple[Stmt, ...] = (Op(JOIN[text], views, (), "", count),)
    if item.size > 2:
        tap = Name(w.fresh("tap_"))
        there = plus(first, times(times(tap, Const(item.dilation)), row))
        pair = View(buffer), View(held.buffer, there)
        more = Op(f"accumulate_{text}", pair, (), "", count)
        body = (*body, For(tap.id, Const(2), Const(item.size), ONE, (more,)))
    path[-1].items.append(nested((), *body))
    done = replace(item, size=1, dilation=1, start=ZERO)
    new = replace(shape, along=(*above, done, shape.along[-1]))
    return HeldWindow(buffer, held.steps, origin, count, held.place), new


def neutral(w: Lanes, path: Path, text: str, shape: Shape, count: Expr) -> str:
    """A buffer full of the neutral element."""
    with w.among(shape.held), w.whole_tile():
        buffer = tile_buffer(w, DType.FLOAT32)
    path[-1].items.append(op("duplicate", (buffer,), (Const(IDENTITY[text]),), count))
    return buffer


def nested(loops: Sequence[Loop], *stmts: Stmt) -> Stage:
    """Loops from one place to before another, by steps, around statements."""
    for name, begin, stop, step in reversed(loops):
        stmts = (For(name, begin, stop, Const(step), stmts),)
    return Stage(StageKind.COMPUTE, stmts)


def first_inside(start: Expr, dilation: int) -> Expr:
    """The first place of the window that starts there which is in the input."""
    if dilation == 1:
        return clamped(start)
    before = Call(ScalarFn.CEIL_DIV, (largest(minus(ZERO, start), ZERO), Const(dilation)))
    return plus(start, times(before, Const(dilation)))


def _most(w: Lanes, item: Along) -> Expr:
    return w.height if item.lane == 0 else w.size(item.lane)


def _scalar(w: Lanes, path: Path, stem: str, expr: Expr) -> Expr:
    """A number of the tile by name."""
    expr = w.scalar(path, expr)
    if isinstance(expr, (Const, Name)):
        return expr
    name = w.fresh(stem)
    path[-1].items.append(Assign(name, expr))
    return Name(name)


def _places(w: Lanes, path: Path, item: Along) -> Expr:
    with w.among((item.held,)):
        return w.extents(path)[0]
