"""What an eager estimate rests on: how many published rows, and how far it is from them.

A call's distance from a row is the largest factor between their amounts of work (bytes, elements,
rows, products); of several rows the nearest counts. `runs/eager.py` measures how errors grow with
it, on rows that were left out, and keeps that in eager_fit.json.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from npusmith.timing.measured import is_held_out, measured_rows
from npusmith.timing.work import Work, work_of

FITTED_ON = "910B2"
SURE_ROWS = 3  # with fewer, an estimate is marked and stays out of headline figures
FEW, MANY = "few", "many"
DISTANCES = (2.0, 10.0, 100.0, float("inf"))  # upper ends of the classes of distances
Reach = Mapping[str, list[list[float]]]  # by FEW or MANY: of each class of distances, low and high


def distance(work: Work, others: Iterable[Work]) -> float:
    """The factor to the nearest of others; infinite when there is none."""
    return min((_between(work, other) for other in others), default=float("inf"))


def nearest(work: Work) -> float:
    """The distance from the published rows that the fit of this call's constants has seen."""
    places = _places()
    return distance(work, places.get(work.key) or places.get(work.family, ()))


def place_of(reached: float) -> int:
    """The class of a distance: its place in DISTANCES."""
    return next(i for i, most in enumerate(DISTANCES) if reached <= most)


def widened(
    interval: tuple[float, float], reach: Reach, rows: int, reached: float
) -> tuple[float, float]:
    """An interval of factors, no narrower than what was seen at this distance."""
    seen = reach.get(MANY if rows >= SURE_ROWS else FEW)
    if not seen:
        return interval
    low, high = seen[min(place_of(reached), len(seen) - 1)]
    return min(interval[0], low), max(interval[1], high)


def _between(one: Work, other: Work) -> float:
    pairs = (
        (one.bytes, other.bytes),
        (one.elements, other.elements),
        (one.rows, other.rows),
        (one.products, other.products),
    )
    return max((max(a / b, b / a) for a, b in pairs if a > 0 and b > 0), default=1.0)


@cache
def _places() -> Mapping[str, tuple[Work, ...]]:
    """Work of the rows of the calibration part, by operation and by family."""
    found: dict[str, list[Work]] = defaultdict(list)
    for row in measured_rows():
        if row.chip != FITTED_ON or is_held_out(row):
            continue
        for work in map(work_of, row.calls):
            found[work.key].append(work)
            if work.family != work.key:
                found[work.family].append(work)
    return {name: tuple(works) for name, works in found.items()}
