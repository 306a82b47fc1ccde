"""From the logs of a run to its times, and to the rung "timed on the twin"."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from npusmith.target.chips import Chip
from npusmith.task.verdict import Rung, Verdict
from npusmith.timing.model import Timing
from npusmith.timing.simulate import simulate
from npusmith.twin.toolchain import find_toolchain

_HINGED = 300_000  # steps up to which the dozen runs more for the hinges are quick


def time_logs(
    logs: Sequence[Path], chip: Chip, events: Path | None = None, most_events: int = 0
) -> list[Timing]:
    """The timing of each launch; `events` gets those of the longest, and only it has hinges."""
    chain = find_toolchain(chip)
    timings = [simulate(log, chain, chip) for log in logs]
    if events is not None and timings:
        at = max(range(len(timings)), key=lambda index: timings[index].cycles)
        few = timings[at].steps <= _HINGED
        timings[at] = simulate(
            logs[at], chain, chip, events=events, most_events=most_events, hinges=few
        )
    return timings


def give_rung(verdict: Verdict, timings: Sequence[Timing], left_us: float = 0.0) -> None:
    """Notes the times. They count for a kernel that is right and came to its end on every core.

    `left_us`: what PyTorch takes between the launches.
    """
    if not timings:
        return
    verdict.task_us = round(sum(item.task_us for item in timings) + left_us, 3)
    verdict.kernel_us = round(sum(item.kernel_us for item in timings), 3)
    if verdict.rung is Rung.RACE_FREE and all(item.finished for item in timings):
        verdict.rung = Rung.TIMED
