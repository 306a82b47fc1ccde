"""One exception family and one table of stable codes.

The code is the key everywhere: in messages, in docs/errors.md (generated from CODES), in findings of
the twin, in the knowledge store. A message says where, what was seen, what is legal, what to try.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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


def _rows(area: str, *rows: tuple[str, str, str, str]) -> list[Code]:
    return [Code(name, area, meaning, legal, hint) for name, meaning, legal, hint in rows]


def _warn(area: str, *rows: tuple[str, str, str, str]) -> list[Code]:
    return [
        Code(name, area, meaning, legal, hint, Level.WARNING) for name, meaning, legal, hint in rows
    ]


# --- lang: the text of a tile program -------------------------------------------------------------
_LANG: list[Code] = []

# --- lower: tile program -> Ascend C project ------------------------------------------------------
_LOWER: list[Code] = []

# --- task and sandbox: the PyTorch side -----------------------------------------------------------
_TASK: list[Code] = []

# --- plan: what the deterministic writer can and cannot write -------------------------------------
_PLAN: list[Code] = []

# --- twin: building a project, and what a kernel did wrong when it ran ----------------------------
_TWIN: list[Code] = []

# --- target, cli and files ------------------------------------------------------------------------
_HOUSE: list[Code] = _rows(
    "house",
    (
        "chip-unknown",
        "No chip of that name is in the table.",
        "a name that `npusmith doctor` lists",
        "use --chip 910B2",
    ),
    (
        "file-missing",
        "A file or folder that was named does not exist.",
        "a path that exists and can be read",
        "check the path",
    ),
)

CODES: dict[str, Code] = {
    row.name: row for row in (*_LANG, *_LOWER, *_TASK, *_PLAN, *_TWIN, *_HOUSE)
}


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


class TwinError(NpusmithError):
    """A project could not be built or run on the twin."""
