"""How much a candidate is worth: levels that it reached, and its time against a reference's."""

from __future__ import annotations

import math
from enum import IntEnum


class Level(IntEnum):
    """How far a candidate got."""

    NOTHING = 0  # no code, or none that can be read
    PARSED = 1
    LEGAL = 2  # the checker has nothing against it; Ascend C: it compiles
    RAN = 3  # on every set of inputs, to its end and without breaking a rule
    RIGHT = 4  # on every set


WORTH = {
    Level.NOTHING: 0.0, Level.PARSED: 0.05, Level.LEGAL: 0.1, Level.RAN: 0.2, Level.RIGHT: 1.0,
}  # fmt: skip
SHARE = 0.2  # of the sets that are right, of a candidate that ran and is wrong
SPEED = 0.5  # for a right one that takes half the reference's time or less; as much less for twice


def score(level: Level, share: float, us: float | None, reference_us: float | None) -> float:
    """From 0 to 1.5. Times are in microseconds; without one of them speed counts nothing."""
    worth = WORTH[level]
    if level is Level.RAN:
        return worth + SHARE * share
    if level is not Level.RIGHT or us is None or reference_us is None:
        return worth
    ratio = reference_us / max(us, 1e-9)
    return worth + SPEED * min(1.0, max(-1.0, math.log2(max(ratio, 1e-9))))
