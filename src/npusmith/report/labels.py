"""Puts the labels of a picture where they cover neither each other nor what is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from npusmith.report.svg import text

_CHARACTER, _ASCENT, _DESCENT = 6.6, 11.0, 4.0  # of the picture's text of 12 pixels
_STEP = 4.0  # pixels between two looks at a line
_OUTSIDE, _COVERED, _CROSSED = 100.0, 10.0, 1.0  # how bad it is, each time


@dataclass(frozen=True, slots=True)
class Spot:
    """A place of a label: its base line's `x` and `y`, and the SVG anchor."""

    x: float
    y: float
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of the picture."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(slots=True)
class Labels:
    """The labels of one picture, whose frame is given; what is drawn is said first."""

    left: float
    top: float
    right: float
    bottom: float
    _boxes: list[Box] = field(default_factory=list)
    _dots: list[tuple[float, float]] = field(default_factory=list)

    def cover(self, left: float, top: float, right: float, bottom: float) -> None:
        """Something stands here that a label must not hide."""
        self._boxes.append(Box(left, top, right, bottom))

    def cross(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A line runs here, which a label had better leave free."""
        count = max(int(max(abs(x2 - x1), abs(y2 - y1)) / _STEP), 1)
        for at in range(count + 1):
            part = at / count
            self._dots.append((x1 + part * (x2 - x1), y1 + part * (y2 - y1)))

    def put(self, words: str, spots: Iterable[Spot], css: str = "") -> str:
        """The label at the best of these places; the first of equally good ones."""
        best = min(spots, key=lambda spot: self._cost(_box(words, spot)))
        self._boxes.append(_box(words, best))
        return text(best.x, best.y, words, css, best.anchor)

    def _cost(self, box: Box) -> float:
        frame = (box.left < self.left, box.right > self.right, box.top < self.top,
                 box.bottom > self.bottom)  # fmt: skip
        covered = sum(box.meets(other) for other in self._boxes)
        crossed = any(
            box.left <= x <= box.right and box.top <= y <= box.bottom for x, y in self._dots
        )
        return _OUTSIDE * sum(frame) + _COVERED * covered + _CROSSED * crossed


def _box(words: str, spot: Spot) -> Box:
    wide = _CHARACTER * len(words)
    left = spot.x - {"start": 0.0, "middle": wide / 2, "end": wide}[spot.anchor]
    return Box(left, spot.y - _ASCENT, left + wide, spot.y + _DESCENT)
