"""The timeline of a kernel as a record keeps it: `draw(spans)` gives an SVG picture, escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npusmith.bench.model import Span
from npusmith.report.svg import line, picture, rect, short, text, ticks
from npusmith.report.text import plain
from npusmith.timing.model import UNITS

_LEFT, _WIDTH, _LANE, _GAP = 96.0, 880.0, 20.0, 4.0
_MOST_ROWS = 24  # lanes; a record has those of two cores
_KINDS = {
    "S": "scalar", "V": "vector", "M": "cube", "MTE1": "move", "MTE2": "load", "MTE3": "store",
    "FIX": "store",
}  # fmt: skip
_WORDS = {
    "scalar": "scalar", "vector": "vector", "cube": "cube", "load": "from global memory",
    "store": "to global memory", "move": "between on-chip memories",
}  # fmt: skip


def draw(spans: Sequence[Span]) -> str:
    """A lane for each pipe of each core; "" when nothing was kept."""
    if not spans:
        return ""
    end = max(span.end for span in spans) or 1.0
    lanes: dict[tuple[int, str], list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.core, _place(span.unit), span.begin)):
        lanes.setdefault((span.core, span.unit), []).append(span)
    parts: list[str] = []
    y, last = 6.0, -1
    for (core, unit), part in list(lanes.items())[:_MOST_ROWS]:
        if core != last:
            parts.append(text(8, y + 13, core_name(core), "head"))
            y, last = y + 20, core
        busy = sum(span.end - span.begin for span in part) / end
        parts += [
            text(8, y + 14, plain(unit)),
            text(_LEFT - 8, y + 14, f"{busy:.0%}", "dim", "end"),
            rect("lane", _LEFT, y, _WIDTH, _LANE),
            *_bars(part, y, end),
        ]
        y += _LANE + _GAP
    for value in ticks(end):
        x = _LEFT + _WIDTH * value / end
        parts.append(line("grid", x, 6, x, y))
        parts.append(text(x, y + 14, f"{short(value)} us", "dim", "middle"))
    parts += _legend({_kind(span.unit) for span in spans}, y + 36)
    label = f"What each pipe of the slowest core does in {short(end)} us, an estimate"
    return picture(_LEFT + _WIDTH + 24, y + 48, label, parts)


def core_name(core: int) -> str:
    """As the profile's pages name cores: AIC for cube cores, AIV for vector cores."""
    return f"{'AIC' if core % 2 else 'AIV'} {core // 2}"


def _bars(part: Sequence[Span], y: float, end: float) -> Iterator[str]:
    for span in part:
        width = max((span.end - span.begin) / end * _WIDTH, 0.4)
        words = f"{span.what} {span.begin:.2f} to {span.end:.2f} us".strip()
        x = _LEFT + span.begin / end * _WIDTH
        yield rect(f"t-{_kind(span.unit)}", x, y, width, _LANE, plain(words))


def _legend(kinds: set[str], y: float) -> Iterator[str]:
    x = 8.0
    for kind in (kind for kind in _WORDS if kind in kinds):
        yield rect(f"t-{kind}", x, y - 6, 12, 12)
        yield text(x + 17, y + 4, _WORDS[kind], "dim")
        x += 34 + 6.2 * len(_WORDS[kind])


def _kind(unit: str) -> str:
    return _KINDS.get(unit, "scalar")


def _place(unit: str) -> int:
    return UNITS.index(unit) if unit in UNITS else len(UNITS)
