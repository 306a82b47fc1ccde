"""One core of the interpreter: its variables and buffers, and where it is in the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from npusmith.errors import LangError, Place
from npusmith.ir.nodes import Kernel, Stmt
from npusmith.ir.text import show_stmt
from npusmith.ir.walk import line_of
from npusmith.lang.memory import InMemory, LocalBuffer, When
from npusmith.lang.scalars import Scalar


@dataclass(slots=True)
class Clock:
    """Counts how often all cores have waited for each other."""

    epoch: int = 0


class Telling(Protocol):
    """What a core and the other side of its block tell each other, where both run together."""

    def post(self, flag: str) -> None: ...

    def is_posted(self, flag: str) -> bool: ...

    def wait(self, flag: str) -> None: ...


class Core:
    """State of one core. What a kernel does with it is in steps.py."""

    def __init__(
        self,
        kernel: Kernel,
        buffers: Mapping[str, LocalBuffer],
        tensors: Mapping[str, InMemory],
        names: Mapping[str, Scalar],
        place: tuple[int, int],
        when: When,
    ) -> None:
        self.kernel, self.buffers, self.tensors, self.when = kernel, buffers, tensors, when
        self.id, self.count = place
        self.flags: Telling | None = None
        self.names = dict(names)
        self.stmt: Stmt | None = None  # the statement that runs now
        # of a cube core: rows and columns that each slot of L0 was filled with, by its identity
        self.filled: dict[int, tuple[int, int]] = {}

    def fail(self, code: str, message: str) -> LangError:
        """An error at the statement that runs now."""
        line = line_of(self.stmt) if self.stmt is not None else 0
        seen = show_stmt(self.stmt) if self.stmt is not None else ""
        place = Place("", line, self.kernel.name, self.id)
        return LangError(code, message, place, seen=seen)


Step = Callable[[Core], None]
