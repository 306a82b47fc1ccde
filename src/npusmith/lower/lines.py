"""Lines of C++ text: indentation, comments, and breaking what is too long."""

from __future__ import annotations

import json

WIDTH = 100
STEP = "    "


def comment(text: str, indent: int = 0) -> list[str]:
    """`text` as // lines that fit, its own line breaks kept."""
    lead = STEP * indent + "// "
    lines = [line for part in text.strip().splitlines() for line in _fill(part.strip(), lead)]
    # a backslash at the end would make the next line a part of the comment
    return [line.rstrip("\\ ") for line in lines]


def quoted(text: str) -> str:
    """`text` as a C++ string literal."""
    return json.dumps("".join(char for char in text if char.isprintable()))


def _fill(text: str, lead: str) -> list[str]:
    lines, line = [], lead.rstrip()
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH and line != lead.rstrip():
            lines.append(line)
            line = lead.rstrip()
        line += " " + word
    return [*lines, line]


def code(text: str, indent: int = 0) -> list[str]:
    """One statement, broken after commas or before operators where it is too long."""
    lead = STEP * indent
    lines, rest = [], lead + text
    while len(rest) > WIDTH:
        at = _break(rest, len(lead))
        if at is None:
            break
        lines.append(rest[:at].rstrip())
        lead = STEP * (indent + 1)
        rest = lead + rest[at:].lstrip()
    return [*lines, rest]


def _break(line: str, start: int) -> int | None:
    """The best place to break within the width: a comma as far out and right as possible."""
    depth, best = 0, None
    outside = _outside_strings(line)
    for at in outside:
        char = line[at]
        if char in "({<[":
            depth += 1
        elif char in ")}>]":
            depth -= 1
        elif (
            char == " "
            and at > start
            and line[at - 1] in ",;"
            and (best is None or depth <= best[0])
        ):
            best = (depth, at)
    if best is not None:
        return best[1]
    spots = [at for at in outside if start < at < WIDTH and line[at] == " "]
    return next((at for at in reversed(spots) if line[at + 1] in "+-*/?:&|"), None)


def _outside_strings(line: str) -> list[int]:
    """Where a line may be looked at within the width: a string literal must stay whole."""
    found, inside, at = [], False, 0
    while at <= min(WIDTH, len(line) - 1):
        if line[at] == "\\" and inside:
            at += 1
        elif line[at] == '"':
            inside = not inside
        elif not inside:
            found.append(at)
        at += 1
    return found
