"""Fitting: a coordinate search over positive constants, on the logarithm of the ratio of times.

No gradient, no randomness: the same rows and the same start give the same constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_CAP = 0.7  # |ln| of a ratio beyond which a row counts no more: a factor of two
_STEPS = (0.4, 0.2, 0.1, 0.05, 0.02)  # in ln(constant), one pass over all constants for each


@dataclass(frozen=True, slots=True)
class Fit:
    """What a search ended with."""

    values: dict[str, float]
    loss: float
    runs: int  # evaluations


def row_loss(predicted: float, published: float) -> float:
    """How far off one row is; outliers pull no more than a factor of two does."""
    if predicted <= 0 or published <= 0:
        return _CAP
    return min(_CAP, abs(math.log(predicted / published)))


def search(
    start: Mapping[str, float],
    loss: Callable[[Mapping[str, float]], float],
    most_runs: int = 200,
    watch: Callable[[str], None] | None = None,
) -> Fit:
    """The constants near `start` with the least loss: passes over them with ever shorter steps.

    A constant that a step helped goes on in that direction as long as it helps.
    """
    best = dict(start)
    least = loss(best)
    runs = 1
    for step in _STEPS:
        for name in best:
            for sign in (1, -1):
                moved, least, more = _walk(best, name, sign * step, least, loss, most_runs - runs)
                runs += more
                if moved == best[name]:
                    continue
                best[name] = moved
                if watch:
                    watch(f"{name} {moved:.4g}, loss {least:.4f}")
                break
    return Fit(best, least, runs)


def _walk(
    best: Mapping[str, float],
    name: str,
    step: float,
    least: float,
    loss: Callable[[Mapping[str, float]], float],
    most: int,
) -> tuple[float, float, int]:
    """Go on in one direction as long as it helps: value, loss and evaluations."""
    value, runs = best[name], 0
    while runs < most:
        tried = value * math.exp(step)
        found = loss({**best, name: tried})
        runs += 1
        if found >= least - 1e-6:
            break
        value, least = tried, found
    return value, least, runs


def median(values: Sequence[float]) -> float:
    """The middle one; nan of nothing."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def mean(values: Sequence[float]) -> float:
    """nan of nothing."""
    return sum(values) / len(values) if values else math.nan


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Rank correlation; equal values share their rank. nan when one side does not vary."""
    if len(left) < 2:
        return math.nan
    x, y = _ranks(left), _ranks(right)
    middle = (len(x) + 1) / 2
    over = sum((a - middle) * (b - middle) for a, b in zip(x, y, strict=True))
    under = math.sqrt(sum((a - middle) ** 2 for a in x) * sum((b - middle) ** 2 for b in y))
    return over / under if under else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    below = [sum(other < value for other in values) for value in values]
    same = [sum(other == value for other in values) for value in values]
    return [a + (b + 1) / 2 for a, b in zip(below, same, strict=True)]
