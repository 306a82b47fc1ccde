"""A picture of the cores of a chip, eight in a row: the fuller the colour, the more work."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.report.svg import num

_COLUMNS, _WIDE, _HIGH = 8, 60, 44
_LEVELS = 5  # shades of style.css: w1 ... w5


@dataclass(frozen=True, slots=True)
class Cell:
    """One core: `share` of the largest work, None where it does not run; `words` are its title."""

    number: int
    words: str
    share: float | None = None
    value: str = ""


def core_grid(cells: Sequence[Cell], label: str) -> str:
    """The picture, to stand inside a page."""
    rows = -(-len(cells) // _COLUMNS)
    box = f"0 0 {_COLUMNS * _WIDE} {max(rows, 1) * _HIGH}"
    return (
        f'<svg class="cores" viewBox="{box}" role="img" aria-label="{html.escape(label)}">'
        f"{''.join(_cell(at, cell) for at, cell in enumerate(cells))}</svg>"
    )


def _cell(at: int, cell: Cell) -> str:
    x, y = at % _COLUMNS * _WIDE, at // _COLUMNS * _HIGH
    value = (
        f'<text class="share" x="{x + 30}" y="{y + 34}" text-anchor="middle">'
        f"{html.escape(cell.value)}</text>"
        if cell.value
        else ""
    )
    return (
        f'<g><title>{html.escape(cell.words)}</title><rect class="core {_shade(cell.share)}" '
        f'x="{num(x + 2)}" y="{num(y + 2)}" width="{_WIDE - 4}" height="{_HIGH - 4}" rx="4"/>'
        f'<text class="id" x="{x + 7}" y="{y + 15}">{cell.number}</text>{value}</g>'
    )


def _shade(share: float | None) -> str:
    if share is None:
        return "off"
    return f"w{min(max(-(-int(1000 * share) * _LEVELS // 1000), 0), _LEVELS)}"
