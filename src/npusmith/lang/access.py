"""The buffers that a statement reaches, with all that does not change from step to step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Alloc, Assign, CoreCount, CoreId, Expr, For, Kernel, Role, Value, View
from npusmith.ir.walk import statements
from npusmith.lang.core import Core
from npusmith.lang.memory import Slot
from npusmith.lang.scalars import Folding, Read, Scalar

Array = np.ndarray[Any, Any]
Int = Callable[[Core], int]

BLOCK_BYTES = 32
_FILLED = (Role.VECIN, Role.THROUGH, Role.A1, Role.B1, Role.A2, Role.B2, Role.C1, Role.C2)


@dataclass(frozen=True, slots=True)
class Access:
    """One buffer as one statement reaches it."""

    buffer: str
    dtype: DType
    length: int
    start: Int  # its first element
    slot: Callable[[Core], Slot]  # the memory that it reaches

    def need_inside(self, core: Core, start: int, covered: int, code: str = "lang-range") -> None:
        if start < 0 or start + covered > self.length:
            message = f"elements {start} to {start + covered - 1} of {self.buffer!r}, which has "
            raise core.fail(code, message + str(self.length))

    def defined(self, core: Core, start: int, count: int) -> Array:
        """Elements that have to be defined."""
        return self.elements(core, self.slot(core), start, count)

    def one(self, core: Core) -> Any:
        """The element where it starts."""
        at = self.start(core)
        if not 0 <= at < self.length:
            self.need_inside(core, at, 1)
        slot = self.slot(core)
        if not slot.holds(at):
            raise self._undefined(core, at)
        return slot.data[at]

    def elements(self, core: Core, slot: Slot, start: int, count: int) -> Array:
        bad = slot.undefined(start, count)
        if bad is not None:
            raise self._undefined(core, bad)
        return slot.data[start : start + count]

    def _undefined(self, core: Core, at: int) -> LangError:
        return core.fail("lang-undefined-read", f"{self.buffer}[{at}] is undefined")


class Accesses:
    """Expressions and buffers of one kernel."""

    def __init__(
        self, kernel: Kernel, lengths: dict[str, int], names: Mapping[str, Scalar]
    ) -> None:
        """`names`: constants and parameters, of which a kernel may hide some by its variables."""
        own = set(_assigned(kernel))
        fixed = {name: value for name, value in names.items() if name not in own}
        self.buffers = {item.name: item for item in kernel.buffers}
        # made so by a lowering
        self.queued = {item.buffer for item in statements(kernel.body) if isinstance(item, Alloc)}
        self.lengths = lengths
        self.scalars: Folding[Core] = Folding(self._leaf, fixed)

    # ---- scalars

    def _leaf(self, expr: Expr) -> Read[Core]:
        match expr:
            case CoreId():
                return lambda core: core.id
            case CoreCount():
                return lambda core: core.count
            case Value(source):
                return self._element(source)
            case _:
                return _unknown

    def _element(self, source: View) -> Read[Core]:
        access = self.element(source)
        if not access.dtype.is_float:
            return lambda core: int(access.one(core))
        if access.dtype is DType.FLOAT32:
            return access.one
        return lambda core: np.float32(access.one(core))

    def count(self, expr: Expr, what: str = "count") -> Int:
        """A number of elements or rows."""
        read = self.scalars.integer(expr)

        def count(core: Core) -> int:
            found = read(core)
            if found < 0:
                raise core.fail("lang-range", f"the {what} is {found}")
            return found

        return self.scalars.folded(count, read)

    # ---- buffers

    def element(self, view: View) -> Access:
        """An element that the scalar unit reads or writes."""
        return self._access(view.buffer, self.scalars.integer(view.offset), self._computed(view))

    def vector(self, view: View) -> Access:
        """An operand of a vector operation: loads fill what they load, these what is stored."""
        return self._access(view.buffer, self._start(view), self._computed(view))

    def loaded(self, view: View) -> Access:
        return self._access(view.buffer, self._start(view), True)

    def stored(self, view: View) -> Access:
        return self._access(view.buffer, self._start(view), False)

    def _computed(self, view: View) -> bool:
        return self.buffers[view.buffer].role not in _FILLED

    def matrix(self, view: View, filling: bool | None = None) -> Callable[[Core], Slot]:
        """The memory of a matrix; `filling`: the side of a queue, that of an operation for None."""
        side = self._computed(view) if filling is None else filling
        return _side(view.buffer, side) if view.buffer in self.queued else _only(view.buffer)

    def _access(self, name: str, start: Int, filling: bool) -> Access:
        slot = _side(name, filling) if name in self.queued else _only(name)
        return Access(name, self.buffers[name].dtype, self.lengths[name], start, slot)

    def _start(self, view: View) -> Int:
        """Where an operand starts, in elements: at a whole block."""
        read, size = self.scalars.integer(view.offset), self.buffers[view.buffer].dtype.bytes

        def start(core: Core) -> int:
            found = read(core)
            if found * size % BLOCK_BYTES:
                message = f"{view.buffer!r} from byte {found * size} on"
                raise core.fail("lang-align", message)
            return found

        return self.scalars.folded(start, read)


def _only(name: str) -> Callable[[Core], Slot]:
    return lambda core: core.buffers[name].only


def _side(name: str, filling: bool) -> Callable[[Core], Slot]:
    """Of a queue: the side that is filled, or the side that is read."""
    return lambda core: core.buffers[name].side(filling, core.fail)


def _assigned(kernel: Kernel) -> Iterator[str]:
    for stmt in statements(kernel.body):
        if isinstance(stmt, Assign):
            yield stmt.target
        elif isinstance(stmt, For):
            yield stmt.var


def _unknown(core: Core) -> Scalar:
    raise core.fail("lang-host", "shapes and chip facts are known on the host only")
