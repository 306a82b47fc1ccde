"""The judge for direct-launch sources with a task: their launcher is called on its sets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npusmith.errors import NpusmithError, Place, TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.task.judge import empty_verdict, run_sets
from npusmith.task.judge_options import PLAIN, JudgeOptions
from npusmith.task.prepared import Array, Prepared, TrialData
from npusmith.task.running import Plan
from npusmith.task.tolerance import check_profile
from npusmith.task.verdict import Rung, Verdict
from npusmith.task.weak import note_task
from npusmith.task.weighing import Criterion
from npusmith.twin.direct import (
    DirectBuild,
    build_direct,
    pointers_of,
    run_direct,
    tail_of,
)
from npusmith.twin.launch import LaunchOptions, Run
from npusmith.twin.watch import Watch

_WATCH = Watch()


def judge_source(
    source: Path,
    prepared: Prepared,
    chip: Chip,
    tolerance: str,
    options: JudgeOptions = PLAIN,
) -> Verdict:
    """Call the source's launcher on every set of inputs of the task's own shapes.

    Behind blocks (all vector cores) and stream it gets inputs, the model's parameters and buffers,
    its constants where it has pointers for them, outputs, and what `tail_of` says.
    """
    profile = check_profile(tolerance)
    verdict = empty_verdict(source, prepared, chip, profile)
    options.step("compile", str(source))
    clock = time.perf_counter()
    trials = [item for item in prepared.trials if item.kind != "shape"]
    try:
        launcher = _Launcher(
            build_direct(source, chip), prepared, chip, options.seconds, options.watch
        )
        for trial in trials:
            launcher.given(trial)
    except NpusmithError as error:
        verdict.error = error.record()
        return verdict
    verdict.compiled, verdict.rung = True, Rung.COMPILED
    verdict.seconds["compile"] = round(time.perf_counter() - clock, 3)
    rule = options.criterion or Criterion(profile)
    plan = Plan(launcher, rule, options.recording, options.stop, options.jobs)
    run_sets(verdict, trials, plan, options.step)
    note_task(verdict, prepared, profile)
    return verdict


@dataclass(frozen=True, slots=True)
class _Launcher:
    """A compiled source on the sets of a task."""

    built: DirectBuild
    prepared: Prepared
    chip: Chip
    seconds: float
    watch: Watch

    def given(self, trial: TrialData) -> tuple[list[Array], list[int | bytes]]:
        """Forward's arguments, what the model holds, and what comes last.

        Constants and integers may as well stand in the source: a launcher without pointers for them
        gets none. Floating parameters and buffers are drawn anew for each set. Raises
        launcher-arguments.
        """
        if trial.skipped:
            return [], []
        held = [item for item in self.prepared.graph.operator_inputs if item.kind != "user"]
        stored = [item for item in held if item.kind != "constant"]
        drawn = [item for item in stored if item.dtype.is_float]
        pointers, least = pointers_of(self.built), len(trial.inputs) + len(trial.references)
        fitting = (part for part in (held, stored, drawn) if least + len(part) <= pointers)
        taken = next(fitting, None) if drawn else next(fitting, [])
        if taken is None:
            names = ", ".join(item.target for item in drawn)
            raise TwinError(
                "launcher-arguments",
                f"{self.built.launcher} takes {pointers} pointers, the task has "
                f"{least + len(drawn)} tensors",
                Place(str(self.built.source)),
                seen=f"{len(trial.inputs)} inputs, {names}, {len(trial.references)} outputs"[:300],
            )
        values = self.prepared.held(trial) if taken else {}
        given = [*trial.inputs, *(values[item.target] for item in taken)]
        rest = tail_of(self.built, len(given) + len(trial.references), trial.references[0].size)
        return given, rest

    def call(self, trial: TrialData, **options: Any) -> Run:
        given, tail = self.given(trial)
        wanted = [(item.shape, DType.of(item.dtype)) for item in trial.references]
        return run_direct(
            self.built,
            self.chip.vector_cores,
            given,
            wanted,
            tail,
            options=LaunchOptions(seconds=self.seconds, watch=self.watch, **options),
        )
