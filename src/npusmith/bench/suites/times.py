"""Adds estimated times to the record of a right candidate: `add_times(record, ...)`.

Nothing here changes a verdict: the candidate has been judged, and is run once more to be timed.
What cannot be timed or estimated stays None, and `time_note` says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from npusmith.bench.model import Candidate, Limits, Record
from npusmith.bench.suites.bounds import Bounds, find_bounds
from npusmith.bench.suites.orders import Timed
from npusmith.bench.suites.watch import Ended
from npusmith.errors import NpusmithError
from npusmith.timing.roof import beaten

UNTIMED = "not measured: "


def wants_time(record: Record, limits: Limits) -> bool:
    """Only what is right and computed in its kernel has a time worth knowing."""
    return limits.timing and bool(record.official) and not record.cheating


def add_times(
    record: Record,
    limits: Limits,
    folder: Path,
    *,
    task: Path | None,
    inputs: Sequence[tuple[int, ...]] | None,
    start: Callable[[Path], Ended],
) -> None:
    """Fill in time, eager, roof and timeline; `start` runs the candidate in the new `folder`.

    `task`: its file in KernelBench's format. `inputs`: the shapes of those that are timed, where
    they are known; a graph of other shapes says nothing of them.
    """
    clock = time.monotonic()
    notes = []
    none = Bounds(why="no task was captured")
    bounds = none if task is None else find_bounds(task, limits.chip)
    why = bounds.fit(inputs) if inputs is not None else bounds.why
    if why:
        notes.append(f"no eager time: {why}")
    else:
        record.eager_us, record.roof_us = bounds.eager_us, bounds.roof_us
        record.eager_low_us, record.eager_high_us = bounds.eager_low_us, bounds.eager_high_us
        record.eager_basis, record.eager_rows = bounds.eager_basis, bounds.eager_rows
        record.eager_weak = bounds.eager_weak
        if record.provenance.get("mode") == "training":
            notes.append(bounds.note)
    folder.mkdir()
    try:
        notes.insert(0, _take(record, start(folder)))
    except NpusmithError as error:
        notes.insert(0, f"{UNTIMED}{error.code}: {error.message}")
    said = beaten(bounds.least, record.time_us or 0.0) if bounds.least and not why else ""
    if said:
        record.findings["roof-beaten"] = record.findings.get("roof-beaten", 0) + 1
        notes.append(f"beats the roof: {said}")
    record.time_note = "; ".join(filter(None, notes))[:500]
    record.seconds["time"] = round(time.monotonic() - clock, 3)


def add_own_times(record: Record, candidate: Candidate, task: Path, limits: Limits) -> None:
    """Of a right candidate at the shapes of `task`, the file before its shapes were reduced.

    Nothing where the writer has no estimate: only tile programs of the compiler have one.
    """
    if candidate.own_us is None or not wants_time(record, limits):
        return
    bounds = find_bounds(task, limits.chip, shapes_only=True)
    if not bounds.why:
        record.own_us = round(candidate.own_us, 3)
        record.own_eager_us, record.own_eager_weak = bounds.eager_us, bounds.eager_weak
        record.own_eager_low_us, record.own_eager_high_us = (
            bounds.eager_low_us, bounds.eager_high_us,
        )  # fmt: skip


def _take(record: Record, ended: Ended) -> str:
    """The reply's figures; what is to be said of them."""
    if ended.error:
        return UNTIMED + ended.error
    try:
        reply = Timed.model_validate(ended.reply)
    except ValidationError as error:
        return f"{UNTIMED}the timing's reply cannot be read: {type(error).__name__}"
    if reply.error:
        return f"{UNTIMED}{reply.error}"
    record.timeline, record.time_us = reply.spans, reply.time_us
    record.provenance |= {
        name: str(getattr(reply, name)) for name in ("cores", "read_bytes", "written_bytes")
    }
    return reply.note
