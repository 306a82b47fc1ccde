"""Small pieces of the SVG pictures. Colours are classes of picture.css, never attributes."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from pathlib import Path

STYLE = Path(__file__).with_name("picture.css")


def picture(width: float, height: float, label: str, parts: Iterable[str]) -> str:
    """A picture to stand inside the report, whose style sheet colours it."""
    return (
        f'<svg class="picture" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {num(width)} '
        f'{num(height)}" role="img" aria-label="{html.escape(label)}">\n'
        f"<title>{html.escape(label)}</title>\n{chr(10).join(parts)}\n</svg>\n"
    )


def alone(inner: str) -> str:
    """The same picture as a file of its own: with its style sheet and a background."""
    head, mark, rest = inner.partition("</title>\n")
    style = STYLE.read_text(encoding="utf-8")
    page = '<rect class="page" width="100%" height="100%"/>\n'
    return f"{head}{mark}<style>\n{style}</style>\n{page}{rest}"


def rect(css: str, x: float, y: float, width: float, height: float, title: str = "") -> str:
    head = f'<rect class="{css}" x="{num(x)}" y="{num(y)}" width="{num(width)}" '
    box = f'{head}height="{num(height)}"'
    return f"{box}><title>{html.escape(title)}</title></rect>" if title else f"{box}/>"


def line(css: str, x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}"'
    return f'<line class="{css}" {ends}/>'


def text(x: float, y: float, words: str, css: str = "", anchor: str = "start") -> str:
    name = f' class="{css}"' if css else ""
    place = f'x="{num(x)}" y="{num(y)}" text-anchor="{anchor}"'
    return f"<text{name} {place}>{html.escape(words)}</text>"


def num(value: float) -> str:
    """At most two digits behind the point: a picture of 100,000 steps stays small."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def ticks(top: float, most: int = 8) -> list[float]:
    """Round values from 0 to at most `top`: steps of 1, 2 or 5 times a power of ten."""
    if not 0 < top < math.inf:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(top / most))
    step = next(power * unit for unit in (1, 2, 5, 10) if top / (power * unit) <= most)
    return [step * index for index in range(int(top / step + 1e-9) + 1)]


def short(value: float) -> str:
    """Three digits of a figure, as a person writes it."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
