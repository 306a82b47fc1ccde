"""One exception family and one table of stable codes.

The code is the key everywhere: in messages, in docs/errors.md (generated from CODES), in findings
of the twin, in the knowledge store. A message says where, what was seen, what is legal
and what to try. The rows are in codes/*.toml, one file an area or a part of one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path


class Level(str, Enum):
    """How bad a finding is: an error fails the verdict, a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the table: what the code means, what is legal, what usually helps."""

    name: str
    area: str
    meaning: str
    legal: str
    hint: str
    level: Level = Level.ERROR


# In the order of docs/errors.md.
_FILES = (
    *("lang", "lower", "task", "plan", "twin", "twin_order", "twin_host", "store", "train"),
    *("knowledge", "house", "agent", "stages", "cann"),
)


@cache
def _table() -> dict[str, Code]:
    table: dict[str, Code] = {}
    for name in _FILES:
        file = Path(__file__).with_name("codes") / f"{name}.toml"
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        for code, row in data["code"].items():
            level = Level(row.pop("level", Level.ERROR))
            table[code] = Code(code, data["area"], **row, level=level)
    return table


class _Codes(Mapping[str, Code]):
    """The rows by name, read when the first one is asked for."""

    def __getitem__(self, name: str) -> Code:
        return _table()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_table())

    def __len__(self) -> int:
        return len(_table())


CODES: Mapping[str, Code] = _Codes()


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was seen; every field may be absent."""

    file: str = ""
    line: int = 0
    function: str = ""
    core: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        spot = f"{self.file}:{self.line}" if self.line else self.file
        spot = f"line {self.line}" if self.line and not self.file else spot
        parts = [spot, self.function]
        parts += [] if self.core is None else [f"core {self.core}"]
        parts += [] if self.step is None else [f"step {self.step}"]
        return ", ".join(part for part in parts if part)


class NpusmithError(Exception):
    """Base of every error that npusmith raises on purpose.

    `code` must be a key of CODES; `legal` and `hint` default to that row's text.
    """

    def __init__(
        self,
        code: str,
        message: str,
        place: Place | None = None,
        *,
        seen: str = "",
        legal: str = "",
        hint: str = "",
    ) -> None:
        row = CODES[code]
        self.code = code
        self.message = message
        self.place = place or Place()
        self.seen = seen
        self.legal = legal or row.legal
        self.hint = hint or row.hint
        super().__init__(self.render())

    def render(self) -> str:
        """The text a person reads: code and message, place, then legal and try."""
        lines = [f"error[{self.code}]: {self.message}"]
        where = str(self.place)
        if where or self.seen:
            lines.append("  " + ": ".join(part for part in (where, self.seen) if part))
        lines.append(f"  legal: {self.legal}      try: {self.hint}")
        return "\n".join(lines)

    def record(self) -> dict[str, object]:
        """The same as data, for --json."""
        return {
            "code": self.code,
            "message": self.message,
            "file": self.place.file,
            "line": self.place.line,
            "seen": self.seen,
            "legal": self.legal,
            "hint": self.hint,
        }


class LangError(NpusmithError):
    """A tile program is not legal."""


class LowerError(NpusmithError):
    """A legal tile program could not be lowered."""


class TaskError(NpusmithError):
    """A task file could not be loaded or run."""


class PlanError(NpusmithError):
    """The deterministic writer cannot write this graph."""


class SandboxError(NpusmithError):
    """A program could not be started in the sandbox."""


class TwinError(NpusmithError):
    """A project could not be built or run on the twin."""


class CannError(NpusmithError):
    """A project could not be built with CANN, or not run on a device."""
