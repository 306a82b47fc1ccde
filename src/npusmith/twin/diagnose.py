"""What a compiler said, as records that name the user's files and lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.target.absent import explain
from npusmith.twin.toolchain import INCLUDE

_MESSAGE = re.compile(r"^(.+?):(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$")
_CAUSE = re.compile(
    r"^(?:In file included from |\s+from )?(.+?):(\d+)(?::\d+)?[:,]?\s*"
    r"(?:\s+required from .*|note: in instantiation of .*)?[,:]?$"
)
_LINKER = re.compile(r"(undefined reference to|undefined symbol|multiple definition of)[: ]+(.*)$")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One compiler error, at the user's line that caused it where that is known."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        spot = f"{self.file}:{self.line}: " if self.line else ""
        return f"{spot}{self.message}"


class CompileError(TwinError):
    """A project does not compile; `errors` are the first ones, `log` is all that was said."""

    def __init__(self, errors: tuple[Diagnostic, ...], log: str, where: Path) -> None:
        self.errors = errors
        self.log = log
        first = errors[0] if errors else Diagnostic(str(where), 0, _last_line(log))
        rest = [str(error) for error in errors[1:4]]
        if len(errors) > 4:
            rest.append(f"and {len(errors) - 4} more")
        super().__init__(
            "compile-failed", first.message, Place(first.file, first.line), seen="; ".join(rest)
        )

    def record(self) -> dict[str, object]:
        errors = [{"file": e.file, "line": e.line, "message": e.message} for e in self.errors]
        return {**super().record(), "errors": errors, "log": self.log}


def read_log(log: str, is_users: Callable[[str], bool]) -> tuple[Diagnostic, ...]:
    """The errors of a compile in order, each once."""
    found: dict[Diagnostic, None] = {}
    cause: tuple[str, int] | None = None  # the user's line that an instantiation came from
    for text in log.splitlines():
        error = _MESSAGE.match(text)
        linker = _LINKER.search(text)
        if error:
            file, line, message = error.group(1), int(error.group(2)), error.group(4)
            if not is_users(file) and cause:
                file, line = cause
            found.setdefault(Diagnostic(file, line, explain(_plain(message))))
            cause = None
        elif linker:
            found.setdefault(Diagnostic("", 0, f"{linker.group(1)} {_plain(linker.group(2))}"))
        else:
            spot = _CAUSE.match(text)
            if spot and is_users(spot.group(1).strip()):
                cause = spot.group(1).strip(), int(spot.group(2))
    return tuple(found)


def in_project(root: Path) -> Callable[[str], bool]:
    """Is this file name the user's, and not ours or the system's?"""

    def is_users(file: str) -> bool:
        if file.startswith((str(INCLUDE), "/usr/", "npusmith ")):
            return False
        try:
            return Path(file).is_relative_to(root) or Path(file).is_file()
        except OSError:  # #line can name anything, at any length
            return False

    return is_users


def _plain(message: str) -> str:
    """Compiler quotes as plain ones."""
    return message.translate(str.maketrans("‘’“”`", "'''''"))


def _last_line(log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "the compiler ended without a message"
