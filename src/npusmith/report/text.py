"""Text of strangers (task files, compiler output, kernel messages) made safe to print."""

from __future__ import annotations

import re

REPORT = "report.html"  # its name in a result folder
# C0 without newline and tab, DEL, C1, and the marks that reorder text on a screen
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """The text with control characters shown as escapes, so that none reaches a terminal."""
    text = text.replace("\r\n", "\n")
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def figure(value: float | None) -> str:
    """An error figure in three digits; a dash where there is none."""
    if value is None:
        return "-"
    return "0" if value == 0 else f"{value:.2e}"


def size(count: int) -> str:
    """Bytes in the unit a person would use, exact where it is short."""
    if count < 10_000:
        return f"{count:,} B"
    return f"{count / 1024:,.1f} KiB"
