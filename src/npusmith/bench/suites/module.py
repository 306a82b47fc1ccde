"""The watched process for candidates with a Python class: builds them, calls them, tells the end.

`main()` reads orders from stdin and leaves reply.json. The class runs in boxed processes of its own
(task/isolated) and gets one call's values at a time; what it returns lies in `folder`/run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from npusmith.bench.suites.orders import Answered, Orders, Reply, Told, tell
from npusmith.bench.suites.place import slot
from npusmith.bench.suites.watch import leave_reply, read_orders
from npusmith.errors import NpusmithError, TwinError
from npusmith.target.chips import find_chip
from npusmith.task.files import write_arrays
from npusmith.task.isolated import origin
from npusmith.task.isolated.attempt import Answer, Attempt, Candidate, Limits, init_value
from npusmith.task.judge import same_bits
from npusmith.task.module import find_module_cheats
from npusmith.task.prepared import Opened, TrialData, open_trials
from npusmith.task.recording import MOST_LAUNCHES, find_logs
from npusmith.twin.formats import read_submission
from npusmith.twin.module import ModuleBuild, build_module

_RESTARTS = 3  # after a crash the other trials still get their turn
_INSIDE = "direct"  # the log of the first launch inside of the candidate's processes
_LOST = Answered(error=Told(code="", message="not run: the process ended too often before"))


def main() -> None:
    orders = read_orders()
    folder, reply = Path(orders.folder), Reply()
    try:
        with slot() as work:
            _judge(orders, work, folder, reply)
    except NpusmithError as error:
        reply.error = tell(error)
    leave_reply(folder, reply)


def _judge(orders: Orders, work: Path, folder: Path, reply: Reply) -> None:
    submission = read_submission(Path(orders.place) / orders.submission)
    # the class is the candidate's, or the suite's
    reply.cheats = find_module_cheats(submission, own=not orders.given_class)
    start = time.monotonic()
    built = build_module(submission, find_chip(orders.chip), work, ahead=not orders.given_class)
    reply.compiled = True
    reply.compiler = built.toolchain.compiler.version
    reply.seconds["compile"] = round(time.monotonic() - start, 3)
    start = time.monotonic()
    run = _Run(orders, open_trials(Path(orders.given)), folder / "run")
    reply.answers = run.all(built)
    if not orders.given_class:
        reply.cheats += origin.trace(run.calls, submission.model, run.opened.handed)
    reply.seconds["run"] = round(time.monotonic() - start, 3)


def record_once(orders: Orders, folder: Path) -> list[Path]:
    """Call the class on the first trial alone; the logs of its launches, in their order.

    Launches inside the processes leave logs in the order of launches, which only one trial tells.
    """
    submission = read_submission(Path(orders.place) / orders.submission)
    opened = open_trials(Path(orders.given)).first
    run, logs = _Run(orders, opened, folder / "run", twice=False), folder / "logs"
    logs.mkdir()
    with slot() as work:
        built = build_module(submission, find_chip(orders.chip), work, ahead=not orders.given_class)
        answers = run.all(built, logs)
    if answers[0].outputs is None:
        raise TwinError("timing-log", "the recorded run did not come to its end")
    made = [path for at in range(MOST_LAUNCHES) if (path := logs / str(at)).is_file()]
    return made or find_logs(run.out / _INSIDE)


class _Run:
    """The trials of one candidate on their way through its processes."""

    def __init__(self, orders: Orders, opened: Opened, out: Path, *, twice: bool = True) -> None:
        self.orders = orders
        self.opened = opened
        self.trials = opened.trials
        self.out = out
        self.twice = twice
        self.calls: list[origin.Call] = []

    def all(self, built: ModuleBuild, logs: Path | None = None) -> list[Answered]:
        """An answer for each trial; a crash costs only the trial that caused it."""
        orders = self.orders
        self.out.mkdir()
        limits = Limits(
            orders.whole_seconds, int(orders.memory_mb * (1 << 20)), int(orders.disk_bytes)
        )
        answers: list[Answered] = []
        with Candidate(built, find_chip(orders.chip), self.out, limits, logs=logs) as candidate:
            crashes = 0
            while len(answers) < len(self.trials) and candidate.boxed is None:
                if crashes > _RESTARTS:
                    break
                first = len(answers)
                with self._start(candidate, first) as attempt:
                    answers += self._call_all(attempt, first)
                crashes += answers[-1].error is not None
            if self.twice and orders.given_class:
                with self._start(candidate, 0) as attempt:  # settings that were not written to
                    answers[0] = self._compare(answers[0], attempt)
        return answers + [_LOST] * (len(self.trials) - len(answers))

    def _start(self, candidate: Candidate, at: int) -> Any:
        built, manifest = candidate.built, self.opened.manifest
        settings = self.opened.value(self.opened.init(self.trials[at]))
        return candidate.start(
            built.model, built.submission.entry, manifest.model_seed, init_value(settings),
            training=manifest.mode == "training",
        )  # fmt: skip

    def _call_all(self, attempt: Attempt, first: int) -> Iterator[Answered]:
        """The trials with the settings of the first one, as far as the processes live."""
        init = self.opened.init(self.trials[first])
        for at in range(first, len(self.trials)):
            if self.opened.init(self.trials[at]) != init:
                return
            answer = self._call(attempt, self.trials[at])
            attempt.candidate.launcher.logs = None  # the first trial is behind
            told = self._told(answer, at)
            if at == 0 and self.twice and not self.orders.given_class:
                told = self._compare(told, attempt)
            yield told
            if answer.over:  # before the first one: no other will do better
                yield from [told] * (len(self.trials) - at - 1)
            if answer.error is not None:
                return

    def _call(self, attempt: Attempt, trial: TrialData) -> Answer:
        arguments, drawn = self.opened.value(trial.given), self.opened.drawn(trial)
        answer = attempt.call(arguments, drawn)
        if answer.error is None:
            taken = [*arguments.tensors, *drawn.values()]
            self.calls.append(origin.Call(taken, answer.launches, answer.outputs))
        return answer

    def _compare(self, told: Answered, attempt: Attempt) -> Answered:
        """The first trial once more: the same inputs must give the same bits."""
        if told.outputs is None:
            return told
        first, trial = self.calls[0].outputs, self.trials[0]
        again = attempt.call(self.opened.value(trial.given), self.opened.drawn(trial)).outputs
        unsteady = len(again) != len(first) or not same_bits(first, again)
        return told.model_copy(update={"unsteady": unsteady})

    def _told(self, answer: Answer, at: int) -> Answered:
        told = Answered(
            findings=tuple(answer.findings), apis=tuple(sorted(set(answer.apis))),
            launches=len(answer.launches), writes=bool(answer.writes),
            alias=tuple(map(int, answer.alias)) if isinstance(answer.alias, list) else (),
        )  # fmt: skip
        if answer.error is not None:
            error = Told(code=answer.error.code, message=answer.error.message)
            return told.model_copy(update={"error": error})
        if answer.fixed and self.trials[at].draw:
            message = f"the class has no {', '.join(answer.fixed)} of the reference's shape"
            error = Told(code="parameters-fixed", message=message[:300])
            return told.model_copy(update={"error": error})
        left = write_arrays(answer.tree or {}, answer.outputs, self.out, f"out{at}")
        return told.model_copy(update={"outputs": left})
