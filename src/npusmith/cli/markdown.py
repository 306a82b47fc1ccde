"""Text of the tables as Markdown: its signs stay signs."""

from __future__ import annotations

import re

_SIGNS = re.compile(r"([*_<>~\[\]\\])")


def prose(text: str) -> str:
    """The text as it stands; what it has in backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a lone backtick is one more sign
        return _SIGNS.sub(r"\\\1", text).replace("`", "\\`")
    plain = [_SIGNS.sub(r"\\\1", part) for part in parts[::2]]
    code = [f"`{part}`" for part in parts[1::2]]
    return "".join(a + b for a, b in zip(plain, [*code, ""], strict=True))


def row(*cells: str) -> str:
    """A line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
