"""The judge for candidates that are Python modules: `judge_module(submission, prepared, ...)`.

The same verdict as for an operator project. The candidate's Python runs in the sandbox, on the same
sets of inputs; each operator call in it goes to the twin, each direct launch runs in its process.
What that process writes about findings comes from a process in which the candidate's own Python
runs too: a candidate that lies there is caught by its values only.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from npusmith.errors import CODES, NpusmithError, Place
from npusmith.ir.dtypes import DType
from npusmith.sandbox.box import Boxed, Policy, run_boxed
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.task import candidatewire as wire
from npusmith.task.cheat import find_cheats
from npusmith.task.judge import Outcome, conclude, empty_verdict, weigh
from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.recording import MOST_LAUNCHES, Recording, find_logs
from npusmith.task.tolerance import check_profile, compare
from npusmith.task.trials import package_paths
from npusmith.task.verdict import Rung, Trial, Verdict
from npusmith.task.weak import note_task
from npusmith.task.wire import TensorFile
from npusmith.twin import cheating
from npusmith.twin.finding import Finding
from npusmith.twin.formats import Submission
from npusmith.twin.module import ModuleBuild, build_module

Array = np.ndarray[Any, Any]

_OFFICIAL = "multikernelbench"
_START = (
    "import sys; sys.path += sys.argv[1:]; from npusmith.task import candidate as run; run.main()"
)
_RESTARTS = 3  # after a crash the other sets of inputs still get their turn
_MEMORY = 16 << 30
_LOG_CHARS = 2000


@dataclass(slots=True)
class _Answer:
    """What the process gave for one set of inputs."""

    outputs: list[Array] | None
    findings: list[Finding]
    apis: list[str]
    message: str = ""
    fixed: tuple[str, ...] = ()  # drawn parameters that the class does not have


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
            verdict.findings = _cheats(submission)
            return _renamed(verdict, work / "candidate")
        verdict.compiled, verdict.rung = True, Rung.COMPILED
        verdict.seconds["compile"] = round(time.perf_counter() - clock, 3)
        verdict.provenance["compiler"] = built.toolchain.compiler.version
        _judge(verdict, built, prepared, profile, dynamic, step, seconds, recording)
    verdict = _renamed(verdict, built.root)
    note_task(verdict, prepared, profile)
    return verdict


def _judge(
    verdict: Verdict,
    built: ModuleBuild,
    prepared: Prepared,
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
    answers = _run_all(built, prepared, live, seconds, recording)
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
    verdict.findings += _cheats(built.submission)
    verdict.findings += _not_drawn(answers)
    verdict.provenance["official"] = bool(official) and all(official)
    if any(item.code in ("cheat-compute", "cheat-binding") for item in verdict.findings):
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


def _cheats(submission: Submission) -> list[Finding]:
    """Where the model or a binding computes by itself."""
    found = find_cheats(submission.model_text, submission.entry, submission.model)
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
    seconds: float,
    recording: Recording | None,
) -> list[_Answer]:
    """An answer for each set of inputs, in order; a crash costs only the set that caused it."""
    answers: list[_Answer] = []
    for attempt in range(_RESTARTS + 1):
        rest = trials[len(answers) :]
        if not rest:
            break
        found = _run_once(built, prepared, rest, seconds, attempt, recording)
        recording = None  # the first set is behind
        answers += found
    missing = len(trials) - len(answers)
    lost = _Answer(None, [], [], "not run: the candidate's process ended too often before")
    return answers + [lost] * missing


def _run_once(
    built: ModuleBuild,
    prepared: Prepared,
    trials: Sequence[TrialData],
    seconds: float,
    attempt: int,
    recording: Recording | None,
) -> list[_Answer]:
    folder = built.modules.parent / f"run{attempt}"
    folder.mkdir()
    _inputs(folder).mkdir()
    (folder / wire.CALLS).touch()
    (folder / wire.LOGS).mkdir()
    _link_cache(built, folder / "cache")
    orders = _orders(built, prepared, trials, folder, seconds)
    boxed = _start(built, prepared, folder, orders, seconds, recording is not None)
    result = _read_result(folder)
    if recording is not None:
        _keep_logs(folder / wire.LOGS, recording, result, alone=len(trials) == 1)
    answers = [
        _Answer(_load_all(folder, row), *_calls(folder, result, index), fixed=tuple(result.fixed))
        for index, row in enumerate(result.trials)
    ]
    findings, apis = _report(folder)
    if answers and (findings or apis):
        answers[0].findings += findings
        answers[0].apis += apis
    if len(answers) < len(trials):
        answers.append(_failed(result, boxed, findings if not answers else [], seconds))
        error = result.error
        if error is not None and result.started < 0:  # before the first set: no other will do
            answers += [answers[-1]] * (len(trials) - len(answers))
    return answers


def _link_cache(built: ModuleBuild, cache: Path) -> None:
    """A cache of the run's own, in which what has been built already is found."""
    for part, folders in (("twin", (built.toolchain.folder,)), ("build", built.builds)):
        (cache / part).mkdir(parents=True)
        for folder in folders:
            (cache / part / folder.name).symlink_to(folder)


def _orders(
    built: ModuleBuild,
    prepared: Prepared,
    trials: Sequence[TrialData],
    folder: Path,
    seconds: float,
) -> wire.Orders:
    task = prepared.task
    sets = [
        [_tensor(folder, trial.folder, item) for item in trial.record.inputs] for trial in trials
    ]
    values = [
        {name: _tensor(folder, prepared.folder, item) for name, item in draw.items()}
        for draw in prepared.manifest.draws
    ]
    return wire.Orders(
        folder=str(folder),
        modules=str(built.modules),
        libraries=[str(path) for path in built.libraries],
        model=str(built.model),
        entry=built.submission.entry,
        task=str(task.path),
        task_text=task.text,
        has_inputs=task.has_inputs,
        seed=prepared.manifest.model_seed,
        seconds=seconds,
        trials=sets,
        draws=values,
        draw=[trial.draw for trial in trials],
    )


def _tensor(folder: Path, source: Path, item: TensorFile) -> wire.Tensor:
    file = _copy_in(folder, source, item.file)
    return wire.Tensor(file=str(file), shape=item.shape, dtype=item.dtype)


def _copy_in(folder: Path, source: Path, name: str) -> Path:
    """Inputs lie apart from the references, in a folder that the candidate may only read."""
    target = _inputs(folder) / name
    with contextlib.suppress(FileExistsError):
        try:
            os.link(source / name, target)
        except OSError:
            target.write_bytes((source / name).read_bytes())
    return target


def _inputs(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-inputs")


def _start(
    built: ModuleBuild,
    prepared: Prepared,
    folder: Path,
    orders: wire.Orders,
    seconds: float,
    recorded: bool,
) -> Boxed:
    paths = package_paths()
    places = (sys.prefix, sys.base_prefix, *paths)
    policy = Policy(
        write=(folder,),
        read=(
            *map(Path, places), _inputs(folder), built.root, built.modules,
            built.toolchain.folder, *built.builds,
        ),
        seconds=seconds + 30,
        memory_bytes=_MEMORY,
        file_bytes=8 << 30,
        processes=True,  # operators run in the twin's runner
    )  # fmt: skip
    env = {
        "NPUSMITH_CACHE": str(folder / "cache"),
        "NPUSMITH_FINDINGS": str(folder / wire.CALLS),
        "NPUSMITH_SECONDS": str(seconds),
    }
    if recorded:
        env["NPUSMITH_LOGS"] = str(folder / wire.LOGS)
    argv = [sys.executable, "-I", "-B", "-c", _START, *paths]
    stdin = orders.model_dump_json().encode()
    return run_boxed(argv, policy, stdin=stdin, env=env, cwd=folder)


# ------------------------------------------------------------------------- what the process left


def _read_result(folder: Path) -> wire.Result:
    with contextlib.suppress(ValidationError):
        return wire.Result.model_validate_json(_plain(folder / wire.RESULT))
    return wire.Result()


def _plain(path: Path, most: int = wire.RESULT_BYTES) -> bytes:
    """The beginning of a plain file; empty for anything else that the candidate may have left."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(handle).st_mode) else b""


def _keep_logs(logs: Path, recording: Recording, result: wire.Result, *, alone: bool) -> None:
    """Moves the logs of the first set to where they were asked for.

    Operator calls are told apart by set; launches inside the process are not, so theirs are kept
    only when there is one set.
    """
    calls = result.calls[0] if result.calls else MOST_LAUNCHES
    names = [logs / str(at) for at in range(min(calls, MOST_LAUNCHES))]
    plain = [path for path in names if path.is_file() and not path.is_symlink()]
    inside = find_logs(logs / wire.INSIDE) if alone else []
    for at, log in enumerate(plain or inside):
        name = f"{recording.path.name}.{at}" if at else recording.path.name
        shutil.move(log, recording.path.with_name(name))


def _load_all(folder: Path, row: Sequence[wire.Tensor]) -> list[Array] | None:
    loaded = [_load(folder, item) for item in row]
    whole = [item for item in loaded if item is not None]
    return whole if len(whole) == len(loaded) else None


def _load(folder: Path, item: wire.Tensor) -> Array | None:
    try:
        dtype = np.dtype(np.float64) if item.dtype == "float64" else DType(item.dtype).numpy
    except ValueError:
        return None
    path = folder / Path(item.file).name
    data = _plain(path, dtype.itemsize * item.count + 1)
    if len(data) != dtype.itemsize * item.count:
        return None
    return np.frombuffer(data, dtype).reshape(item.shape)


def _calls(folder: Path, result: wire.Result, index: int) -> tuple[list[Finding], list[str]]:
    """Findings and APIs of the operator calls of one set of inputs."""
    before = result.calls[index - 1] if index and index <= len(result.calls) else 0
    after = result.calls[index] if index < len(result.calls) else before
    lines = _plain(folder / wire.CALLS, 64 << 20).splitlines()[before:after]
    findings: list[Finding] = []
    apis: list[str] = []
    for row in _rows(lines):
        findings += _findings(row)
        apis += [str(name) for name in row.get("apis", [])]
    return findings, apis


def _report(folder: Path) -> tuple[list[Finding], list[str]]:
    """The same of launches inside the process."""
    rows = list(_rows([_plain(folder / wire.REPORT, 16 << 20)]))
    findings = [item for row in rows for item in _findings(row)]
    return findings, [str(name) for row in rows for name in row.get("apis", [])]


def _rows(lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                yield row


def _findings(row: dict[str, Any]) -> list[Finding]:
    with contextlib.suppress(ValidationError, TypeError):
        found = [Finding.model_validate(item) for item in row.get("findings", [])]
        return [item for item in found if item.code in CODES]
    return []


def _failed(result: wire.Result, boxed: Boxed, findings: list[Finding], seconds: float) -> _Answer:
    """The set of inputs on which the process came to grief."""
    error = result.error
    if error is not None and error.code in CODES:
        place = Place(error.file, error.line)
        finding = Finding(
            code=error.code, message=error.message, file=place.file, line=place.line,
            seen=error.seen,
        )  # fmt: skip
        return _Answer(None, [*findings, finding], [], error.message)
    if findings:
        return _Answer(None, findings, [], "the kernel did not run to its end")
    log = boxed.stderr.decode(errors="replace").strip()[-_LOG_CHARS:]
    if boxed.timed_out:
        code, message = "kernel-hang", f"the candidate had not ended after {seconds:g} s"
    elif boxed.out_of_memory:
        code, message = "kernel-memory", "the candidate used more memory than it may"
    else:
        code, message = "kernel-crash", f"the candidate's process ended ({boxed.returncode})"
    return _Answer(None, [Finding(code=code, message=message, seen=log)], [], message)
