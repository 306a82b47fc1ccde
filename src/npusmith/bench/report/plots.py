"""Distributions as plain numbers for the template: bars and a curve. No markup here."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640.0, 200.0  # of a plot's picture, without its labels
_SPEEDS = (0.125, 0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0, 8.0)
_SECONDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a histogram: place and size in the picture, and what it stands for."""

    x: float
    y: float
    width: float
    height: float
    label: str
    count: int
    good: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """fast_p over p: points of a polyline, marks on the axis, and where p is 1."""

    points: str
    marks: tuple[tuple[float, str], ...]
    one: float


def histogram(values: Iterable[float], edges: Sequence[float], unit: str) -> tuple[Bar, ...]:
    """How many values lie below, between and above the edges; an edge belongs to the right."""
    counts = [0] * (len(edges) + 1)
    for value in values:
        counts[bisect.bisect_right(edges, value)] += 1
    names = [f"< {edges[0]:g}{unit}", *(f"{edge:g}{unit}" for edge in edges[:-1])]
    names.append(f">= {edges[-1]:g}{unit}")
    good = [False, *(edge >= 1 for edge in edges)]
    return bars(list(zip(names, counts, good, strict=True)))


def speed_bars(values: Iterable[float]) -> tuple[Bar, ...]:
    return histogram(values, _SPEEDS, "x")


def time_bars(values: Iterable[float]) -> tuple[Bar, ...]:
    """Wall time of units."""
    return tuple(
        Bar(bar.x, bar.y, bar.width, bar.height, bar.label, bar.count)
        for bar in histogram(values, _SECONDS, " s")
    )


def bars(rows: Sequence[tuple[str, int, bool]]) -> tuple[Bar, ...]:
    """(label, count, good) side by side, the highest as high as the picture."""
    top = max([count for _, count, _ in rows], default=0) or 1
    step = WIDTH / max(len(rows), 1)
    return tuple(
        Bar(
            place * step + 3, HEIGHT - HEIGHT * count / top, step - 6, HEIGHT * count / top,
            label, count, good,
        )
        for place, (label, count, good) in enumerate(rows)
    )  # fmt: skip


def speed_curve(speedups: Sequence[float], tasks: int) -> Curve | None:
    """The share of tasks whose best correct kernel is faster than p, for p from 1/8 to 8."""
    if not speedups or not tasks:
        return None
    ordered = sorted(speedups)
    points: list[tuple[float, float]] = []
    for speed in [0.125, *(s for s in ordered if 0.125 < s < 8), 8.0]:
        before = len(ordered) - bisect.bisect_left(ordered, speed)
        after = len(ordered) - bisect.bisect_right(ordered, speed)
        points += [(_across(speed), before / tasks), (_across(speed), after / tasks)]
    shown = " ".join(f"{x:.1f},{HEIGHT * (1 - y):.1f}" for x, y in points)
    marks = tuple((_across(2.0**power), f"{2.0**power:g}") for power in range(-3, 4))
    return Curve(shown, marks, _across(1.0))


def _across(speed: float) -> float:
    return WIDTH * (math.log2(speed) + 3) / 6
