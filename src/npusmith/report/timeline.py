"""timeline.svg: what each pipe of a few cores did, and why it stood still.

Events are fed one by one (`lanes.add`); a lane keeps them as they are while they are few, and adds
them up in columns as well, which are drawn when there are too many to draw one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from npusmith.report.svg import line, picture, rect, short, text, ticks
from npusmith.timing.bottleneck import REASONS, working
from npusmith.timing.model import UNITS, CoreTime, Timing
from npusmith.timing.trace import Event

_LEFT, _WIDTH, _LANE, _GAP = 96.0, 880.0, 20.0, 4.0
_COLUMNS = 440
_MOST = 400  # stretches of one lane that are drawn one by one
_WORK = ("scalar", "vector", "cube", "load", "store", "move")
_WAITS = ("wait", "issue", "queue", "memory", "cores")
_WORDS = {
    "scalar": "scalar", "vector": "vector", "cube": "cube", "load": "from global memory",
    "store": "to global memory", "move": "between on-chip memories", "wait": "waits for a pipe",
    "issue": "nothing issued yet", "queue": "queue full", "memory": "waits for bandwidth",
    "cores": "waits for other cores",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Stretch:
    kind: str
    start: float
    end: float
    title: str


@dataclass(slots=True)
class _Lane:
    """One pipe of one core. `columns`: cycles of each kind in each column."""

    stretches: list[_Stretch] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    dense: bool = False


class Lanes:
    """The lanes of the first, the slowest and the last core that worked."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.cores = choose(timing)
        self.last = 0.0  # end of the last event that was seen
        self._lanes = {
            (core.number, unit): _Lane()
            for core in self.cores
            for unit, name in enumerate(UNITS)
            if name in core.units and core.units[name].steps
        }

    def add(self, event: Event) -> None:
        """Draws one step into its lane, with the wait before it."""
        self.last = max(self.last, event.end)
        lane = self._lanes.get((event.core, event.unit))
        if lane is None:
            return
        if event.wait > 0:
            start = max(event.start - event.wait, 0.0)
            self._put(lane, _waiting(event), start, event.start, event)
        self._put(lane, _working(event, self.timing), event.start, event.end, event)

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """The same events, each drawn as it passes."""
        for event in events:
            self.add(event)
            yield event

    def draw(self) -> str:
        """The picture."""
        parts: list[str] = []
        y = 34.0
        for core in self.cores:
            parts.append(text(8, y + 13, _name(core), "head"))
            y += 20
            for unit, name in enumerate(UNITS):
                lane = self._lanes.get((core.number, unit))
                if lane is None:
                    continue
                busy = core.units[name].busy / max(self.timing.cycles, 1)
                parts.append(text(8, y + 14, name))
                parts.append(text(_LEFT - 8, y + 14, f"{busy:.0%}", "dim", "end"))
                parts.append(rect("lane", _LEFT, y, _WIDTH, _LANE))
                parts += self._dense(lane, y) if lane.dense else self._plain(lane, y)
                y += _LANE + _GAP
            y += 6
        parts += self._axis(y)
        legend, bottom = _legend(self._kinds(), y + 36)
        parts += legend
        return picture(_LEFT + _WIDTH + 24, bottom, self._label(), [self._title(), *parts])

    def _put(self, lane: _Lane, kind: str, start: float, end: float, event: Event) -> None:
        self._fill(lane.columns.setdefault(kind, [0.0] * _COLUMNS), start, end)
        if lane.dense:
            return
        pixel = self.timing.cycles / _WIDTH
        before = lane.stretches[-1] if lane.stretches else None
        joins = before is not None and before.kind == kind and start - before.end < 1e-6
        if joins and before is not None and end - start < pixel:
            lane.stretches[-1] = _Stretch(kind, before.start, end, before.title)
        else:
            lane.stretches.append(_Stretch(kind, start, end, self._words(kind, event)))
        if len(lane.stretches) > _MOST:
            lane.dense = True
            lane.stretches.clear()

    def _fill(self, column: list[float], start: float, end: float) -> None:
        """Deals the cycles from start to end out to the columns that they fall into."""
        cycles = max(self.timing.cycles, 1e-9) / _COLUMNS
        first = min(int(start / cycles), _COLUMNS - 1)
        last = min(int(end / cycles), _COLUMNS - 1)
        for at in range(first, last + 1):
            column[at] += max(min(end, (at + 1) * cycles) - max(start, at * cycles), 0.0)

    def _words(self, kind: str, event: Event) -> str:
        if kind in _WAITS:
            return _WORDS[kind]
        timing = self.timing
        what = timing.names[event.what] if 0 <= event.what < len(timing.names) else kind
        if not 0 <= event.place < len(timing.places):
            return what
        file, number, api = timing.places[event.place]
        return f"{what}, {api}, {file.rpartition('/')[2]}:{number}"

    def _plain(self, lane: _Lane, y: float) -> Iterator[str]:
        scale = _WIDTH / max(self.timing.cycles, 1e-9)
        for item in lane.stretches:
            width = max((item.end - item.start) * scale, 0.4)
            high = _LANE * 0.4 if item.kind in _WAITS else _LANE
            us = (item.end - item.start) / self.timing.clock_mhz
            yield rect(
                f"t-{item.kind}", _LEFT + item.start * scale, y + (_LANE - high) / 2, width, high,
                f"{item.title}: {short(us)} us",
            )  # fmt: skip

    def _dense(self, lane: _Lane, y: float) -> Iterator[str]:
        """Columns in which each kind has the height of its share; equal neighbours are one."""
        cycles = max(self.timing.cycles, 1e-9) / _COLUMNS
        wide = _WIDTH / _COLUMNS
        bottom = [0.0] * _COLUMNS
        for kind in (*_WORK, *_WAITS):
            column = lane.columns.get(kind, ())
            runs: list[list[float]] = []  # x, width, bottom, height
            for at, amount in enumerate(column):
                # a quarter of a unit is what an eye can tell apart
                high = round(min(amount / cycles, 1 - bottom[at]) * _LANE * 4) / 4
                low = round(bottom[at] * _LANE * 4) / 4
                bottom[at] = min(bottom[at] + amount / cycles, 1.0)
                run = runs[-1] if runs else None
                if run and run[2:] == [low, high] and abs(run[0] + run[1] - at * wide) < 1e-6:
                    run[1] += wide
                elif high > 0:
                    runs.append([at * wide, wide, low, high])
            for x, width, low, high in runs:
                yield rect(f"t-{kind}", _LEFT + x, y + _LANE - low - high, width, high)

    def _axis(self, y: float) -> Iterator[str]:
        total = self.timing.cycles / self.timing.clock_mhz
        for value in ticks(total):
            x = _LEFT + _WIDTH * value / total if total else _LEFT
            yield line("grid", x, 34, x, y)
            yield text(x, y + 14, f"{short(value)} us", "dim", "middle")

    def _title(self) -> str:
        timing = self.timing
        count = f"{len(working(timing))} cores, {timing.steps:,} steps"
        words = f"Estimate for {timing.chip}: {short(timing.kernel_us)} us on {count}"
        if not timing.finished:
            words += "; up to a deadlock"
        if timing.sampled:
            words += "; extrapolated"
        if timing.events_dropped:
            words += f"; drawn up to {short(self.last / timing.clock_mhz)} us"
        return text(8, 18, words, "head")

    def _label(self) -> str:
        names = ", ".join(_name(core) for core in self.cores) or "no core"
        return f"Timeline of {names}: {short(self.timing.kernel_us)} us, an estimate"

    def _kinds(self) -> list[str]:
        """What the legend names: only what is there."""
        used = {kind for lane in self._lanes.values() for kind in lane.columns}
        return [kind for kind in (*_WORK, *_WAITS) if kind in used]


def timeline(events: Iterable[Event], timing: Timing) -> str:
    """The whole picture at once."""
    lanes = Lanes(timing)
    for event in events:
        lanes.add(event)
    return lanes.draw()


def choose(timing: Timing) -> list[CoreTime]:
    """First, slowest and last of the cores that worked; of both kinds when both did."""
    chosen: dict[int, CoreTime] = {}
    for cube in (True, False):
        cores = [core for core in working(timing) if core.cube is cube]
        if cores:
            slowest = max(cores, key=lambda core: core.end - core.begin)
            chosen |= {core.number: core for core in (cores[0], slowest, cores[-1])}
    return list(chosen.values())


def _name(core: CoreTime) -> str:
    return f"{'AIC' if core.cube else 'AIV'} {core.number // 2}"


def _waiting(event: Event) -> str:
    reason = REASONS[event.reason] if 0 <= event.reason < len(REASONS) else "issue"
    return reason if reason in _WAITS else "wait" if reason in UNITS else "issue"


def _working(event: Event, timing: Timing) -> str:
    unit = UNITS[event.unit]
    if unit in ("S", "V", "M"):
        return {"S": "scalar", "V": "vector", "M": "cube"}[unit]
    what = timing.names[event.what] if 0 <= event.what < len(timing.names) else ""
    if what.startswith("gm_") or (not what and unit == "MTE2"):
        return "load"
    return "store" if what.endswith("_gm") or (not what and unit == "MTE3") else "move"


def _legend(kinds: list[str], y: float) -> tuple[list[str], float]:
    """The words for the colours, and where the next line would begin."""
    parts, x = [], 8.0
    for kind in kinds:
        wide = 30 + 6.2 * len(_WORDS[kind])
        if x + wide > _LEFT + _WIDTH:
            x, y = 8.0, y + 20
        high = 5.0 if kind in _WAITS else 12.0
        parts += [
            rect(f"t-{kind}", x, y - high / 2, 12, high),
            text(x + 17, y + 4, _WORDS[kind], "dim"),
        ]
        x += wide
    return parts, y + 20
