"""Calling a candidate's class on prepared sets of inputs: `Calls(...).all() -> answers`.

The class runs in processes of its own (task/isolated) and gets one call's values at a time. A crash
costs only the set that caused it. What went in, was launched and came out of every call is kept for
the trace (task/isolated/origin.py).
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any

import numpy as np

from npusmith.target.chips import Chip
from npusmith.task.isolated import arrays, origin
from npusmith.task.isolated.arrays import Array, Value
from npusmith.task.isolated.attempt import Answer, Attempt, Candidate, Limits, init_value
from npusmith.task.prepared import Prepared, TrialData, map_tensor
from npusmith.task.ranks import TILING_FAILED
from npusmith.task.recording import MOST_LAUNCHES, Recording, find_logs
from npusmith.task.running import same_bits
from npusmith.task.wire import ValueFiles
from npusmith.twin.finding import Finding
from npusmith.twin.module import ModuleBuild

_RESTARTS = 3  # after a crash the other sets of inputs still get their turn
_REFUSALS = ("module-failed", TILING_FAILED)  # in so many words, which is no crash
_INSIDE = "direct"  # the log of the first launch inside the candidate's process
_LOST = Answer(
    error=Finding(code="kernel-crash", message="not run: the process ended too often before")
)


@dataclass(slots=True)
class Calls:
    """One candidate on its way through its processes; `folder` is new, and they may write there."""

    built: ModuleBuild
    prepared: Prepared
    trials: Sequence[TrialData]  # none of them skipped
    chip: Chip
    folder: Path
    limits: Limits
    logs: Path | None = None  # of the first call's launches
    given: bool = False  # the class is the suite's own: nothing is traced
    decides: Callable[[Answer], bool] | None = None  # whether the first answer says enough
    calls: list[origin.Call] = field(default_factory=list)
    stopped: bool = False  # after the first set: there is no other answer
    unsteady: str = ""  # the set of which two runs gave different bits
    _rest: list[int] = field(default_factory=list)
    _found: dict[int, Answer] = field(default_factory=dict)

    def all(self) -> list[Answer]:
        """An answer for each set, in order."""
        if not self.trials:
            return []
        self.folder.mkdir()
        if self.logs is not None:
            self.logs.mkdir()
        self._rest = self._order()
        first, crashes = self._rest[0], 0
        with Candidate(
            self.built, self.chip, self.folder, self.limits, logs=self.logs
        ) as candidate:
            while self._rest and candidate.boxed is None and crashes <= _RESTARTS:
                with self._start(candidate, self._rest[0]) as attempt:
                    crashes += self._call_all(attempt, first)
                    if not (self._rest or self.given or self.stopped):
                        self._call_again(attempt)
            if self.given and self._twice and not self.stopped and candidate.boxed is None:
                with self._start(candidate, first) as attempt:  # settings not written to
                    self._check_bits(attempt, first)
        asked = self.trials[:1] if self.stopped else self.trials
        return [self._found.get(at, _LOST) for at in range(len(asked))]

    # --- one after the other

    def _order(self) -> list[int]:
        """The first set, then one that nobody can know, where calls do not depend on those before.

        Suites call one model again and again: running statistics go on.
        """
        order = list(range(1, len(self.trials)))
        if self.prepared.manifest.graph is not None:
            SystemRandom().shuffle(order)
        return [0, *order]

    @property
    def _twice(self) -> bool:
        """Whether the first set is called again; the only logs must be of one call."""
        return self.logs is None or len(self.trials) > 1

    def _init(self, at: int) -> ValueFiles:
        return self.prepared.init(self.trials[at])

    def _start(self, candidate: Candidate, at: int) -> Any:
        manifest = self.prepared.manifest
        state = manifest.random_state
        known = None if state is None else map_tensor(self.prepared.folder, state)
        return candidate.start(
            self.built.model, self.built.submission.entry, manifest.model_seed,
            init_value(self.prepared.value(self._init(at)), known),
            training=manifest.mode == "training",
        )  # fmt: skip

    def _call_all(self, attempt: Attempt, first: int) -> bool:
        """Take sets with the same settings off the list; whether the processes have crashed.

        They also end after an exception, such as one that refuses sizes: the other sets go on.
        """
        init = self._init(self._rest[0])
        while self._rest and self._init(self._rest[0]) == init:
            at = self._rest.pop(0)
            answer = self._found[at] = self._call(attempt, at)
            attempt.candidate.launcher.logs = None  # the first set is behind
            if at == first and self.decides is not None and self.decides(answer):
                self.stopped = True
                self._rest.clear()
                return False
            if answer.over:  # before the first call already: no other will do better
                self._found |= dict.fromkeys(self._rest, answer)
                self._rest.clear()
            if answer.error is not None:
                return answer.error.code not in _REFUSALS
            if at == first and self._twice and not self.given:
                self._check_bits(attempt, at)
        return False

    def _call(
        self,
        attempt: Attempt,
        at: int,
        tensors: Sequence[Array] | None = None,
        *,
        kept: bool = True,
    ) -> Answer:
        trial = self.trials[at]
        given = list(trial.inputs if tensors is None else tensors)
        tree = trial.record.call or self.prepared.manifest.call
        answer = attempt.call(Value(arrays.fill(tree, given), given), self.prepared.drawn(trial))
        if answer.error is None and kept:
            taken = [*given, *self._held(trial)]
            self.calls.append(origin.Call(taken, answer.launches, answer.outputs))
        return answer

    def _held(self, trial: TrialData) -> list[Array]:
        """Parameters that differ between sets: launches may take these, too."""
        manifest = self.prepared.manifest
        names = dict.fromkeys(name for draw in manifest.draws for name in draw)
        known = [name for name in names if name in manifest.parameters]
        own = {name: map_tensor(self.prepared.folder, manifest.parameters[name]) for name in known}
        return [*(own | self.prepared.drawn(trial)).values()]

    def _check_bits(self, attempt: Attempt, at: int) -> None:
        """The same inputs must give the same bits."""
        before = self._found[at]
        if before.error is None:
            again = self._call(attempt, at, kept=False).outputs
            same = len(again) == len(before.outputs) and same_bits(before.outputs, again)
            self.unsteady = "" if same else self.trials[at].name

    def _call_again(self, attempt: Attempt) -> None:
        """Other values for each set that is alone with its shapes: where do outputs come from?"""
        shapes = Counter(tuple(trial.shapes) for trial in self.trials)
        draw = np.random.default_rng()
        for at, trial in enumerate(self.trials):
            if shapes[tuple(trial.shapes)] > 1 or self._found[at].error is not None:
                continue
            tensors = [
                draw.permutation(array.reshape(-1)).reshape(array.shape) for array in trial.inputs
            ]
            if self._call(attempt, at, tensors).error is not None:
                break


def keep_logs(logs: Path, inside: Path, recording: Recording, *, alone: bool) -> None:
    """Moves the logs of the first set to where they were asked for.

    `logs`: of the launches made here. Launches in the candidate's process leave theirs in `inside`;
    they are not told apart by set, so they are kept only when there is one set.
    """
    made = [path for at in range(MOST_LAUNCHES) if (path := logs / str(at)).is_file()]
    own = find_logs(inside / _INSIDE) if alone else []
    for at, log in enumerate(made or own):
        name = f"{recording.path.name}.{at}" if at else recording.path.name
        shutil.move(log, recording.path.with_name(name))
