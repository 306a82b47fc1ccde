"""The judge for direct-launch sources: with a task, or as a program that checks itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npusmith.errors import CODES, Level, NpusmithError, Place, TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.task.judge import empty_verdict, find_doubts, run_sets
from npusmith.task.prepared import Array, Prepared, TrialData
from npusmith.task.recording import Recording
from npusmith.task.running import Plan
from npusmith.task.tolerance import check_profile
from npusmith.task.verdict import Rung, Verdict
from npusmith.task.weak import note_task
from npusmith.task.weighing import Criterion
from npusmith.twin.direct import (
    DirectBuild,
    build_direct,
    build_program,
    pointers_of,
    run_direct,
    run_program,
    tail_of,
)
from npusmith.twin.finding import Finding
from npusmith.twin.launch import Run
from npusmith.twin.watch import Watch
from npusmith.version import __version__

_WATCH = Watch()
# What a program that checks itself prints when it is not content, and the same words in praise.
_FAILURE = re.compile(
    r"\b(fail(s|ed|ure|ures)?|mismatch(es|ed)?|incorrect|wrong|not equal|no such file"
    r"|(can ?not|can't|could not|unable to) (open|read|load|find))\b"
    r"|\berror\b(?!\s*[:=]?\s*-?[\d.])",
    re.IGNORECASE,
)
_NONE_FAILED = re.compile(
    r"\b(0|no|none|without|zero) (\w+ )?(fail\w*|mismatch\w*|wrong\w*|errors?)\b"
    r"|\b(fail\w*|mismatch\w*|wrong|errors?)(\s+\w+)?\s*[:=]?\s*(0\b(?!\.)|none\b|no\b)"
    r"|\b(max\w*|mean|abs\w*|rel\w*|average|avg)([ _.-]\w+)*[ _-]error\b",
    re.IGNORECASE,
)


def judge_source(
    source: Path,
    prepared: Prepared,
    chip: Chip,
    tolerance: str,
    *,
    stop: bool = False,
    step: Callable[[str, str], None] = lambda name, detail: None,
    seconds: float = 60.0,
    watch: Watch = _WATCH,
    recording: Recording | None = None,
) -> Verdict:
    """Call the source's launcher on every set of inputs of the task's own shapes.

    Behind blocks (all vector cores) and stream it gets inputs, the model's parameters and buffers,
    its constants where it has pointers for them, outputs, and what `tail_of` says.
    """
    profile = check_profile(tolerance)
    verdict = empty_verdict(source, prepared, chip, profile)
    step("compile", str(source))
    clock = time.perf_counter()
    trials = [item for item in prepared.trials if item.kind != "shape"]
    try:
        launcher = _Launcher(build_direct(source, chip), prepared, chip, seconds, watch)
        for trial in trials:
            launcher.given(trial)
    except NpusmithError as error:
        verdict.error = error.record()
        return verdict
    verdict.compiled, verdict.rung = True, Rung.COMPILED
    verdict.seconds["compile"] = round(time.perf_counter() - clock, 3)
    run_sets(verdict, trials, Plan(launcher, Criterion(profile), recording, stop), step)
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
            self.built, self.chip.vector_cores, given, wanted, tail, seconds=self.seconds,
            watch=self.watch, **options,
        )  # fmt: skip


def run_source(
    source: Path,
    chip: Chip,
    *,
    seconds: float = 120.0,
    watch: Watch = _WATCH,
    recording: Recording | None = None,
) -> Verdict:
    """Run the main function of a source. No values are compared, so it is never "correct".

    The verdict is "ran", or "fail": by the twin's findings, its status, or what it printed.
    """
    verdict = Verdict(
        verdict="fail", rung=Rung.NONE, compiled=False, correct=False, task="", tolerance="",
        chip=chip.name, project=str(source), provenance={"npusmith": __version__},
    )  # fmt: skip
    try:
        built = build_program(source, chip)
    except NpusmithError as error:
        verdict.error = error.record()
        return verdict
    verdict.compiled, verdict.rung = True, Rung.COMPILED
    options = recording.options() if recording else {}
    result = run_program(built, seconds=seconds, watch=watch, **options)
    verdict.findings = list(result.findings)
    verdict.doubts = find_doubts(result.apis)
    verdict.seconds["run"] = round(result.seconds, 3)
    verdict.provenance["printed"] = result.log[-4000:]
    verdict.provenance["compiler"] = built.toolchain.compiler.version
    if line := complaint(result.log):
        row = CODES["program-complains"]
        verdict.findings.append(
            Finding(code=row.name, level=row.level, message=row.meaning, seen=line)
        )
    errors = [item for item in verdict.findings if item.level is Level.ERROR]
    if result.completed:
        verdict.rung = Rung.RAN
        verdict.verdict = "fail" if errors else "ran"
    return verdict


def complaint(log: str) -> str:
    """The first line of a program's output that tells of a failure; empty when there is none."""
    lines = (line.strip() for line in log.splitlines())
    found = (line for line in lines if _FAILURE.search(_NONE_FAILED.sub("", line)))
    return next(found, "")[:200]
