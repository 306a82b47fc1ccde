"""The watched process that times a candidate: one run on the first trial, then the timing model.

The kernel has been judged by then; this run's values are not looked at. It leaves a reply with
`time_us`, notes, and the spans of the slowest cores for the timeline; or an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from npusmith.bench.model import Span
from npusmith.bench.suites.judged import record_first
from npusmith.bench.suites.orders import Timed, tell
from npusmith.bench.suites.watch import leave_reply, read_orders
from npusmith.errors import NpusmithError, TwinError
from npusmith.target.chips import Chip, find_chip
from npusmith.task.recording import MOST_LAUNCHES
from npusmith.timing.model import UNITS, CoreTime, Timing
from npusmith.timing.simulate import simulate
from npusmith.timing.trace import Event, read_events
from npusmith.twin.toolchain import find_toolchain

_EVENTS = 100_000  # of the launch that is drawn
_SPANS = 240  # of a record
_PIXELS = 800  # a span is at least as long as one of so many parts of the time
_JOINS = 6  # times that the parts are made coarser


def main() -> None:
    orders = read_orders()
    folder = Path(orders.folder)
    try:
        reply = weigh(record_first(orders, folder), find_chip(orders.chip), folder)
    except NpusmithError as error:
        reply = Timed(error=tell(error))
    leave_reply(folder, reply)


def weigh(logs: list[Path], chip: Chip, folder: Path) -> Timed:
    """Time and timeline of the launches whose logs these are."""
    if not logs:
        raise TwinError("timing-log", "the run left no log to time")
    if len(logs) >= MOST_LAUNCHES:
        raise TwinError("timing-log", f"more than {MOST_LAUNCHES - 1} launches: not all have logs")
    chain = find_toolchain(chip)
    timings = [
        simulate(log, chain, chip, events=folder / f"events{at}", most_events=_EVENTS)
        for at, log in enumerate(logs)
    ]
    main = max(range(len(timings)), key=lambda at: timings[at].cycles)
    stuck = sum(not timing.finished for timing in timings)
    if stuck:
        raise TwinError("timing-log", f"{stuck} of {len(timings)} launches did not come to an end")
    return Timed(
        time_us=round(sum(timing.task_us for timing in timings), 3),
        cores=max(sum(bool(core.units) for core in timing.cores) for timing in timings),
        read_bytes=moved(timings, "gm_"),
        written_bytes=moved(timings, "_gm"),
        note=_note(timings),
        spans=spans(read_events(folder / f"events{main}"), timings[main]),
    )


def moved(timings: Sequence[Timing], end: str) -> int:
    """Bytes of all copies whose path's name has this end: "gm_" leads out of GM, "_gm" into it.

    0 of a sample, which counts what was recorded alone.
    """
    if any(timing.sampled for timing in timings):
        return 0
    rows = (row for timing in timings for row in timing.paths.items())
    return sum(path.bytes for name, path in rows if name.startswith(end) or name.endswith(end))


def _note(timings: list[Timing]) -> str:
    """What a reader must know of these times; "" when there is nothing."""
    parts = [f"{len(timings)} launches"] if len(timings) > 1 else []
    sampled = [timing for timing in timings if timing.sampled]
    if sampled:
        worst = max(timing.sample_error for timing in sampled)
        parts.append(f"extrapolated from a sample of the steps, within about {worst:.1%}")
    return "; ".join(parts)


# ------------------------------------------------------------------------------------------ spans


def spans(events: Iterable[Event], timing: Timing) -> list[Span]:
    """The work of the slowest core of each kind, in at most a few hundred pieces."""
    cores = {core.number for core in slowest(timing)}
    rows = [event for event in events if event.core in cores]
    least = timing.cycles / _PIXELS
    joined = _join(rows, least)
    for _ in range(_JOINS):
        if len(joined) <= _SPANS:
            break
        least *= 2
        joined = _join(rows, least)
    clock = timing.clock_mhz
    return [
        Span(
            core=event.core,
            unit=UNITS[event.unit],
            begin=round(event.start / clock, 3),
            end=round(event.end / clock, 3),
            what=_word(event, timing),
        )
        for event in islice(joined, _SPANS)
    ]


def slowest(timing: Timing) -> list[CoreTime]:
    """The core of each kind that worked longest."""
    found = []
    for cube in (True, False):
        cores = [core for core in timing.cores if core.cube is cube and core.units]
        if cores:
            found.append(max(cores, key=lambda core: (core.end - core.begin, -core.number)))
    return found


def _join(events: list[Event], least: float) -> list[Event]:
    """Neighbours on one unit with less than `least` cycles between them become one."""
    last: dict[tuple[int, int], int] = {}
    joined: list[Event] = []
    for event in sorted(events, key=lambda event: (event.start, event.core, event.unit)):
        lane = event.core, event.unit
        before = joined[last[lane]] if lane in last else None
        if before is not None and event.start - before.end < least:
            what = before.what if before.what == event.what else -1
            joined[last[lane]] = Event(
                event.core, event.unit, before.start, max(before.end, event.end), what, -1, -1, 0.0
            )
        else:
            last[lane] = len(joined)
            joined.append(event)
    return joined


def _word(event: Event, timing: Timing) -> str:
    return timing.names[event.what] if 0 <= event.what < len(timing.names) else ""
