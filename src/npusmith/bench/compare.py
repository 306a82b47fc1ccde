"""Two runs side by side, over the tasks that both have a verdict on.

Differences are paired: each task against itself, and the interval is a bootstrap over tasks. What
makes two runs incomparable (another suite, limits, judge) is said first.
"""

from __future__ import annotations

import math

import numpy as np
from pydantic import BaseModel, ConfigDict

from npusmith.bench.archive import Run
from npusmith.bench.metrics import EVENTS, Task, place_of

_COMPARED = ("compiled", "official", "strict", "precise", "correct", "trusted")
_RESAMPLES = 2000
_SEED = 20_240_301
_DIFFER = ("suite", "options", "limits", "judge", "trials", "samples")


class Difference(BaseModel):
    """One figure of both runs: shares of samples, averaged over the common tasks."""

    model_config = ConfigDict(extra="forbid")

    name: str
    n: int  # common tasks that it was measured for in both
    first: float | None
    second: float | None
    change: float | None  # second - first
    low: float | None
    high: float | None  # of the change, 95 %
    gained: list[str]  # tasks where only the second run has it
    lost: list[str]  # ... only the first


class Speed(BaseModel):
    """How the best correct kernels of both runs compare."""

    model_config = ConfigDict(extra="forbid")

    n: int  # tasks that both solve, with times
    ratio: float | None  # geometric mean of first time / second time: above 1, the second is faster
    low: float | None
    high: float | None


class Comparison(BaseModel):
    """What `report --compare` shows."""

    model_config = ConfigDict(extra="forbid")

    first: dict[str, str]
    second: dict[str, str]
    tasks: int  # common ones
    only_first: int
    only_second: int
    warnings: list[str]
    differences: list[Difference]
    speed: Speed


def compare(first: Run, second: Run) -> Comparison:
    """The second run against the first."""
    ours, theirs = first.tasks(), second.tasks()
    common = sorted(set(ours) & set(theirs))
    return Comparison(
        first=_name(first),
        second=_name(second),
        tasks=len(common),
        only_first=len(set(ours) - set(theirs)),
        only_second=len(set(theirs) - set(ours)),
        warnings=_warnings(first, second),
        differences=[_difference(event, common, ours, theirs) for event in _COMPARED],
        speed=_speed(common, ours, theirs),
    )


def _name(run: Run) -> dict[str, str]:
    return {"folder": str(run.folder), "suite": run.plan.suite, "writer": run.plan.writer_name}


def _warnings(first: Run, second: Run) -> list[str]:
    ours, theirs = (run.plan.model_dump(mode="json") for run in (first, second))
    found = [
        f"the runs differ in {name}: {ours[name]} and {theirs[name]}"[:300]
        for name in _DIFFER
        if ours[name] != theirs[name]
    ]
    digests = {item.name: item.digest for item in first.items()}
    changed = [i.name for i in second.items() if digests.get(i.name, i.digest) != i.digest]
    if changed:
        found.append(f"{len(changed)} tasks are not the same, {changed[0]} for one")
    for run in (first, second):
        if left := run.store.counts()[1]:
            found.append(f"{run.folder} is not finished: {left} units are left")
    return found


def _difference(
    event: str, common: list[str], ours: dict[str, Task], theirs: dict[str, Task]
) -> Difference:
    assert event in EVENTS
    pairs = {name: (_share(ours[name], event), _share(theirs[name], event)) for name in common}
    known = {name: (a, b) for name, (a, b) in pairs.items() if a is not None and b is not None}
    values = np.array(list(known.values()), dtype=np.float64).reshape(-1, 2)
    low, high = _interval(values[:, 1] - values[:, 0])
    return Difference(
        name=event,
        n=len(known),
        first=float(values[:, 0].mean()) if known else None,
        second=float(values[:, 1].mean()) if known else None,
        change=float((values[:, 1] - values[:, 0]).mean()) if known else None,
        low=low,
        high=high,
        gained=[name for name, (a, b) in known.items() if a == 0 < b],
        lost=[name for name, (a, b) in known.items() if b == 0 < a],
    )


def _share(task: Task, event: str) -> float | None:
    known = task.known[place_of(event)]
    return task.seen[place_of(event)] / known if known else None


def _speed(common: list[str], ours: dict[str, Task], theirs: dict[str, Task]) -> Speed:
    """By best speedup, so that another eager estimate would show; equal suites have equal ones."""
    logs = np.array(
        [
            math.log(max(theirs[name].speedups) / max(ours[name].speedups))
            for name in common
            if ours[name].speedups and theirs[name].speedups
        ]
    )
    low, high = _interval(logs)
    return Speed(
        n=len(logs),
        ratio=math.exp(logs.mean()) if len(logs) else None,
        low=None if low is None else math.exp(low),
        high=None if high is None else math.exp(high),
    )


def _interval(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> tuple[float | None, float | None]:
    """2.5 and 97.5 % of the resampled mean; equal values are drawn as one."""
    if len(values) == 0:
        return None, None
    kinds, counts = np.unique(values, return_counts=True)
    random = np.random.default_rng(_SEED)
    drawn = random.multinomial(len(values), counts / len(values), size=_RESAMPLES)
    means = drawn @ kinds / len(values)
    return float(np.percentile(means, 2.5)), float(np.percentile(means, 97.5))
