"""A tolerant look at C++ text without a parser: comments and literals blanked, brackets matched.

Everything keeps its offset, so that a place found in the blanked text is a place in the file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

_SKIP = re.compile(
    r"""//(?:\\\n|[^\n])*            # a line comment, with continuation
      | /\*.*?(?:\*/|\Z)             # a block comment
      | R"([^\s()\\]{0,16})\(.*?(?:\)\1"|\Z)  # a raw string
      | "(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)  # a string; one without end ends with its line
      | (?<![0-9A-Za-z_])'(?:\\.|[^'\\\n]){1,16}'  # a character, but not a digit separator
    """,
    re.DOTALL | re.VERBOSE,
)
_MOST_ENTRIES = 200  # looked at in one file
_MOST_PARAMETERS = 1 << 16  # characters of one entry's parameters
_NEAR = 200  # characters before an entry, between it and its template head
MOST_LINE = 4096  # characters of a line that patterns are tried on
_CLOSERS = {"(": ")", "{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A `__global__` function: its name, where the name stands, its parameters as written."""

    name: str
    offset: int
    params: tuple[str, ...]
    defined: bool  # a body follows, not just a semicolon
    template: bool

    @property
    def param_names(self) -> tuple[str, ...]:
        """The last identifier of each parameter."""
        return tuple((re.findall(r"[A-Za-z_]\w*", text) or [""])[-1] for text in self.params)


def blank(text: str, *, strings: bool = True) -> str:
    """The text with comments (and the insides of literals) turned to spaces, newlines kept."""

    def cover(match: re.Match[str]) -> str:
        found = match.group()
        if found.startswith("/"):
            return re.sub(r"[^\n]", " ", found)
        if not strings:
            return found
        inside = re.sub(r"[^\n]", " ", found[1:])
        whole = len(found) > 1 and found[-1] == found.lstrip("R")[0]
        return found[0] + (inside[:-1] + found[-1] if whole else inside)

    return _SKIP.sub(cover, text)


def line_of(text: str, offset: int) -> int:
    """The 1-based line of an offset."""
    return text.count("\n", 0, offset) + 1


def closing(text: str, start: int, most: int = sys.maxsize) -> int:
    """The offset of the bracket that closes the one at `start`; -1 for none in `most` characters.

    Hostile text opens a bracket a million times: who asks for each of them sets `most`.
    """
    opener, closer = text[start], _CLOSERS[text[start]]
    depth = 0
    brackets = re.compile(re.escape(opener) + "|" + re.escape(closer))
    for match in brackets.finditer(text, start, min(len(text), start + most)):
        depth += 1 if match.group() == opener else -1
        if depth == 0:
            return match.start()
    return -1


def split_args(text: str, angles: bool = True) -> tuple[str, ...]:
    """`a, f(b, c), d<e, f>` -> its arguments, trimmed; nothing for an empty text.

    `angles`: commas inside <> belong to template arguments; not so in arithmetic.
    """
    parts, open_, last = [], [""], 0
    for at, letter in enumerate(text):
        if letter in "([{" or (letter == "<" and angles):
            open_.append(letter)
        elif letter in ")]}":
            while open_.pop() == "<" and len(open_) > 1:
                pass
            open_ = open_ or [""]
        elif letter == ">" and open_[-1] == "<" and text[at - 1 : at] != "-":
            open_.pop()
        elif letter == "," and len(open_) == 1:
            parts.append(text[last:at])
            last = at + 1
    parts.append(text[last:])
    stripped = tuple(part.strip() for part in parts)
    return () if stripped == ("",) else stripped


def find_entries(code: str) -> list[Entry]:
    """All `__global__` functions of blanked text, declarations included."""
    return list(_entries(code))


def _entries(code: str) -> Iterator[Entry]:
    plain = re.sub(r"__mix__\([^)]*\)", lambda m: " " * len(m.group()), code)
    for mark in islice(re.finditer(r"\b__global__\b", code), _MOST_ENTRIES):
        head = re.compile(r"[^;{}()]{0,2000}?\bvoid\s+(?:__\w+__\s+)*([A-Za-z_]\w*)\s*\(").match(
            plain, mark.end()
        )
        if head is None:
            continue
        end = closing(code, head.end() - 1, _MOST_PARAMETERS)
        if end < 0:
            continue
        after = code[end + 1 :].lstrip()
        before = code[: mark.start()].rstrip()
        yield Entry(
            head.group(1),
            head.start(1),
            _params(code[head.end() : end]),
            after.startswith("{"),
            _follows_template(before),
        )


def _params(text: str) -> tuple[str, ...]:
    parts = split_args(text)
    return () if parts == ("void",) else parts


def _follows_template(before: str) -> bool:
    near = before[-_NEAR:]  # the pattern is slow on long runs of blanks
    near = re.sub(r"(\b(inline|static|extern)\b|\"\s*C?\s*\")\s*$", "", near).rstrip()
    before = before[:-_NEAR] + near
    return before.endswith(">") and "template" in before[before.rfind(";") + 1 :]
