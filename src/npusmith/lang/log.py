"""Collecting what is wrong with a program."""

from __future__ import annotations

from dataclasses import dataclass, field

from npusmith.errors import LangError, Place
from npusmith.ir.nodes import Buffer, Stmt
from npusmith.ir.text import show_buffer, show_stmt
from npusmith.ir.walk import line_of

At = Stmt | Buffer | int


@dataclass(slots=True)
class Log:
    """Errors found so far in one function of one file."""

    file: str
    function: str
    errors: list[LangError] = field(default_factory=list)

    def add(self, code: str, message: str, at: At, *, legal: str = "", hint: str = "") -> None:
        """Note an error at a statement, a buffer or a line."""
        place = Place(self.file, _line(at), self.function)
        error = LangError(code, message, place, seen=quote(at), legal=legal, hint=hint)
        self.errors.append(error)


def _line(at: At) -> int:
    return at if isinstance(at, int) else line_of(at) if not isinstance(at, Buffer) else at.line


def quote(at: At) -> str:
    """The statement as text, for messages."""
    if isinstance(at, int):
        return ""
    if isinstance(at, Buffer):
        return show_buffer(at)
    return show_stmt(at)
