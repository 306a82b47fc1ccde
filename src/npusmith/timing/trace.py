"""A Chrome / Perfetto trace of a launch: one process per core, one thread per pipe.

An arrow leads to a step that waited for another pipe of its core, from the step that it waited for:
from a flag that is set to the wait for it. A counter of each core says how much of UB is taken.

`read_events(file)` reads the timer's lines one by one; `write_trace(...)` streams them into a JSON
file of the trace-event format, so that neither is ever in memory as a whole. Times are microseconds
from the start of the kernel on the chip's clock: estimates, as everything else of the timer.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from npusmith.timing.bottleneck import REASONS
from npusmith.timing.model import UNITS, Timing

MOST_EVENTS = 200_000  # about 40 MB of text; ui.perfetto.dev and chrome://tracing both open that
_RECENT = 64  # steps of a pipe among which the cause of a wait is looked for
_SAME = 1.0  # cycles: rounding of the timer's lines
_HOLDS = ("init", "alloc", "free")  # steps of the scalar unit whose `bytes` are those of UB taken


@dataclass(frozen=True, slots=True)
class Event:
    """One step on one unit; times in cycles, `what` and `place` are indices into Timing's."""

    core: int
    unit: int
    start: float
    end: float
    what: int
    place: int
    reason: int  # index of REASONS; anything else: it did not wait
    wait: float  # cycles that the unit stood still before it
    bytes: int = 0  # of a transfer; of UB that buffers take after it, for a step of a buffer


@dataclass(frozen=True, slots=True)
class Written:
    """What a trace file holds."""

    path: Path
    events: int
    dropped: int

    @property
    def note(self) -> str:
        """The cap in words; empty when nothing was left out."""
        if not self.dropped:
            return ""
        return (
            f"the trace holds the first {self.events:,} of {self.events + self.dropped:,} events; "
            "a larger --trace-events holds more"
        )


def read_events(path: Path) -> Iterator[Event]:
    """The events of a file as the timer wrote it; a line cut short at the end is left out."""
    with path.open(encoding="ascii", errors="replace") as file:
        for line in file:
            event = _event(line.split())
            if event is not None:
                yield event


def _event(words: list[str]) -> Event | None:
    if len(words) < 8:
        return None
    core, unit, start, end, what, place, reason, wait, *more = words
    with suppress(ValueError):
        event = Event(
            int(core), int(unit), float(start), float(end), int(what), int(place), int(reason),
            float(wait), int(more[0]) if more else 0,
        )  # fmt: skip
        if 0 <= event.unit < len(UNITS) and 0 <= event.start <= event.end < float("inf"):
            return event
    return None


def write_trace(
    events: Iterable[Event], timing: Timing, path: Path, most: int = MOST_EVENTS
) -> Written:
    """Writes the trace; events past `most` are counted, not written, and the file says so."""
    written, dropped = 0, timing.events_dropped
    arrows = _Arrows(timing)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ns",\n"traceEvents":[\n')
        file.write(",\n".join(_json(row) for row in _names(timing)))
        for event in events:
            if written >= most:
                dropped += 1
                continue
            rows = (_complete(event, timing), *_counter(event, timing), *arrows.to(event))
            file.write("".join(",\n" + _json(row) for row in rows))
            written += 1
        result = Written(path, written, dropped)
        _close(file, timing, result)
    return result


def _names(timing: Timing) -> Iterator[dict[str, Any]]:
    """Metadata events: what the tracks are called and how they are sorted."""
    for core in timing.cores:
        kind = "AIC" if core.cube else "AIV"
        title = f"{kind} {core.number // 2}"
        yield _meta("process_name", core.number, 0, {"name": title})
        yield _meta("process_sort_index", core.number, 0, {"sort_index": core.number})
        for index, unit in enumerate(UNITS):
            if unit in core.units:
                yield _meta("thread_name", core.number, index, {"name": unit})
                yield _meta("thread_sort_index", core.number, index, {"sort_index": index})


def _meta(name: str, process: int, thread: int, args: dict[str, object]) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": process, "tid": thread, "args": args}


class Causes:
    """Finds what each step waited for among the last steps of the pipe that it names."""

    def __init__(self) -> None:
        self._recent: dict[tuple[int, int], deque[Event]] = {}

    def of(self, event: Event) -> Event | None:
        """The step that had to be over; None where it waited for no other pipe of its core."""
        key = (event.core, event.unit)
        self._recent.setdefault(key, deque(maxlen=_RECENT)).append(event)
        if event.wait <= 0 or not 0 <= event.reason < len(UNITS) or event.reason == event.unit:
            return None
        before = self._recent.get((event.core, event.reason), ())
        ended = (item for item in before if item.end <= event.start + _SAME)
        return max(ended, key=lambda item: item.end, default=None)


class _Arrows:
    """The arrows of a trace, from a step to the one that waited for it."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._causes = Causes()
        self._count = 0

    def to(self, event: Event) -> Iterator[dict[str, Any]]:
        """The two ends of the arrow to this step; nothing when it waited for no other pipe."""
        cause = self._causes.of(event)
        if cause is None:
            return
        self._count += 1
        # a point inside of the slice, or the arrow would begin at whatever follows it
        start = cause.start + 0.999 * (cause.end - cause.start)
        yield self._end("s", cause, start)
        yield {**self._end("f", event, event.start), "bp": "e"}

    def _end(self, phase: str, event: Event, cycles: float) -> dict[str, Any]:
        return {
            "name": "wait",
            "cat": "wait",
            "ph": phase,
            "id": self._count,
            "ts": _us(cycles, self._timing),
            "pid": event.core,
            "tid": event.unit,
        }


def _counter(event: Event, timing: Timing) -> Iterator[dict[str, Any]]:
    """How much of UB buffers take from here on, where a buffer is made, taken or given back."""
    if UNITS[event.unit] == "S" and _at(timing.names, event.what, "") in _HOLDS:
        yield {
            "name": "UB taken",
            "ph": "C",
            "ts": _us(event.end, timing),
            "pid": event.core,
            "tid": 0,
            "args": {"bytes": event.bytes},
        }


def _complete(event: Event, timing: Timing) -> dict[str, Any]:
    file, line, api = _at(timing.places, event.place, ("", 0, ""))
    what = _at(timing.names, event.what, "step")
    args: dict[str, Any] = {"API": api}
    if file:
        args["source"] = f"{file}:{line}"
    if event.bytes and UNITS[event.unit] != "S":
        args["bytes"] = event.bytes
    if event.wait > 0 and 0 <= event.reason < len(REASONS):
        args |= {"waited_us": _us(event.wait, timing), "waited_for": REASONS[event.reason]}
    return {
        "name": what,
        "cat": UNITS[event.unit],
        "ph": "X",
        "ts": _us(event.start, timing),
        "dur": _us(event.end - event.start, timing),
        "pid": event.core,
        "tid": event.unit,
        "args": args,
    }


def _close(file: IO[str], timing: Timing, written: Written) -> None:
    about = {
        "chip": timing.chip,
        "clock_mhz": timing.clock_mhz,
        "kernel_us": timing.kernel_us,
        "task_us": timing.task_us,
        "finished": timing.finished,
        "events": written.events,
        "events_left_out": written.dropped,
        "what": "an estimate of npusmith's timing model, not a measurement on a device",
    }
    if written.note:
        about["note"] = written.note
    file.write('\n],\n"otherData":' + _json(about) + "}\n")


def _at(rows: list[Any], index: int, default: Any) -> Any:
    return rows[index] if 0 <= index < len(rows) else default


def _us(cycles: float, timing: Timing) -> float:
    return round(cycles / timing.clock_mhz, 6)


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
