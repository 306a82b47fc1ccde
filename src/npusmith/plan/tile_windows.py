"""Reductions over windows: what the windows of a tile take in is held on chip once, for all taps.

Along the two innermost axes windows move with the elements of a tile. What they pool is computed
along axes of its own, which hold all places that the tile needs; the neutral element is put around
it where windows reach out of the input. Rows are folded by whole vectors where each row starts a
window, all else by gathers: one table for all taps, their shift is the base address. Along axes
outside of the tile a window is a loop that adds up what is held.
"""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Const,
    Expr,
    For,
    If,
    Name,
    Op,
    Stage,
    StageKind,
    Stmt,
    View,
)
from npusmith.plan.block import Block, Path, staged
from npusmith.plan.dag import Value
from npusmith.plan.host import TILE
from npusmith.plan.index import simple
from npusmith.plan.index_vectors import tile_buffer
from npusmith.plan.lane_space import Lanes
from npusmith.plan.passes import ensure
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    floating,
    largest,
    least,
    minus,
    plus,
    product,
    quotient,
    remainder,
    times,
)
from npusmith.plan.sinks import IDENTITY
from npusmith.plan.window_rows import (
    JOIN,
    HeldWindow,
    Loop,
    by_planes,
    by_rows,
    first_inside,
    nested,
    row_by_row,
    surrounded,
)
from npusmith.plan.window_shapes import Along, Rows, Shape
from npusmith.plan.window_taps import Tap, taps_of
from npusmith.plan.writer import op

_BLOCK = Const(8)  # elements of 32 bytes

# ------------------------------------------------------------------------------------------ writing


def window(w: Lanes, path: Path, value: Value) -> None:
    """Hold what is pooled, fold rows, then gather the taps along them."""
    shape = w.windows[value]
    (operand,) = value.args
    counts = dict(zip(w.now, w.extents(path), strict=True))
    held = _held(w, path, value, shape, operand)
    for at in range(len(shape.along) - 2):
        held, shape = by_planes(w, path, value.text, shape, held, counts, at)
    if shape.rows is Rows.EACH:
        held, shape = row_by_row(w, path, value.text, shape, held, counts)
    elif shape.reaches:
        held = surrounded(w, path, value.text, shape, held, counts)
    if shape.rows is Rows.WHOLE:
        held, shape = by_rows(w, path, value.text, shape, held, counts)
    _gathered(w, path, value, shape, held)


def _held(w: Lanes, path: Path, value: Value, shape: Shape, operand: Value) -> HeldWindow:
    """What is pooled, where the tile needs it; of several planes their sum, or largest."""
    with w.among(shape.held):
        steps = tuple(w.depth(lane) for lane in shape.held)
        count = w.count(path, True)
    origin: Expr = ZERO
    for item, step in zip(shape.along, steps, strict=True):
        if not item.rows:
            origin = plus(origin, times(item.start, step))
    if not shape.outside:
        ensure(w, path, [operand])
        return HeldWindow(w.held(path, operand), steps, origin, count)
    with w.among(shape.held), w.whole_tile():
        total = tile_buffer(w, DType.FLOAT32)
    start = Const(IDENTITY[value.text])
    path[-1].items.append(op("duplicate", (total,), (start,), count))
    around = list(path)
    loops: list[tuple[str, Expr, Expr, Expr, Block]] = []
    for outside in shape.outside:
        begin = w.scalar(path, outside.start)
        stop = simple(plus(begin, Const(outside.span)))
        if outside.reaches:
            stop = least(stop, outside.extent)
            begin = first_inside(begin, outside.dilation)
        name = w.fresh("place_at_")
        block = Block(around[-1].opened | {outside.group}, {outside.group: Name(name)})
        loops.append((name, begin, stop, Const(outside.dilation), block))
        around.append(block)
    inner = tuple(around)
    ensure(w, inner, [operand])
    inner[-1].items.append(
        op(f"accumulate_{value.text}", (total, w.held(inner, operand)), (), count)
    )
    for i, (name, begin, stop, step, block) in reversed(list(enumerate(loops))):
        outer = inner[len(path) + i - 1]
        outer.items.append(For(name, begin, stop, step, staged(block.items)))
    return HeldWindow(total, steps, origin, count)


# ------------------------------------------------------------------------------------- along a row


def _gathered(w: Lanes, path: Path, value: Value, shape: Shape, held: HeldWindow) -> None:
    """The taps of every window, by gathers."""
    last, above = shape.along[-1], shape.along[:-1]
    rows = 1
    for item in above:
        rows *= item.size
    alike = 1  # elements of what is held for each of the result
    for item in shape.along:
        alike *= item.stride
    taps = taps_of(value.text, last.size, rows, alike)
    if taps is not None and not above and last.stride == 1 and last.size > 1:
        _along_a_row(w, path, value, last, held, taps)
        return
    count, join = w.count(path, True), JOIN[value.text]
    table = _table(w, path, shape, held)
    result, shifted = w.like(value), w.like(value)
    body = path[-1].items
    around: Expr = held.origin
    loops: list[Loop] = []
    for item, step in zip(above, held.steps, strict=False):
        if item.size > 1:
            name = w.fresh("tap_")
            loops.append((name, ZERO, Const(item.size), 1))
            around = plus(around, times(times(Name(name), Const(item.dilation)), step))
    if rows > 1 or taps is None:
        body.append(op("duplicate", (result,), (Const(IDENTITY[value.text]),), count))

    def gather(source: str, to: str, shift: Expr) -> Op:
        return op("gather", (to, source, table), (times(shift, Const(4)),), count)

    joined = op(join, (result, result, shifted), (), count)
    if taps is None:
        tap = Name(w.fresh("tap_"))
        shift = plus(around, times(tap, Const(last.dilation)))
        loops.append((tap.id, ZERO, Const(last.size), 1))
        body.append(nested(loops, gather(held.buffer, shifted, shift), joined))
    else:
        current = held.buffer
        fresh = rows == 1
        aligned = _aligned_tap(w, shape, held, taps) if fresh else None
        if aligned is not None:
            plain = gather(current, result, plus(around, Const(aligned.at * last.dilation)))
            whole = Binary(BinOp.EQ, remainder(w.size(last.lane), _BLOCK), ZERO)
            rows_ = (_copied_rows(w, path, shape, held, result),)
            body.append(Stage(StageKind.COMPUTE, (If(whole, rows_, (plain,)),)))
            taps, fresh = [tap for tap in taps if tap is not aligned], False
        for tap_ in taps:
            current = _doubled(w, path, join, current, tap_, last.dilation, held)
            shift = plus(around, Const(tap_.at * last.dilation))
            if fresh:
                body.append(gather(current, result, shift))
                fresh = False
            else:
                body.append(nested(loops, gather(current, shifted, shift), joined))
    path[-1].buffers[value] = result


def _aligned_tap(w: Lanes, shape: Shape, held: HeldWindow, taps: Sequence[Tap]) -> Tap | None:
    """The tap that stands as the input does, in rows as long as those of the result."""
    last = shape.along[-1]
    alike = w.size(last.lane) == w.size(last.held) and not last.rows
    if held.place is None or not alike or any(item.stride > 1 for item in shape.along):
        return None
    if any(tap.doublings for tap in taps):
        return None
    start = minus(held.origin, held.place)
    return next(
        (tap for tap in taps if simple(plus(start, Const(tap.at * last.dilation))) == ZERO), None
    )


def _copied_rows(w: Lanes, path: Path, shape: Shape, held: HeldWindow, result: str) -> Stmt:
    """Rows of the input without what is around them, where they are whole blocks."""
    assert held.place is not None
    to: Expr = ZERO
    source = held.place
    loops: list[Loop] = []
    extents = dict(zip(w.now, w.extents(path), strict=True))
    for item, step in zip(shape.along[:-1], held.steps, strict=False):
        name = w.fresh("row_")
        loops.append((name, ZERO, extents[item.lane], 1))
        to = plus(to, times(Name(name), w.depth(item.lane)))
        source = plus(source, times(Name(name), step))
    views = View(result, to), View(held.buffer, source)
    copy: Stmt = Op("muls", views, (Const(1.0),), "", w.size(shape.along[-1].lane))
    for name, begin, stop, by in reversed(loops):
        copy = For(name, begin, stop, Const(by), (copy,))
    return copy


def _along_a_row(
    w: Lanes, path: Path, value: Value, last: Along, held: HeldWindow, taps: list[Tap]
) -> None:
    """The same where the results stand as the places do: a tap less is gathered."""
    count, join = w.count(path, True), JOIN[value.text]
    held = _aligned(w, path, last, held)
    shifted, result = w.like(value), w.like(value)
    current, total = held.buffer, ""
    for tap in taps:
        current = _doubled(w, path, join, current, tap, last.dilation, held)
        if not total:
            total = current
            continue
        shift = Const(4 * tap.at * last.dilation)
        path[-1].items += [
            op("gather", (shifted, current, _positions(w, path)), (shift,), count),
            op(join, (result, total, shifted), (), count),
        ]
        total = result
    path[-1].buffers[value] = result


def _aligned(w: Lanes, path: Path, last: Along, held: HeldWindow) -> HeldWindow:
    """What is held from the first window on: it stands elsewhere in the first tile of a row."""
    if held.origin == ZERO:
        return held
    count = last.reach(w.extents(path)[0])
    with w.whole_tile():
        buffer = tile_buffer(w, DType.FLOAT32)
    shift = times(held.origin, Const(4))
    move = op("gather", (buffer, held.buffer, _positions(w, path)), (shift,), count)
    plain = op("muls", (buffer, held.buffer), (Const(1.0),), count)
    some = Binary(BinOp.GT, held.origin, ZERO)
    path[-1].items.append(Stage(StageKind.COMPUTE, (If(some, (move,), (plain,)),)))
    return HeldWindow(buffer, held.steps, ZERO, count)


def _doubled(
    w: Lanes, path: Path, join: str, current: str, tap: Tap, dilation: int, held: HeldWindow
) -> str:
    """Windows of twice, four times ... as many elements along rows."""
    for size in tap.doublings:
        table = _positions(w, path)
        with w.whole_tile():
            shifted = tile_buffer(w, DType.FLOAT32)
            wider = tile_buffer(w, DType.FLOAT32) if current == held.buffer else current
        by = size * dilation
        count = largest(minus(held.whole, Const((2 * size - 1) * dilation)), ZERO)
        path[-1].items += [
            op("gather", (shifted, current, table), (Const(4 * by),), count),
            op(join, (wider, current, shifted), (), count),
        ]
        current = wider
    return current


def _positions(w: Lanes, path: Path) -> str:
    """Byte offsets of elements that stand together."""
    if "bytes" not in w.tables:
        with w.whole_tile():
            table = tile_buffer(w, DType.INT32)
        path[0].items += [
            op("create_index", (table,), (ZERO,), TILE),
            op("muls", (table, table), (Const(4),), TILE),
        ]
        w.tables["bytes"] = table
    return w.tables["bytes"]


def _table(w: Lanes, path: Path, shape: Shape, held: HeldWindow) -> str:
    """Byte offsets of where the windows of a tile start; made once."""
    steps = [
        times(step, Const(item.stride)) for item, step in zip(shape.along, held.steps, strict=True)
    ]
    key = ("windows", shape.lanes, tuple(steps))
    if key in w.tables:
        return w.tables[key]
    root = path[0].items
    table, index = (w.temp(DType.INT32, True) for _ in range(2))
    wide, part = (w.temp(DType.FLOAT32, True) for _ in range(2))
    whole = quotient(TILE, Const(w.temps[table].share))
    root.append(op("create_index", (table,), (ZERO,), whole))
    root.append(op("muls", (table, table), (times(steps[-1], Const(4)),), whole))
    for i in range(len(steps) - 1):
        sizes = [w.size(item.lane) for item in shape.along[i + 1 :]]
        by = product(sizes)
        more = times(minus(steps[i], times(sizes[0], steps[i + 1])), Const(4))
        root += [
            op("create_index", (index,), (ZERO,), whole),
            op("cast", (wide, index), (), whole, "rint"),
            op("adds", (wide, wide), (Const(0.5),), whole),
            op(
                "muls", (part, wide),
                (Binary(BinOp.DIV, Const(1.0), floating(largest(by, ONE))),), whole,
            ),
            op("cast", (index, part), (), whole, "floor"),
            op("muls", (index, index), (more,), whole),
            op("add", (table, table, index), (), whole),
        ]  # fmt: skip
    w.tables[key] = table
    return table
