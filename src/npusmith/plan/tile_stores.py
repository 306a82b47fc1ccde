"""A tile of an output on its way to memory: as it was loaded, computed in place, or in rows."""

from __future__ import annotations

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Expr, Load, Span, Store, View
from npusmith.plan.block import Part, Path
from npusmith.plan.element_reads import copies
from npusmith.plan.emit import buffer_dtype
from npusmith.plan.host import TILE
from npusmith.plan.index_sets import lanes_of_part, row_of_part
from npusmith.plan.index_vectors import tile_buffer
from npusmith.plan.lane_reads import dense, span_of, start_of
from npusmith.plan.lane_space import Lanes
from npusmith.plan.padded_rows import store_rows, together
from npusmith.plan.passes import ensure
from npusmith.plan.row_reads import copy_rows, row_of
from npusmith.plan.scalars import ONE, ZERO, largest, quotient
from npusmith.plan.stores import Target, reserve, stored
from npusmith.plan.writer import dtype_of


def store_tile(w: Lanes, path: Path, target: Target, start: Expr, alone: bool) -> None:
    """`alone`: no other output reads its buffer, so that it may be computed where it is stored."""
    value, output = target.output.value, target.output
    body = path[-1]
    plain = value.op == "fetch" and value.dtype is output.dtype
    with w.unpadded():
        count = w.count(path, True)
        if plain and w.space.wide(value) and dense(w, value.index[0]):
            buffer = tile_buffer(w, buffer_dtype(output.dtype), Part.THROUGH, hint=target.name)
            w.ready(path, value.index[0])
            span = span_of(w, path, value, start_of(w, value.index[0]))
            body.items.append(Load(View(buffer), span, count))
            body.items.append(_stored(w, target, start, buffer, count))
            return
        row = row_of(w, value) if plain and w.space.wide(value) else None
        longs = plain and output.dtype is DType.INT64
        apart = row_of_part(w.tiling)
        filled = w.tail(w.frame) and not w.filled
        if apart is not None and (row is not None or longs or filled):
            raise PlanError("plan-data-movement", "rows of a part are copied by themselves")
        if row is not None:
            w.ready(path, value.index[0])
            w.needs.append(Binary(BinOp.LE, row, TILE))
            body.items.append(copy_rows(w, path, value, target.name, start, row))
            return
        if longs:
            w.ready(path, value.index[0])
            one = w.temp(DType.INT64, False, Part.THROUGH, hint=target.name)
            body.items.append(copies(w, path, value, target.name, start, one))
            return
    rows = w.tail(w.frame) if w.space.wide(value) else ()
    if not rows:
        if alone:
            reserve(w, path, target)
        ensure(w, path, [value])
        buffer = stored(w, path, target, True)
        body.items.append(_stored(w, target, start, buffer, count))
        return
    ensure(w, path, [value])
    if apart is not None and w.tail(w.frame) != lanes_of_part(w.tiling):  # several in a row
        moved = together(w, path, target, dtype_of(value) is output.dtype)
        with w.unpadded():
            buffer = stored(w, path, moved, True)
            body.items.append(_stored(w, target, start, buffer, w.count(path, True)))
        return
    store_rows(w, path, target, start, apart and apart[1])


def _stored(w: Lanes, target: Target, start: Expr, buffer: str, count: Expr) -> Store:
    """A tile in one piece, or row by row where the output has other parts between them."""
    span, apart = Span(target.name, start), row_of_part(w.tiling)
    if apart is None:
        return Store(span, View(buffer), count)
    cols, pitch = apart
    rest = Binary(BinOp.MOD, cols, Const(w.chip.block_bytes // target.output.dtype.bytes))
    w.needs += [Binary(BinOp.EQ, rest, ZERO), Binary(BinOp.GT, cols, ZERO)]
    return Store(span, View(buffer), cols, quotient(count, largest(cols, ONE)), pitch)
