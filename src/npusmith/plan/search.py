"""`search_plan(plan, graph, chip, budget)`: the schedule that the timing model likes best.

What can be turned is in knobs.py. Coordinate descent: of each parameter in turn the nearest values
are tried first, and a direction is left after the first value that is worse. The budget is a number
of evaluations; time has no say, so that the result is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from npusmith.errors import LowerError, NpusmithError
from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec
from npusmith.lang import check_all
from npusmith.lower import lower
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.knobs import Schedule, lines_of, tile_of, turned
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.plan.write_kernel import Plan
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph
from npusmith.timing.roof import roof
from npusmith.timing.simulate import core_start_us

DEFAULT = 16  # evaluations: at most about 30 s on two cores
_STEP = 256  # elements: a mask of that many bits is one block of 32 bytes
_LEAST = 256  # elements of the shortest tile that is tried
_SHARES = (0.75, 0.5, 0.375, 0.25, 0.125)  # of the writer's tile
_MORE = (2.0, 1.75, 1.5, 1.25)  # with less double-buffering
_LINES = (0.5, 0.25)  # of the most rows of a tile
_UNITS = (128, 512, 1024)  # elements: 512 bytes of float32 up to 4 KB
_CORES = (0.75, 0.5, 0.375, 0.25, 0.125)  # of the chip's
_STARTS = 0.02  # of a time: starts of cores that take less are not worth trying fewer cores
_WORTH = 0.998  # times the best: what is less of a gain is none
_NEAR = 1.02  # times the least time possible: not worth a further evaluation


@dataclass(frozen=True, slots=True)
class Trial:
    """One evaluation: `us` is None where the candidate was refused, for the reason in `why`."""

    schedule: Schedule
    us: float | None
    cycles: float | None
    why: str = ""

    def record(self) -> dict[str, object]:
        found: dict[str, object] = {"schedule": self.schedule.words, "us": self.us}
        found["cycles"] = self.cycles
        return {**found, "why": self.why} if self.why else found


@dataclass(frozen=True, slots=True)
class Found:
    """The best program, its schedule, and every evaluation in order, the first one as written."""

    program: Program
    schedule: Schedule
    us: float
    trials: tuple[Trial, ...]

    @property
    def note(self) -> str:
        first = self.trials[0].us or 0.0
        return (
            f"schedule: {self.schedule.words}, best of {len(self.trials)} evaluated: "
            f"{self.us:.1f} us by the timing model, {first:.1f} us as written"
        )


Times = Callable[[Program], tuple[float, float]]  # microseconds and cycles


def search_plan(plan: Plan, graph: Graph, chip: Chip, budget: int = DEFAULT) -> tuple[Plan, Found]:
    """The plan with the best schedule found at the graph's shapes, and how it was found.

    Raises plan-time where the program as written cannot be timed.
    """
    shapes = shrink(graph, plan.spec, chip, in_step=goes_in_step(plan.program))
    evaluator = Evaluator(plan.spec, chip, shapes)

    def time(program: Program) -> tuple[float, float]:
        found = evaluator.time(program)
        return found.task_us, found.cycles

    least = roof(graph, chip).bound_us
    found = search(plan.program, chip, time, budget, least, suffixes(plan.spec))
    better = replace(plan, program=found.program, notes=(*plan.notes, found.note))
    return better, found


def suffixes(spec: OpSpec) -> tuple[int, ...]:
    """Lengths of what lies together in an input: its last dimension, its last two, and so on."""
    shapes = [port.shape for port in spec.inputs]
    return tuple(sorted({math.prod(shape[i:]) for shape in shapes for i in range(len(shape))}))


def search(
    program: Program,
    chip: Chip,
    time: Times,
    budget: int = DEFAULT,
    least_us: float = 0.0,
    rows: Sequence[int] = (),
) -> Found:
    """At most `budget` evaluations, the program as it is among them.

    `least_us`: no kernel can be faster; the search ends near it. `rows`: lengths that tiles may
    divide evenly. Raises what `time` raises for the program as it is; a candidate that cannot be
    timed is a trial without a time.
    """
    walk = Walk(program, chip, time, budget, least_us, rows)
    walk.begin()
    while not walk.over:
        before = walk.best
        for axis in AXES.values():
            walk.improve(axis)
        if walk.best == before:
            break
    return Found(walk.best_program, walk.best, walk.best_us, tuple(walk.trials))


@dataclass(slots=True)
class Walk:
    """A search under way."""

    program: Program
    chip: Chip
    time: Times
    budget: int
    least_us: float
    rows: Sequence[int] = ()
    trials: list[Trial] = field(default_factory=list)
    tried: set[Schedule] = field(default_factory=set)
    best: Schedule = field(init=False)
    best_us: float = 0.0
    best_program: Program = field(init=False)

    def begin(self) -> None:
        first = Schedule(tile_of(self.program))
        us, cycles = self.time(self.program)
        self.best, self.best_us, self.best_program = first, us, self.program
        self.tried.add(first)
        self.trials.append(Trial(first, round(us, 3), round(cycles)))

    @property
    def over(self) -> bool:
        return len(self.trials) >= self.budget or self.best_us <= self.least_us * _NEAR

    def improve(self, axis: Axis) -> None:
        """Both directions of one parameter, from the best schedule so far."""
        for way in axis(self, self.best):
            for schedule in way:
                if self.over or self._worse(schedule):
                    break

    def _worse(self, schedule: Schedule) -> bool:
        """Try it; False also for what cannot be written, which says nothing about the next."""
        if schedule in self.tried:
            return False
        self.tried.add(schedule)
        candidate = made(self, schedule)
        if candidate is None:
            return False
        try:
            us, cycles = self.time(candidate)
        except NpusmithError as error:
            self.trials.append(Trial(schedule, None, None, f"{error.code}: {error.message}"[:200]))
            return False
        self.trials.append(Trial(schedule, round(us, 3), round(cycles)))
        if us > self.best_us * _WORTH:
            return True
        self.best, self.best_us, self.best_program = schedule, us, candidate
        return False


Axis = Callable[[Walk, Schedule], Iterator[Sequence[Schedule]]]


def _tiles(walk: Walk, at: Schedule) -> Iterator[Sequence[Schedule]]:
    """Longer tiles, which leave less room for second buffers, and shorter ones."""
    if at.tile is None:
        return
    whole = tile_of(walk.program) or at.tile
    for shares in (sorted(_MORE), _SHARES):
        lengths = dict.fromkeys(int(whole * share) // _STEP * _STEP for share in shares)
        yield [replace(at, tile=length) for length in lengths if length >= _LEAST]


def _even_tiles(walk: Walk, at: Schedule) -> Iterator[Sequence[Schedule]]:
    """Tiles of which a row is a whole number, a little shorter than the writer's; powers of two."""
    tile = tile_of(walk.program)
    if tile is None:
        return
    for pieces in (0, 1):
        lengths = (-(-row // (-(-row // tile) + pieces)) for row in walk.rows if row > tile)
        found = sorted({-(-length // _STEP) * _STEP for length in lengths}, reverse=True)
        yield [replace(at, tile=length) for length in found if _LEAST <= length != at.tile]
    yield [replace(at, tile=1 << (tile.bit_length() - 1))]


def _copies(walk: Walk, at: Schedule) -> Iterator[Sequence[Schedule]]:
    """One of every buffer, or three; those may need a shorter tile."""
    yield [replace(at, copies=1)]
    shorter = None if at.tile is None else max(at.tile * 2 // 3 // _STEP * _STEP, _LEAST)
    yield [replace(at, copies=3), replace(at, copies=3, tile=shorter)]


def _row_counts(walk: Walk, at: Schedule) -> Iterator[Sequence[Schedule]]:
    """Fewer rows in a tile, where rows are short."""
    most = lines_of(walk.best_program)
    if most is not None:
        shares = (int(most * share) // 64 * 64 for share in _LINES)
        yield [replace(at, lines=lines) for lines in shares if lines]


def _units(walk: Walk, at: Schedule) -> Iterator[Sequence[Schedule]]:
    """Transfers from and to rounder places."""
    yield [replace(at, unit=unit) for unit in _UNITS]


def _dealing(walk: Walk, at: Schedule) -> Iterator[Sequence[Schedule]]:
    yield [replace(at, in_turn=not at.in_turn)]


def _core_counts(walk: Walk, at: Schedule) -> Iterator[Sequence[Schedule]]:
    """Fewer cores: each one takes time to start, which a short kernel does not earn back."""
    if core_start_us(walk.chip) * walk.chip.vector_cores >= _STARTS * walk.best_us:
        yield [replace(at, cores=int(walk.chip.vector_cores * share)) for share in _CORES]


AXES: dict[str, Axis] = {
    "tile": _tiles,
    "copies": _copies,
    "rows": _row_counts,
    "cores": _core_counts,
    "even tiles": _even_tiles,
    "alignment": _units,
    "dealing": _dealing,
}


def made(walk: Walk, schedule: Schedule) -> Program | None:
    """The program with these parameters; None where there is no such one."""
    found = turned(walk.program, schedule)
    return found if found is not None and _legal(found, walk.chip) else None


def _legal(program: Program, chip: Chip) -> bool:
    """Whether it can be lowered at all; costs no evaluation."""
    if check_all(program, chip):
        return False
    try:
        lower(program, chip)
    except LowerError:
        return False
    return True
