"""Running an operator or a launcher on prepared sets: `run_all(trials, plan) -> outcomes`.

Each set is compared as soon as it ran, so that the first wrong one may end the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from npusmith.task.prepared import Array, TrialData
from npusmith.task.ranks import TILING_FAILED
from npusmith.task.recording import Recording
from npusmith.task.verdict import NOT_RUN, REFUSED, Trial
from npusmith.task.weighing import Criterion, Pair, reject, value_of, weigh
from npusmith.twin.coverage import Ran
from npusmith.twin.finding import Finding, Printed
from npusmith.twin.launch import Run

PARALLEL_BYTES = 64 << 20  # sets of inputs below this run two at a time
UNFINISHED = "the kernel did not run to its end"
NOT_SERVED = "the operator's tiling function refused these shapes"
UNSTEADY = "two runs on the same inputs gave different outputs"


class Candidate(Protocol):
    """What was compiled."""

    def call(self, trial: TrialData, **options: Any) -> Run:
        """Run it on one set; `options` are those of twin.run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run gave."""

    trial: Trial
    peak_bytes: int = 0
    apis: tuple[str, ...] = ()  # that the kernel called
    reached: Ran = field(default_factory=dict)  # blocks of its code
    prints: tuple[Printed, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """How each set of inputs is run."""

    candidate: Candidate
    criterion: Criterion
    recording: Recording | None = None  # of the first run
    stop: bool = False  # at the first set that is wrong
    jobs: int = 2
    limit: Callable[[TrialData], str] = lambda trial: ""  # of the operator that the sizes break
    # a heavy set with its error bounds
    bounded: Callable[[TrialData], TrialData | None] = lambda trial: None


def run_all(trials: Sequence[TrialData], plan: Plan) -> list[Outcome]:
    """Outcomes in the order of the trials, as far as one decides the verdict.

    What ran beside that one is not told: the same candidate has the same verdict.
    """
    first = next((at for at, item in enumerate(trials) if not item.skipped), len(trials))
    head, rest = trials[: first + 1], trials[first + 1 :]
    done = [run_set(item, plan, first=True) for item in head]
    if done and _decides(done[-1], plan, first=True):
        return done + _not_run(rest, done[-1])
    small = all(item.bytes < PARALLEL_BYTES for item in trials)
    stop = threading.Event()
    with ThreadPoolExecutor(plan.jobs if small else 1) as pool:
        jobs = [pool.submit(run_set, item, plan, stop=stop) for item in rest]
        try:
            for at, job in enumerate(jobs):
                done.append(job.result())
                if _decides(done[-1], plan):
                    return done + _not_run(rest[at + 1 :], done[-1])
        finally:  # a kernel that still runs is not waited for, least of all behind Ctrl-C
            stop.set()
            pool.shutdown(cancel_futures=True)
    return done


def _decides(outcome: Outcome, plan: Plan, *, first: bool = False) -> bool:
    """Whether no other set is run: this one hangs and is the first, or is wrong and that is all."""
    trial = outcome.trial
    hangs = first and any(item.code == "kernel-hang" for item in trial.findings)
    counts = trial.own or plan.criterion.official is None
    return hangs or (plan.stop and counts and not trial.skipped and not trial.passed)


def _not_run(trials: Sequence[TrialData], decided: Outcome) -> list[Outcome]:
    found = [start_trial(item) for item in trials]
    for record in found:
        leave_out(record, decided.trial.name)
    return [Outcome(record) for record in found]


def leave_out(record: Trial, decided: str) -> None:
    record.skipped = record.skipped or f"{NOT_RUN}: {decided} decided the verdict"


def start_trial(trial: TrialData) -> Trial:
    return Trial(
        name=trial.name, kind=trial.kind, seed=trial.seed, skipped=trial.skipped,
        shapes=[list(shape) for shape in trial.shapes], draw=trial.draw,
        case=trial.name.partition(",")[0] if trial.record.case >= 0 else "",
    )  # fmt: skip


class _Stopped(Exception):
    """Nobody waits for the run any more."""


def run_set(
    trial: TrialData, plan: Plan, *, first: bool = False, stop: threading.Event | None = None
) -> Outcome:
    """The first set that is judged runs twice: the same inputs must give the same bits.

    `stop`: once it is set the run ends, and nothing comes of it.
    """

    def tick() -> None:
        if stop is not None and stop.is_set():
            raise _Stopped

    watched = {} if stop is None else {"tick": tick}

    record = start_trial(trial)
    if trial.skipped:
        return Outcome(record)
    clock = time.perf_counter()
    logged: dict[str, Any] = plan.recording.options() if first and plan.recording else {}
    result = plan.candidate.call(trial, **watched, **logged)
    record.findings = list(result.findings)
    if result.completed:
        pair = Pair(trial, value_of(result.outputs, trial))
        weigh(record, pair, plan.criterion, *plan.criterion.says([pair]))
        late = plan.bounded(trial) if trial.record.heavy and not record.precise else None
        if late is not None:
            record.wrong, record.likely = [], ""
            pair = Pair(late, pair.found)
            weigh(record, pair, plan.criterion, *plan.criterion.says([pair]))
    else:
        refused = any(item.code == TILING_FAILED for item in record.findings)
        record.message = NOT_SERVED if refused else UNFINISHED
        limit = plan.limit(trial) if refused else ""
        if limit and trial.kind == "shape":
            record.skipped = f"{REFUSED}: the operator serves {limit}"
            record.findings, record.message = [], ""
        elif limit and trial.kind != "rank":  # of another rank: ranks.py
            rest = [item for item in record.findings if item.code != TILING_FAILED]
            message = f"the operator serves {limit} alone, and refused the task's own sizes"
            record.findings = [*rest, Finding(code="size-refused", message=message)]
    known = not result.completed or (plan.stop and not record.passed)
    if first and not known and not same_bits(result.outputs, plan.candidate.call(trial).outputs):
        reject(record, UNSTEADY, plan.criterion)
    record.seconds = round(time.perf_counter() - clock, 4)
    return Outcome(record, result.peak_bytes, result.apis, result.ran, result.prints)


def same_bits(first: Iterable[Array], second: Iterable[Array]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))
