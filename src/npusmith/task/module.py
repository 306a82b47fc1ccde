"""The judge for candidates that are Python modules: `judge_module(submission, prepared, ...)`.

The same verdict as for an operator project. The candidate's Python runs in processes of its own and
gets the task as data, one call at a time (calls.py); the launches that it causes are made here.
Nothing that its process says is believed but the tensors that it returns, and those must come out
of the launches (task/isolated/origin). All sets are compared after that process has ended.
"""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from npusmith.errors import CODES, Level, NpusmithError
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.task.calls import Calls, keep_logs
from npusmith.task.cheat import find_cheats
from npusmith.task.isolated import origin
from npusmith.task.isolated.arrays import Value
from npusmith.task.isolated.attempt import Answer, Limits
from npusmith.task.judge import conclude, empty_verdict
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.running import UNFINISHED, UNSTEADY, Outcome, leave_out, start_trial
from npusmith.task.tolerance import check_profile, compare
from npusmith.task.verdict import REFUSED, Rung, Verdict
from npusmith.task.weak import note_task
from npusmith.task.weighing import Criterion, Pair, form, reject, weigh
from npusmith.twin import cheating
from npusmith.twin.finding import Finding
from npusmith.twin.formats import Submission
from npusmith.twin.module import ModuleBuild, build_module

_OFFICIAL = "multikernelbench"
Called = Sequence[tuple[TrialData, Answer]]
CHEATS = ("cheat-compute", "cheat-hidden", "cheat-binding", "cheat-origin", "cheat-input")
# codes of what ends before there is a kernel
_NOT_BUILT = ("compile-", "project-", "tiling-", "dtypes-", "device-cpp", "kind-")
_COUNTED = (*CHEATS, "cheat-alias")
_LIMITS = Limits(180.0)
_NO_TENSORS = Finding(code="module-failed", message="forward() did not return tensors")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassOptions:
    """How a candidate's class runs.

    limits: of the run of all sets of inputs together.
    given: the class is the suite's own, or ours, and calls the candidate's operators.
    served: of an error's words, what the candidate says that it serves instead: sets of other
        shapes that it refuses so do not count against it.
    beside: data files that the class reads.
    work: an empty folder to build in, folder: one to be made for the processes, where these matter.
    """

    limits: Limits = _LIMITS
    given: bool = False
    served: Callable[[str], str] = lambda message: ""
    beside: Sequence[Path] = ()
    work: Path | None = None
    folder: Path | None = None


_FOREIGN = ClassOptions()
_OWN_SHAPES = JudgeOptions(dynamic=False)


def judge_module(
    submission: Submission,
    prepared: Prepared,
    chip: Chip,
    tolerance: str,
    options: JudgeOptions = _OWN_SHAPES,
    how: ClassOptions = _FOREIGN,
) -> Verdict:
    """Judge a submission; of `options` the limit of each run is `how`'s for all of them together.

    `provenance["official"]` says whether MultiKernelBench's own rule is met on the random sets,
    where no other rule is in force.
    """
    profile = check_profile(tolerance)
    rule = options.criterion or Criterion(profile)
    verdict = empty_verdict(submission.path, prepared, chip, profile)
    verdict.provenance["format"] = submission.kind.value
    clock, recording = time.perf_counter(), options.recording
    options.step("compile", f"{submission.path}, format {submission.kind.value}")
    with temporary_folder("npusmith-module-") as name:
        place = (how.work or Path(name)).resolve()
        try:
            built = build_module(submission, chip, place, ahead=not how.given)
        except NpusmithError as error:
            verdict.error, verdict.verdict = error.record(), "fail"
            verdict.findings = find_module_cheats(submission, own=not how.given)
            return _renamed(verdict, place / "candidate")
        copy_beside(built, how.beside)
        verdict.compiled, verdict.rung = True, Rung.COMPILED
        verdict.seconds["compile"] = round(time.perf_counter() - clock, 3)
        verdict.provenance["compiler"] = built.toolchain.compiler.version
        chosen = [item for item in prepared.trials if options.dynamic or item.kind != "shape"]
        live = [item for item in chosen if not item.skipped]
        options.step("run on the twin", f"{len(live)} sets of inputs")
        calls = Calls(
            built, prepared, live, chip, how.folder or place / "run", how.limits,
            None if recording is None else place / "logs", how.given,
            partial(_is_wrong, live[0], rule) if options.stop and live else None,
        )  # fmt: skip
        _judge(verdict, calls, chosen, rule, options.step, how.served)
        if recording is not None:
            keep_logs(calls.logs or place, calls.folder, recording, alone=len(live) == 1)
    verdict = _renamed(verdict, built.root)
    note_task(verdict, prepared, rule.own)
    return verdict


def copy_beside(built: ModuleBuild, files: Sequence[Path]) -> None:
    """Data files that the class reads, to where it stands."""
    for path in files:
        shutil.copyfile(path, built.model.with_name(path.name))


def _judge(
    verdict: Verdict,
    calls: Calls,
    chosen: Sequence[TrialData],
    rule: Criterion,
    step: Callable[[str, str], None],
    served: Callable[[str], str],
) -> None:
    clock = time.perf_counter()
    answers = calls.all()
    verdict.seconds["run"] = round(time.perf_counter() - clock, 3)
    step("weigh", f"tolerance {rule.profile}")
    clock = time.perf_counter()
    called = [*zip(calls.trials, answers, strict=False)]  # the first alone where that was enough
    answered = {trial.name: answer for trial, answer in called}
    outcomes = [_outcome(item, answered.get(item.name), served) for item in chosen]
    for item in outcomes:
        if item.trial.name not in answered:
            leave_out(item.trial, calls.trials[0].name)
    _weigh(outcomes, called, rule, calls)
    verdict.seconds["compare"] = round(time.perf_counter() - clock, 3)
    verdict.trials = [item.trial for item in outcomes]
    conclude(verdict, outcomes)
    submission = calls.built.submission
    verdict.findings += find_module_cheats(submission, own=not calls.given)
    verdict.findings += _not_drawn(answers)
    if not calls.given:
        handed = calls.prepared.handed
        verdict.findings += origin.trace(calls.calls, submission.model, handed)
    if rule.official is None:
        official = _is_official(called)
        verdict.provenance |= {} if calls.stopped and official else {"official": official}
    else:  # the trace may not say so, where the class is the suite's
        verdict.findings += _unlaunched(outcomes, answers)
    verdict.findings += _handed_back(called)
    if any(item.code in _COUNTED and item.level is Level.ERROR for item in verdict.findings):
        verdict.correct, verdict.verdict = False, "fail"


def _renamed(verdict: Verdict, root: Path) -> Verdict:
    """The verdict with files named as the submission names them, not where they lay meanwhile."""
    where = json.dumps(str(root))[1:-1]
    text = verdict.model_dump_json()
    return Verdict.model_validate_json(text.replace(f"{where}/", ""))


# ------------------------------------------------------------------------------------------ cheats


def find_module_cheats(submission: Submission, *, own: bool = True) -> list[Finding]:
    """Where the model or a binding computes by itself; `own`: the class is the candidate's."""
    found = find_cheats(submission.model_text, submission.entry, submission.model) if own else []
    for name in submission.bindings:
        found += cheating.find_cheats(submission.files[name], Path(name))
    return found


def _not_drawn(answers: Sequence[Answer]) -> list[Finding]:
    """A class that keeps its own parameters was judged on these alone."""
    fixed = next((answer.fixed for answer in answers if answer.fixed), ())
    row = CODES["parameters-fixed"]
    message = "its parameters could not be drawn: sets of inputs with drawn ones were left out"
    seen = f"ModelNew has no {', '.join(fixed)} of the reference's shape"[:300]
    finding = Finding(code=row.name, level=row.level, message=message, seen=seen)
    return [finding] if fixed else []


def _unlaunched(outcomes: Sequence[Outcome], answers: Sequence[Answer]) -> list[Finding]:
    """Right outputs where neither an operator nor a launch was seen."""
    own = [item.trial for item in outcomes if item.trial.own and not item.trial.skipped]
    if any(answer.launches for answer in answers) or not own:
        return []
    message = "no operator ran: the outputs were computed elsewhere"
    right = all(item.passed for item in own)
    return [Finding(code="cheat-compute", message=message)] if right else []


def _handed_back(called: Called) -> list[Finding]:
    """The set in which an output was an untouched input, and was none in the reference."""
    for trial, answer in called:
        told = answer.alias if isinstance(answer.alias, list) else []
        mine = [at for at in told if type(at) is int]
        if set(mine) - set(trial.record.alias) and not answer.writes:
            message = f"{trial.name}: output {mine[0]} is an input, as it came"
            return [Finding(code="cheat-alias", message=message)]
    return []


# ------------------------------------------------------------------------------------------ values


def _outcome(
    trial: TrialData, answer: Answer | None, served: Callable[[str], str] = lambda message: ""
) -> Outcome:
    """What the processes gave for one set, before its values are looked at."""
    record = start_trial(trial)
    if answer is not None and answer.fixed and trial.draw:
        record.skipped = "parameters could not be drawn: the class has others than the reference"
    if answer is None or record.skipped:
        return Outcome(record)
    record.findings = list(answer.findings)
    error = answer.error or _odd(trial, answer)
    if error is not None and trial.kind == "shape" and (said := served(error.message)):
        record.skipped = f"{REFUSED}: the module serves {said}"
        record.findings = []
        return Outcome(record)
    if error is not None:
        record.message = f"{error.code}: {error.message}"
        record.compiled = not error.code.startswith(_NOT_BUILT)
        if error.code == "kernel-crash" and record.findings:
            record.message = UNFINISHED  # its findings say why
        elif error.code not in {item.code for item in record.findings}:
            record.findings.append(error)
    return Outcome(record, apis=tuple(answer.apis))


def _odd(trial: TrialData, answer: Answer) -> Finding | None:
    """A captured model gives tensors, or lists, tuples and dicts of them with one at least; None
    may stand beside them.
    """
    flat = trial.record.result is not None or _is_flat(answer.tree)
    return None if flat else _NO_TENSORS


def _is_flat(tree: Any) -> bool:
    if not isinstance(tree, dict):
        return False
    parts = tree.get("list", tree.get("tuple"))
    if isinstance(rows := tree.get("dict"), list):
        parts = [row[-1] if isinstance(row, list) and row else None for row in rows]
    if isinstance(parts, list):
        given = [part for part in parts if part != {"plain": None}]
        return bool(given) and all(map(_is_flat, given))
    return "tensor" in tree


def _weigh(outcomes: Sequence[Outcome], called: Called, rule: Criterion, calls: Calls) -> None:
    """Compare what has outputs: all sets together, as some suites' rules want them."""
    known = {trial.name: (trial, answer) for trial, answer in called}
    live = [item.trial for item in outcomes if not item.trial.skipped and not item.trial.message]
    pairs = [_pair(*known[record.name]) for record in live]
    for record, pair, said in zip(live, pairs, rule.says(pairs), strict=True):
        weigh(record, pair, rule, said)
        wrote = known[record.name][1].writes
        if wrote and not pair.trial.record.writes and not calls.given:
            # the suite's own class may have its operator write where it likes
            reject(record, "an input was overwritten", rule)
        if pair.trial.name == calls.unsteady:
            reject(record, UNSTEADY, rule)


def _pair(trial: TrialData, answer: Answer) -> Pair:
    return Pair(trial, Value(answer.tree or {}, answer.outputs))


def _is_wrong(trial: TrialData, rule: Criterion, answer: Answer) -> bool:
    """Whether the first set says enough."""
    record = _outcome(trial, answer).trial
    if not record.message:
        pair = _pair(trial, answer)
        weigh(record, pair, rule, *rule.says([pair]))
    return not record.skipped and not record.passed


def _is_official(called: Called) -> bool:
    """MultiKernelBench on the random sets: shape, and allclose within 1e-4 (bool exactly)."""
    own = [row for row in called if row[0].kind in ("random", "group") and not row[0].draw]
    return bool(own) and all(itertools.starmap(_is_close, own))


def _is_close(trial: TrialData, answer: Answer) -> bool:
    if answer.error is not None or form(_pair(trial, answer)):
        return False
    rows = zip(answer.outputs, trial.references, trial.goldens, strict=True)
    return all(compare(*row, _OFFICIAL).passed for row in rows)
