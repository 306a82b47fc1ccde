"""Reading an input at places that values say: what lies between them is copied, then gathered.

Of every index tensor the least and the greatest element along a tile are found on chip, so that the
range of places in the input is known before it is copied. Reads whose places follow from the same
elements share one copy: the four neighbours of a point, the taps of a filter. A range that is too
long for UB passes by in bands; one that is much longer still is read element by element.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    Const,
    Expr,
    For,
    If,
    Load,
    Name,
    Negate,
    ScalarFn,
    Span,
    Stage,
    StageKind,
    Stmt,
    View,
)
from npusmith.ir.nodes import Value as Read
from npusmith.ir.walk import names
from npusmith.plan import lane_reads
from npusmith.plan.block import Block, Part, Path, staged
from npusmith.plan.dag import Kind, Value
from npusmith.plan.element_reads import alone, each, one_by_one
from npusmith.plan.emit import buffer_dtype, widening
from npusmith.plan.host import TILE
from npusmith.plan.index import Monomial, Poly, constant, poly
from npusmith.plan.index_vectors import (
    int_buffer,
    pick,
    reads_elements,
    tile_buffer,
    varies,
    vector,
)
from npusmith.plan.lane_reads import (
    STAGE,
    affine,
    captured,
    ends,
    near_key,
    room_of,
)
from npusmith.plan.lane_space import LANE, LOOP, OUTSIDE, Lanes, dependencies
from npusmith.plan.reader import ELEMENT
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
    times,
)
from npusmith.plan.sinks import folded
from npusmith.plan.strided_rows import load_apart, rows_of
from npusmith.plan.widening import Copied, widened
from npusmith.plan.writer import op

_COPIES = 2  # of one input that are held at the same time
_BANDS = 64  # more bands are slower than element by element


def together(w: Lanes, roots: Sequence[Value]) -> None:
    """Note which reads share a copy."""
    for value in dependencies(roots, w.elements):
        if value.op == "fetch" and _elements(w, value.index[0]):
            found = w.together.setdefault(_key(w, value), [])
            if value not in found:
                found.append(value)
        elif (near := near_key(w, value)) is not None:
            w.near.setdefault(near[0], set()).add(near[1])
    counts = Counter(key.text for key in w.together)
    w.together = {key: found for key, found in w.together.items() if counts[key.text] <= _COPIES}


def _elements(w: Lanes, expr: Expr) -> tuple[str, ...]:
    """The elements of index tensors that differ along the tile."""
    found = {name for name in names(expr) if name.startswith(ELEMENT) and varies(w, Name(name))}
    return tuple(sorted(found))


def _split(w: Lanes, expr: Expr) -> tuple[Poly, Poly]:
    """The terms of an address that differ along the tile, and the others."""
    terms = poly(expr).terms
    along = tuple(term for term in terms if varies(w, product(term[0])))
    return Poly(along), Poly(tuple(term for term in terms if term not in along))


@dataclass(frozen=True, slots=True)
class Key:
    text: str
    axes: tuple[int, ...]
    domain: tuple[int, ...]
    elements: tuple[str, ...]
    still: frozenset[tuple[Monomial, int]]


def _key(w: Lanes, value: Value) -> Key:
    """What reads that share a copy have in common: all but steps from the same elements."""
    expr = value.index[0]
    still = frozenset(_split(w, expr)[1].terms)
    return Key(value.text, value.axes, w.domain(value), _elements(w, expr), still)


@dataclass(frozen=True, slots=True)
class Copy:
    """What lies between the first and the last place that a tile reads."""

    start: Name  # the first place
    room: Name  # elements from there to the last
    most: Expr  # elements that fit
    tiles: int  # of the buffer
    known: bool  # whether the range follows from sizes alone


def fetch(w: Lanes, path: Path, value: Value) -> None:
    """Bring the elements of an input on chip that stand where its index map says."""
    expr = value.index[0]
    if w.apart and (rows := rows_of(w, value)) is not None:
        w.ready(path, expr)
        load_apart(w, path, value, rows)
        return
    if not w.space.wide(value) or not reads_elements(expr) or affine(w, expr) is not None:
        lane_reads.fetch(w, path, value)
        return
    w.ready(path, expr)
    result = w.like(value)
    _by_range(w, path, value, result)
    path[-1].buffers[value] = result


def _by_range(w: Lanes, path: Path, value: Value, result: str) -> None:
    """By a gather from what was copied."""
    copy, held = _copied(w, path, value)
    along, still = _split(w, value.index[0])
    offsets = vector(w, path, (along * constant(4)).expr())
    assert isinstance(offsets, str)
    table = int_buffer(w)
    shift = times(minus(w.scalar(path, still.expr()), copy.start), Const(4))
    path[-1].items.append(op("adds", (table, offsets), (shift,), w.count(path, True)))
    inside, bands, alone = (Block(path[-1].opened) for _ in range(3))
    if not held:
        held = _load(w, (*path, inside), value, copy)
    pick(w, (*path, inside), value.kind, (result, held, table), ZERO)
    (_alone if copy.known else each)(w, (*path, alone), value, result)
    other = staged(alone.items)
    if value.kind is Kind.FLOAT and not copy.known:
        _by_bands(w, (*path, bands), value, copy, (result, table))
        few = Binary(BinOp.LE, copy.room, times(room_of(w), Const(_BANDS)))
        other = (If(few, staged(bands.items), other),)
    fits = Binary(BinOp.LE, copy.room, copy.most)
    path[-1].items.append(If(fits, staged(inside.items), other))


def _copied(w: Lanes, path: Path, value: Value) -> tuple[Copy, str]:
    """A copy, and the buffer that holds it where it is shared."""
    own = _key(w, value)
    reads = w.together.get(own, [value])
    if len(reads) == 1:
        return _copy(w, path, reads), ""
    copies = path[-1].copies
    if own not in copies:
        copy = _copy(w, path, reads)
        copies[own] = copy, _load(w, path, value, copy)
    found: tuple[Copy, str] = copies[own]
    return found


def _copy(w: Lanes, path: Path, reads: Sequence[Value]) -> Copy:
    value = reads[0]
    known = {name: _extremes(w, path, name) for name in _elements(w, value.index[0])}
    start, stop = Name(w.fresh("from_")), Name(w.fresh("to_"))
    for i, read in enumerate(reads):
        low, high = ends(w, path, read, known)
        path[-1].items.append(Assign(start.id, least(start, low) if i else low))
        path[-1].items.append(Assign(stop.id, largest(stop, high) if i else high))
    room = Name(w.fresh("room_"))
    path[-1].items.append(Assign(room.id, plus(minus(stop, start), ONE)))
    spans = [_span(w, reads, height) for height in (1, 9)]
    tiles, most = STAGE, room_of(w)
    if 0 in w.now and None not in spans:
        one, nine = (span or 0 for span in spans)
        growth = max(nine - one, 1)
        if growth <= 8 * w.captured(lane for lane in w.now if lane):  # no more than is made of it
            tiles, most = 1, TILE
        rest = times(minus(most, Const(one)), Const(8))
        w.limits.append(plus(quotient(rest, Const(growth)), ONE))
        w.needs.append(Binary(BinOp.LE, Const(one), most))
    return Copy(start, room, most, tiles, None not in spans)


def _load(w: Lanes, path: Path, value: Value, copy: Copy) -> str:
    """What lies between, as far as it fits."""
    assert value.dtype is not None
    count = least(copy.room, copy.most)
    raw = tile_buffer(
        w, buffer_dtype(value.dtype), Part.LOADED, copy.tiles, hint=w.tensors[value.text]
    )
    path[-1].items.append(Load(View(raw), Span(w.tensors[value.text], copy.start), count))
    if value.kind is Kind.LONG:
        return raw
    return widened(w, path, value, Copied(raw, count), True, copy.tiles)


def _extremes(w: Lanes, path: Path, name: str) -> tuple[Expr, Expr]:
    """The least and the greatest element along the tile."""
    value = w.elements[int(name[1:])]
    home = path[: w.home(path, value) + 1]
    known = home[-1].extremes
    if value not in known:
        w.ready(path, Name(name))
        with w.along(value):
            known[value] = _folds(w, home, value)
    return known[value]


def _folds(w: Lanes, path: Path, value: Value) -> tuple[Expr, Expr]:
    held, count = w.held(path, value), w.count(path, True)
    if value.kind is not Kind.FLOAT:
        floats = tile_buffer(w, DType.FLOAT32)
        path[-1].items.append(op("cast", (floats, held), (), count, "rint"))
        held = floats
    found: list[Expr] = []
    for text in ("min", "max"):
        name, number = w.fresh(f"{text}_at_"), folded(w, path, text, held, count, kept=True)
        path[-1].items.append(Assign(name, Call(ScalarFn.INT, (Read(View(number)),))))
        found.append(Name(name))
    return found[0], found[1]


def _alone(w: Lanes, path: Path, value: Value, result: str) -> None:
    """Element by element: for sizes that are so unlike the captured ones that nothing fits."""
    assert value.dtype is not None
    tensor = w.tensors[value.text]
    one = held = w.temp(buffer_dtype(value.dtype), False, Part.LOADED, hint=tensor)
    body: list[Stmt] = []
    for dtype, mode in widening(value):
        wider = w.temp(dtype, False)
        body.append(op("cast", (wider, held), (), ONE, mode))
        held = wider
    body.append(op("set", (View(result, Name("lane")),), (Read(View(held)),), ONE))
    then = Stage(StageKind.COMPUTE, tuple(body))
    path[-1].items.append(one_by_one(w, path, value, alone(w, value, one), (then,)))


def _by_bands(w: Lanes, path: Path, value: Value, copy: Copy, views: tuple[str, str]) -> None:
    """What lies in each band is gathered as the band passes by; the rest stays as it is."""
    assert value.dtype is not None
    result, table = views
    count, cap = w.count(path, True), room_of(w)
    at, near = tile_buffer(w, DType.FLOAT32), tile_buffer(w, DType.FLOAT32)
    index, mask = int_buffer(w), w.temp(DType.UINT8, True, mask=True)
    path[-1].items += [
        op("cast", (at, table), (), count, "rint"),
        op("muls", (at, at), (Const(0.25),), count),
        op("duplicate", (result,), (Const(0.0),), count),
    ]
    band, length, loop = Name("band"), Name("band_length"), Block(path[-1].opened)
    around = (*path, loop)
    loop.items.append(Assign(length.id, least(cap, minus(copy.room, band))))
    raw = tile_buffer(w, buffer_dtype(value.dtype), Part.LOADED, STAGE, hint=w.tensors[value.text])
    span = Span(w.tensors[value.text], plus(copy.start, band))
    loop.items.append(Load(View(raw), span, length))
    raw = widened(w, around, value, Copied(raw, length), True, STAGE)
    last = floating(minus(length, ONE))
    loop.items += [
        op("maxs", (near, at), (Const(0.0),), count),
        op("mins", (near, near), (last,), count),
        op("cast", (index, near), (), count, "rint"),
        op("muls", (index, index), (Const(4),), count),
        op("gather", (near, raw, index), (ZERO,), count),
        op("compares", (mask, at), (Const(0.0),), count, "ge"),
        op("select", (near, mask, near, result), (), count),
        op("compares", (mask, at), (last,), count, "le"),
        op("select", (result, mask, near, result), (), count),
        op("adds", (at, at), (Negate(floating(cap)),), count),
    ]
    path[-1].items.append(For(band.id, ZERO, copy.room, cap, staged(loop.items)))


# ------------------------------------------------------------- ranges at the captured sizes

Range = tuple[float, float]


def _span(w: Lanes, reads: Sequence[Value], height: int) -> int | None:
    """Elements between the places that the first tile reads, where it has so many indices."""
    found = [_range(w, read.index[0], height) for read in reads]
    known = [item for item in found if item is not None]
    if len(known) < len(found):
        return None
    return math.ceil(max(high for _, high in known) - min(low for low, _ in known)) + 1


def _range(w: Lanes, expr: Expr, height: int) -> Range | None:
    match expr:
        case Const(value):
            return float(value), float(value)
        case Name(name) if name.startswith(LANE):
            lane = int(name[1:])
            size = height if lane == 0 else w.captured((lane,))
            return 0.0, size - 1.0
        case Name(name) if name.startswith(ELEMENT):
            return _range_of(w, w.elements[int(name[1:])], height)
        case Name(name) if name.startswith((LOOP, OUTSIDE)) or name == "b_from":
            return 0.0, 0.0
        case Name():
            whole = float(captured(w, expr))
            return whole, whole
        case Binary(kind, left, right):
            return _join(_ARITHMETIC.get(kind), _range(w, left, height), _range(w, right, height))
        case Call(fn, (left, right)):
            return _join(_BOUNDS.get(fn), _range(w, left, height), _range(w, right, height))
        case _:
            return None


def _range_of(w: Lanes, value: Value, height: int) -> Range | None:
    """Of a value; None where it depends on what an input holds."""
    if value.op == "const":
        return float(value.number), float(value.number)
    if value.op == "place":
        return _range(w, value.index[0], height)
    if value.op in ("floor", "ceil", "rint", "trunc", "broadcast"):
        return _range_of(w, value.args[0], height)
    if value.op in _POINTWISE:
        one, two = (_range_of(w, arg, height) for arg in value.args)
        return _join(_POINTWISE[value.op], one, two)
    return None


def _join(
    fn: Callable[[float, float], float] | None, a: Range | None, b: Range | None
) -> Range | None:
    """Every operation of these is monotonic in each of its operands."""
    if fn is None or a is None or b is None:
        return None
    if fn is _divide and b[0] <= 0 <= b[1]:
        return None
    found = [fn(one, two) for one in a for two in b]
    return min(found), max(found)


def _divide(a: float, b: float) -> float:
    return a / b


_ARITHMETIC: dict[BinOp, Callable[[float, float], float]] = {
    BinOp.ADD: operator.add,
    BinOp.SUB: operator.sub,
    BinOp.MUL: operator.mul,
    BinOp.FLOORDIV: _divide,
}
_BOUNDS: dict[ScalarFn, Callable[[float, float], float]] = {ScalarFn.MIN: min, ScalarFn.MAX: max}
_POINTWISE: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divide,
    "max": max,
    "min": min,
}
