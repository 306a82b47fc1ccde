"""Fits the model of eager PyTorch and prints its errors; writes target/measured/eager_fit.json.

    python runs/eager.py [--check] [--rows]

Calibration: rows of 910B2 except a left-out quarter of the cann-bench rows, those where the first
byte of sha256 of the row's calls is divisible by 4 (the same shapes are never in both parts). The
committed constants come from the calibration part only. Intervals come from rows left out: of four
folds of the calibration part, and the left-out part. Least absolute deviations of log time; the
search runs over a grid of 60 steps a decade, so its result is the same on every machine. An
operation's constants are pulled towards its family's: PULL per factor e and parameter, in units of
one row's error of factor e. --check compares with the committed file, --rows prints every row.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import mean, median

from npusmith.target.chips import find_chip
from npusmith.timing.eager import FIT, Fit, chip_rates
from npusmith.timing.measured import Measured, is_held_out, measured_rows
from npusmith.timing.support import DISTANCES, FEW, MANY, SURE_ROWS, distance, place_of
from npusmith.timing.work import (
    FAMILY,
    OTHER,
    PARAMETERS,
    Constants,
    Rates,
    Work,
    time_us,
    work_of,
)

Steps = dict[str, int]
STEPS = 60  # of the grid, a decade
PULL = 0.3  # the best of 0.05 to 0.3 in four folds of the calibration part
# Other places to start from: the vector unit limits, rows limit. The formula has a maximum in it.
OTHER_STARTS: tuple[Steps, ...] = (
    {},
    {"tick": 30, "drag": -20},
    {"tick": 70, "drag": -20},
    {"row": 0},
)
MOVES = (60, 20, 6, 2, 1)  # in steps; coarse first
SWEEPS = 12
ONE_ROW_TRIES = 4  # rows of an operation from which alone the others are told
NEAR = 10.0  # times the work of the nearest row
LEAST_REACHED = 8  # errors of a class of distances to have an interval of its own
LEAST_ROWS = 2  # of an operation to have constants of its own
START: dict[str, int] = {"start": 30, "drag": 0, "tick": -60, "row": -180, "share": -15, "skew": 6}
# An empty kernel of all cores takes about 20 us at most; 90 steps are 32 us.
LIMITS: dict[str, tuple[int, int]] = {
    "start": (0, 90), "drag": (-60, 150), "tick": (-240, 300), "row": (-240, 240),
    "share": (-240, 0),
    "skew": (0, 60),
}  # fmt: skip
RATES: dict[str, int] = {"warm": 380, "cold": 371, "window": 498}


@dataclass(frozen=True, slots=True)
class Point:
    """One published time and the work behind it."""

    row: Measured
    works: tuple[Work, ...]
    held_out: bool


Model = Callable[[Work], Constants]


@cache
def value(step: int) -> float:
    """Four digits: what the file holds is what was fitted."""
    return float(f"{10 ** (step / STEPS):.4g}")


def load_points() -> list[Point]:
    rows = [row for row in measured_rows() if row.chip == "910B2"]
    return [Point(r, tuple(map(work_of, r.calls)), is_held_out(r)) for r in rows]


def predict(point: Point, model: Model, rates: Rates) -> float:
    return sum(time_us(work, model(work), rates) for work in point.works)


def error(point: Point, model: Model, rates: Rates) -> float:
    """Log of estimate over measurement."""
    return math.log(predict(point, model, rates) / point.row.us)


# --- the search ----------------------------------------------------------------------------------


def descend(
    start: Steps, limits: dict[str, tuple[int, int]], cost: Callable[[Steps], float]
) -> Steps:
    """Coordinate descent on the grid; a move must gain more than rounding does."""
    best, least = dict(start), cost(start)
    for move in MOVES:
        for _ in range(SWEEPS):
            moved = False
            for name in limits:
                for step in (best[name] - move, best[name] + move):
                    low, high = limits[name]
                    trial = {**best, name: min(high, max(low, step))}
                    found = cost(trial)
                    if found < least - 1e-7:
                        best, least, moved = trial, found, True
            if not moved:
                break
    return best


def constants(steps: Steps) -> Constants:
    return {name: value(steps[name]) for name in PARAMETERS}


@dataclass
class Fitting:
    """The steps so far: of families, of operations and of the rates."""

    points: list[Point]
    rates: Steps
    families: dict[str, Steps]
    keys: dict[str, Steps]

    def model(self, work: Work) -> Constants:
        return constants(self.keys.get(work.key) or self.families[work.family])

    def chip(self) -> Rates:
        return made_rates(self.rates)

    def run(self) -> None:
        for _ in range(2):
            self.fit_families()
            self.fit_rates()
        self.fit_families()
        for _ in range(3):
            self.fit_keys()

    def fit_rates(self) -> None:
        """From elementwise operations only: nothing else of theirs is uncertain."""
        points = [p for p in self.points if {w.family for w in p.works} == {"map"}]
        limits = {"warm": (360, 400), "cold": (360, 390), "window": (480, 510)}

        def cost(steps: Steps) -> float:
            rates = made_rates(steps)
            return per_key(points, [abs(error(p, self.model, rates)) for p in points])

        self.rates = descend(self.rates, limits, cost)

    def fit_families(self) -> None:
        """Operations count the same, however often each was measured."""
        for family in self.families:
            points = [p for p in self.points if family_of(p) == family]
            if points:
                self.families[family] = self._fit(points, family, None)

    def fit_points(self, points: list[Point], family: str) -> Steps:
        """Constants for these rows of single calls, whatever their family is called."""
        kept = self.families
        self.families = {**kept, family: dict(START)}
        found = self._fit(points, family, None)
        self.families = kept
        return found

    def fit_row(self, point: Point, family: str, base: Steps) -> Steps:
        """Constants of an operation that was measured once, pulled towards `base`."""
        kept = self.families, self.keys
        self.families, self.keys = {**self.families, family: base}, {}
        found = self._fit([point], family, point.works[0].key)
        self.families, self.keys = kept
        return found

    def fit_keys(self) -> None:
        counts = defaultdict(list)
        for point in self.points:
            for key in {work.key for work in point.works}:
                counts[key].append(point)
        for key, points in sorted(counts.items()):
            if len(points) >= LEAST_ROWS or len(points[0].works) == 1:
                family = next(w.family for p in points for w in p.works if w.key == key)
                self.keys[key] = self._fit(points, family, key)

    def _fit(self, points: list[Point], family: str, key: str | None) -> Steps:
        base = self.families[family]

        rates = self.chip()
        parts = [self._split(point, family, key, rates) for point in points]

        def cost(steps: Steps) -> float:
            mine = constants(steps)
            errors = [
                abs(math.log((rest + sum(time_us(w, mine, rates) for w in works)) / point.row.us))
                for point, (rest, works) in zip(points, parts, strict=True)
            ]
            if key is None:
                return per_key(points, errors)
            pull = sum(abs(steps[n] - base[n]) for n in PARAMETERS) * math.log(10) / STEPS
            return sum(errors) + PULL * pull

        starts = [{**base, **other} for other in OTHER_STARTS] + [self.keys.get(key or "", base)]
        found = [descend(start, LIMITS, cost) for start in starts]
        return min(found, key=lambda steps: round(cost(steps), 7))

    def _split(
        self, point: Point, family: str, key: str | None, rates: Rates
    ) -> tuple[float, list[Work]]:
        """The time of a row that does not depend on the constants in question, and the works
        that do."""
        mine = [
            work for work in point.works
            if work.key == key or (key is None and family in (work.family, OTHER))
        ]  # fmt: skip
        rest = (time_us(w, self.model(w), rates) for w in point.works if w not in mine)
        return math.fsum(rest), mine


def made_rates(steps: Steps) -> Rates:
    plain = chip_rates(find_chip("910B2"), {"warm": 1.0, "cold": 1.0, "window": 1.0})
    return replace(plain, **{name: value(steps[name]) for name in ("warm", "cold", "window")})


def family_of(point: Point) -> str:
    """The family that a row is evidence for: that of its only call."""
    return point.works[0].family if len({w.family for w in point.works}) == 1 else ""


def per_key(points: list[Point], errors: list[float]) -> float:
    """Mean over operations of the mean over their rows."""
    groups = defaultdict(list)
    for point, size in zip(points, errors, strict=True):
        groups[point.works[-1].key].append(size)
    return math.fsum(math.fsum(g) / len(g) for g in groups.values()) / len(groups)


def fit(points: list[Point]) -> Fitting:
    families = {*FAMILY.values(), OTHER}
    fitting = Fitting(points, dict(RATES), {name: dict(START) for name in sorted(families)}, {})
    fitting.run()
    return fitting


def fit_generic(fitting: Fitting) -> None:
    """Constants for an operation of no family."""
    single = [p for p in fitting.points if len(p.works) == 1]
    fitting.families[OTHER] = fitting.fit_points(single, OTHER)


Reached = tuple[float, float]  # distance from the rows of the fit, error


def from_one_row(points: list[Point], fitting: Fitting) -> list[Reached]:
    """Each operation from one of its rows alone, by the constants of its family without it."""
    found: list[Reached] = []
    single = [p for p in points if len(p.works) == 1]
    for key in sorted({p.works[0].key for p in single}):
        mine = [p for p in single if p.works[0].key == key]
        family = mine[0].works[0].family
        others = [p for p in single if family_of(p) == family and p.works[0].key != key]
        if len(mine) < 2 or not others:
            continue
        known = sorted(mine, key=lambda p: (p.works[0].bytes, p.row.name))
        base = fitting.fit_points(others, family)
        for only in known[:: max(1, len(known) // ONE_ROW_TRIES)]:
            model = partial(same_constants, constants(fitting.fit_row(only, family, base)))
            found += [
                (distance(p.works[0], only.works), error(p, model, fitting.chip()))
                for p in known
                if p is not only
            ]
    return found


def from_many_rows(points: list[Point], errors: dict[str, float]) -> list[Reached]:
    """Rows that were left out, by their distance from those of their operation that were not."""
    found: list[Reached] = []
    for p in points:
        kept = [
            other.works[0]
            for other in points
            if other.works[-1].key == p.works[-1].key
            and not other.held_out
            and len(other.works) == 1
            and (p.held_out or fold_of(other.row) != fold_of(p.row))
        ]
        if len(p.works) == 1 and len(kept) >= SURE_ROWS and p.row.name in errors:
            found.append((distance(p.works[0], kept), errors[p.row.name]))
    return found


def reach_of(found: list[Reached]) -> list[list[float]]:
    """Of each class of distances the interval; no narrower than that of the class before.

    Beyond NEAR times it is all that was seen: the worst cases are what an extrapolation is asked
    about.
    """
    table: list[list[float]] = []
    for place in range(len(DISTANCES)):
        mine = [wrong for reached, wrong in found if place_of(reached) == place]
        low, high = 1.0, 1.0
        if DISTANCES[place] > NEAR and mine:
            low, high = (round(math.exp(-item), 3) for item in (max(mine), min(mine)))
        elif len(mine) >= LEAST_REACHED:
            low, high = quantiles(mine)
        before = table[-1] if table else [0.95, 1.05]
        table.append([min(low, before[0]), max(high, before[1])])
    return table


def folded(points: list[Point]) -> dict[str, float]:
    """By row: its error when its fold of four was left out, of the calibration part."""
    found = {}
    for fold in range(4):
        fitting = fit([p for p in points if fold_of(p.row) != fold])
        mine = [p for p in points if fold_of(p.row) == fold]
        found |= {p.row.name: error(p, fitting.model, fitting.chip()) for p in mine}
    return found


def fold_of(row: Measured) -> int:
    return hashlib.sha256("; ".join(row.text).encode()).digest()[1] % 4


# --- what is printed and written -----------------------------------------------------------------


def summary(errors: list[float]) -> dict[str, float]:
    """Median and mean of |estimate / measured - 1|, and the share within a factor 2."""
    sizes = [abs(math.exp(item) - 1) for item in errors]
    within = mean(abs(item) <= math.log(2) for item in errors)
    return {
        "rows": len(errors),
        "median": round(median(sizes), 4),
        "mean": round(mean(sizes), 4),
        "within_2x": round(within, 4),
    }


def without_operation(points: list[Point], fitting: Fitting) -> dict[str, list[float]]:
    """By family: errors of each operation from the constants of its family fitted without it."""
    found: dict[str, list[float]] = defaultdict(list)
    single = [p for p in points if len(p.works) == 1]
    for op in sorted({p.row.calls[0].op for p in single}):
        mine = [p for p in single if p.row.calls[0].op == op]
        family = mine[0].works[0].family
        others = [p for p in single if family_of(p) == family and p.row.calls[0].op != op]
        if others:
            found[family] += errors_from(mine, others, family, fitting)
    return found


def without_family(points: list[Point], fitting: Fitting) -> list[float]:
    """Errors of each family from generic constants, fitted on all the other ones."""
    found: list[float] = []
    single = [p for p in points if len(p.works) == 1]
    for family in sorted({family_of(p) for p in single}):
        mine = [p for p in single if family_of(p) == family]
        others = [p for p in single if family_of(p) != family]
        found += errors_from(mine, others, OTHER, fitting)
    return found


def errors_from(
    mine: list[Point], others: list[Point], family: str, fitting: Fitting
) -> list[float]:
    model = partial(same_constants, constants(fitting.fit_points(others, family)))
    return [error(p, model, fitting.chip()) for p in mine]


def same_constants(found: Constants, work: Work) -> Constants:
    return found


def quantiles(errors: list[float]) -> list[float]:
    """The 10th and 90th percentile of measured over estimate: what an interval multiplies by."""
    ratios = sorted(math.exp(-item) for item in errors)
    low = ratios[math.floor(0.1 * (len(ratios) - 1))]
    high = ratios[math.ceil(0.9 * (len(ratios) - 1))]
    return [round(min(low, 0.95), 3), round(max(high, 1.05), 3)]


def main(argv: list[str]) -> None:
    points = load_points()
    kept = [p for p in points if not p.held_out]
    fitting = fit(kept)
    errors = {p.row.name: error(p, fitting.model, fitting.chip()) for p in points}
    if "--rows" in argv:
        print_rows(points, errors)
    folds = folded(kept)
    bench = [p.row.name for p in kept if p.row.table == "cann_bench"]
    alone = without_operation(kept, fitting)
    named = [item for items in alone.values() for item in items]
    alone[OTHER] = without_family(kept, fitting)
    parts = {
        "calibration": [errors[p.row.name] for p in kept],
        "calibration, cann-bench": [errors[name] for name in bench],
        "left out": [errors[p.row.name] for p in points if p.held_out],
        "calibration in four folds, cann-bench": [folds[name] for name in bench],
        "without the operation": named,
        "without the family": alone[OTHER],
    }
    for name, items in parts.items():
        print(f"{name:38} {summary(items)}")
    fit_generic(fitting)
    outside = folds | {p.row.name: errors[p.row.name] for p in points if p.held_out}
    found = {FEW: from_one_row(kept, fitting), MANY: from_many_rows(points, outside)}
    for name, items in found.items():
        lines = [line_of(items, place) for place in range(len(DISTANCES))]
        print(f"{name} rows, by distance:", *lines)
    reach = {name: reach_of(items) for name, items in found.items()}
    summaries = {name: summary(items) for name, items in parts.items()}
    text = written(points, outside, fitting, alone, summaries, reach)
    if "--check" in argv:
        print("same as the committed file" if FIT.read_text() == text else "DIFFERS from the file")
        return
    FIT.write_text(text)


def written(
    points: list[Point],
    errors: dict[str, float],  # of rows that were not in the fit
    fitting: Fitting,
    alone: dict[str, list[float]],
    parts: dict[str, dict[str, float]],
    reach: dict[str, list[list[float]]],
) -> str:
    own: dict[str, list[float]] = defaultdict(list)
    for point in points:
        for family in {work.family for work in point.works}:
            own[family].append(errors[point.row.name])
    counts: dict[str, int] = defaultdict(int)
    for point in fitting.points:
        for key in {work.key for work in point.works}:
            counts[key] += 1
    everything = list(errors.values())
    fit_file = Fit(
        rates={name: value(step) for name, step in sorted(fitting.rates.items())},
        families={name: constants(steps) for name, steps in fitting.families.items()},
        operations={name: constants(steps) for name, steps in sorted(fitting.keys.items())},
        rows={key: counts[key] for key in sorted(fitting.keys)},
        spread={
            name: quantiles(items if len(items) >= 8 else everything)
            for name, items in sorted(own.items())
        },
        unknown={
            name: quantiles(items if len(items) >= 8 else alone[OTHER])
            for name, items in sorted(alone.items())
        },
        errors=parts,
        reach=reach,
    )
    return json.dumps(fit_file.model_dump(), indent=1) + "\n"


def line_of(found: list[Reached], place: int) -> str:
    mine = sorted(math.exp(abs(wrong)) for reached, wrong in found if place_of(reached) == place)
    worst = f"median x{median(mine):.2f}, worst x{mine[-1]:.0f}" if mine else "none"
    return f"[up to {DISTANCES[place]:g}: {len(mine)} errors, {worst}]"


def print_rows(points: list[Point], errors: dict[str, float]) -> None:
    for point in points:
        mark = "out" if point.held_out else "   "
        size = math.exp(errors[point.row.name])
        first = point.row.calls[0].text()[:60]
        print(f"{mark} {size:7.2f} {point.row.us:10.2f} {point.works[-1].key:30} {first}")


if __name__ == "__main__":
    main(sys.argv[1:])
