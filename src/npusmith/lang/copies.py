"""Copies between global memory and buffers: loads, stores, and what a combine takes and gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Combine, Load, Span, Store
from npusmith.lang.access import BLOCK_BYTES, Accesses
from npusmith.lang.core import Core, Step
from npusmith.lang.memory import Index, InMemory
from npusmith.lang.operands import row_pitch

Array = np.ndarray[Any, Any]


def load(stmt: Load, accesses: Accesses) -> Step:
    access = accesses.loaded(stmt.dst)
    copy = Copy(stmt, stmt.src, access.dtype, accesses)

    def run(core: Core) -> None:
        count, rows = copy.amounts(core)
        if count == 0 or rows == 0:
            return
        start, pitch = access.start(core), row_pitch(count, access.dtype)
        access.need_inside(core, start, (rows - 1) * pitch + count)
        tensor, index = copy.span(core, count, rows)
        values = tensor.read(index, core.when, core.fail)
        slot = access.slot(core)
        slot.poison(start, start + rows * pitch)  # padding up to whole blocks is undefined
        for row, part in enumerate([values] if rows == 1 else values):
            slot.write(start + row * pitch, part)

    return run


def store(stmt: Store, accesses: Accesses) -> Step:
    access = accesses.stored(stmt.src)
    copy = Copy(stmt, stmt.dst, access.dtype, accesses)

    def run(core: Core) -> None:
        count, rows = copy.amounts(core)
        if count == 0 or rows == 0:
            return
        start, pitch = access.start(core), row_pitch(count, access.dtype)
        access.need_inside(core, start, (rows - 1) * pitch + count)
        tensor, index = copy.span(core, count, rows)
        slot = access.slot(core)
        parts = [access.elements(core, slot, start + row * pitch, count) for row in range(rows)]
        values = parts[0] if rows == 1 else np.stack(parts)
        tensor.write(index, values, stmt.atomic, core.when, core.fail)

    return run


class Copy:
    """How much a load or store moves, and where it lies in global memory."""

    def __init__(self, stmt: Load | Store, span: Span, dtype: DType, accesses: Accesses) -> None:
        integer = accesses.scalars.integer
        self.tensor, self.bytes, self.plain = span.tensor, dtype.bytes, stmt.padded is False
        self.count, self.offset = accesses.count(stmt.count), integer(span.offset)
        self.rows = None if stmt.rows is None else accesses.count(stmt.rows, "number of rows")
        self.pitch = None if stmt.pitch is None else integer(stmt.pitch)

    def amounts(self, core: Core) -> tuple[int, int]:
        """Elements of a row, and rows."""
        count = self.count(core)
        rows = 1 if self.rows is None else self.rows(core)
        if self.plain and count * self.bytes % BLOCK_BYTES:
            raise core.fail("lang-align", f"a plain copy of {count * self.bytes} bytes")
        return count, rows

    def span(
        self, core: Core, count: int, rows: int, *, overlaps: bool = False
    ) -> tuple[InMemory, Index]:
        """The tensor and the elements of it that a copy touches.

        `overlaps`: a row may begin before the one in front of it ends.
        """
        tensor = core.tensors[self.tensor]
        start = self.offset(core)
        pitch = count if self.pitch is None else self.pitch(core)
        if pitch < (1 if overlaps else count):
            raise core.fail("lang-range", f"rows of {count} elements every {pitch} elements")
        last = start + (rows - 1) * pitch + count
        if start < 0 or last > tensor.size:
            message = f"elements {start} to {last - 1} of {tensor.name!r}, which has {tensor.size}"
            raise core.fail("lang-gm-range", message)
        if rows == 1:
            return tensor, slice(start, start + count)
        firsts = start + np.arange(rows, dtype=np.int64) * pitch
        return tensor, firsts[:, None] + np.arange(count, dtype=np.int64)


# --------------------------------------------------------------------------------------- combines


class Exchange:
    """What one core gives to a combine, and takes from it."""

    def __init__(self, stmt: Combine, accesses: Accesses) -> None:
        self.stmt, self.count = stmt, accesses.count(stmt.count)
        self.src, self.dst = accesses.vector(stmt.src), accesses.vector(stmt.dst)

    def give(self, core: Core) -> Array:
        """This core's part."""
        core.stmt = self.stmt
        count, start = self.count(core), self.src.start(core)
        self.src.need_inside(core, start, count)
        return self.src.defined(core, start, count).copy()

    def take(self, core: Core, result: Array) -> None:
        """The answer, which every core gets."""
        core.stmt = self.stmt
        start = self.dst.start(core)
        self.dst.need_inside(core, start, result.size)
        self.dst.slot(core).write(start, result)
