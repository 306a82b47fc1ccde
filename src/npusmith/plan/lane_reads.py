"""Reading an input at an index map: one copy, a gather from what was copied, or each element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    Choice,
    Const,
    Expr,
    If,
    Load,
    Name,
    ScalarFn,
    Size,
    Span,
    StageKind,
    View,
)
from npusmith.ir.walk import names
from npusmith.lang.extents import extent as measured
from npusmith.plan.block import Block, Part, Path, staged
from npusmith.plan.dag import Kind, Value
from npusmith.plan.element_reads import each
from npusmith.plan.emit import buffer_dtype, widening
from npusmith.plan.even_strided_rows import even_row, first_of, span
from npusmith.plan.host import TILE
from npusmith.plan.index import (
    Poly,
    bounds,
    constant,
    poly,
    replaced,
    simple,
    steps,
)
from npusmith.plan.index_vectors import (
    int_buffer,
    offsets,
    pick,
    raised,
    tile_buffer,
    varies,
    vector,
)
from npusmith.plan.lane_space import Lanes
from npusmith.plan.padded_rows import is_moved, load_rows, long_rows
from npusmith.plan.provable_conditions import always
from npusmith.plan.reader import ELEMENT
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    all_of,
    largest,
    least,
    minus,
    plus,
    product,
    quotient,
    times,
)
from npusmith.plan.widening import Copied, Row, each_row, onto_of, widened
from npusmith.plan.writer import dtype_of, op

STAGE = 2  # tiles that a copy may bring for one
_NEAR = 64  # elements that reads are apart which share a copy
_WIDE_STEP = 4  # from so many times the elements of a row on, rows are copied apart


def fetch(w: Lanes, path: Path, value: Value) -> None:
    """Bring the elements of an input on chip that stand where its index map says."""
    expr = value.index[0]
    assert value.dtype is not None
    w.ready(path, expr)
    if not w.space.wide(value):
        raw = w.temp(buffer_dtype(value.dtype), False, Part.LOADED, hint=w.tensors[value.text])
        span = Span(w.tensors[value.text], w.scalar(path, expr))
        path[-1].items.append(Load(View(raw), span, ONE))
        path[-1].buffers[value] = widened(w, path, value, Copied(raw, ONE), False)
        return
    count = w.count(path, True)
    raw_dtype = buffer_dtype(value.dtype)
    if dense(w, expr):
        raw = tile_buffer(w, raw_dtype, Part.LOADED, hint=w.tensors[value.text])
        path[-1].items.append(Load(View(raw), span_of(w, path, value, start_of(w, expr)), count))
        path[-1].buffers[value] = widened(w, path, value, Copied(raw, count), True)
        return
    if w.tail(w.now):
        with w.unpadded():
            close = dense(w, expr)
        if close:
            path[-1].buffers[value] = _in_rows(w, path, value)
            return
        if (apart := _rows_apart(w, value)) is not None:
            start = span_of(w, path, value, start_of(w, expr))
            path[-1].buffers[value] = load_rows(w, path, value, start, apart)
            return
    path[-1].buffers[value] = _gathered(w, path, value)


def _in_rows(w: Lanes, path: Path, value: Value) -> str:
    """What stands together in memory, in rows that begin at multiples of 32 bytes each."""
    assert value.dtype is not None
    span = span_of(w, path, value, start_of(w, value.index[0]))
    if long_rows(w, value.dtype):
        return load_rows(w, path, value, span)
    raw = tile_buffer(w, buffer_dtype(value.dtype), Part.LOADED, hint=w.tensors[value.text])
    with w.unpadded():
        count = w.count(path, True)
    path[-1].items.append(Load(View(raw), span, count))
    wide = widened(w, path, value, Copied(raw, count), True) if value.kind is not Kind.LONG else raw
    result = w.temp(dtype_of(value), True)
    table = offsets(w, path, [(lane, w.packed(lane)) for lane in w.now])
    pick(w, path, value.kind, (result, wide, table), ZERO)
    return result


def _rows_apart(w: Lanes, value: Value) -> Expr | None:
    """Elements from one row of a product's block to the next in an input; None of other reads."""
    found = affine(w, value.index[0])
    if w.handed is None or found is None or w.now != w.frame or not is_moved(value.dtype):
        return None
    step, inner = found[1]
    return step.expr() if inner == poly(ONE) and step.terms else None


def span_of(w: Lanes, path: Path, value: Value, address: Expr) -> Span:
    return Span(w.tensors[value.text], w.scalar(path, address))


def affine(w: Lanes, expr: Expr) -> tuple[Expr, list[Poly]] | None:
    """The first address, and the step along each axis that is computed along."""
    if any(
        name.startswith(ELEMENT) and w.space.wide(w.elements[int(name[1:])]) for name in names(expr)
    ):
        return None
    lanes = [w.tiling.lanes[lane].name for lane in w.now]
    found = steps(expr, lanes)
    if found is None:
        return None
    base, by = found
    return base, [by[name] for name in lanes]


def start_of(w: Lanes, expr: Expr) -> Expr:
    found = affine(w, expr)
    assert found is not None
    return found[0]


def dense(w: Lanes, expr: Expr) -> bool:
    """Whether lanes stand side by side in memory, as they do in the tile."""
    found = affine(w, expr)
    if found is None:
        return False
    wanted = [poly(w.depth(lane)) for lane in w.now]
    alone = [w.size(lane) == ONE for lane in w.now]
    return all(one or step == want for one, step, want in zip(alone, found[1], wanted, strict=True))


def _gathered(w: Lanes, path: Path, value: Value) -> str:
    """By a gather where what is copied fits; element by element where it does not."""
    result = w.temp(dtype_of(value), True)
    inside = Block(path[-1].opened, count=None)
    around = (*path, inside)
    fits = _staged(w, around, value, result)
    if fits is None:
        each(w, path, value, result)
        return result
    other = Block(path[-1].opened)
    each(w, (*path, other), value, result)
    path[-1].items.append(If(fits, staged(inside.items), staged(other.items)))
    return result


def room_of(w: Lanes) -> Expr:
    return times(TILE, Const(STAGE))


def _staged(w: Lanes, path: Path, value: Value, result: str) -> Expr | None:
    """Copy and gather; returns the condition under which it may be done. None: it may not."""
    found = affine(w, value.index[0])
    if found is not None:
        return _by_table(w, path, value, result, *found)
    return _by_places(w, path, value, result)


def _by_table(
    w: Lanes, path: Path, value: Value, result: str, base: Expr, by: list[Poly]
) -> Expr | None:
    known = set(w.sizes.defined)
    if any(not set(names(step.expr())) <= known for step in by):
        return _by_places(w, path, value, result)
    signs = [{number > 0 for _, number in step.terms} for step in by]
    if any(len(sign) > 1 for sign in signs):
        return _by_places(w, path, value, result)
    low: Expr = base
    extents = w.extents(path)
    for size, step, sign in zip(extents, by, signs, strict=True):
        if sign == {False}:
            low = plus(low, times(minus(size, ONE), step.expr()))
    sizes = [
        step.expr() if sign != {False} else (constant(0) - step).expr()
        for step, sign in zip(by, signs, strict=True)
    ]
    near = _near(w, value)
    extra = near.extra if near else 0
    far = _far_apart(w, sizes, extra)
    if any(signs[at] == {False} for at in far):
        return _by_places(w, path, value, result)
    raw_dtype = buffer_dtype(value.dtype)  # type: ignore[arg-type]
    row = plus(_reach(extents, sizes, far), Const(0 if far else extra))
    local, room = list(sizes), row
    most = [w.height if lane == 0 else w.size(lane) for lane in w.now]
    types = [raw_dtype, *(dtype for dtype, _ in widening(value))]
    copied = list(sizes)
    even = w.now[0] == 0 and bool(far) and 0 not in far
    if far:
        block = Const(32 // min(dtype.bytes for dtype in types))
        whole = _reach(most, sizes, far)
        pitch: Expr = Call(ScalarFn.ALIGN_UP, (whole, block))
        own: Expr = Call(ScalarFn.ALIGN_UP, (whole, Const(32 // raw_dtype.bytes)))
        if even:  # every tile copies as much of a row: the last ones from further to the front
            row = even_row(w, value, own, most, sizes, far)
            w.unit = max(w.unit, 32 // raw_dtype.bytes)
        for at in reversed(far):
            local[at], copied[at] = pitch, own
            pitch, own = times(pitch, most[at]), times(own, most[at])
        copies_ = product(extents[at] for at in far if at or w.now[0] != 0)
        room = times(local[far[-1]], product(extents[at] for at in far))
        spare: Expr = block
    else:
        copies_, spare = ONE, Const(extra)
    if w.now[0] == 0 and 0 in far:
        w.limits.append(quotient(room_of(w), largest(times(local[far[-1]], copies_), ONE)))
    elif w.now[0] == 0 and by[0].terms:
        rest = plus(_reach([ONE, *most[1:]], sizes, far), spare)
        share = quotient(room_of(w), largest(copies_, ONE))
        w.limits.append(plus(quotient(minus(share, rest), largest(sizes[0], ONE)), ONE))
    negative = [sign == {False} for sign in signs]
    local = [
        minus(ZERO, size) if below else size for size, below in zip(local, negative, strict=True)
    ]
    table = offsets(w, path, list(zip(w.now, local, strict=True)))
    shift: Expr = ZERO
    if any(negative):  # where lane 0 stands on chip
        for size, extent, below in zip(sizes, extents, negative, strict=True):
            shift = plus(shift, times(minus(extent, ONE), size)) if below else shift
        table, shift = raised(w, path, table, shift), ZERO
    if near and not far:
        held = _held_near(w, path[:-1], value, near, minus(low, Const(near.at)), row)
        pick(w, path, value.kind, (result, held, table), simple(plus(shift, Const(near.at))))
        return Binary(BinOp.LE, row, room_of(w))
    raw = tile_buffer(w, raw_dtype, Part.LOADED, STAGE, hint=w.tensors[value.text])
    rows = [Row(f"copy{at}", extents[at], copied[at], local[at]) for at in far]
    loops, together, count = list(rows), None, row if far else room
    if even:
        first = first_of(w, path, value, low, plus(span(most, sizes, far), row))
        shift, low = plus(shift, minus(w.scalar(path, low), first)), first
    if far:  # rows that are as long in every tile: one copy
        loops.pop()
        together = far[-1]
    for at in far:
        if at != together:
            low = plus(low, times(Name(f"copy{at}"), sizes[at]))
    where = View(raw, onto_of(loops, False)), span_of(w, path, value, low)
    if together is None:
        load = Load(*where, row)
    else:
        load = Load(*where, row, extents[together], sizes[together])
    path[-1].items.append(each_row(loops, load, StageKind.COPY_IN))
    if even and widening(value):  # rows without gaps between them: one cast
        one = w.sizes.named(Choice(Binary(BinOp.EQ, row, local[far[-1]]), ONE, ZERO))
        full = Binary(BinOp.EQ, one, ONE)
        turns, last = extents[far[-1]], rows[-1]
        rows[-1] = replace(last, turns=Choice(full, ONE, turns))
        count = Choice(full, times(turns, row), row)
    take(w, path, value, Copied(raw, count, rows), result, table, simple(shift))
    fits: Expr = Binary(BinOp.LE, room, room_of(w))
    for at in far:
        fits = Binary(BinOp.AND, fits, Binary(BinOp.LE, row, sizes[at]))
    if not even:
        return fits
    some = Binary(BinOp.GT, whole, ZERO)  # an axis of no elements has no row to begin with
    return all_of([fits, Binary(BinOp.LE, whole, row), some])


@dataclass(frozen=True, slots=True)
class Near:
    """Reads of one input that are a few elements apart, at the same steps: they share a copy."""

    key: tuple[object, ...]
    at: int  # elements from the first of them to this one
    extra: int  # ... to the last


def near_key(w: Lanes, value: Value) -> tuple[tuple[object, ...], int] | None:
    """What reads that are a few elements apart have in common, and where this one is."""
    if value.op != "fetch" or not w.space.wide(value):
        return None
    with w.along(value):
        found = affine(w, value.index[0])
        if found is None or dense(w, value.index[0]):
            return None
    base = poly(found[0])
    at = sum(number for factors, number in base.terms if not factors)
    steps_ = tuple(step.expr() for step in found[1])
    rest = (base - constant(at)).expr()
    return (value.text, value.axes, w.domain(value), steps_, rest), at


def shares_copy(w: Lanes, value: Value) -> bool:
    """Whether other reads, a few elements apart, share a copy with this one."""
    return _near(w, value) is not None


def _near(w: Lanes, value: Value) -> Near | None:
    found = near_key(w, value)
    places = w.near.get(found[0], set()) if found else set()
    if found is None or len(places) < 2 or max(places) - min(places) > _NEAR:
        return None
    return Near(found[0], found[1] - min(places), max(places) - min(places))


def _held_near(w: Lanes, path: Path, value: Value, near: Near, low: Expr, row: Expr) -> str:
    """The copy that such reads share, as it is computed with; as far as it fits."""
    copies = path[-1].copies
    if near.key not in copies:
        assert value.dtype is not None
        count, tensor = least(row, room_of(w)), w.tensors[value.text]
        raw = tile_buffer(w, buffer_dtype(value.dtype), Part.LOADED, STAGE, hint=tensor)
        path[-1].items.append(Load(View(raw), span_of(w, path, value, low), count))
        long = value.kind is Kind.LONG
        copies[near.key] = raw if long else widened(w, path, value, Copied(raw, count), True, STAGE)
    return str(copies[near.key])


def _reach(extents: Sequence[Expr], sizes: Sequence[Expr], far: Sequence[int]) -> Expr:
    """Elements from the first to the last that are read, but for the steps along some axes."""
    row: Expr = ONE
    for at, (size, stride) in enumerate(zip(extents, sizes, strict=True)):
        if at not in far:
            row = plus(row, times(minus(size, ONE), stride))
    return simple(row)


def _far_apart(w: Lanes, sizes: Sequence[Expr], extra: int) -> list[int]:
    """The axes whose indices lie so far apart, as captured, that each is worth a copy."""
    counts = [1 if lane == 0 else w.captured((lane,)) for lane in w.now]  # any tile has as many
    steps_ = [captured(w, size) for size in sizes]
    far, reach = [], 1 + extra
    for at in sorted(range(len(sizes)), key=lambda at: steps_[at]):
        if steps_[at] >= _WIDE_STEP * reach:
            far.append(at)
        else:
            reach += (counts[at] - 1) * steps_[at]
    return sorted(far)


def captured(w: Lanes, expr: Expr, tile: int = 1) -> int:
    """An expression over sizes, as captured."""
    shapes = {item.name: item.item.shape for item in w.space.inputs}

    def new(name: str) -> Expr | None:
        return w.sizes.defined.get(name, Const(tile if name == TILE.id else 1))

    whole = expr
    for _ in range(8):
        whole = replaced(whole, new)
        if not names(whole):
            break
    return measured(whole, shapes, w.chip.vector_cores)


def take(
    w: Lanes, path: Path, value: Value, copied: Copied, result: str, table: str, shift: Expr
) -> None:
    """Widen what was copied, in rows of so many elements, and gather the lanes from it."""
    whole = copied.raw
    if value.kind is not Kind.LONG:
        whole = widened(w, path, value, copied, True, STAGE)
    pick(w, path, value.kind, (result, whole, table), shift)


def _by_places(w: Lanes, path: Path, value: Value, result: str) -> Expr | None:
    """Offsets that are worked out for this tile, or once where they are those of every tile."""
    tensor, same = w.tensors[value.text], _same_in_all_tiles(w, path, value.index[0])
    low, high = ends(w, path, value, {})
    start, room = w.fresh("from_"), w.fresh("room_")
    first = w.scalar(path, same[0]) if same else low
    if always(Binary(BinOp.LT, first, ZERO)):
        same, first = None, low  # what all tiles could begin at is in front of the tensor
    outside = path[-2]
    outside.items.append(Assign(start, first))
    outside.items.append(Assign(room, plus(minus(high, Name(start)), ONE)))
    table = _once(w, path, poly(same[1])) if same else _moved(w, path, value.index[0], Name(start))
    raw = tile_buffer(w, buffer_dtype(value.dtype), Part.LOADED, STAGE, hint=tensor)  # type: ignore[arg-type]
    path[-1].items.append(Load(View(raw), Span(tensor, Name(start)), Name(room)))
    take(w, path, value, Copied(raw, Name(room)), result, table, ZERO)
    fits = Binary(BinOp.LE, Name(room), room_of(w))
    return all_of([fits, Binary(BinOp.GE, Name(start), ZERO)]) if same else fits


def _once(w: Lanes, path: Path, places: Poly) -> str:
    """Places that are those of every tile, in bytes."""
    found = vector(w, path[:1], (places * constant(4)).expr())
    assert isinstance(found, str)
    return found


def _moved(w: Lanes, path: Path, expr: Expr, start: Expr) -> str:
    """Places from a start on, in bytes; terms that sizes tell are worked out once."""
    known = {*w.sizes.defined, *(item.name for item in w.tiling.lanes)}
    terms = [(part, {*names(Poly((part,)).expr())}) for part in poly(expr).terms]
    lanes = [(part, used) for part, used in terms if any(varies(w, item) for item in part[0])]
    once = Poly(tuple(part for part, used in lanes if used <= known))
    if len(once.terms) == len(lanes):
        once = constant(0)
    offsets = vector(w, path, (poly(expr) - once).expr())
    assert isinstance(offsets, str)
    count = w.count(path, True)
    table, moved = int_buffer(w), int_buffer(w)
    path[-1].items.append(op("adds", (moved, offsets), (minus(ZERO, start),), count))
    path[-1].items.append(op("muls", (table, moved), (Const(4),), count))
    if not once.terms:
        return table
    total = int_buffer(w)
    path[-1].items.append(op("add", (total, table, _once(w, path, once)), (), count))
    return total


def _same_in_all_tiles(w: Lanes, path: Path, expr: Expr) -> tuple[Expr, Expr] | None:
    """Where a tile begins, and how far behind that its elements are: by sizes alone, or None."""
    terms = poly(expr).terms
    along = Poly(tuple(term for term in terms if any(varies(w, part) for part in term[0])))
    known = {*w.sizes.defined, *(item.name for item in w.tiling.lanes)}
    found = bounds(along.expr(), _ranges(w, path))
    if found is None or not {*names(along.expr())} <= known or not {*names(found[0])} <= known:
        return None
    first = poly(found[0])
    return (poly(expr) - along + first).expr(), (along - first).expr()


def _ranges(w: Lanes, path: Path) -> dict[str, tuple[Expr, Expr]]:
    """The indices that a tile has along each axis."""
    return {
        w.tiling.lanes[lane].name: (ZERO, minus(size, ONE))
        for lane, size in zip(w.now, w.extents(path), strict=True)
    }


def ends(
    w: Lanes, path: Path, value: Value, known: Mapping[str, tuple[Expr, Expr]]
) -> tuple[Expr, Expr]:
    """The first and the last place that a tile reads, estimated, within the tensor.

    `known`: what is known of the elements of index tensors.
    """
    ranges = {**known, **_ranges(w, path)}
    tensor = w.tensors[value.text]
    last = minus(w.sizes.define(f"{tensor}_size", Size(tensor)), ONE)
    found = bounds(value.index[0], ranges)
    if found is None:
        return ZERO, last
    low, high = (w.scalar(path, end) for end in found)
    return largest(low, ZERO), least(high, last)
