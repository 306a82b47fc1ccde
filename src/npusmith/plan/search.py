"""`search_plan(plan, graph, chip, budget)`: the schedule that the timing model likes best.

Parameters stand in the program: TILE, the elements of a tile, and the cores that the host function
asks for. Coordinate descent: of each parameter in turn the nearest values are tried first, and a
direction is left after the first value that is worse. The budget is a number of evaluations; time
has no say, so that the result is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from npusmith.errors import LowerError, NpusmithError
from npusmith.ir.nodes import (
    Assign,
    Binary,
    Call,
    ChipFact,
    Choice,
    Const,
    Expr,
    Launch,
    Negate,
    Program,
    ScalarFn,
)
from npusmith.lang import check_all
from npusmith.lower import lower
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.plan.write import Plan
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph
from npusmith.timing.roof import roof

DEFAULT = 16  # evaluations: about 15 s on two cores
_STEP = 256  # elements: a mask of that many bits is one block of 32 bytes
_LEAST = 256  # elements of the shortest tile that is tried
_SHARES = (0.75, 0.5, 0.375, 0.25, 0.125)  # of the writer's tile
_MORE = (2.0, 1.75, 1.5, 1.25)  # with less double-buffering
_CORES = (0.75, 0.5, 0.375, 0.25, 0.125)  # of the chip's
_SHORT_US = 100.0  # beyond that the start of a core costs next to nothing
_NEAR = 1.02  # times the least time possible: not worth a further evaluation


@dataclass(frozen=True, slots=True)
class Schedule:
    """The parameters of one candidate; None: as the writer left it."""

    tile: int | None
    cores: int | None = None

    @property
    def words(self) -> str:
        parts = [f"tile {self.tile}"] if self.tile is not None else []
        parts += [f"at most {self.cores} cores"] if self.cores is not None else []
        return ", ".join(parts) or "as written"


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

    found = search(plan.program, chip, time, budget, roof(graph, chip).bound_us)
    better = replace(plan, program=found.program, notes=(*plan.notes, found.note))
    return better, found


def search(
    program: Program, chip: Chip, time: Times, budget: int = DEFAULT, least_us: float = 0.0
) -> Found:
    """At most `budget` evaluations, the program as it is among them.

    `least_us`: no kernel can be faster; the search ends near it. Raises what `time` raises for
    the program as it is; a candidate that cannot be timed is a trial without a time.
    """
    walk = _Walk(program, chip, time, budget, least_us)
    walk.begin()
    while not walk.over:
        before = walk.best
        for axis in (_tiles, _core_counts):
            walk.improve(axis)
        if walk.best == before:
            break
    return Found(walk.best_program, walk.best, walk.best_us, tuple(walk.trials))


@dataclass(slots=True)
class _Walk:
    program: Program
    chip: Chip
    time: Times
    budget: int
    least_us: float
    trials: list[Trial] = field(default_factory=list)
    tried: set[Schedule] = field(default_factory=set)
    best: Schedule = Schedule(None)
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
        candidate = apply(self.program, schedule)
        if candidate is None or not _legal(candidate, self.chip):
            return False
        try:
            us, cycles = self.time(candidate)
        except NpusmithError as error:
            self.trials.append(Trial(schedule, None, None, f"{error.code}: {error.message}"[:200]))
            return False
        self.trials.append(Trial(schedule, round(us, 3), round(cycles)))
        if us >= self.best_us:
            return True
        self.best, self.best_us, self.best_program = schedule, us, candidate
        return False


Axis = Callable[[_Walk, Schedule], Iterator[Sequence[Schedule]]]


def _tiles(walk: _Walk, at: Schedule) -> Iterator[Sequence[Schedule]]:
    """Longer tiles, which leave less room for second buffers, and shorter ones."""
    if at.tile is None:
        return
    whole = tile_of(walk.program) or at.tile
    for shares in (sorted(_MORE), _SHARES):
        lengths = dict.fromkeys(int(whole * share) // _STEP * _STEP for share in shares)
        yield [replace(at, tile=length) for length in lengths if length >= _LEAST]


def _core_counts(walk: _Walk, at: Schedule) -> Iterator[Sequence[Schedule]]:
    """Fewer cores: each one takes time to start, which a short kernel does not earn back."""
    if walk.best_us <= _SHORT_US:
        yield [replace(at, cores=int(walk.chip.vector_cores * share)) for share in _CORES]


def _legal(program: Program, chip: Chip) -> bool:
    """Whether it can be lowered at all; costs no evaluation."""
    if check_all(program, chip):
        return False
    try:
        lower(program, chip)
    except LowerError:
        return False
    return True


# --------------------------------------------------------------------------------- the parameters


def tile_of(program: Program) -> int | None:
    """The constant TILE, if the program has one."""
    value = dict(program.consts).get("TILE")
    return value if isinstance(value, int) else None


def apply(program: Program, schedule: Schedule) -> Program | None:
    """The program with these parameters; None where they do not go together."""
    if schedule.tile is not None and schedule.tile != tile_of(program):
        changed = _with_tile(program, schedule.tile)
        if changed is None:
            return None
        program = changed
    return program if schedule.cores is None else _with_cores(program, schedule.cores)


def _with_tile(program: Program, tile: int) -> Program | None:
    consts = dict(program.consts)
    if "FOLDS" in consts:
        if tile & (tile - 1):
            return None  # products are folded by halves
        consts["FOLDS"] = (tile // 8).bit_length() - 1
    consts["TILE"] = tile
    return replace(program, consts=tuple(consts.items()))


def _with_cores(program: Program, most: int) -> Program:
    """As if the chip had at most so many vector cores."""
    host = program.host
    body = tuple(
        replace(stmt, value=_capped(stmt.value, most)) if isinstance(stmt, Assign) else stmt
        for stmt in host.body
    )
    launch: Launch = replace(
        host.launch,
        cores=_capped(host.launch.cores, most),
        args=tuple((name, _capped(value, most)) for name, value in host.launch.args),
    )
    return replace(program, host=replace(host, body=body, launch=launch))


def _capped(expr: Expr, most: int) -> Expr:
    match expr:
        case ChipFact("vector_cores"):
            return Call(ScalarFn.MIN, (expr, Const(most)))
        case Binary():
            return replace(expr, left=_capped(expr.left, most), right=_capped(expr.right, most))
        case Negate(value):
            return Negate(_capped(value, most))
        case Call():
            return replace(expr, args=tuple(_capped(item, most) for item in expr.args))
        case Choice():
            return Choice(
                _capped(expr.cond, most), _capped(expr.then, most), _capped(expr.other, most)
            )
        case _:
            return expr
