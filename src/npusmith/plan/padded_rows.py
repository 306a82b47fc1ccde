"""Rows of a tile that begin at multiples of 32 bytes, and how they come on chip and leave it.

Short rows are copied together and moved apart by a gather. A long row earns a burst, and an
instruction of its own for its way to where what fills it up is defined.
"""

from __future__ import annotations

from dataclasses import replace

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Call,
    Const,
    Expr,
    Load,
    Op,
    ScalarFn,
    Span,
    StageKind,
    Store,
    View,
)
from npusmith.plan.block import Part, Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.emit import widening
from npusmith.plan.host import TILE
from npusmith.plan.index_vectors import offsets, pick, tile_buffer
from npusmith.plan.lane_space import Lanes
from npusmith.plan.scalars import ONE, ZERO, largest, product, quotient, times
from npusmith.plan.stores import Target, stored
from npusmith.plan.widening import Row, each_row, onto_of
from npusmith.plan.writer import dtype_of, op

_COPIED = 96  # elements of a row from which on it earns a burst of its own
_MOVED = {DType.FLOAT32, DType.INT32, DType.FLOAT16, DType.BFLOAT16}  # by no cast or one


def is_moved(dtype: DType | None) -> bool:
    """Whether rows of this type are copied one by one."""
    return dtype in _MOVED


def long_rows(w: Lanes, dtype: DType) -> bool:
    """Whether rows of what is computed are copied one by one."""
    return w.captured(w.tail(w.now)) >= _COPIED and dtype in _MOVED


def load_rows(w: Lanes, path: Path, value: Value, span: Span, apart: Expr | None = None) -> str:
    """One copy of all rows; then a row at a time to a buffer that was zeroed once.

    `apart`: elements from row to row in the input, where they do not lie side by side.

    Nothing else is ever in that buffer: what lies between rows is computed with, and thrown away.
    """
    assert value.dtype is not None
    cols = product(w.size(lane) for lane in w.tail(w.now))
    rows = _rows(w, path)
    raw = _copied(w, value.dtype, Part.LOADED, w.tensors[value.text])
    path[-1].items.append(Load(View(raw), span, cols, rows, apart or cols))
    own = w.temp(dtype_of(value), True)
    zero = Const(0) if value.kind is Kind.INT else Const(0.0)
    whole = quotient(TILE, Const(w.temps[own].share))
    path[0].items.append(op("duplicate", (own,), (zero,), whole))
    mode = widening(value)[0][1] if widening(value) else ""
    _each_row(w, path, (own, raw), value.dtype, mode)
    return own


def _copied(w: Lanes, dtype: DType, part: Part, hint: str) -> str:
    """A buffer for rows as they are copied: of narrow types blocks have more elements."""
    rows = w.tail(w.now)
    cols = product(w.size(lane) for lane in rows)
    pitch: Expr = Call(ScalarFn.ALIGN_UP, (cols, Const(32 // dtype.bytes)))
    above = w.area(w.now[: len(w.now) - len(rows)])
    if not w.tiling.indices:  # of a block of two axes rows are short
        w.needs.append(Binary(BinOp.LE, times(above, pitch), TILE))
    if 0 in w.now:
        w.limits.append(quotient(TILE, largest(times(above, pitch), ONE)))
    with w.whole_tile():
        return tile_buffer(w, dtype, part, hint=hint)


def _rows(w: Lanes, path: Path) -> Expr:
    """How many rows a tile has."""
    pitch = w.pitch(w.tail(w.now))
    return quotient(w.count(path, True), largest(pitch, ONE))


def _each_row(w: Lanes, path: Path, views: tuple[str, str], dtype: DType, mode: str) -> None:
    """Rows from one buffer to another, cast where there is a mode; `dtype`: of the copied one."""
    padded = w.tail(w.now)
    cols = product(w.size(lane) for lane in padded)
    copied = Call(ScalarFn.ALIGN_UP, (cols, Const(32 // dtype.bytes)))
    rows = [Row("row", _rows(w, path), copied, w.pitch(padded))]
    to, source = (View(view, onto_of(rows, w.temps[view].part is Part.SCRATCH)) for view in views)
    if mode:
        move = Op("cast", (to, source), (), mode, cols)
    else:
        one = Const(1) if dtype is DType.INT32 else Const(1.0)
        move = Op("muls", (to, source), (one,), "", cols)
    path[-1].items.append(each_row(rows, move, StageKind.COMPUTE))


def store_rows(
    w: Lanes, path: Path, target: Target, start: Expr, apart: Expr | None = None
) -> None:
    """Store an output whose elements stand in such rows; `apart`: so far apart in the output."""
    value, output = target.output.value, target.output
    span = Span(target.name, start)
    plain = output.dtype is dtype_of(value)
    if apart is not None and not (is_moved(output.dtype) and (plain or value.kind is Kind.FLOAT)):
        raise PlanError("plan-data-movement", "rows of this type are not stored one by one")
    long = apart is not None or long_rows(w, output.dtype)
    if not long or not (plain or value.kind is Kind.FLOAT):
        moved = together(w, path, target, plain)
        with w.unpadded():
            buffer = stored(w, path, moved, True)
            path[-1].items.append(Store(span, View(buffer), w.count(path, True)))
        return
    cols, source = product(w.size(lane) for lane in w.tail(w.now)), w.vector(path, value, True)
    buffer = _copied(w, output.dtype, Part.STORED, target.name)
    if plain:
        one = Const(1) if value.kind is Kind.INT else Const(1.0)
        path[-1].items.append(op("muls", (buffer, source), (one,), w.count(path, True)))
    else:
        _each_row(w, path, (buffer, source), output.dtype, "rint")
    path[-1].items.append(Store(span, View(buffer), cols, _rows(w, path), apart or cols))


def together(w: Lanes, path: Path, target: Target, plain: bool) -> Target:
    """The output with its elements as they stand in the tensor."""
    value, output = target.output.value, target.output
    moved = w.space.dag.make("packed", value, kind=value.kind)
    part, hint = (Part.STORED, target.name) if plain else (Part.SCRATCH, "")
    buffer = w.temp(dtype_of(value), True, part, hint=hint)
    steps = [(lane, w.depth(lane)) for lane in w.now]
    source = w.held(path, value)
    with w.unpadded():
        pick(w, path, value.kind, (buffer, source, offsets(w, path, steps)), ZERO)
    path[-1].buffers[moved] = buffer
    return replace(target, output=replace(output, value=moved))
