"""What a profile says: times, shares, traffic, roofs, eager, advice, as data.

`make_profile(timings, ...)` puts together what the timer, the roof and the eager model gave; it
runs nothing. Everything in it is an estimate of a model, and each figure of hardware that it leans
on stands in target/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from npusmith.target.chips import Chip
from npusmith.timing.advice import Advice, advise
from npusmith.timing.bottleneck import (
    REASONS,
    VERSION,
    busy_cycles,
    global_paths,
    imbalance,
    share,
    vector,
    waits_of,
    working,
)
from npusmith.timing.model import UNITS, Hinge, PathTime, Timing
from npusmith.timing.search_trials import Trial
from npusmith.twin.finding import Finding

if TYPE_CHECKING:
    from npusmith.timing.eager import Eager
    from npusmith.timing.roof import Roof


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PipeShare(_Record):
    """One pipe over all cores that have it; shares of the kernel's time."""

    unit: str
    steps: int
    busy: float
    waits: dict[str, float]  # by reason, the longest first


class PathShare(_Record):
    """All transfers of one path."""

    path: str
    transfers: int
    bytes: int
    hit: float | None  # share of the bytes that L2 held; None: not through L2
    gbps: float  # 10^9 bytes a second over the kernel's time


class LineShare(_Record):
    """What one line of the sources gave the pipes to do, on a mean core of those that worked."""

    file: str
    line: int
    unit: str  # the pipe that it keeps busy longest
    us: float  # of work on all pipes, which may run beside each other
    waited_us: float  # that its pipes stood still before its steps
    steps: int  # on all cores


class RoofShare(_Record):
    """The roofs of the task's graph, and how far away the kernel is."""

    memory_us: float  # all bytes at the rate of device memory
    memory_l2_us: float  # what fits L2 is there already
    compute_us: float
    bound_us: float  # the larger of memory_us and compute_us
    hardware_us: float  # T_h by the rule of CANN-bench
    needed_bytes: float
    operations: float
    memory_share: float  # memory_us over the kernel's time: 1 is on the roof
    compute_share: float
    notes: list[str] = []

    @property
    def words(self) -> str:
        """Which of the two is the limit."""
        if self.bound_us <= 0:
            return "no limit known"
        return "limited by memory" if self.memory_us >= self.compute_us else "limited by arithmetic"


class EagerShare(_Record):
    """What PyTorch eager would take, and how many times faster the kernel is."""

    us: float
    low_us: float
    high_us: float
    ratio: float
    low_ratio: float
    high_ratio: float
    rows: int  # published rows behind the least supported call that counts
    sure: bool  # false: too few for a headline figure
    rests: str  # that in words, with how far it reaches
    ops: list[dict[str, object]]


class LaunchTime(_Record):
    """One launch of several."""

    kernel_us: float
    task_us: float
    steps: int
    finished: bool


class Profile(_Record):
    """Everything that `npusmith profile` says. The details are those of the longest launch."""

    version: Literal[1] = 1
    estimate: Literal[True] = True
    chip: str
    clock_mhz: float
    kernel_us: float  # all launches
    task_us: float
    cycles: float  # of the longest launch, as everything below
    finished: bool
    sampled: bool
    sample_error: float = 0  # share of the time: how much the pace changed in what was recorded
    steps: int
    cores: int
    imbalance: float
    launches: list[LaunchTime]
    pipes: list[PipeShare]
    paths: list[PathShare]
    moved_bytes: int  # through global memory, all launches
    lines: list[LineShare] = []  # the busiest first
    roof: RoofShare | None = None
    eager: EagerShare | None = None
    advice: list[Advice] = []
    hinges: list[Hinge] = []
    vector_version: int = VERSION
    vector: list[float] = []
    model_error: str = ""  # the model's own error on published measurements, in words
    notes: list[str] = []

    @property
    def headline(self) -> str:
        """The one line that every output begins with."""
        drift = f"extrapolated from a part, whose own pace varies by {self.sample_error:.1%}"
        kind = drift if self.sampled else "of the timing model"
        return f"{self.task_us:.2f} us (kernel {self.kernel_us:.2f} us), an estimate {kind}"


def make_profile(
    timings: Sequence[Timing],
    chip: Chip,
    *,
    roof: Roof | None = None,
    eager: Eager | None = None,
    findings: Sequence[Finding] = (),
    model_error: str = "",
    trials: Sequence[Trial] | None = None,
    left_us: float = 0.0,
) -> Profile:
    """The profile of one run; `timings` are its launches in order, at least one.

    `trials`: of the search that chose the schedule. `left_us`: what PyTorch takes between
    launches, which counts as the task's time.
    """
    main = max(timings, key=lambda timing: timing.cycles)
    kernel = sum(timing.kernel_us for timing in timings)
    task = sum(timing.task_us for timing in timings) + left_us
    one = roof if len(timings) == 1 else None  # a part of the graph has no roof of its own here
    return Profile(
        chip=main.chip,
        clock_mhz=main.clock_mhz,
        kernel_us=kernel,
        task_us=task,
        cycles=main.cycles,
        finished=all(timing.finished for timing in timings),
        sampled=any(timing.sampled for timing in timings),
        sample_error=max(timing.sample_error for timing in timings),
        steps=main.steps,
        cores=len(working(main)),
        imbalance=imbalance(main),
        launches=[
            LaunchTime(
                kernel_us=item.kernel_us, task_us=item.task_us, steps=item.steps,
                finished=item.finished,
            )
            for item in timings
        ],
        pipes=pipes_of(main),
        paths=paths_of(main),
        moved_bytes=sum(path.bytes for item in timings for path in global_paths(item)),
        roof=_roof(roof, kernel),
        eager=_eager(eager, task),
        advice=advise(main, one, findings, chip, trials=trials),
        hinges=main.hinges[:5],
        vector=vector(main, one),
        model_error=model_error,
        notes=[*_notes(timings), *_left(left_us)],
    )  # fmt: skip


def _left(us: float) -> list[str]:
    return [f"PyTorch's part is {us:.2f} us of the task, by the estimate of eager"] if us else []


def pipes_of(timing: Timing) -> list[PipeShare]:
    """The units that had work."""
    steps = {
        unit: sum(core.units[unit].steps for core in timing.cores if unit in core.units)
        for unit in UNITS
    }
    busy = busy_cycles(timing)
    return [
        PipeShare(
            unit=unit, steps=steps[unit], busy=share(timing, unit), waits=_waits(timing, unit)
        )
        for unit in UNITS
        if steps[unit] or busy[unit]
    ]


def paths_of(timing: Timing) -> list[PathShare]:
    """The paths that carried something, those of global memory first."""
    rows = [
        PathShare(
            path=name,
            transfers=path.transfers,
            bytes=path.bytes,
            hit=_hit(name, path),
            gbps=path.bytes / timing.kernel_us / 1e3 if timing.kernel_us > 0 else 0.0,
        )
        for name, path in timing.paths.items()
        if path.transfers
    ]
    return sorted(rows, key=lambda row: (row.hit is None, row.path))


def _hit(name: str, path: PathTime) -> float | None:
    through_l2 = "gm" in name.split("_") and path.bytes > 0
    return 1 - path.miss_bytes / path.bytes if through_l2 else None


def _waits(timing: Timing, unit: str) -> dict[str, float]:
    """The reasons, the longest first; what is missing to 1 is the end of cores that do not work."""
    waits = waits_of(timing, unit)
    known = [reason for reason in REASONS if waits.get(reason, 0.0) > 0]
    return {reason: waits[reason] for reason in sorted(known, key=lambda name: -waits[name])}


def _roof(roof: Roof | None, kernel_us: float) -> RoofShare | None:
    if roof is None:
        return None
    near = 1 / kernel_us if kernel_us > 0 else 0.0
    return RoofShare(
        memory_us=roof.memory_us,
        memory_l2_us=roof.memory_l2_us,
        compute_us=roof.compute_us,
        bound_us=roof.bound_us,
        hardware_us=roof.hardware_us,
        needed_bytes=roof.gm_bytes,
        operations=sum(roof.vector_ops.values()) + sum(roof.cube_flops.values()),
        memory_share=roof.memory_us * near,
        compute_share=roof.compute_us * near,
        notes=list(roof.notes),
    )


def _eager(eager: Eager | None, task_us: float) -> EagerShare | None:
    if eager is None or not task_us > 0:
        return None
    return EagerShare(
        us=eager.us,
        low_us=eager.low_us,
        high_us=eager.high_us,
        ratio=eager.us / task_us,
        low_ratio=eager.low_us / task_us,
        high_ratio=eager.high_us / task_us,
        rows=eager.rows,
        sure=eager.sure,
        rests=eager.rests(),
        ops=[
            {
                "op": item.op, "us": item.us, "low_us": item.low_us, "high_us": item.high_us,
                "basis": item.basis, "source": item.source, "rows": item.rows,
                "reach": item.reach,
            }
            for item in eager.ops
        ],
    )  # fmt: skip


def _notes(timings: Sequence[Timing]) -> list[str]:
    notes = []
    if len(timings) > 1:
        notes.append(
            f"{len(timings)} launches: times are their sum, shares are those of the longest"
        )
    if not all(timing.finished for timing in timings):
        notes.append("the kernel did not end: times are those up to the deadlock")
    if not any(path.bytes for item in timings for path in global_paths(item)):
        notes.append("no copy from or to global memory was made")
    return notes
