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
_NOTHING = (2**63, -1)  # a range without an element
_EVER = 2**31 - 1  # later than all that is done


class When:
    """A core's time, and up to which time it knows of what every other core has done.

    Times of all cores grow together: at a barrier each knows of everything
    before. Between two such waits a core's time goes on where it posts a flag.
    """

    __slots__ = ("base", "core", "known", "now")

    def __init__(self, core: int, count: int, base: int) -> None:
        self.core = core
        self.known = np.empty(count + 2, np.int64)  # the last two: _SEVERAL, _NOBODY
        self.meet(base)

    def meet(self, base: int) -> None:
        """All cores have waited for each other."""
        self.base = self.now = base
        self.known[:] = base - 1
        self.known[self.core] = self.known[_NOBODY] = _EVER

    def post(self) -> Array:
        """What this core knows, itself included; what it does from now on is later."""
        known = self.known.copy()
        known[self.core], known[_SEVERAL], known[_NOBODY] = self.now, -1, -1
        self.now += 1
        return known

    def learn(self, known: Array) -> None:
        """What another core knew when it posted."""
        np.maximum(self.known, known, out=self.known)


class Reached:
    """What cores have reached in an epoch: a range of the one that runs, and one of those before.

    Ranges hold more than was reached: what lies outside of them is settled without a look at it.
    """

    def __init__(self) -> None:
        self.epoch, self.core = -1, _NOBODY
        self.own, self.others = _NOTHING, _NOTHING

    def by_others(self, start: int, stop: int, when: When) -> bool:
        """May other cores have reached some of these elements in this epoch?"""
        core, epoch = when.core, when.base
        if epoch != self.epoch:
            self.epoch, self.core = epoch, core
            self.own = self.others = _NOTHING
        elif core != self.core:
            self.others, self.own = _joined(self.others, *self.own), _NOTHING
            self.core = core
        return start < self.others[1] and self.others[0] < stop

    def add(self, start: int, stop: int) -> None:
        """By the core that has asked last."""
        self.own = _joined(self.own, start, stop)


def _joined(ends: tuple[int, int], start: int, stop: int) -> tuple[int, int]:
    return min(ends[0], start), max(ends[1], stop)


class GlobalTensor:
    """A tensor in global memory. Reads and writes of different cores are kept apart by times.

    An epoch ends at a barrier of all cores; inside one, flags alone order two cores.
    """

    def __init__(self, name: str, data: Array, *, defined: bool) -> None:
        self.name = name
        self.data = data
        self.size = int(data.size)
        self.constant = defined  # an input: never written, so never raced for
        if not defined:
            self.marks = bytearray(data.size)  # 1: defined
            self.defined = np.ndarray(data.size, np.bool_, self.marks)  # the same memory
            self.stores, self.loads = Reached(), Reached()
            self.writer = np.full(data.size, _NOBODY, np.int16)
            self.reader = np.full(data.size, _NOBODY, np.int16)
            self.written = np.full(data.size, -1, np.int32)  # time of the last store
            self.loaded = np.full(data.size, -1, np.int32)  # time of the last load
            self.atomic = np.zeros(data.size, np.bool_)

    def read(self, index: Index, when: When, fail: Fail) -> Array:
        """Elements for one core."""
        if self.constant:
            return self.data[index]
        self._need_defined(index, fail)
        start, stop = _ends(index)
        core = when.core
        if self.stores.by_others(start, stop, when):
            others = self.written[index] > when.known[self.writer[index]]
            if others.any():
                raise self._race(index, others, "loads", "another core stores", fail)
        reader: int | Array = core
        if self.loads.by_others(start, stop, when):
            alone = self.loaded[index] <= when.known[self.reader[index]]
            reader = np.where(alone, core, _SEVERAL)
        self.reader[index] = reader
        self.loaded[index] = when.now
        self.loads.add(start, stop)
        return self.data[index]

    def write(
        self, index: Index, values: Array, atomic: Atomic | None, when: When, fail: Fail
    ) -> None:
        """Elements from one core."""
        start, stop = _ends(index)
        core = when.core
        writer: int | Array = core
        if self.stores.by_others(start, stop, when):
            shared = self.written[index] > when.known[self.writer[index]]
            clash = shared & ~(self.atomic[index] & (atomic is not None))
            if clash.any():
                raise self._race(index, clash, "stores", "another core stores", fail)
            writer = np.where(shared, _SEVERAL, core)
        if self.loads.by_others(start, stop, when):
            seen = self.loaded[index] > when.known[self.reader[index]]
            if seen.any():
                raise self._race(index, seen, "stores", "another core loads", fail)
        if atomic is not None:
            self._need_defined(index, fail)
            values = _ATOMICS[atomic](self.data[index], values)
        self.data[index] = values
        self.defined[index] = True
        self.writer[index] = writer
        self.written[index] = when.now
        self.atomic[index] = atomic is not None
        self.stores.add(start, stop)

    def _need_defined(self, index: Index, fail: Fail) -> None:
        if isinstance(index, slice):
            place = self.marks.find(0, index.start, index.stop)
        else:
            missing = ~self.defined[index]
            place = _first(index, missing) if missing.any() else -1
        if place >= 0:
            raise fail("lang-undefined-read", f"{self.name}[{place}] has not been stored")

    def _race(self, index: Index, where: Array, what: str, other: str, fail: Fail) -> LangError:
        place = _first(index, where)
        message = f"this core {what} {self.name}[{place}], which {other} without sync_cores()"
        return fail("lang-race", message)

    def forget(self, count: int, start: int = 0) -> None:
        """`count` elements from `start` on lose their contents (a combine used them)."""
        stop = start + count
        self.defined[start:stop] = False
        self.written[start:stop] = -1
        self.loaded[start:stop] = -1


class Window:
    """Elements of a tensor in global memory as a tensor of their own."""

    def __init__(self, name: str, whole: GlobalTensor, start: int, size: int) -> None:
        self.name, self.size = name, size
        self.data = whole.data[start : start + size]
        self._whole, self._start = whole, start

    def read(self, index: Index, when: When, fail: Fail) -> Array:
        return self._whole.read(self._moved(index), when, fail)

    def write(
        self, index: Index, values: Array, atomic: Atomic | None, when: When, fail: Fail
    ) -> None:
        self._whole.write(self._moved(index), values, atomic, when, fail)

    def forget(self, count: int) -> None:
        self._whole.forget(count, self._start)

    def _moved(self, index: Index) -> Index:
        if isinstance(index, slice):
            return slice(index.start + self._start, index.stop + self._start)
        return index + self._start


InMemory = GlobalTensor | Window


def _ends(index: Index) -> tuple[int, int]:
    """The first element of `index`, and the one behind its last; they come in order."""
    if isinstance(index, slice):
        return index.start, index.stop
    return int(index[0, 0]), int(index[-1, -1]) + 1


def _first(index: Index, where: Array) -> int:
    """The number of the first element of `index` for which `where` holds."""
    at = int(np.flatnonzero(where)[0])
    return int(index.start) + at if isinstance(index, slice) else int(index.reshape(-1)[at])


class Slot:
    """Memory for one buffer. Bytes of a uint8 buffer are defined bit by bit: they may be masks."""

    def __init__(self, dtype: DType, length: int) -> None:
        self.data = np.zeros(length, dtype.numpy)
        self.per_element = 8 if dtype is DType.UINT8 else 1  # marks of one element
        self.marks = bytearray(length * self.per_element)  # 1: defined
        self.defined = np.ndarray(len(self.marks), np.bool_, self.marks)  # the same memory

    def poison(self, start: int = 0, stop: int | None = None) -> None:
        end = None if stop is None else stop * self.per_element
        self.defined[start * self.per_element : end] = False

    def write(self, start: int, values: Array) -> None:
        stop = start + values.size
        self.data[start:stop] = values
        self.defined[start * self.per_element : stop * self.per_element] = True

    def put(self, at: int, value: Any) -> None:
        """One element, of this type."""
        self.data[at] = value
        if self.per_element == 1:
            self.marks[at] = 1
        else:
            self.defined[at * 8 : at * 8 + 8] = True

    def holds(self, at: int) -> bool:
        """Is the element defined?"""
        if self.per_element == 1:
            return self.marks[at] == 1
        return self.undefined(at, 1) is None

    def write_bits(self, start: int, packed: Array, count: int, covered: int) -> None:
        """`count` bits; the rest of `covered` bytes is what the chip makes of what it finds."""
        self.poison(start, start + covered)
        self.data[start : start + packed.size] = packed
        self.defined[start * 8 : start * 8 + count] = True

    def undefined(self, start: int, count: int) -> int | None:
        """The first undefined element of a range."""
        each = self.per_element
        first = self.marks.find(0, start * each, (start + count) * each)
        return None if first < 0 else first // each

    def undefined_bit(self, start: int, count: int) -> int | None:
        """The first undefined bit of `count` bits of a mask."""
        first = self.marks.find(0, start * 8, start * 8 + count)
        return None if first < 0 else first - start * 8


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

    def side(self, filling: bool, fail: Fail) -> Slot:
        """The memory of a queue that an access reaches: what is filled, or what is read."""
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
