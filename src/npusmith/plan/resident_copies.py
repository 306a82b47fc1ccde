"""Rows of a strip, to the chip and back: all short axes with one copy, converted row by row."""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Call,
    Const,
    Expr,
    If,
    Load,
    Name,
    ScalarFn,
    Span,
    Stmt,
    Store,
    View,
)
from npusmith.plan.block import Part, Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.emit import buffer_dtype, widening
from npusmith.plan.index import Poly, poly
from npusmith.plan.index_vectors import tile_buffer
from npusmith.plan.interleaved_tiles import Interleaved, loops, place, stage
from npusmith.plan.lane_reads import affine, span_of
from npusmith.plan.lane_space import Domain
from npusmith.plan.passes import ensure
from npusmith.plan.scalars import ONE, ZERO, minus, plus, product, times
from npusmith.plan.stores import Target
from npusmith.plan.tile_broadcasts import Broadcaster
from npusmith.plan.writer import op


def refuse(why: str) -> PlanError:
    """What makes a graph none of long rows that stay on chip."""
    return PlanError("plan-data-movement", why)


def _pitch(steps: Sequence[Poly], sizes: Sequence[Expr]) -> Expr:
    """From row to row in memory, where one copy brings them all."""
    for at in range(len(steps) - 1):
        if steps[at] != poly(times(sizes[at + 1], steps[at + 1].expr())):
            raise refuse("rows are not one after another in memory")
    return steps[-1].expr()


def load(w: Interleaved, path: Path, value: Value) -> None:
    """All rows of a strip with one copy, or numbers, as they lie in memory.

    Before anything is computed: a copy that waits for a scalar holds up those behind it.
    """
    path = path[: w.home(path, value) + 1]
    with w.along(value):
        found = affine(w, value.index[0])
        if found is None or value.kind is not Kind.FLOAT or len(widening(value)) > 1:
            raise refuse(f"{value.text} is read in another way")
        assert value.dtype is not None
        w.ready(path, value.index[0])
        by = dict(zip(w.now, found[1], strict=True))
        span = span_of(w, path, value, found[0])
        if 0 not in w.now:
            _numbers(w, path, value, by, span)
            return
        if by[0] != poly(ONE):
            raise refuse(f"{value.text} lies in another order")
        hint, head = w.tensors[value.text], w.now[:-1]
        raw = tile_buffer(w, buffer_dtype(value.dtype), Part.LOADED, hint=hint)
        w.raws[value] = raw
        if w.captured(head) > 1:
            pitch = _pitch([by[lane] for lane in head], [w.size(lane) for lane in head])
            path[-1].items.append(Load(View(raw), span, Name("m"), w.area(w.now), pitch))
        else:
            path[-1].items.append(Load(View(raw), span, Name("m")))


def fetch(w: Interleaved, path: Path, value: Value) -> None:
    """Rows of a strip as float32, numbers as they are."""
    raw, own = w.raws[value], w.domain(value)
    if 0 not in own:
        path[-1].buffers[value] = raw
        return
    assert value.dtype is not None
    mode = widening(value)[0][1] if widening(value) else ""
    result, whole = w.like(value), w.count(path, True)
    at = _copied(w, own[:-1], value.dtype)

    def move(to: View, source: View, count: Expr) -> Stmt:
        if mode:
            return op("cast", (to, source), (), count, mode)
        return op("muls", (to, source), (Const(1.0),), count)

    row = move(View(result, place(w, own, (0,))), View(raw, at), Name("m"))
    fill = op("duplicate", (result,), (Const(0.0),), whole)
    even = Binary(BinOp.EQ, Name("m"), w.pitch_of_cut)
    other = (fill, *loops(w, own[:-1], [row]))
    path[-1].items.append(stage((If(even, (move(View(result), View(raw), whole),), other),)))
    path[-1].buffers[value] = result


def _copied(w: Interleaved, head: Domain, dtype: DType) -> Expr:
    """Where a row of a copy stands: whole blocks of 32 bytes apart."""
    step: Expr = Call(ScalarFn.ALIGN_UP, (Name("m"), Const(dtype.per_block)))
    at: Expr = ZERO
    for lane in head:
        below = product(w.size(other) for other in head if other > lane)
        at = plus(at, times(Name(f"along{lane}"), times(below, step)))
    return at


def _numbers(w: Interleaved, path: Path, value: Value, by: dict[int, Poly], span: Span) -> None:
    """Numbers along short axes."""
    assert value.dtype is not None
    reach: Expr = ONE
    for lane, step in by.items():
        if any(number < 0 for _, number in step.terms):
            raise refuse(f"{value.text} is read backwards")
        reach = plus(reach, times(minus(w.size(lane), ONE), step.expr()))
    count = poly(reach).expr()
    if not isinstance(count, Const) or count.value > 4 * w.captured(by):
        raise refuse(f"{value.text} is read far apart")
    lanes = max(-(-int(count.value) // 8) * 8, 64)
    raw = w.temp(buffer_dtype(value.dtype), False, Part.LOADED, w.tensors[value.text], lanes=lanes)
    path[-1].items.append(Load(View(raw), span, count))
    for dtype, mode in widening(value):
        wider = w.temp(dtype, False, lanes=lanes)
        path[-1].items.append(op("cast", (wider, raw), (), count, mode))
        raw = wider
    w.raws[value] = raw
    w.strides[value] = {lane: step.expr() for lane, step in by.items()}
    path[-1].buffers[value] = raw


def store_rows(w: Interleaved, path: Path, target: Target, value: Value, own: Domain) -> None:
    """Rows of an output, rounded; `own`: its axes, in its order."""
    if own != w.ordered(own) or own[-1] != 0:
        raise refuse("an output has its axes in another order")
    value = Broadcaster(w).along(value, own)
    ensure(w, path, [value])
    output = target.output
    with w.among(own):
        whole, size = w.count(path, True), w.tiling.cut.size
        raw = tile_buffer(w, buffer_dtype(output.dtype), Part.STORED, hint=target.name)
        at = _copied(w, own[:-1], output.dtype)
        source = w.held(path, value)

        def move(to: View, source: View, count: Expr) -> Stmt:
            if output.dtype is not DType.FLOAT32:
                return op("cast", (to, source), (), count, "rint")
            return op("muls", (to, source), (Const(1.0),), count)

        one = move(View(raw, at), View(source, place(w, own, (0,))), Name("m"))
        even = Binary(BinOp.EQ, Name("m"), w.pitch_of_cut)
        every = (move(View(raw), View(source), whole),)
        path[-1].items.append(stage((If(even, every, loops(w, own[:-1], [one])),)))
        area = w.area(own)
        span = Span(target.name, plus(times(times(Name("line"), area), size), Name("b_from")))
        rows = () if area == ONE else (area, size)
        path[-1].items.append(Store(span, View(raw), Name("m"), *rows))
