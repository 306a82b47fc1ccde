"""The judge for direct-launch sources: with a task, or as a program that checks itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from npusmith import __version__
from npusmith.errors import CODES, Level, NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.task.judge import (
    UNFINISHED,
    Outcome,
    conclude,
    empty_verdict,
    find_doubts,
    start_trial,
)
from npusmith.task.prepared import Array, Prepared, TrialData
from npusmith.task.recording import Recording
from npusmith.task.tolerance import check_profile
from npusmith.task.verdict import Rung, Verdict
from npusmith.task.weak import note_task
from npusmith.task.weighing import Criterion, Pair, value_of, weigh
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
from npusmith.twin.watch import Watch

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
    step: Callable[[str, str], None] = lambda name, detail: None,
    seconds: float = 60.0,
    watch: Watch = _WATCH,
    recording: Recording | None = None,
) -> Verdict:
    """Call the source's launcher on every set of inputs of the task's own shapes.

    Behind blocks (all vector cores) and stream it gets inputs, the model's parameters where it has
    pointers for them, outputs, and what `tail_of` says.
    """
    profile = check_profile(tolerance)
    verdict = empty_verdict(source, prepared, chip, profile)
    step("compile", str(source))
    clock = time.perf_counter()
    trials = [item for item in prepared.trials if item.kind != "shape"]
    try:
        built = build_direct(source, chip)
        given = [_given(built, prepared, trial) for trial in trials]
        tails = [_tail(built, *row) for row in zip(trials, given, strict=True)]
    except NpusmithError as error:
        verdict.error = error.record()
        return verdict
    verdict.compiled, verdict.rung = True, Rung.COMPILED
    verdict.seconds["compile"] = round(time.perf_counter() - clock, 3)
    step("run on the twin", f"{len(trials)} sets of inputs")
    first = next((at for at, item in enumerate(trials) if not item.skipped), 0)
    outcomes = [
        _run(built, *row, chip, profile, seconds, watch, recording if at == first else None)
        for at, row in enumerate(zip(trials, given, tails, strict=True))
    ]
    verdict.trials = [item.trial for item in outcomes]
    conclude(verdict, outcomes)
    note_task(verdict, prepared, profile)
    return verdict


def _given(built: DirectBuild, prepared: Prepared, trial: TrialData) -> list[Array]:
    """The arguments of forward, and the parameters where the launcher takes these too."""
    if trial.skipped:
        return []
    held = [item.target for item in prepared.graph.inputs if item.kind != "user"]
    tensors = len(trial.inputs) + len(held) + len(trial.references)
    values = prepared.held(trial) if pointers_of(built) >= tensors else {}
    return [*trial.inputs, *(values[name] for name in held if values)]


def _tail(built: DirectBuild, trial: TrialData, given: Sequence[Array]) -> list[int | bytes]:
    if trial.skipped:
        return []
    tensors = len(given) + len(trial.references)
    return tail_of(built, tensors, trial.references[0].size)


def _run(
    built: DirectBuild,
    trial: TrialData,
    given: Sequence[Array],
    tail: Sequence[int | bytes],
    chip: Chip,
    profile: str,
    seconds: float,
    watch: Watch,
    recording: Recording | None,
) -> Outcome:
    record = start_trial(trial)
    if trial.skipped:
        return Outcome(record)
    wanted = [(item.shape, DType.of(item.dtype)) for item in trial.references]
    result = run_direct(
        built, chip.vector_cores, given, wanted, tail, seconds=seconds, watch=watch,
        **(recording.options() if recording else {}),
    )  # fmt: skip
    record.findings = list(result.findings)
    record.seconds = round(result.seconds, 4)
    if result.completed:
        weigh(record, Pair(trial, value_of(result.outputs, trial)), Criterion(profile))
    else:
        record.message = UNFINISHED
    return Outcome(record, result.peak_bytes, result.apis)


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
