"""timeline.svg: what each pipe of a few cores did, and why it stood still.

Events are fed one by one (`lanes.add`); a lane keeps them as they are while they are few, and adds
them up in columns as well, which are drawn when there are too many to draw one by one. An arrow
leads to a step that waited from the step of another pipe that it waited for. `lanes.data()` is what
timeline.js zooms into: the first steps of each lane, behind them columns, and the longest waits.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from npusmith.report.svg import line, num, picture, rect, short, text, ticks
from npusmith.timing.bottleneck import REASONS, working
from npusmith.timing.model import UNITS, CoreTime, Timing
from npusmith.timing.trace import Causes, Event

_LEFT, _TOP, _WIDTH, _LANE, _GAP = 96.0, 34.0, 880.0, 20.0, 4.0
_COLUMNS = 440
_MOST = 400  # stretches of one lane that are drawn one by one
_KEPT = 2000  # steps of one lane that can be zoomed into: some 15 bytes of the page each
_ARROWS = 400  # waits that can be zoomed into, the longest
_SEEN = 0.01  # share of the picture that a wait takes at least, to have an arrow
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
    """One pipe of one core, drawn at `y`. `columns`: cycles of each kind in each column."""

    y: float
    stretches: list[_Stretch] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    dense: bool = False
    steps: list[_Stretch] = field(default_factory=list)  # the first ones, none joined


@dataclass(frozen=True, slots=True, order=True)
class _Arrow:
    """A wait: from the end of the step that had to be over to the start of the one that waited."""

    wait: float
    start: float
    end: float
    above: float  # y of the two lanes
    below: float


class Lanes:
    """The lanes of the first, the slowest and the last core that worked."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.cores = choose(timing)
        self.last = 0.0  # end of the last event that was seen
        self._causes = Causes()
        self._arrows: list[_Arrow] = []  # a heap
        self._lanes: dict[tuple[int, int], _Lane] = {}
        self._heads: list[tuple[CoreTime, float]] = []
        y = _TOP
        for core in self.cores:
            self._heads.append((core, y))
            y += 20
            for unit, name in enumerate(UNITS):
                if name in core.units and core.units[name].steps:
                    self._lanes[core.number, unit] = _Lane(y)
                    y += _LANE + _GAP
            y += 6
        self._bottom = y

    def add(self, event: Event) -> None:
        """Draws one step into its lane, with the wait before it."""
        self.last = max(self.last, event.end)
        lane = self._lanes.get((event.core, event.unit))
        if lane is None:
            return
        cause = self._causes.of(event)
        if event.wait > 0:
            start = max(event.start - event.wait, 0.0)
            self._put(lane, _waiting(event), start, event.start, event)
        self._put(lane, _working(event, self.timing), event.start, event.end, event)
        source = cause and self._lanes.get((cause.core, cause.unit))
        if cause and source:
            arrow = _Arrow(event.wait, cause.end, event.start, source.y, lane.y)
            push = heapq.heappush if len(self._arrows) < _ARROWS else heapq.heappushpop
            push(self._arrows, arrow)

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """The same events, each drawn as it passes."""
        for event in events:
            self.add(event)
            yield event

    def draw(self) -> str:
        """The picture."""
        parts: list[str] = []
        for core, y in self._heads:
            parts.append(text(8, y + 13, _name(core), "head"))
        for (number, unit), lane in self._lanes.items():
            core = next(item for item in self.cores if item.number == number)
            name, y = UNITS[unit], lane.y
            busy = core.units[name].busy / max(self.timing.cycles, 1)
            parts.append(text(8, y + 14, name))
            parts.append(text(_LEFT - 8, y + 14, f"{busy:.0%}", "dim", "end"))
            parts.append(rect("lane", _LEFT, y, _WIDTH, _LANE))
        parts.append('<g class="steps">')
        for lane in self._lanes.values():
            parts += self._dense(lane) if lane.dense else self._plain(lane)
        parts += ['</g><g class="arrows">', *self._waits(), '</g><g class="ticks">']
        parts += [*self._axis(self._bottom), "</g>"]
        legend, bottom = _legend(self._kinds(), self._bottom + 36)
        parts += legend
        return picture(_LEFT + _WIDTH + 24, bottom, self._label(), [self._title(), *parts])

    def data(self) -> str:
        """What timeline.js draws from, as JSON: cycles are rounded to tenths.

        A step is [kind, tenths since the end of the one before it, tenths that it takes, title].
        """
        titles: dict[str, int] = {}
        kinds = (*_WORK, *_WAITS)
        lanes = []
        for lane in self._lanes.values():
            steps, at = [], 0
            for item in lane.steps:
                start, end = round(10 * item.start), round(10 * item.end)
                title = titles.setdefault(item.title, len(titles))
                steps.append([kinds.index(item.kind), start - at, end - start, title])
                at = end
            whole = len(lane.steps) < _KEPT
            columns = {} if whole else lane.columns
            shares = [
                [round(100 * _COLUMNS * amount / max(self.timing.cycles, 1e-9)) for amount in row]
                for row in (columns.get(kind, ()) for kind in kinds)
            ]
            lanes.append({"y": lane.y, "steps": steps, "columns": [] if whole else shares})
        arrows = [
            [round(10 * item.wait), round(10 * item.start), round(10 * item.end),
             item.above, item.below]
            for item in sorted(self._arrows, key=lambda item: item.end)
        ]  # fmt: skip
        return json.dumps(
            {
                "left": _LEFT, "top": _TOP, "width": _WIDTH, "bottom": self._bottom, "lane": _LANE,
                "total": round(10 * self.timing.cycles), "us": 10 * self.timing.clock_mhz,
                "kinds": kinds, "waits": len(_WORK), "seen": _SEEN, "titles": list(titles),
                "lanes": lanes, "arrows": arrows,
            },
            separators=(",", ":"),
        )  # fmt: skip

    def _put(self, lane: _Lane, kind: str, start: float, end: float, event: Event) -> None:
        self._fill(lane.columns.setdefault(kind, [0.0] * _COLUMNS), start, end)
        if len(lane.steps) < _KEPT:
            lane.steps.append(_Stretch(kind, start, end, self._words(kind, event)))
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

    def _plain(self, lane: _Lane) -> Iterator[str]:
        scale = _WIDTH / max(self.timing.cycles, 1e-9)
        for item in lane.stretches:
            width = max((item.end - item.start) * scale, 0.4)
            high = _LANE * 0.4 if item.kind in _WAITS else _LANE
            us = (item.end - item.start) / self.timing.clock_mhz
            yield rect(
                f"t-{item.kind}", _LEFT + item.start * scale, lane.y + (_LANE - high) / 2,
                width, high,
                f"{item.title}: {short(us)} us",
            )  # fmt: skip

    def _dense(self, lane: _Lane) -> Iterator[str]:
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
                yield rect(f"t-{kind}", _LEFT + x, lane.y + _LANE - low - high, width, high)

    def _waits(self) -> Iterator[str]:
        """An arrow for each wait that is long enough to be seen."""
        scale = _WIDTH / max(self.timing.cycles, 1e-9)
        for item in sorted(self._arrows, key=lambda item: item.end):
            if item.wait < _SEEN * self.timing.cycles:
                continue
            down = item.below > item.above
            first, last = item.above + (_LANE if down else 0), item.below + (0 if down else _LANE)
            x, end = _LEFT + item.start * scale, _LEFT + item.end * scale
            tip = -5 if down else 5
            yield (
                f'<path class="arrow" d="M{num(x)} {num(first)}L{num(end)} {num(last)}m-3 {tip}'
                f'l3 {-tip}l3 {tip}"/>'
            )

    def _axis(self, y: float) -> Iterator[str]:
        total = self.timing.cycles / self.timing.clock_mhz
        for value in ticks(total):
            x = _LEFT + _WIDTH * value / total if total else _LEFT
            yield line("grid", x, _TOP, x, y)
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
