"""Global memory and on-chip buffers of the interpreter, with a mark for every undefined element."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Atomic
from npusmith.lang.scalars import Fail
from npusmith.target import meaning

Array = np.ndarray[Any, Any]
Index = slice | Array

_ATOMICS = {Atomic.ADD: meaning.add, Atomic.MAX: meaning.maximum, Atomic.MIN: meaning.minimum}
_NOBODY, _SEVERAL = -1, -2


class GlobalTensor:
    """A tensor in global memory. Reads and writes of different cores are kept apart by epochs.

    An epoch ends where all cores wait for each other; inside one, nothing orders two cores.
    """

    def __init__(self, name: str, data: Array, *, defined: bool) -> None:
        self.name = name
        self.data = data
        self.defined = np.full(data.size, defined)
        self.constant = defined  # an input: never written, so never raced for
        if not defined:
            self.writer = np.full(data.size, _NOBODY, np.int16)
            self.reader = np.full(data.size, _NOBODY, np.int16)
            self.written = np.full(data.size, -1, np.int32)  # epoch of the last store
            self.loaded = np.full(data.size, -1, np.int32)  # epoch of the last load
            self.atomic = np.zeros(data.size, np.bool_)

    @property
    def size(self) -> int:
        return int(self.data.size)

    def read(self, index: Index, core: int, epoch: int, fail: Fail) -> Array:
        """Elements for one core."""
        if self.constant:
            return self.data[index]
        self._need_defined(index, fail)
        others = (self.written[index] == epoch) & (self.writer[index] != core)
        if others.any():
            raise self._race(index, others, "loads", "another core stores", fail)
        alone = (self.loaded[index] != epoch) | (self.reader[index] == core)
        self.reader[index] = np.where(alone, core, _SEVERAL)
        self.loaded[index] = epoch
        return self.data[index]

    def write(
        self, index: Index, values: Array, atomic: Atomic | None, core: int, epoch: int, fail: Fail
    ) -> None:
        """Elements from one core."""
        self._check_race(index, atomic is not None, core, epoch, fail)
        if atomic is not None:
            self._need_defined(index, fail)
            values = _ATOMICS[atomic](self.data[index], values)
        self.data[index] = values
        self.defined[index] = True
        shared = (self.written[index] == epoch) & (self.writer[index] != core)
        self.writer[index] = np.where(shared, _SEVERAL, core)
        self.written[index] = epoch
        self.atomic[index] = atomic is not None

    def _check_race(self, index: Index, atomic: bool, core: int, epoch: int, fail: Fail) -> None:
        others = (self.written[index] == epoch) & (self.writer[index] != core)
        clash = others & ~(self.atomic[index] & atomic)
        if clash.any():
            raise self._race(index, clash, "stores", "another core stores", fail)
        seen = (self.loaded[index] == epoch) & (self.reader[index] != core)
        if seen.any():
            raise self._race(index, seen, "stores", "another core loads", fail)

    def _need_defined(self, index: Index, fail: Fail) -> None:
        if not self.defined[index].all():
            place = _first(index, ~self.defined[index])
            raise fail("lang-undefined-read", f"{self.name}[{place}] has not been stored")

    def _race(self, index: Index, where: Array, what: str, other: str, fail: Fail) -> LangError:
        place = _first(index, where)
        message = f"this core {what} {self.name}[{place}], which {other} without sync_cores()"
        return fail("lang-race", message)

    def forget(self, count: int) -> None:
        """The first `count` elements lose their contents (a combine used them)."""
        self.defined[:count] = False
        self.written[:count] = -1
        self.loaded[:count] = -1


def _first(index: Index, where: Array) -> int:
    """The number of the first element of `index` for which `where` holds."""
    at = int(np.flatnonzero(where)[0])
    return int(index.start) + at if isinstance(index, slice) else int(index.reshape(-1)[at])


class Slot:
    """Memory for one buffer. Bytes of a uint8 buffer are defined bit by bit: they may be masks."""

    def __init__(self, dtype: DType, length: int) -> None:
        self.data = np.zeros(length, dtype.numpy)
        self.marks = 8 if dtype is DType.UINT8 else 1  # marks per element
        self.defined = np.zeros(length * self.marks, np.bool_)

    def poison(self, start: int = 0, stop: int | None = None) -> None:
        end = None if stop is None else stop * self.marks
        self.defined[start * self.marks : end] = False

    def write(self, start: int, values: Array) -> None:
        self.data[start : start + values.size] = values
        self.defined[start * self.marks : (start + values.size) * self.marks] = True

    def write_bits(self, start: int, packed: Array, count: int, covered: int) -> None:
        """`count` bits; the rest of `covered` bytes is what the chip makes of what it finds."""
        self.poison(start, start + covered)
        self.data[start : start + packed.size] = packed
        self.defined[start * 8 : start * 8 + count] = True

    def undefined(self, start: int, count: int) -> int | None:
        """The first undefined element of a range."""
        marks = self.defined[start * self.marks : (start + count) * self.marks]
        return None if marks.all() else start + int(np.argmin(marks)) // self.marks

    def undefined_bit(self, start: int, count: int) -> int | None:
        """The first undefined bit of `count` bits of a mask."""
        marks = self.defined[start * 8 : start * 8 + count]
        return None if marks.all() else int(np.argmin(marks))


class LocalBuffer:
    """An on-chip buffer: one slot, or the slots of a queue once a lowering has made it one.

    States of a slot: free -> (alloc) filling -> (enque) waiting -> (deque) draining -> (free) free.
    """

    def __init__(self, name: str, dtype: DType, length: int, depth: int, queued: bool) -> None:
        self.name, self.dtype, self.length, self.queued = name, dtype, length, queued
        slots = [Slot(dtype, length) for _ in range(depth if queued else 1)]
        self.only = slots[0]
        self.free_slots = deque(slots)
        self.filling: Slot | None = None
        self.waiting: deque[Slot] = deque()
        self.draining: Slot | None = None

    def slot(self, filling: bool, fail: Fail) -> Slot:
        """The memory that an access reaches: the side that is filled, or the side that is read."""
        if not self.queued:
            return self.only
        slot = self.filling if filling else self.draining
        if slot is None:
            what = "filled before alloc" if filling else "read before deque"
            raise fail("lang-queue", f"{self.name!r} is {what}")
        return slot

    def alloc(self, fail: Fail) -> None:
        if self.filling is not None:
            raise fail("lang-queue", f"{self.name!r} is allocated twice without enque")
        if not self.free_slots:
            raise fail("lang-queue", f"{self.name!r} has no free buffer")
        self.filling = self.free_slots.popleft()
        self.filling.poison()

    def enque(self, fail: Fail) -> None:
        if self.filling is None:
            raise fail("lang-queue", f"{self.name!r} is enqued without alloc")
        self.waiting.append(self.filling)
        self.filling = None

    def deque(self, fail: Fail) -> None:
        if self.draining is not None:
            raise fail("lang-queue", f"{self.name!r} is dequed twice without free")
        if not self.waiting:
            raise fail("lang-queue", f"{self.name!r} is dequed and nothing was enqued")
        self.draining = self.waiting.popleft()

    def free(self, fail: Fail) -> None:
        if self.draining is None:
            raise fail("lang-queue", f"{self.name!r} is freed without deque")
        self.free_slots.append(self.draining)
        self.draining = None

    def finish(self, fail: Fail) -> None:
        """At the end of the kernel every buffer is back in its queue."""
        if self.queued and (self.filling or self.waiting or self.draining):
            raise fail("lang-queue", f"{self.name!r} is not freed at the end of the kernel")
