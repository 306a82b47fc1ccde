"""`search_plan(plan, graph, name, chip, budget)`: the schedule that the timing model likes best.

What else a program could be its writer says (decisions.py). Coordinate descent: of each decision in
turn the nearest values are tried first, and a way is left after the first value that is worse. The
budget is a number of evaluations; time has no say, so that the result is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from npusmith.errors import LowerError, NpusmithError, PlanError
from npusmith.ir.nodes import Program
from npusmith.ir.text import show
from npusmith.lang import check_all
from npusmith.lang.source import MAX_CHARS
from npusmith.lower import lower
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.schedule import Schedule
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.plan.structural_key import structural_key
from npusmith.plan.structures import Plan
from npusmith.plan.write import write
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph
from npusmith.timing.roof import roof
from npusmith.timing.simulate import core_start_us

DEFAULT = 16  # evaluations
_STARTS = 0.02  # of a time: starts of cores that take less are not worth trying fewer cores
_WORTH = 0.998  # times the best: what is less of a gain is none
_NEAR = 1.02  # times the least time possible: not worth a further evaluation

# Decisions in the order of the search, and those that are made anew when one has changed.
ORDER = {
    "structure": ("lines", "inner", "copies", "tile"),
    "lines": ("copies", "tile"),
    "inner": ("copies", "tile"),
    "tile": (),
    "block": (),
    "copies": ("tile",),
    "cores": (),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One evaluation: `us` is None where the candidate was refused, for the reason in `why`."""

    schedule: Schedule
    us: float | None
    cycles: float | None
    why: str = ""
    kernel: int = 0  # its number, where there are several

    def record(self) -> dict[str, object]:
        found: dict[str, object] = {"schedule": str(self.schedule), "us": self.us}
        found["cycles"] = self.cycles
        found["decisions"] = self.schedule.model_dump(mode="json", exclude_defaults=True)
        found |= {"kernel": self.kernel} if self.kernel else {}
        return {**found, "why": self.why} if self.why else found


@dataclass(frozen=True, slots=True)
class Found:
    """The best schedule, its estimated time, and every evaluation, the first one as written."""

    schedule: Schedule
    us: float
    first_us: float
    trials: tuple[Trial, ...]

    @property
    def note(self) -> str:
        return (
            f"best of {len(self.trials)} schedules: {self.us:.1f} us by the timing model, "
            f"{self.first_us:.1f} us as written"
        )


Write = Callable[[Schedule], Plan]
Times = Callable[[Program], tuple[float, float]]  # microseconds and cycles


def search_plan(
    plan: Plan,
    graph: Graph,
    name: str,
    chip: Chip,
    budget: int = DEFAULT,
    times: Callable[[Plan, Graph, Chip], Times] | None = None,
) -> tuple[Plan, Found]:
    """The plan with the best schedule found at the graph's shapes, and how it was found.

    Of several kernels each is searched alone, with a share of the budget that its time has.
    `times`: what says how long programs of a kernel take; by default the timing model.
    What cannot be written another time stays as it is, and a trial says why. Raises plan-time where
    the program as written cannot be timed.
    """
    times = times or _times
    try:
        if plan.parts:
            found = _search_kernels(plan, name, chip, budget, times)
        else:
            found = _search_kernel(plan, graph, name, chip, budget, times(plan, graph, chip))
        better = plan
        if found.schedule != plan.schedule:
            better = write(graph, name, chip, found.schedule, own=plan)
    except PlanError as error:
        if error.code == "plan-time":
            raise
        refused = (Trial(plan.schedule, None, None, _why(error)),)
        found = Found(plan.schedule, math.nan, math.nan, refused)
        return replace(plan, notes=(*plan.notes, f"not searched: {_why(error)}")), found
    notes: tuple[str, ...] = (found.note,)
    if len(show(better.program)) > MAX_CHARS:
        better, found = plan, replace(found, schedule=plan.schedule, us=found.first_us)
        notes = (found.note, "the quicker schedules together are longer than a program may be")
    return replace(better, notes=(*better.notes, *notes)), found


def _search_kernel(
    plan: Plan, graph: Graph, name: str, chip: Chip, budget: int, time: Times
) -> Found:
    def written(schedule: Schedule) -> Plan:
        return write(graph, name, chip, schedule, everywhere=True)

    # as lines are shared here: the shapes that are timed may be smaller
    first = written(Schedule())
    return search(first, written, chip, time, budget, roof(graph, chip).bound_us)


def _times(plan: Plan, graph: Graph, chip: Chip) -> Times:
    shapes = shrink(graph, plan.spec, chip, in_step=goes_in_step(plan.program))
    evaluator = Evaluator(plan.spec, chip, shapes)

    @cache
    def time(program: Program) -> tuple[float, float]:
        found = evaluator.time(program)
        return found.task_us, found.cycles

    return time


def _search_kernels(
    plan: Plan,
    name: str,
    chip: Chip,
    budget: int,
    times: Callable[[Plan, Graph, Chip], Times],
) -> Found:
    """The longest first; each gets what is left of the budget, but one for each of the others.

    Kernels that differ in names alone are one: they stay one with the schedule that is found.
    """
    keys = [_key(part) for part, _ in plan.parts]
    alike = {key: keys.index(key) for key in keys}  # the first of them
    best: dict[str, Found] = {}
    timed: dict[str, Times] = {}
    for key, at in alike.items():
        part, own = plan.parts[at]
        timed[key] = times(own, part, chip)
        best[key] = search(own, _never, chip, timed[key], 1)
    left = budget - len(best)
    for key in sorted(best, key=lambda key: -keys.count(key) * best[key].us):
        part, own = plan.parts[alike[key]]
        if left > 0 and own.steps is None:
            try:
                best[key] = _search_kernel(own, part, name, chip, 1 + left, timed[key])
            except PlanError as error:  # it stays as it is, and the record says why
                failed = Trial(own.schedule, None, None, _why(error))
                best[key] = replace(best[key], trials=(*best[key].trials, failed))
            left -= len(best[key].trials) - 1
    trials = tuple(
        replace(trial, kernel=at + 1) for key, at in alike.items() for trial in best[key].trials
    )
    firsts = [best[key] for key in keys]
    return Found(
        Schedule(kernels=tuple(found.schedule for found in firsts)),
        sum(found.us for found in firsts), sum(found.first_us for found in firsts), trials,
    )  # fmt: skip


def _key(part: Graph) -> str:
    """The same for parts that do the same, wherever their inputs come from."""
    inputs = tuple(item.model_copy(update={"kind": "user", "position": 0}) for item in part.inputs)
    return structural_key(part.model_copy(update={"inputs": inputs}))


def _why(error: NpusmithError) -> str:
    return f"{error.code}: {error.message}"[:200]


def _never(schedule: Schedule) -> Plan:
    raise AssertionError(schedule)


def search(
    plan: Plan, write: Write, chip: Chip, time: Times, budget: int = DEFAULT, least_us: float = 0.0
) -> Found:
    """At most `budget` evaluations, the plan as it is among them.

    `write` is asked for other schedules of it. `least_us`: no kernel can be faster; the search ends
    near it. Raises what `time` raises for the plan as it is; a candidate that cannot be timed is a
    trial without a time.
    """
    walk = Walk(plan, write, chip, time, budget, least_us)
    walk.begin()
    while not walk.over:
        before = walk.best_us
        for name in ORDER:
            walk.improve(name)
        if walk.best_us == before:
            break
    first_us = walk.known[plan.program]
    return Found(walk.best.schedule, walk.best_us, first_us, tuple(walk.trials))


@dataclass(slots=True)
class Walk:
    """A search under way."""

    best: Plan
    write: Write
    chip: Chip
    time: Times
    budget: int
    least_us: float
    trials: list[Trial] = field(default_factory=list)
    tried: set[Schedule] = field(default_factory=set)
    known: dict[Program, float] = field(default_factory=dict)
    best_us: float = 0.0

    def begin(self) -> None:
        us, cycles = self.time(self.best.program)
        self.best_us = us
        self.known[self.best.program] = us
        self.tried.add(self.best.schedule)
        self.trials.append(Trial(self.best.schedule, round(us, 3), round(cycles)))

    @property
    def over(self) -> bool:
        return len(self.trials) >= self.budget or self.best_us <= self.least_us * _NEAR

    def improve(self, name: str) -> None:
        """Every way of one decision, from the best schedule so far."""
        decision = next((item for item in self.best.decisions if item.name == name), None)
        if decision is None or (name == "cores" and not self._starts_count()):
            return
        for way in decision.ways:
            for value in way:
                if self.over or self._worse(name, value):
                    break

    def _starts_count(self) -> bool:
        """Each core takes time to start, which a short kernel does not earn back."""
        return core_start_us(self.chip) * self.chip.vector_cores >= _STARTS * self.best_us

    def _worse(self, name: str, value: object) -> bool:
        """Try it; False also for what cannot be written, which says nothing about the next."""
        fresh = {item: Schedule.model_fields[item].default for item in ORDER[name]}
        wanted = self.best.schedule.model_copy(update={**fresh, name: value})
        if wanted in self.tried:
            return False
        self.tried.add(wanted)
        plan = self._written(wanted)
        if plan is None:
            return False
        self.tried.add(plan.schedule)
        if plan.program in self.known:
            return self.known[plan.program] > self.best_us * _WORTH
        try:
            us, cycles = self.time(plan.program)
        except NpusmithError as error:
            self.trials.append(Trial(plan.schedule, None, None, _why(error)))
            return False
        self.known[plan.program] = us
        self.trials.append(Trial(plan.schedule, round(us, 3), round(cycles)))
        if us > self.best_us * _WORTH:
            return True
        self.best, self.best_us = plan, us
        return False

    def _written(self, schedule: Schedule) -> Plan | None:
        """None where there is no such program, or none that can be lowered; no evaluation."""
        try:
            plan = self.write(schedule)
            if check_all(plan.program, self.chip):
                return None
            lower(plan.program, self.chip)
        except (PlanError, LowerError):
            return None
        return plan
