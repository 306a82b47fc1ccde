"""`Lines`: how long each line of the user's sources keeps the pipes busy, from the timer's events.

`lines.watch(events)` passes events on; `lines.shares()` then says what it saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from npusmith.timing.model import UNITS, Timing
from npusmith.timing.profile import LineShare
from npusmith.timing.trace import Event

MOST_LINES = 50


@dataclass(slots=True)
class _Sum:
    """Of one line: cycles of work and of waiting before it, over all cores."""

    busy: dict[int, float] = field(default_factory=dict)  # by unit
    waited: float = 0.0
    steps: int = 0


class Lines:
    """Adds up the steps of a launch by the line that issued them."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._sums: dict[tuple[str, int], _Sum] = {}
        self._cores: set[int] = set()

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """The same events, which are counted as they pass."""
        for event in events:
            self._add(event)
            yield event

    def _add(self, event: Event) -> None:
        places = self._timing.places
        self._cores.add(event.core)
        file, line, _ = places[event.place] if 0 <= event.place < len(places) else ("", 0, "")
        if not file:
            return
        entry = self._sums.setdefault((file, line), _Sum())
        entry.busy[event.unit] = entry.busy.get(event.unit, 0.0) + event.end - event.start
        entry.waited += max(event.wait, 0.0)
        entry.steps += 1

    def shares(self, most: int = MOST_LINES) -> list[LineShare]:
        """The lines with the most work, the busiest first; microseconds of a mean core."""
        cycles = self._timing.clock_mhz * max(len(self._cores), 1)
        rows = [
            LineShare(
                file=file,
                line=line,
                unit=UNITS[max(entry.busy, key=lambda unit: entry.busy[unit])],
                us=sum(entry.busy.values()) / cycles,
                waited_us=entry.waited / cycles,
                steps=entry.steps,
            )
            for (file, line), entry in self._sums.items()
        ]
        return sorted(rows, key=lambda row: (-row.us, row.file, row.line))[:most]
