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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.errors import Level, NpusmithError, TaskError, TwinError
from npusmith.ir.dtypes import DType
from npusmith.ir.spec import OpSpec
from npusmith.ir.text import show_expr
from npusmith.lower.served import restrictions, with_own_weights
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.apis import Known, find_api
from npusmith.target.chips import Chip
from npusmith.task.branches import (
    MOST,
    DryRun,
    find_equal_shapes,
    find_equals,
    find_ranges,
    find_shapes,
    find_sizes,
    task_sizes,
)
from npusmith.task.judge_options import PLAIN, JudgeOptions
from npusmith.task.ports import check_attrs, deal, share_outputs, take_inputs, types
from npusmith.task.prepared import Prepared, TrialData, map_tensor
from npusmith.task.ranks import TILING_FAILED, find_answered
from npusmith.task.references import open_references, with_bounds
from npusmith.task.running import Outcome, Plan, run_all, run_set
from npusmith.task.served import limit, served_sets
from npusmith.task.tolerance import check_profile
from npusmith.task.trials import SHAPE_ELEMENTS, Sets
from npusmith.task.unreached import unreached
from npusmith.task.verdict import NOT_RUN, REFUSED, Doubt, Rung, Verdict, right_rung
from npusmith.task.weak import note_task
from npusmith.task.weighing import Criterion
from npusmith.task.wire import TensorFile
from npusmith.twin import Build, Project, Run, build, read_project, run
from npusmith.twin.coverage import open_places, user_blocks
from npusmith.twin.finding import Finding
from npusmith.twin.launch import Input, LaunchOptions
from npusmith.twin.opdef import OpText
from npusmith.twin.orders import Attr, Virtual
from npusmith.twin.watch import Watch
from npusmith.version import __version__

Array = np.ndarray[Any, Any]
Binder = Callable[[TrialData], list[Input]]

_WATCH = Watch()
_TYPES = frozenset(dtype.value for dtype in DType)


def _weights(prepared: Prepared) -> dict[str, tuple[int, ...]]:
    """Shapes of the model's parameters and buffers; none of a model that was not captured."""
    graph = prepared.manifest.graph
    return {item.target: item.shape for item in graph.inputs if item.target} if graph else {}


def judge(
    project: Path,
    prepared: Prepared,
    chip: Chip,
    tolerance: str,
    options: JudgeOptions = PLAIN,
    *,
    spec: OpSpec | None = None,
    attrs: Mapping[str, Attr] | None = None,
) -> Verdict:
    """Judge the project in that folder.

    `spec` says which inputs the operator takes (our own projects have one); without it they are
    matched by number. `attrs`: values of the operator's attributes.
    Raises TaskError when the operator's inputs cannot be matched with the task's.
    """
    profile = check_profile(tolerance)
    rule = options.criterion or Criterion(profile)
    verdict = empty_verdict(project, prepared, chip, profile)
    if spec is not None and spec.legal is not None:  # None: nobody knows what it serves
        served = restrictions(with_own_weights(spec, _weights(prepared)))
        verdict.provenance["serves"] = [show_expr(expr) for expr in served]
    clock = time.perf_counter()
    options.step("compile", str(project))
    try:
        operator = open_operator(
            project,
            prepared,
            chip,
            spec,
            attrs=attrs or {},
            seconds=options.seconds,
            watch=options.watch,
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

    chosen = [item for item in prepared.trials if options.dynamic or item.kind != "shape"]
    plan = Plan(
        operator, rule, options.recording, options.stop, options.jobs,
        partial(limit, prepared, spec),
        lambda trial: with_bounds(prepared, [trial.name]).get(trial.name),
    )  # fmt: skip
    outcomes = run_sets(verdict, chosen, plan, options.step)
    if options.dynamic and verdict.correct:
        try:
            outcomes += _try_branches(prepared, spec, operator, plan, outcomes, options.step)
        except TaskError as error:  # the task ran before: what is lost is said, not hidden
            verdict.provenance["branches_not_tried"] = error.message
        conclude(verdict, outcomes)
    verdict.trials = [item.trial for item in outcomes]
    if not any(item.trial.result == NOT_RUN for item in outcomes):
        verdict.unreached = unreached(built, (item.reached for item in outcomes))
    if options.dynamic and verdict.correct:
        _try_ranks(verdict, prepared, plan)
    note_task(verdict, prepared, rule.own)
    return verdict


def run_sets(
    verdict: Verdict, chosen: Sequence[TrialData], plan: Plan, step: Callable[[str, str], None]
) -> list[Outcome]:
    """Run what was compiled on these sets; what they say together is in the verdict then."""
    clock = time.perf_counter()
    step("run on the twin", f"{len(chosen)} sets of inputs")
    outcomes = run_all(chosen, plan)
    verdict.seconds["run"] = round(time.perf_counter() - clock, 3)
    peak = max((item.peak_bytes for item in outcomes), default=0)
    verdict.provenance["candidate_peak_bytes"] = peak
    step("weigh", f"tolerance {verdict.tolerance}")
    verdict.trials = [item.trial for item in outcomes]
    conclude(verdict, outcomes)
    return outcomes


def _try_branches(
    prepared: Prepared,
    spec: OpSpec | None,
    operator: Operator,
    plan: Plan,
    outcomes: Sequence[Outcome],
    step: Callable[[str, str], None],
) -> list[Outcome]:
    """Runs at shapes that take branches of host code and kernel which none of the runs took.

    Where sets were refused, also at shapes that the operator says it serves.
    """
    built, sizes = operator.built, task_sizes(prepared)
    reached = frozenset[tuple[str, int]]().union(
        *(user_blocks(built, item.reached) for item in outcomes)
    )
    refused = {item.trial.name for item in outcomes if item.trial.result == REFUSED}
    found = served_sets(prepared, spec, [row for row in prepared.trials if row.name in refused])
    texts, taken = built.project.texts, partial(_dry, prepared, spec, operator)
    wanted = find_sizes(texts, open_places(built, reached))
    if sizes is not None and wanted:
        step("look for branches", f"{len(wanted)} sizes out of conditions")
        found += find_shapes(sizes, wanted, reached, taken, SHAPE_ELEMENTS)
    if sizes is not None:
        inside, equal = find_ranges(texts), find_equals(texts)
        for numbers, most in ((inside, 2 * MOST), (equal, MOST)):
            served = find_equal_shapes(sizes, numbers, taken, SHAPE_ELEMENTS, most)
            found += [item for item in served if item not in found]
    if not found:
        return []
    step("reference", f"{len(found)} more shapes: other branches, or instead of refused ones")
    with temporary_folder("npusmith-branches-") as name:
        seeds = tuple(item.seed for item in prepared.trials if item.kind == "random")[:1]
        more = open_references(
            prepared.task,
            Path(name),
            sets=Sets(seeds=seeds, edges=False, shapes=False, given=found),
        )
        bind = bind_inputs(more, spec, built.project.op)
        there = replace(plan, candidate=replace(operator, bind=bind), recording=None)
        return [run_set(item, there) for item in more.trials]


def _dry(
    prepared: Prepared,
    spec: OpSpec | None,
    operator: Operator,
    inputs: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
) -> DryRun | None:
    """What of the user's code inputs of these shapes take; None where they are refused."""
    sample = _sample(prepared)
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
        operator.built,
        ports,
        deal(op.outputs, operator.results, wanted),
        operator.attrs,
        options=LaunchOptions(seconds=operator.seconds, watch=operator.watch, dry=True, ends=1),
    )
    refused = any(item.code == TILING_FAILED for item in result.findings)
    if refused:
        return None
    return DryRun(user_blocks(operator.built, result.ran), result.instructions)


def _try_ranks(verdict: Verdict, prepared: Prepared, plan: Plan) -> None:
    """What serves other shapes refuses other ranks, or serves them too."""
    tried = [run_set(item, plan).trial for item in prepared.ranks]
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
        if isinstance(item, np.ndarray):  # a constant of the project's own
            return item
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
        read = prepared.graph.operator_inputs
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
            built,
            inputs,
            deal(self.project.op.outputs, self.results, wanted),
            self.attrs,
            options=LaunchOptions(seconds=self.seconds, watch=self.watch, **options),
        )


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
    source = read_project(path, options=watch.build)
    check_attrs(source.op, attrs or {})
    results = share_outputs(source.op, len(_sample(prepared).references))
    bind = bind_inputs(prepared, spec, source.op)
    operator = Operator(source, chip, bind, results, {}, attrs or {}, seconds, watch)
    for trial in prepared.trials:
        if not trial.skipped:
            operator.prepare(trial)
    return operator


# ------------------------------------------------------------------------------------ concluding


def conclude(verdict: Verdict, outcomes: Sequence[Outcome]) -> None:
    """What all runs together say: findings, rung, the answer."""
    judged = [item for item in outcomes if not item.trial.skipped]
    verdict.findings = _merge(item.trial.findings for item in judged)
    verdict.prints = list(judged[0].prints) if judged else []
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
