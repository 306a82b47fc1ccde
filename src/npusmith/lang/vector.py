"""A vector operation of a kernel: what it checks, reads and writes each time that it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Expr, Op
from npusmith.lang.access import Access, Accesses
from npusmith.lang.apply import apply
from npusmith.lang.core import Core, Step
from npusmith.lang.operands import extent, may_share, reach_code, row_pitch
from npusmith.lang.scalars import Read, Scalar
from npusmith.target.intrinsics import (
    INTRINSICS,
    LONGEST_SORT,
    ROW_FORMS,
    Form,
    Intrinsic,
    Operand,
    is_short_row,
)
from npusmith.target.meaning import integer_limits

Array = np.ndarray[Any, Any]


def set_element(op: Op, accesses: Accesses) -> Step:
    """One element, by the scalar unit."""
    element = INTRINSICS[op.name].meaning
    access = accesses.element(op.views[0])
    start, slot, dtype = access.start, access.slot, access.dtype
    read = accesses.scalars.value(op.scalars[0])

    def run(core: Core) -> None:
        at = start(core)
        if not 0 <= at < access.length:
            access.need_inside(core, at, 1)
        value = read(core)
        slot(core).put(at, element(dtype, 1, value)[0])

    return run


def _mask(place: Access, core: Core, start: int, count: int) -> Array:
    slot = place.slot(core)
    bad = slot.undefined_bit(start, count)
    if bad is not None:
        raise core.fail("lang-undefined-read", f"bit {bad} of {place.buffer!r} is undefined")
    return slot.data[start : start + -(-count // 8)]


_READS = {Operand.SRC: Access.defined, Operand.MASK: _mask}


class VectorOp:
    """One statement; `run` is its step."""

    def __init__(self, op: Op, accesses: Accesses) -> None:
        self.row, self.mode = INTRINSICS[op.name], op.mode
        self.kinds = self.row.views
        self.places = [accesses.vector(view) for view in op.views]
        self.scratch = [at for at, kind in enumerate(self.kinds) if kind is Operand.TMP]
        self.sources = [(at, _READS[kind]) for at, kind in enumerate(self.kinds) if kind in _READS]
        first = next((at for at, kind in enumerate(self.kinds) if kind is Operand.SRC), 0)
        self.dtype = self.places[first].dtype  # that it computes in
        self.count = accesses.count(op.count)
        self.scalars = [_scalar(self.row, expr, self.dtype, accesses) for expr in op.scalars]
        self.checked: tuple[int, int, list[int]] | None = None  # count, elements of a row, starts
        self.extents: list[int] = []  # how many elements each operand covers then

    def run(self, core: Core) -> None:
        count = self.count(core)
        if count == 0:
            return
        row, dst = self.row, self.places[0]
        starts = [place.start(core) for place in self.places]
        scalars = [read(core) for read in self.scalars]
        cols = int(scalars[0]) if row.form in ROW_FORMS else 1
        if self.checked != (count, cols, starts):
            self.extents = self._check(core, count, cols, starts)
            self.checked = (count, cols, starts)
        at, covered = starts[0], self.extents[0]
        slot = dst.slot(core)
        old = dst.elements(core, slot, at, count).copy() if row.reads_dst else None
        sources = self._sources(core, starts, count, scalars)
        result = apply(row, dst.dtype, count, sources, scalars, self.mode, old)
        if row.whole_repeats:
            slot.write_bits(at, result, count, covered)
        else:
            slot.write(at, result)
            slot.poison(at + result.size, at + covered)
        for number in self.scratch:
            start = starts[number]
            self.places[number].slot(core).poison(start, start + self.extents[number])

    def _check(self, core: Core, count: int, cols: int, starts: Sequence[int]) -> list[int]:
        """How many elements each operand covers; they are inside of their buffers, and apart."""
        row = self.row
        extents = [extent(row, kind, count, self.dtype, cols) for kind in self.kinds]
        for kind, place, start, covered in zip(
            self.kinds, self.places, starts, extents, strict=True
        ):
            place.need_inside(core, start, covered, reach_code(row, kind))
        dst, at, end = self.places[0], starts[0], starts[0] + extents[0]
        for place, start, covered in zip(self.places[1:], starts[1:], extents[1:], strict=True):
            if place.buffer != dst.buffer or end <= start or start + covered <= at:
                continue
            if not (start == at and may_share(row)):
                message = f"{place.buffer!r}: destination from {at} on, operand from {start} on"
                raise core.fail("lang-overlap", message)
        return extents

    # ---- sources

    def _sources(
        self, core: Core, starts: Sequence[int], count: int, scalars: Sequence[Scalar]
    ) -> list[Array]:
        if self.row.form is Form.GATHER:
            return self._gathered(core, starts, count, int(scalars[0]))
        if self.row.form in (Form.FOLD_ROWS, Form.SORT_ROWS):
            return [_short_rows(core, self.places[1], starts[1], count, int(scalars[0]))]
        return [read(self.places[at], core, starts[at], count) for at, read in self.sources]

    def _gathered(self, core: Core, starts: Sequence[int], count: int, base: int) -> list[Array]:
        """The source from its first element on, and the offsets, all of which are in order."""
        _, source, offsets = self.places
        _, start, at = starts
        index = offsets.defined(core, at, count)
        if index.min() < 0:  # the chip takes them for unsigned numbers, and adds without wrapping
            raise core.fail("lang-range", f"an offset of {int(index.min())} bytes")
        where = index.astype(np.int64) + base
        slot, size = source.slot(core), source.dtype.bytes
        low, high = int(where.min()), int(where.max())
        if low < 0 or high // size + start >= source.length:
            message = f"bytes {low} to {high} from {source.buffer}[{start}] on"
            raise core.fail("lang-range", f"{message}, which has {source.length} elements")
        if (where % size).any():
            raise core.fail("lang-align", f"an offset is no multiple of {size} bytes")
        picked = start + where // size
        bad = ~slot.defined[picked]
        if bad.any():
            name = f"{source.buffer}[{picked[int(np.argmax(bad))]}]"
            raise core.fail("lang-undefined-read", f"{name} is undefined")
        return [slot.data[start:], index]


def _short_rows(core: Core, place: Access, start: int, rows: int, cols: int) -> Array:
    """Whole rows, whose padding may be undefined."""
    slot, pitch = place.slot(core), row_pitch(cols, place.dtype)
    for row in range(rows):
        place.elements(core, slot, start + row * pitch, cols)
    return slot.data[start : start + rows * pitch]


# ---------------------------------------------------------------------------------------- scalars


def _scalar(row: Intrinsic, expr: Expr, dtype: DType, accesses: Accesses) -> Read[Core]:
    """A scalar operand, in the limits of the operation."""
    read, folded = accesses.scalars.value(expr), accesses.scalars.folded
    if row.form is Form.GATHER:
        return folded(_within(read, 0, 2**32 - 1, "lang-range", "a base of {} bytes"), read)
    if row.form is Form.SORT_ROWS:
        return folded(_within(read, 1, LONGEST_SORT, "lang-range", "rows of {} elements"), read)
    if row.form in ROW_FORMS:
        return folded(_row_length(read), read)
    if row.int_scalar:
        message = f"a shift of {dtype.value} by {{}}"
        return folded(_within(read, 0, dtype.bytes * 8 - 1, "lang-range", message), read)
    if dtype.is_float:
        return read
    message = f"{{}} is not of type {dtype.value}"
    return folded(_within(read, *integer_limits(dtype), "lang-overflow", message), read)


def _within(read: Read[Core], low: int, high: int, code: str, message: str) -> Read[Core]:
    def checked(core: Core) -> Scalar:
        value = read(core)
        if not low <= value <= high:
            raise core.fail(code, message.format(value))
        return value

    return checked


def _row_length(read: Read[Core]) -> Read[Core]:
    def checked(core: Core) -> Scalar:
        value = read(core)
        if not is_short_row(int(value)):
            raise core.fail("lang-range", f"rows of {value} elements")
        return value

    return checked
