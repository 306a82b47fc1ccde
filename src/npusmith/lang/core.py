"""One core of the interpreter: runs the kernel's statements on its own buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusmith.errors import LangError, Place
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    ONE_ELEMENT,
    Alloc,
    Assign,
    Combine,
    CoreCount,
    CoreId,
    Deque,
    Enque,
    Expr,
    For,
    Free,
    If,
    Kernel,
    Load,
    Mmad,
    Op,
    Role,
    Span,
    Split,
    Stage,
    StageKind,
    Stmt,
    Store,
    SyncCores,
    Value,
    View,
)
from npusmith.ir.text import show_stmt
from npusmith.ir.walk import Block, bodies, line_of, statements
from npusmith.lang.apply import apply
from npusmith.lang.cube import CubeUnit, Sides
from npusmith.lang.lifetimes import FILLING, drains, fills
from npusmith.lang.memory import GlobalTensor, Index, LocalBuffer, Slot
from npusmith.lang.operands import extent, may_share, paired, reach_code, row_pitch
from npusmith.lang.scalars import Scalar, Scalars
from npusmith.target.intrinsics import (
    INTRINSICS,
    LONGEST_SORT,
    Form,
    Intrinsic,
    Operand,
    is_short_row,
)
from npusmith.target.meaning import integer_limits

Array = np.ndarray[Any, Any]
Wait = Combine | SyncCores

_BLOCK_BYTES = 32
_FILLED = (Role.VECIN, Role.THROUGH, Role.A1, Role.B1, Role.A2, Role.B2, Role.C1, Role.C2)


class Facts:
    """What all cores ask about the same statements, worked out once."""

    def __init__(self, kernel: Kernel, sides: Mapping[str, Sides]) -> None:
        everything = list(statements(kernel.body))
        self.kernel, self.sides = kernel, sides
        self.queued = {stmt.buffer for stmt in everything if isinstance(stmt, Alloc)}
        self.waits = {id(stmt) for stmt in everything if _waits(stmt)}
        self.fills = {id(stmt): self._plain(fills(stmt)) for stmt in everything}
        self.drains = {id(stmt): self._plain(drains(stmt)) for stmt in everything}
        self.ends: dict[int, list[str]] = {}
        for block in (kernel.body, *(body for stmt in everything for body in bodies(stmt))):
            self.ends[id(block)] = self._loaded(block)

    def _plain(self, names: Iterator[str]) -> list[str]:
        """Buffers whose lifetime follows from the text; those of queues have calls for it."""
        return sorted(set(names) - self.queued)

    def _loaded(self, block: Block) -> list[str]:
        stages = (stmt for stmt in block if isinstance(stmt, Stage))
        return [name for stmt in stages if stmt.kind in FILLING for name in self.fills[id(stmt)]]


def _waits(stmt: Stmt) -> bool:
    return any(isinstance(item, Combine | SyncCores) for item in statements((stmt,)))


@dataclass(slots=True)
class Clock:
    """Counts how often all cores have waited for each other."""

    epoch: int = 0


class Core:
    """State of one core. `run` is a generator that stops where the core waits for the others."""

    def __init__(
        self,
        facts: Facts,
        lengths: Mapping[str, int],
        tensors: Mapping[str, GlobalTensor],
        names: Mapping[str, Scalar],
        place: tuple[int, int],
        clock: Clock,
    ) -> None:
        self.facts, self.tensors, self.clock = facts, tensors, clock
        self.id, self.count = place
        self.stmt: Stmt | None = None
        self.names = dict(names)
        self.scalars = Scalars(self.names, self._leaf, self.fail)
        self.buffers = {
            item.name: LocalBuffer(
                item.name, item.dtype, lengths[item.name], item.depth, item.name in facts.queued
            )
            for item in facts.kernel.buffers
        }
        self.roles = {item.name: item.role for item in facts.kernel.buffers}
        tools = (self.scalars.integer, self._slot, self.fail)
        self.cube = CubeUnit(facts.sides, facts.kernel.buffers, self.buffers, tools)

    def fail(self, code: str, message: str) -> LangError:
        """An error at the statement that runs now."""
        line = line_of(self.stmt) if self.stmt is not None else 0
        seen = show_stmt(self.stmt) if self.stmt is not None else ""
        place = Place("", line, self.facts.kernel.name, self.id)
        return LangError(code, message, place, seen=seen)

    # ---- control flow

    def run(self) -> Iterator[Wait]:
        yield from self._block(self.facts.kernel.body)
        for buffer in self.buffers.values():
            buffer.finish(self.fail)

    def _block(self, block: Block) -> Iterator[Wait]:
        for stmt in block:
            self.stmt = stmt
            if id(stmt) not in self.facts.waits:
                self._do(stmt)
            elif isinstance(stmt, Combine | SyncCores):
                yield stmt
            else:
                yield from self._around(stmt)
        self._end(block)

    def _around(self, stmt: Stmt) -> Iterator[Wait]:
        """A statement in which cores wait for each other."""
        match stmt:
            case For():
                for turn in self._turns(stmt):
                    self.names[stmt.var] = turn
                    yield from self._block(stmt.body)
            case If(cond, then, orelse):
                yield from self._block(then if self.scalars.value(cond) else orelse)
            case _:
                for body in bodies(stmt):
                    yield from self._block(body)

    def _run(self, block: Block) -> None:
        for stmt in block:
            self.stmt = stmt
            self._do(stmt)
        self._end(block)

    def _end(self, block: Block) -> None:
        """What was loaded in a statement list ends with it."""
        for name in self.facts.ends[id(block)]:
            self.buffers[name].only.poison()

    def _turns(self, stmt: For) -> range:
        start, stop, step = (
            self.scalars.integer(part) for part in (stmt.start, stmt.stop, stmt.step)
        )
        if step < 1:
            raise self.fail("lang-divide", f"the loop's step is {step}")
        return range(start, stop, step)

    def _do(self, stmt: Stmt) -> None:
        match stmt:
            case Assign(target, value):
                self.names[target] = self.scalars.value(value)
            case For():
                for turn in self._turns(stmt):
                    self.names[stmt.var] = turn
                    self._run(stmt.body)
            case If(cond, then, orelse):
                self._run(then if self.scalars.value(cond) else orelse)
            case Stage():
                self._stage(stmt)
            case Op(name) if name == ONE_ELEMENT:
                self._set(stmt)
            case Op():
                self._op(stmt)
            case Load() | Store() if self.facts.sides:
                self._matrix_copy(stmt)
            case Load():
                self._load(stmt)
            case Store():
                self._store(stmt)
            case Split():
                self.cube.split(stmt)
            case Mmad():
                self.cube.product(stmt, self.scalars.value(stmt.accumulate) != 0)
            case Alloc(name):
                self.buffers[name].alloc(self.fail)
            case Enque(name):
                self.buffers[name].enque(self.fail)
            case Deque(name):
                self.buffers[name].deque(self.fail)
            case Free(name):
                self.buffers[name].free(self.fail)
            case _:  # notes, barriers and events: statements run one after another anyway
                pass

    def _stage(self, stmt: Stage) -> None:
        if stmt.kind in FILLING:
            for name in self.facts.fills[id(stmt)]:
                self.buffers[name].only.poison()
        self._run(stmt.body)
        if stmt.kind is StageKind.COPY_OUT:
            for name in self.facts.drains[id(stmt)]:
                self.buffers[name].only.poison()

    # ---- scalars

    def _leaf(self, expr: Expr) -> Scalar:
        match expr:
            case CoreId():
                return self.id
            case CoreCount():
                return self.count
            case Value(source):
                return self._element(source)
            case _:
                raise self.fail("lang-host", "shapes and chip facts are known on the host only")

    def _element(self, source: View) -> Scalar:
        buffer = self.buffers[source.buffer]
        start = self.scalars.integer(source.offset)
        self._need_inside(buffer, start, 1)
        element = self._defined(buffer, self._slot(buffer), start, 1)[0]
        return np.float32(element) if buffer.dtype.is_float else int(element)

    # ---- buffers

    def _slot(self, buffer: LocalBuffer, *, load: bool = False, store: bool = False) -> Slot:
        """Loads fill what they load, vector operations what is stored later."""
        inward = self.roles[buffer.name] in _FILLED
        return buffer.slot(load if inward else not store, self.fail)

    def _need_inside(
        self, buffer: LocalBuffer, start: int, covered: int, code: str = "lang-range"
    ) -> None:
        if start < 0 or start + covered > buffer.length:
            message = f"elements {start} to {start + covered - 1} of {buffer.name!r}, which has "
            raise self.fail(code, message + str(buffer.length))

    def _start(self, view: View) -> int:
        """Where an operand starts, in elements."""
        start = self.scalars.integer(view.offset)
        size = self.buffers[view.buffer].dtype.bytes
        if start * size % _BLOCK_BYTES:
            message = f"{view.buffer!r} from byte {start * size} on"
            raise self.fail("lang-align", message)
        return start

    def _defined(self, buffer: LocalBuffer, slot: Slot, start: int, count: int) -> Array:
        bad = slot.undefined(start, count)
        if bad is not None:
            raise self.fail("lang-undefined-read", f"{buffer.name}[{bad}] is undefined")
        return slot.data[start : start + count]

    def _set(self, stmt: Op) -> None:
        """One element, by the scalar unit."""
        view = stmt.views[0]
        buffer, start = self.buffers[view.buffer], self.scalars.integer(view.offset)
        self._need_inside(buffer, start, 1)
        value = self.scalars.value(stmt.scalars[0])
        self._slot(buffer).write(start, INTRINSICS[stmt.name].meaning(buffer.dtype, 1, value))

    # ---- vector operations

    def _count(self, expr: Expr, what: str = "count") -> int:
        count = self.scalars.integer(expr)
        if count < 0:
            raise self.fail("lang-range", f"the {what} is {count}")
        return count

    def _op(self, stmt: Op) -> None:
        count = self._count(stmt.count)
        if count == 0:
            return
        row = INTRINSICS[stmt.name]
        if row.form is Form.SORT and count > LONGEST_SORT:
            raise self.fail("lang-range", f"a sort of {count} elements")
        places = [
            (kind, self.buffers[view.buffer], self._start(view)) for kind, view in paired(stmt)
        ]
        source = next((buffer.dtype for kind, buffer, _ in places if kind is Operand.SRC), None)
        dtype = places[0][1].dtype
        source = source or dtype
        scalars = [self._scalar(row, expr, source) for expr in stmt.scalars]
        cols = int(scalars[0]) if row.form in (Form.FOLD_ROWS, Form.SPREAD_ROWS) else 1
        for kind, buffer, start in places:
            covered = extent(row, kind, count, source, cols)
            self._need_inside(buffer, start, covered, reach_code(row, kind))
        self._need_apart(row, places, count, source, cols)
        dst, at = places[0][1:]
        slot = self._slot(dst)
        old = self._defined(dst, slot, at, count).copy() if row.reads_dst else None
        if row.form is Form.GATHER:
            sources = self._gathered(places, count, int(scalars[0]))
        elif row.form is Form.FOLD_ROWS:
            sources = [self._short_rows(*places[1][1:], count, cols)]
        else:
            sources = [
                self._source(kind, buffer, start, count)
                for kind, buffer, start in places
                if kind in (Operand.SRC, Operand.MASK)
            ]
        result = apply(row, dtype, count, sources, scalars, stmt.mode, old)
        if row.whole_repeats:
            slot.write_bits(at, result, count, extent(row, Operand.DST, count, source))
        else:
            slot.poison(at, at + extent(row, Operand.DST, count, source, cols))
            slot.write(at, result)
        for kind, buffer, start in places:
            if kind is Operand.TMP:
                stop = start + extent(row, kind, count, source, cols)
                self._slot(buffer).poison(start, stop)

    def _source(self, kind: Operand, buffer: LocalBuffer, start: int, count: int) -> Array:
        slot = self._slot(buffer)
        if kind is Operand.SRC:
            return self._defined(buffer, slot, start, count)
        bad = slot.undefined_bit(start, count)
        if bad is not None:
            raise self.fail("lang-undefined-read", f"bit {bad} of {buffer.name!r} is undefined")
        return slot.data[start : start + -(-count // 8)]

    def _short_rows(self, buffer: LocalBuffer, start: int, rows: int, cols: int) -> Array:
        """Whole rows, whose padding may be undefined."""
        slot, pitch = self._slot(buffer), row_pitch(cols, buffer.dtype)
        for row in range(rows):
            self._defined(buffer, slot, start + row * pitch, cols)
        return slot.data[start : start + rows * pitch]

    def _gathered(
        self, places: Sequence[tuple[Operand, LocalBuffer, int]], count: int, base: int
    ) -> list[Array]:
        """The source from its first element on, and the offsets, all of which are in order."""
        (_, buffer, start), (_, offsets, at) = places[1:]
        index = self._defined(offsets, self._slot(offsets), at, count)
        if index.min() < 0:  # the chip takes them for unsigned numbers, and adds without wrapping
            raise self.fail("lang-range", f"an offset of {int(index.min())} bytes")
        where = index.astype(np.int64) + base
        slot, size = self._slot(buffer), buffer.dtype.bytes
        low, high = int(where.min()), int(where.max())
        if low < 0 or high // size + start >= buffer.length:
            message = f"bytes {low} to {high} from {buffer.name}[{start}] on"
            raise self.fail("lang-range", f"{message}, which has {buffer.length} elements")
        if (where % size).any():
            raise self.fail("lang-align", f"an offset is no multiple of {size} bytes")
        picked = start + where // size
        bad = ~slot.defined[picked]
        if bad.any():
            name = f"{buffer.name}[{picked[int(np.argmax(bad))]}]"
            raise self.fail("lang-undefined-read", f"{name} is undefined")
        return [slot.data[start:], index]

    def _scalar(self, row: Intrinsic, expr: Expr, dtype: DType) -> Scalar:
        value = self.scalars.value(expr)
        if row.form is Form.GATHER:
            if not 0 <= value < 2**32:
                raise self.fail("lang-range", f"a base of {value} bytes")
            return value
        if row.form in (Form.FOLD_ROWS, Form.SPREAD_ROWS):
            if not is_short_row(int(value)):
                raise self.fail("lang-range", f"rows of {value} elements")
            return value
        if row.int_scalar and not 0 <= value < dtype.bytes * 8:
            raise self.fail("lang-range", f"a shift of {dtype.value} by {value}")
        if not dtype.is_float and not row.int_scalar:
            limits = integer_limits(dtype)
            if not limits[0] <= value <= limits[1]:
                raise self.fail("lang-overflow", f"{value} is not of type {dtype.value}")
        return value

    def _need_apart(
        self,
        row: Intrinsic,
        places: Sequence[tuple[Operand, LocalBuffer, int]],
        count: int,
        source: DType,
        cols: int,
    ) -> None:
        (_, dst, at), *others = places
        end = at + extent(row, Operand.DST, count, source, cols)
        for kind, buffer, start in others:
            stop = start + extent(row, kind, count, source, cols)
            if buffer is not dst or end <= start or stop <= at:
                continue
            same = start == at and may_share(row)
            if not same:
                message = f"{buffer.name!r}: destination from {at} on, operand from {start} on"
                raise self.fail("lang-overlap", message)

    # ---- copies

    def _span(
        self, span: Span, stmt: Load | Store, count: int, rows: int
    ) -> tuple[GlobalTensor, Index]:
        """The tensor and the elements of it that a copy touches."""
        tensor = self.tensors[span.tensor]
        start = self.scalars.integer(span.offset)
        pitch = count if stmt.pitch is None else self.scalars.integer(stmt.pitch)
        if pitch < count:
            raise self.fail("lang-range", f"rows of {count} elements every {pitch} elements")
        last = start + (rows - 1) * pitch + count
        if start < 0 or last > tensor.size:
            message = f"elements {start} to {last - 1} of {tensor.name!r}, which has {tensor.size}"
            raise self.fail("lang-gm-range", message)
        if rows == 1:
            return tensor, slice(start, start + count)
        firsts = start + np.arange(rows, dtype=np.int64) * pitch
        return tensor, firsts[:, None] + np.arange(count, dtype=np.int64)

    def _amounts(self, stmt: Load | Store, dtype: DType) -> tuple[int, int]:
        count = self._count(stmt.count)
        rows = 1 if stmt.rows is None else self._count(stmt.rows, "number of rows")
        if stmt.padded is False and count * dtype.bytes % _BLOCK_BYTES:
            raise self.fail("lang-align", f"a plain copy of {count * dtype.bytes} bytes")
        return count, rows

    def _load(self, stmt: Load) -> None:
        buffer = self.buffers[stmt.dst.buffer]
        count, rows = self._amounts(stmt, buffer.dtype)
        if count == 0 or rows == 0:
            return
        start, pitch = self._start(stmt.dst), row_pitch(count, buffer.dtype)
        self._need_inside(buffer, start, (rows - 1) * pitch + count)
        tensor, index = self._span(stmt.src, stmt, count, rows)
        values = tensor.read(index, self.id, self.clock.epoch, self.fail).reshape(rows, count)
        slot = self._slot(buffer, load=True)
        slot.poison(start, start + rows * pitch)  # padding up to whole blocks is undefined
        for row, part in enumerate(values):
            slot.write(start + row * pitch, part)

    def _store(self, stmt: Store) -> None:
        buffer = self.buffers[stmt.src.buffer]
        count, rows = self._amounts(stmt, buffer.dtype)
        if count == 0 or rows == 0:
            return
        start, pitch = self._start(stmt.src), row_pitch(count, buffer.dtype)
        self._need_inside(buffer, start, (rows - 1) * pitch + count)
        tensor, index = self._span(stmt.dst, stmt, count, rows)
        slot = self._slot(buffer, store=True)
        parts = [self._defined(buffer, slot, start + row * pitch, count) for row in range(rows)]
        values = parts[0] if rows == 1 else np.stack(parts)
        tensor.write(index, values, stmt.atomic, self.id, self.clock.epoch, self.fail)

    def _matrix_copy(self, stmt: Load | Store) -> None:
        """Rows of global memory into L1, or out of L0C."""
        count, rows = self._amounts(stmt, DType.UINT8)  # whole blocks are nobody's concern here
        if count == 0 or rows == 0:
            return
        if isinstance(stmt, Load):
            tensor, index = self._span(stmt.src, stmt, count, rows)
            values = tensor.read(index, self.id, self.clock.epoch, self.fail)
            self.cube.load(stmt.dst, values.reshape(rows, count))
            return
        tensor, index = self._span(stmt.dst, stmt, count, rows)
        found = self.cube.store(stmt, Sides(rows, count), DType.of(tensor.data.dtype))
        values = found[0] if rows == 1 else found
        tensor.write(index, values, stmt.atomic, self.id, self.clock.epoch, self.fail)

    # ---- combines

    def give(self, stmt: Combine) -> Array:
        """This core's part of a combine."""
        self.stmt = stmt
        count = self._count(stmt.count)
        buffer = self.buffers[stmt.src.buffer]
        start = self._start(stmt.src)
        self._need_inside(buffer, start, count)
        return self._defined(buffer, self._slot(buffer), start, count).copy()

    def take(self, stmt: Combine, result: Array) -> None:
        """The answer, which every core gets."""
        self.stmt = stmt
        buffer = self.buffers[stmt.dst.buffer]
        start = self._start(stmt.dst)
        self._need_inside(buffer, start, result.size)
        self._slot(buffer).write(start, result)
