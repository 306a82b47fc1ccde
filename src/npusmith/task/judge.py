"""The judge: one project, one prepared task, one verdict.

Compiles the project's C++ text as it lies on disk, runs it on the twin once per set of inputs, and
compares every output with PyTorch's. It knows nothing of who wrote the project. The candidate runs
in a process of its own; its outputs are compared after that process has ended. Suites are judged
here too: their rule is part of the criterion.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from npusmith import __version__
from npusmith.errors import Level, NpusmithError, TaskError, TwinError
from npusmith.ir.dtypes import DType
from npusmith.ir.spec import OpSpec
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.apis import Known, find_api
from npusmith.target.chips import Chip
from npusmith.task.branches import Blocks, find_shapes, find_sizes, task_sizes
from npusmith.task.ports import check_attrs, deal, share_outputs, take_inputs, types
from npusmith.task.prepared import Prepared, TrialData, map_tensor
from npusmith.task.ranks import find_answered
from npusmith.task.recording import Recording
from npusmith.task.references import open_references
from npusmith.task.tolerance import check_profile
from npusmith.task.trials import SHAPE_ELEMENTS
from npusmith.task.unreached import unreached
from npusmith.task.verdict import NOT_RUN, Doubt, Rung, Trial, Verdict, right_rung
from npusmith.task.weak import note_task
from npusmith.task.weighing import Criterion, Pair, reject, value_of, weigh
from npusmith.task.wire import TensorFile
from npusmith.twin import Build, Project, Run, build, read_project, run
from npusmith.twin.coverage import Ran, open_places, user_blocks
from npusmith.twin.finding import Finding
from npusmith.twin.launch import Input
from npusmith.twin.opdef import OpText
from npusmith.twin.orders import Attr, Virtual
from npusmith.twin.watch import Watch

Array = np.ndarray[Any, Any]
Binder = Callable[[TrialData], list[Input]]

_WATCH = Watch()
_TYPES = frozenset(dtype.value for dtype in DType)
PARALLEL_BYTES = 64 << 20  # sets of inputs below this run two at a time
UNFINISHED = "the kernel did not run to its end"
UNSTEADY = "two runs on the same inputs gave different outputs"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run gave."""

    trial: Trial
    peak_bytes: int = 0
    apis: tuple[str, ...] = ()  # that the kernel called
    reached: Ran = field(default_factory=dict)  # blocks of its code


def judge(
    project: Path,
    prepared: Prepared,
    chip: Chip,
    tolerance: str,
    *,
    spec: OpSpec | None = None,
    dynamic: bool = True,
    stop: bool = False,
    step: Callable[[str, str], None] = lambda name, detail: None,
    seconds: float = 60.0,
    watch: Watch = _WATCH,
    attrs: Mapping[str, Attr] | None = None,
    recording: Recording | None = None,
    criterion: Criterion | None = None,
    jobs: int = 2,
) -> Verdict:
    """Judge the project in that folder.

    `spec` says which inputs the operator takes (our own projects have one); without it they are
    matched by number. `dynamic`: the sets of other shapes count too. `stop`: once a set is wrong,
    those behind it are not run. `seconds` limits each run.
    `watch`: what the sanitizer assumes and reports. `attrs`: values of the operator's attributes.
    `recording`: where the first run leaves its log for the timing model. `criterion`: instead of
    the tolerance alone. `jobs`: small sets are run so many at a time.
    Raises TaskError when the operator's inputs cannot be matched with the task's.
    """
    profile = check_profile(tolerance)
    rule = criterion or Criterion(profile)
    verdict = empty_verdict(project, prepared, chip, profile)
    clock = time.perf_counter()
    step("compile", str(project))
    try:
        operator = open_operator(
            project, prepared, chip, spec, attrs=attrs or {}, seconds=seconds, watch=watch
        )
    except NpusmithError as error:
        if isinstance(error, TaskError):
            raise
        verdict.error = error.record()
        verdict.verdict = "fail"
        return verdict
    built = operator.built
    verdict.compiled, verdict.rung = True, Rung.COMPILED
    verdict.seconds["compile"] = round(time.perf_counter() - clock, 3)
    verdict.provenance["compiler"] = built.toolchain.compiler.version

    clock = time.perf_counter()
    chosen = [item for item in prepared.trials if dynamic or item.kind != "shape"]
    step("run on the twin", f"{len(chosen)} sets of inputs")
    plan = _Plan(operator, rule, recording, stop, jobs)
    outcomes = _run_all(chosen, plan)
    verdict.seconds["run"] = round(time.perf_counter() - clock, 3)
    peak = max((item.peak_bytes for item in outcomes), default=0)
    verdict.provenance["candidate_peak_bytes"] = peak
    step("weigh", f"tolerance {profile}")
    conclude(verdict, outcomes)
    if dynamic and verdict.correct:
        try:
            outcomes += _try_branches(prepared, spec, plan, outcomes, step)
        except TaskError as error:  # the task ran before: what is lost is said, not hidden
            verdict.provenance["branches_not_tried"] = error.message
        conclude(verdict, outcomes)
    verdict.trials = [item.trial for item in outcomes]
    if not any(item.trial.result == NOT_RUN for item in outcomes):
        verdict.unreached = unreached(built, (item.reached for item in outcomes))
    if dynamic and verdict.correct:
        _try_ranks(verdict, prepared, plan)
    note_task(verdict, prepared, rule.own)
    return verdict


def _try_branches(
    prepared: Prepared,
    spec: OpSpec | None,
    plan: _Plan,
    outcomes: Sequence[Outcome],
    step: Callable[[str, str], None],
) -> list[Outcome]:
    """Runs at shapes that take branches of host code and kernel which none of the runs took."""
    built, sizes = plan.operator.built, task_sizes(prepared)
    reached = frozenset[tuple[str, int]]().union(
        *(user_blocks(built, item.reached) for item in outcomes)
    )
    wanted = find_sizes(built.project.texts, open_places(built, reached))
    if sizes is None or not wanted:
        return []
    step("look for branches", f"{len(wanted)} sizes out of conditions")
    taken = partial(_dry, prepared, spec, plan)
    found = find_shapes(sizes, wanted, reached, taken, SHAPE_ELEMENTS)
    if not found:
        return []
    step("reference", f"{len(found)} shapes that take other branches")
    with temporary_folder("npusmith-branches-") as name:
        seeds = tuple(item.seed for item in prepared.trials if item.kind == "random")[:1]
        more = open_references(
            prepared.task, Path(name), seeds=seeds, edges=False, shapes=False, given=found
        )
        bind = bind_inputs(more, spec, built.project.op)
        there = replace(plan, operator=replace(plan.operator, bind=bind), recording=None)
        return [_run_trial(item, there) for item in more.trials]


def _dry(
    prepared: Prepared,
    spec: OpSpec | None,
    plan: _Plan,
    inputs: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
) -> Blocks | None:
    """What of the user's code inputs of these shapes take; None where they are refused."""
    sample, operator = _sample(prepared), plan.operator
    op = operator.project.op
    given = [
        Virtual(shape, DType.FLOAT32 if item.dtype == "float64" else DType(item.dtype))
        for shape, item in zip(inputs, sample.record.inputs, strict=True)
    ]
    wanted = [
        (shape, DType.of(array.dtype))
        for shape, array in zip(outputs, sample.references, strict=True)
    ]
    ports = take(prepared, spec, op, given, prepared.held(sample))
    result = run(
        operator.built, ports, deal(op.outputs, operator.results, wanted), operator.attrs,
        seconds=operator.seconds, watch=operator.watch, dry=True, ends=1,
    )  # fmt: skip
    refused = any(item.code == "tiling-failed" for item in result.findings)
    return None if refused else user_blocks(operator.built, result.ran)


def _try_ranks(verdict: Verdict, prepared: Prepared, plan: _Plan) -> None:
    """What serves other shapes refuses other ranks, or serves them too."""
    tried = [_run_trial(item, plan).trial for item in prepared.ranks]
    found = find_answered(tried, {item.code for item in verdict.findings})
    verdict.findings += found
    if found:
        verdict.correct, verdict.verdict = False, "fail"


def empty_verdict(project: Path, prepared: Prepared, chip: Chip, profile: str) -> Verdict:
    """The verdict before anything was done."""
    return Verdict(
        verdict="fail", rung=Rung.NONE, compiled=False, correct=False, task=prepared.name,
        tolerance=profile, chip=chip.name, project=str(project),
        provenance={
            "npusmith": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            **prepared.provenance,
        },
    )  # fmt: skip


# --------------------------------------------------------------------------------------- binding


def bind_inputs(prepared: Prepared, spec: OpSpec | None, op: OpText) -> Binder:
    """How to make the operator's inputs out of a trial's."""
    return partial(_bind, prepared, spec, op)


def _bind(prepared: Prepared, spec: OpSpec | None, op: OpText, trial: TrialData) -> list[Input]:
    """The operator's inputs out of a trial's."""
    held = prepared.files_of(trial)
    taken: list[Any] = take(prepared, spec, op, list(trial.record.inputs), held)

    def load(item: Any) -> Any:
        if isinstance(item, list):
            return [load(part) for part in item]
        _check_type(item)
        return item and map_tensor(prepared.folder, item)

    return [load(item) for item in taken]


def _check_type(item: TensorFile | None) -> None:
    if item is not None and item.dtype not in _TYPES:
        message = f"tensors of {item.dtype} have no element type on the chip"
        raise TwinError("inputs-mismatch", message)


def take(
    prepared: Prepared, spec: OpSpec | None, op: OpText, given: list[Any], held: dict[str, Any]
) -> list[Input]:
    """The operator's inputs out of the arguments of forward and what the model holds."""
    if spec is None and prepared.manifest.graph is not None:
        # somebody else's operator takes what the graph reads, and no more
        read = prepared.graph.inputs
        given = [given[item.position] for item in read if item.kind == "user"]
        held = {item.target: held[item.target] for item in read if item.kind != "user"}
    return take_inputs(op, spec, given, held)


def _sample(prepared: Prepared) -> TrialData:
    """The first set of inputs that is judged."""
    sample = next((item for item in prepared.trials if not item.skipped), None)
    if sample is None:
        raise TaskError("task-no-trials", "the reference ran on no set of inputs")
    return sample


# --------------------------------------------------------------------------------------- running


@dataclass(frozen=True, slots=True)
class Operator:
    """A compiled project, and how it is called on a set of inputs."""

    project: Project
    chip: Chip
    bind: Binder
    results: tuple[int, ...]  # of the reference's outputs, how many each output holds
    builds: dict[tuple[DType, ...], Build]  # by the element types of inputs and outputs
    attrs: Mapping[str, Attr]
    seconds: float
    watch: Watch

    @property
    def built(self) -> Build:
        """For the first set of inputs."""
        return next(iter(self.builds.values()))

    def prepare(self, trial: TrialData) -> tuple[Build, list[Input]]:
        """What is called on that set, and with what."""
        op, inputs = self.project.op, self.bind(trial)
        for item in trial.record.references:
            _check_type(item)
        outputs = deal(op.outputs, self.results, trial.references)
        kinds = types(op, [*inputs, *outputs])
        if kinds not in self.builds:
            self.builds[kinds] = build(self.project, self.chip, kinds)
        return self.builds[kinds], inputs

    def call(self, trial: TrialData, **options: Any) -> Run:
        built, inputs = self.prepare(trial)
        wanted = [(array.shape, DType.of(array.dtype)) for array in trial.references]
        return run(
            built, inputs, deal(self.project.op.outputs, self.results, wanted), self.attrs,
            seconds=self.seconds, watch=self.watch, **options,
        )  # fmt: skip


def open_operator(
    path: Path,
    prepared: Prepared,
    chip: Chip,
    spec: OpSpec | None,
    *,
    attrs: Mapping[str, Attr] | None = None,
    seconds: float = 60.0,
    watch: Watch = _WATCH,
) -> Operator:
    """Compile the project for every set of inputs. Raises what compiling and binding raise."""
    source = read_project(path)
    check_attrs(source.op, attrs or {})
    results = share_outputs(source.op, len(_sample(prepared).references))
    bind = bind_inputs(prepared, spec, source.op)
    operator = Operator(source, chip, bind, results, {}, attrs or {}, seconds, watch)
    for trial in prepared.trials:
        if not trial.skipped:
            operator.prepare(trial)
    return operator


@dataclass(frozen=True, slots=True)
class _Plan:
    """How each set of inputs is run."""

    operator: Operator
    criterion: Criterion
    recording: Recording | None = None  # of the first run
    stop: bool = False  # at the first set that is wrong
    jobs: int = 2


def _run_all(trials: Sequence[TrialData], plan: _Plan) -> list[Outcome]:
    """Outcomes in the order of the trials, as far as one decides the verdict.

    What ran beside that one is not told: the same candidate has the same verdict.
    """
    first = next((at for at, item in enumerate(trials) if not item.skipped), len(trials))
    head, rest = trials[: first + 1], trials[first + 1 :]
    done = [_run_trial(item, plan, first=True) for item in head]
    if done and _decides(done[-1], plan, first=True):
        return done + _not_run(rest, done[-1])
    small = all(item.bytes < PARALLEL_BYTES for item in trials)
    with ThreadPoolExecutor(plan.jobs if small else 1) as pool:
        jobs = [pool.submit(_run_trial, item, plan) for item in rest]
        for at, job in enumerate(jobs):
            done.append(job.result())
            if _decides(done[-1], plan):
                pool.shutdown(cancel_futures=True)
                return done + _not_run(rest[at + 1 :], done[-1])
    return done


def _decides(outcome: Outcome, plan: _Plan, *, first: bool = False) -> bool:
    """Whether no other set is run: this one hangs and is the first, or is wrong and that is all."""
    trial = outcome.trial
    hangs = first and any(item.code == "kernel-hang" for item in trial.findings)
    counts = trial.own or plan.criterion.official is None
    return hangs or (plan.stop and counts and not trial.skipped and not trial.passed)


def _not_run(trials: Sequence[TrialData], decided: Outcome) -> list[Outcome]:
    found = [start_trial(item) for item in trials]
    for record in found:
        record.skipped = record.skipped or f"{NOT_RUN}: {decided.trial.name} decided the verdict"
    return [Outcome(record) for record in found]


def start_trial(trial: TrialData) -> Trial:
    return Trial(
        name=trial.name, kind=trial.kind, seed=trial.seed, skipped=trial.skipped,
        shapes=[list(shape) for shape in trial.shapes], draw=trial.draw,
        case=trial.name.partition(",")[0] if trial.record.case >= 0 else "",
    )  # fmt: skip


def _run_trial(trial: TrialData, plan: _Plan, *, first: bool = False) -> Outcome:
    """The first set that is judged runs twice: the same inputs must give the same bits."""
    record = start_trial(trial)
    if trial.skipped:
        return Outcome(record)
    clock = time.perf_counter()
    logged = plan.recording.options() if first and plan.recording else {}
    result = plan.operator.call(trial, **logged)
    record.findings = list(result.findings)
    if result.completed:
        pair = Pair(trial, value_of(result.outputs, trial))
        weigh(record, pair, plan.criterion, *plan.criterion.says([pair]))
    else:
        record.message = UNFINISHED
    known = not result.completed or (plan.stop and not record.passed)
    if first and not known and not same_bits(result.outputs, plan.operator.call(trial).outputs):
        reject(record, UNSTEADY, plan.criterion)
    record.seconds = round(time.perf_counter() - clock, 4)
    return Outcome(record, result.peak_bytes, result.apis, result.ran)


def same_bits(first: Iterable[Array], second: Iterable[Array]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


# ------------------------------------------------------------------------------------ concluding


def conclude(verdict: Verdict, outcomes: Sequence[Outcome]) -> None:
    """What all runs together say: findings, rung, the answer."""
    judged = [item for item in outcomes if not item.trial.skipped]
    verdict.findings = _merge(item.trial.findings for item in judged)
    verdict.doubts = find_doubts(name for item in judged for name in item.apis)
    errors = [item for item in verdict.findings if item.level is Level.ERROR]
    figures = [item.trial.max_abs_error for item in _ordinary(judged)]
    known = [figure for figure in figures if figure is not None]
    verdict.max_abs_error = max(known) if known else None
    if judged and all(item.trial.ended for item in judged):
        verdict.rung = Rung.RAN
    right = bool(judged) and all(item.trial.passed for item in judged)
    if right and verdict.rung is Rung.RAN:
        verdict.rung = right_rung(item.code for item in verdict.findings)
    # values may be right by luck: a broken hardware rule fails the verdict all the same
    verdict.correct = right and not errors
    verdict.verdict = "pass" if verdict.correct else "fail"


def _ordinary(judged: Sequence[Outcome]) -> Sequence[Outcome]:
    """The sets with the task's own values, whose error is the headline; all where there are none.

    Of inputs scaled to 1e15 the largest error says nothing about ordinary ones.
    """
    own = [item for item in judged if item.trial.kind in ("random", "group")]
    return own or judged


def find_doubts(called: Iterable[str]) -> list[Doubt]:
    """The APIs among those names whose behaviour was inferred, or is unknown."""
    rows = {row.name: row for row in map(find_api, called) if row is not None}
    return [
        Doubt(api=row.name, known=row.known, note=row.note)
        for _, row in sorted(rows.items())
        if row.known in (Known.INFERRED, Known.UNKNOWN)
    ]


def _merge(groups: Iterable[Sequence[Finding]]) -> list[Finding]:
    """One entry per code and line over all trials, counts added."""
    merged: dict[tuple[str, str, int], Finding] = {}
    for finding in (item for group in groups for item in group):
        key = (finding.code, finding.file, finding.line)
        before = merged.get(key)
        if before is not None:
            finding = before.model_copy(update={"count": before.count + finding.count})
        merged[key] = finding
    return list(merged.values())
