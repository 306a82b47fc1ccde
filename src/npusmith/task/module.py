"""The judge for candidates that are Python modules: `judge_module(submission, prepared, ...)`.

The same verdict as for an operator project. The candidate's Python runs in processes of its own
(task/isolated) and gets the task as data, one call at a time; the launches that it causes are made
here. Nothing that its process says is believed but the tensors that it returns, and those must come
out of the launches (task/isolated/origin).
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any

import numpy as np

from npusmith.errors import CODES, Level, NpusmithError
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.task.cheat import find_cheats
from npusmith.task.isolated import arrays, origin
from npusmith.task.isolated.arrays import Value
from npusmith.task.isolated.attempt import Answer, Attempt, Candidate, Limits, init_value
from npusmith.task.judge import Outcome, conclude, empty_verdict, weigh
from npusmith.task.prepared import Prepared, TrialData, map_tensor
from npusmith.task.recording import MOST_LAUNCHES, Recording, find_logs
from npusmith.task.tolerance import check_profile, compare
from npusmith.task.verdict import Rung, Trial, Verdict
from npusmith.task.weak import note_task
from npusmith.twin import cheating
from npusmith.twin.finding import Finding
from npusmith.twin.formats import Submission
from npusmith.twin.module import ModuleBuild, build_module
from npusmith.twin.remote import Launch

Array = np.ndarray[Any, Any]

_OFFICIAL = "multikernelbench"
_RESTARTS = 3  # after a crash the other sets of inputs still get their turn
CHEATS = ("cheat-compute", "cheat-hidden", "cheat-binding", "cheat-origin", "cheat-input")
_INSIDE = "direct"  # the log of the first launch inside the candidate's process


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the processes gave for one set of inputs, as it is judged."""

    outputs: list[Array] | None
    findings: tuple[Finding, ...] = ()
    apis: tuple[str, ...] = ()
    message: str = ""
    launches: tuple[Launch, ...] = ()
    fixed: tuple[str, ...] = ()  # drawn parameters that the class does not have


_LOST = _Answer(None, message="not run: the candidate's process ended too often before")
_NO_TENSORS = "forward() did not return tensors"


def judge_module(
    submission: Submission,
    prepared: Prepared,
    chip: Chip,
    tolerance: str,
    *,
    dynamic: bool = False,
    step: Callable[[str, str], None] = lambda name, detail: None,
    seconds: float = 180.0,
    recording: Recording | None = None,
) -> Verdict:
    """Judge a submission; `seconds` limit the run of all sets of inputs together.

    `provenance["official"]` says whether MultiKernelBench's own rule is met on the random sets.
    """
    profile = check_profile(tolerance)
    verdict = empty_verdict(submission.path, prepared, chip, profile)
    verdict.provenance["format"] = submission.kind.value
    clock = time.perf_counter()
    step("compile", f"{submission.path}, format {submission.kind.value}")
    with temporary_folder("npusmith-module-") as name:
        work = Path(name).resolve()
        try:
            built = build_module(submission, chip, work)
        except NpusmithError as error:
            verdict.error, verdict.verdict = error.record(), "fail"
            verdict.findings = find_module_cheats(submission)
            return _renamed(verdict, work / "candidate")
        verdict.compiled, verdict.rung = True, Rung.COMPILED
        verdict.seconds["compile"] = round(time.perf_counter() - clock, 3)
        verdict.provenance["compiler"] = built.toolchain.compiler.version
        _judge(verdict, built, prepared, chip, profile, dynamic, step, seconds, recording)
    verdict = _renamed(verdict, built.root)
    note_task(verdict, prepared, profile)
    return verdict


def _judge(
    verdict: Verdict,
    built: ModuleBuild,
    prepared: Prepared,
    chip: Chip,
    profile: str,
    dynamic: bool,
    step: Callable[[str, str], None],
    seconds: float,
    recording: Recording | None,
) -> None:
    clock = time.perf_counter()
    chosen = [item for item in prepared.trials if dynamic or item.kind != "shape"]
    live = [item for item in chosen if not item.skipped]
    step("run on the twin", f"{len(live)} sets of inputs")
    answers, extra = _run_all(built, prepared, live, chip, seconds, recording)
    verdict.seconds["run"] = round(time.perf_counter() - clock, 3)
    given = iter(answers)
    outcomes, official = [], []
    for trial in chosen:
        answer = None if trial.skipped else next(given)
        outcomes.append(_weigh(trial, answer, profile))
        if answer is not None and trial.kind in ("random", "group") and not trial.draw:
            official.append(_is_official(trial, answer))
    verdict.trials = [item.trial for item in outcomes]
    step("weigh", f"tolerance {profile}")
    conclude(verdict, outcomes)
    verdict.findings += find_module_cheats(built.submission)
    verdict.findings += _not_drawn(answers)
    calls = [
        origin.Call(_sources(prepared, trial), answer.launches, answer.outputs)
        for trial, answer in zip(live, answers, strict=True)
        if answer.outputs is not None
    ]
    verdict.findings += origin.trace(calls + extra, built.submission.model)
    verdict.provenance["official"] = bool(official) and all(official)
    if any(item.code in CHEATS and item.level is Level.ERROR for item in verdict.findings):
        verdict.correct, verdict.verdict = False, "fail"


def _renamed(verdict: Verdict, root: Path) -> Verdict:
    """The verdict with files named as the submission names them, not where they lay meanwhile."""
    where = json.dumps(str(root))[1:-1]
    text = verdict.model_dump_json()
    return Verdict.model_validate_json(text.replace(f"{where}/", ""))


def _not_drawn(answers: Sequence[_Answer]) -> list[Finding]:
    """A class that keeps its own parameters was judged on these alone."""
    fixed = next((answer.fixed for answer in answers if answer.fixed), ())
    row = CODES["parameters-fixed"]
    message = "its parameters could not be drawn: sets of inputs with drawn ones were left out"
    seen = f"ModelNew has no {', '.join(fixed)} of the reference's shape"[:300]
    finding = Finding(code=row.name, level=row.level, message=message, seen=seen)
    return [finding] if fixed else []


def find_module_cheats(submission: Submission, *, own: bool = True) -> list[Finding]:
    """Where the model or a binding computes by itself; `own`: the class is the candidate's."""
    found = find_cheats(submission.model_text, submission.entry, submission.model) if own else []
    for name in submission.bindings:
        found += cheating.find_cheats(submission.files[name], Path(name))
    return found


# ------------------------------------------------------------------------------------------ values


def _weigh(trial: TrialData, answer: _Answer | None, profile: str) -> Outcome:
    record = Trial(
        name=trial.name, kind=trial.kind, seed=trial.seed, passed=False, skipped=trial.skipped,
        shapes=[list(shape) for shape in trial.shapes], draw=trial.draw,
    )  # fmt: skip
    if answer is not None and answer.fixed and trial.draw:
        record.skipped = "parameters could not be drawn: the class has others than the reference"
    if answer is None or record.skipped:
        return Outcome(record, ran=False)
    record.findings = list(answer.findings)
    record.message = answer.message or _misfit(trial, answer.outputs or [])
    if answer.outputs is not None and not record.message:
        weigh(record, answer.outputs, trial, profile)
    return Outcome(record, ran=answer.outputs is not None, apis=tuple(answer.apis))


def _misfit(trial: TrialData, outputs: Sequence[Array]) -> str:
    """How the outputs differ from the reference's in number, shape or type; "" when they fit."""
    wanted = trial.references
    if len(outputs) != len(wanted):
        return f"{len(outputs)} outputs, the reference has {len(wanted)}"
    for index, (ours, theirs) in enumerate(zip(outputs, wanted, strict=True)):
        if ours.shape != theirs.shape:
            return f"output {index} has shape {ours.shape}, the reference {theirs.shape}"
        if ours.dtype != theirs.dtype:
            return f"output {index} is {ours.dtype}, the reference {theirs.dtype}"
    return ""


def _is_official(trial: TrialData, answer: _Answer) -> bool:
    """MultiKernelBench: structure, shape, and allclose within 1e-4 (bool exactly)."""
    outputs = answer.outputs or []
    if len(outputs) != len(trial.references):
        return False
    pairs = zip(outputs, trial.references, trial.goldens, strict=True)
    return all(
        ours.shape == native.shape
        and ours.dtype == native.dtype
        and compare(ours, native, golden, _OFFICIAL).passed
        for ours, native, golden in pairs
    )


# --------------------------------------------------------------------------------------- processes


def _run_all(
    built: ModuleBuild,
    prepared: Prepared,
    trials: Sequence[TrialData],
    chip: Chip,
    seconds: float,
    recording: Recording | None,
) -> tuple[list[_Answer], list[origin.Call]]:
    """An answer for each set of inputs, in order; a crash costs only the set that caused it.

    The sets are called in an order that nobody can know, but for the one that is recorded. A set
    that is the only one of its shapes is called again with its values in another order; those
    calls come second.
    """
    folder, logs = built.modules.parent / "run", built.modules.parent / "logs"
    folder.mkdir()
    logs.mkdir()
    rest = list(range(len(trials)))
    SystemRandom().shuffle(rest)
    rest.sort(key=lambda at: recording is not None and at > 0)
    found: dict[int, _Answer] = {}
    extra: list[origin.Call] = []
    named = logs if recording is not None else None
    with Candidate(built, chip, folder, Limits(seconds), logs=named) as candidate:
        for _ in range(_RESTARTS + 1):
            if not rest or candidate.boxed is not None:
                break
            with candidate.start(
                built.model, built.submission.entry, prepared.manifest.model_seed,
                _settings(prepared),
            ) as attempt:  # fmt: skip
                _call_all(attempt, prepared, trials, rest, found)
                if not rest:
                    extra = _call_again(attempt, prepared, trials, found)
    if recording is not None:
        _keep_logs(logs, folder, recording, alone=len(trials) == 1)
    return [found.get(at, _LOST) for at in range(len(trials))], extra


def _call_all(
    attempt: Attempt,
    prepared: Prepared,
    trials: Sequence[TrialData],
    rest: list[int],
    found: dict[int, _Answer],
) -> None:
    """Take sets off `rest` until there is none or the processes have failed."""
    while rest:
        at = rest.pop(0)
        trial = trials[at]
        answer = attempt.call(_arguments(prepared, trial.inputs), prepared.drawn(trial))
        attempt.candidate.launcher.logs = None  # the first set is behind
        found[at] = _read(answer)
        if answer.over:
            found |= dict.fromkeys(rest, found[at])
            rest.clear()
        if answer.error is not None:
            return


def _call_again(
    attempt: Attempt,
    prepared: Prepared,
    trials: Sequence[TrialData],
    found: dict[int, _Answer],
) -> list[origin.Call]:
    """Other values for each set that is alone with its shapes: where do the outputs come from?"""
    shapes = Counter(tuple(trial.shapes) for trial in trials)
    draw = np.random.default_rng()
    calls = []
    for at, trial in enumerate(trials):
        if shapes[tuple(trial.shapes)] > 1 or found[at].outputs is None:
            continue
        tensors = [_shuffled(tensor, draw) for tensor in trial.inputs]
        answer = attempt.call(_arguments(prepared, tensors), prepared.drawn(trial))
        if answer.error is not None:
            break
        taken = _sources(prepared, trial, tensors)
        calls.append(origin.Call(taken, answer.launches, answer.outputs))
    return calls


def _shuffled(tensor: Array, draw: np.random.Generator) -> Array:
    return draw.permutation(tensor.reshape(-1)).reshape(tensor.shape)


def _read(answer: Answer) -> _Answer:
    findings, apis = list(answer.findings), tuple(answer.apis)
    error = answer.error
    if error is None and not _is_flat(answer.tree):
        error = Finding(code="module-failed", message=_NO_TENSORS)
    if error is None:
        made = tuple(answer.launches)
        return _Answer(answer.outputs, tuple(findings), apis, "", made, answer.fixed)
    message = error.message
    if error.code == "kernel-crash" and findings:
        message = "the kernel did not run to its end"  # its findings say why
    elif error.code not in {item.code for item in findings}:
        findings.append(error)
    return _Answer(None, tuple(findings), apis, message)


def _is_flat(tree: Any) -> bool:
    """A tensor, or lists and tuples of them with one at least."""
    if not isinstance(tree, dict):
        return False
    parts = tree.get("list", tree.get("tuple"))
    if isinstance(parts, list):
        return bool(parts) and all(map(_is_flat, parts))
    return "tensor" in tree


def _settings(prepared: Prepared) -> Value:
    """What the class is built with."""
    state = prepared.manifest.random_state
    known = None if state is None else map_tensor(prepared.folder, state)
    return init_value(prepared.value(prepared.manifest.init), known)


def _arguments(prepared: Prepared, tensors: Sequence[Array]) -> Value:
    """What forward is called with."""
    return Value(arrays.fill(prepared.manifest.call, tensors), tensors)


def _sources(
    prepared: Prepared, trial: TrialData, inputs: Sequence[Array] | None = None
) -> list[Array]:
    """What a candidate's launches may take: inputs, and parameters that differ between sets."""
    manifest = prepared.manifest
    names = dict.fromkeys(name for draw in manifest.draws for name in draw)
    own = {name: map_tensor(prepared.folder, manifest.parameters[name]) for name in names}
    held = own | prepared.drawn(trial)
    return [*(trial.inputs if inputs is None else inputs), *held.values()]


def _keep_logs(logs: Path, inside: Path, recording: Recording, *, alone: bool) -> None:
    """Moves the logs of the first set to where they were asked for.

    `logs`: of the launches made here. Launches in the candidate's process leave theirs in `inside`;
    they are not told apart by set, so they are kept only when there is one set.
    """
    made = [path for at in range(MOST_LAUNCHES) if (path := logs / str(at)).is_file()]
    own = find_logs(inside / _INSIDE) if alone else []
    for at, log in enumerate(made or own):
        name = f"{recording.path.name}.{at}" if at else recording.path.name
        shutil.move(log, recording.path.with_name(name))
