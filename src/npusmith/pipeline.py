"""The main jobs, from files to a verdict: generate, run, check.

Each is a straight line of steps over the parts below it; the CLI and Python callers use nothing
else. What only `generate` needs, writers and reports, is imported there: `run` has no use for it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from npusmith.errors import LangError, Level, NpusmithError, Place
from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec, Source
from npusmith.lang import check_all, parse
from npusmith.lower import lower, plain_spec, read_bindings, write_project
from npusmith.sandbox.folder import temporary_folder
from npusmith.store.folder import new_folder
from npusmith.store.record import code_digest, to_json, write_result
from npusmith.target.chips import Chip
from npusmith.task.composition import read_composition
from npusmith.task.graph import Graph
from npusmith.task.judge import empty_verdict, judge
from npusmith.task.judge_composition import judge_composition
from npusmith.task.judge_intermediates import judge_intermediates, put_intermediates
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.load import Task, open_task
from npusmith.task.module import judge_module
from npusmith.task.prepared import Prepared
from npusmith.task.program import SECONDS as PROGRAM_SECONDS
from npusmith.task.program import Around, judge_program
from npusmith.task.recording import Recording
from npusmith.task.references import open_references
from npusmith.task.source import judge_source
from npusmith.task.tolerance import check_profile
from npusmith.task.trials import OnGraph, Sets, seeds_for
from npusmith.task.verdict import Rung, Verdict
from npusmith.twin import check_source
from npusmith.twin.debugger import find_debugger
from npusmith.twin.formats import Submission, read_submission
from npusmith.twin.options import PLAIN, BuildOptions
from npusmith.twin.orders import Attr
from npusmith.twin.watch import Watch

if TYPE_CHECKING:
    from npusmith.bench.model import Brief, Candidate, Exposed, Writer

SOURCES = (".asc", ".cpp", ".cc")  # direct launch
_CHECKED = (".py", *SOURCES, ".h", ".hpp")
MOST_BYTES = 1 << 20  # of a tile program


class Progress(Protocol):
    """Told at the beginning of each step."""

    def step(self, name: str, detail: str = "") -> None: ...


def generate(
    task: Path,
    out: Path,
    chip: Chip,
    tolerance: str,
    progress: Progress,
    *,
    writer: Writer | None = None,
    seed: int = 0,
    timed: bool = False,
) -> Verdict:
    """Ask a writer for an operator that solves the task, judge it, and leave everything in `out`.

    `writer`: by default the deterministic one, with its search. Raises TaskError for an unusable
    task and what the writer raises for one that it refuses; a candidate that is wrong is a Verdict,
    not an error.
    """
    from npusmith.writers.plan import PlanWriter

    profile = check_profile(tolerance)
    _named_in_utf8(out, task)
    asked = writer or PlanWriter(chip)
    clock = _Clock()
    with new_folder(out) as folder, temporary_folder("npusmith-") as work:
        opened = open_task(task)
        written: list[Candidate] = []

        def write(graph: Graph) -> None:
            progress.step("write", f"writer {asked.name}, {len(graph.nodes)} graph nodes")
            start = time.perf_counter()
            written.append(asked.write(_brief(opened, graph), 0, seed))
            clock.laps["write"] = round(time.perf_counter() - start, 3)
            if early:
                progress.step("reference", "PyTorch on the other sets of inputs, and in float64")

        # What is refused is refused before PyTorch computes what nobody will need.
        early = isinstance(asked, PlanWriter)
        prepared = _prepare(
            task, Path(work), progress, clock, seed, on_graph=write if early else None
        )
        if not early:
            write(prepared.graph)
        candidate = written[-1]
        recording = Recording(Path(work, "log")) if timed else None
        verdict, program = _judge_candidate(
            candidate, folder, prepared, chip, profile, progress, recording, composed=early
        )
        if candidate.exposed is not None and verdict.compiled:
            _judge_intermediates(candidate.exposed, verdict, prepared, chip, Path(work), progress)
        verdict = _moved(verdict, folder, out)
        verdict.project = str(out)
        verdict.seconds = {**clock.laps, **verdict.seconds}
        verdict.provenance |= {
            "writer": candidate.writer, "seed": seed, "task_file": str(task.absolute()),
            **candidate.origin,
        }  # fmt: skip
        progress.step("report", "result.json, report.html")
        _write_results(folder, verdict, program, prepared, chip)
    return verdict


def _brief(task: Task, graph: Graph) -> Brief:
    """What a writer may know of a task: its text and graph, not the sets of inputs."""
    from npusmith.bench.model import Brief, Item

    item = Item(
        suite="task", name=task.name, category="", source=str(task.path), digest=task.digest
    )
    return Brief(item=item, reference=task.text, path=task.given, graph=graph, intermediates=True)


def _judge_intermediates(
    exposed: Exposed,
    verdict: Verdict,
    prepared: Prepared,
    chip: Chip,
    work: Path,
    progress: Progress,
) -> None:
    """What each of several kernels stores for the next ones: two sets, and every shape that ran."""
    from npusmith.bench.suites.submit import lay_out

    names = tuple(value for value, _ in exposed.values)
    progress.step("judge each kernel", f"{len(names)} values that pass between kernels")
    clock = time.perf_counter()
    seeds = tuple(item.seed for item in prepared.trials if item.kind == "random")[:2]
    ran = [item.shapes for item in verdict.trials if item.kind == "shape" and not item.skipped]
    given = list(dict.fromkeys(tuple(map(tuple, shapes)) for shapes in ran))
    try:
        more = open_references(
            prepared.task,
            work / "intermediates",
            sets=Sets(
                seeds=seeds,
                edges=False,
                shapes=False,
                intermediates=names,
                longer=exposed.longer,
                given=[list(shapes) for shapes in given],
                bounds=False,
            ),
        )
        project = work / "exposed"
        project.mkdir()
        lay_out(exposed.files, project)
        rows = judge_intermediates(project, more, chip, verdict.tolerance, exposed.values)
        put_intermediates(verdict, rows)
    except NpusmithError as error:  # the whole was judged: what is lost is said, not hidden
        verdict.provenance["kernels_not_judged"] = str(error.message)
    verdict.seconds["judge each kernel"] = round(time.perf_counter() - clock, 3)


def _judge_candidate(
    candidate: Candidate,
    folder: Path,
    prepared: Prepared,
    chip: Chip,
    profile: str,
    progress: Progress,
    recording: Recording | None,
    *,
    composed: bool,
) -> tuple[Verdict, Program | None]:
    """Lay the candidate out in the folder and judge it; also its tile program, where it has one.

    composed: its writer may leave a part to PyTorch. A model might leave it everything.
    """
    from npusmith.bench.suites.submit import lay_out

    lay_out(candidate.files, folder)
    verdict = empty_verdict(folder, prepared, chip, profile)
    programs = []
    for file in sorted(folder.glob("*.tile.py")):
        verdict.program = str(file)
        programs.append(_read_program(file, chip, verdict))
    program = programs[0] if len(programs) == 1 else None
    if len(programs) > 1:  # a module of several operators
        verdict.program = ""
    if verdict.error is not None:
        return verdict, None
    if candidate.format == "program" and program is not None:
        write_project(lower(program, chip), chip, folder, plain_spec(program))
    alone = [folder / name for name in candidate.files if name.endswith(SOURCES)]
    project = alone[0] if len(candidate.files) == 1 and alone else folder
    composition = read_composition(folder) if composed else None
    form = _Form(spec=read_bindings(folder), composition=composition)
    options = JudgeOptions(
        dynamic=candidate.dynamic, stop=True, step=progress.step, recording=recording
    )
    judged = _judge_any(project, form, prepared, chip, profile, options)
    judged.program = verdict.program
    _time(judged, recording, chip, progress, composition)
    return judged, program


def _read_program(file: Path, chip: Chip, verdict: Verdict) -> Program | None:
    """The tile program in that file, when it is legal; else the verdict says why it is not."""
    try:
        program = parse(_plain_text(file), str(file))
    except LangError as error:
        verdict.error = error.record()
        return None
    verdict.rung = Rung.PARSED
    if wrong := check_all(program, chip, str(file)):
        verdict.error = wrong[0].record()
        verdict.provenance["errors"] = [item.record() for item in wrong]
        return None
    verdict.rung = Rung.LEGAL
    return program


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a user may say about the run of an existing project.

    dynamic: sets of other shapes count; None: when the project says that it serves them.
    attrs: values of an operator's attributes, for a folder.
    timed: also estimate the time on the chip.
    around: commands before and after a program.
    """

    dynamic: bool | None = None
    seed: int = 0
    watch: Watch = field(default_factory=Watch)
    attrs: Mapping[str, Attr] | None = None
    timed: bool = False
    around: Around | None = None

    def judging(
        self, progress: Progress, recording: Recording | None, *, dynamic: bool = False
    ) -> JudgeOptions:
        """As the judges take them."""
        return JudgeOptions(
            dynamic=dynamic, stop=True, step=progress.step, watch=self.watch, recording=recording
        )


_PLAIN_RUN = RunOptions()


def run(
    project: Path,
    task: Path | None,
    chip: Chip,
    tolerance: str,
    progress: Progress,
    options: RunOptions = _PLAIN_RUN,
) -> Verdict:
    """Judge an existing project.

    A project is a folder, a MultiKernelBench submission (.json or .py), or a direct-launch source
    (.asc, .cpp); only the last can do without a task, when it has a main function.
    """
    profile = check_profile(tolerance)
    _check_run(project, task, options)
    submission = None if task is None else _read_file(project)
    spec = None if task is None or project.is_file() else read_bindings(project)
    clock = _Clock()
    with temporary_folder("npusmith-") as work:
        recording = Recording(Path(work, "log")) if options.timed else None
        if task is None:
            composition = None
            verdict = _run_alone(project, chip, progress, options, recording)
        else:
            prepared = _prepare(task, Path(work), progress, clock, options.seed)
            composition = read_composition(project)
            served = spec is not None or composition is not None  # ours say what they serve
            dynamic = served if options.dynamic is None else options.dynamic
            form = _Form(submission, spec, composition)
            how = options.judging(progress, recording, dynamic=dynamic)
            verdict = _judge_any(project, form, prepared, chip, profile, how, options.attrs)
            verdict.provenance["seed"] = options.seed
        _time(verdict, recording, chip, progress, composition)
        verdict.seconds = {**clock.laps, **verdict.seconds}
    return verdict


def strictly(verdict: Verdict) -> Verdict:
    """The verdict when a warning counts like an error."""
    if any(item.level is Level.WARNING for item in verdict.findings):
        verdict.correct, verdict.verdict = False, "fail"
    return verdict


def _check_run(project: Path, task: Path | None, options: RunOptions) -> None:
    """What can be said before anything is read."""
    _named_in_utf8(*((project,) if task is None else (project, task)))
    if not project.exists():
        raise NpusmithError("file-missing", f"{project} does not exist", seen=str(project))
    if options.attrs and project.is_file():
        raise NpusmithError("usage", f"{project} is no project folder: it takes no --attr")
    if options.watch.build.op and project.is_file():
        raise NpusmithError("usage", f"{project} is no project folder: it takes no --op")
    if options.around and task is not None:
        raise NpusmithError("usage", "--prepare, --verify and --arg go with a program, not a task")


def _run_alone(
    source: Path,
    chip: Chip,
    progress: Progress,
    options: RunOptions,
    recording: Recording | None,
) -> Verdict:
    if source.suffix not in SOURCES or not source.is_file():
        raise NpusmithError(
            "usage", f"{source} needs a task to be judged by: --task TASK",
            hint=f"npusmith run {source} --task TASK; where it is a task itself: npusmith "
            f"generate {source}",
        )  # fmt: skip
    how = replace(options.judging(progress, recording), seconds=PROGRAM_SECONDS)
    return judge_program(source, chip, options.around, how)


def _read_file(project: Path) -> Submission | None:
    """What a submission's file holds; None for folders and direct-launch sources."""
    if project.is_dir() or project.suffix in SOURCES:
        return None
    return read_submission(project)


@dataclass(frozen=True, slots=True)
class _Form:
    """What a project's files say that it is."""

    submission: Submission | None = None
    spec: OpSpec | None = None
    composition: Graph | None = None


def _judge_any(
    project: Path,
    form: _Form,
    prepared: Prepared,
    chip: Chip,
    profile: str,
    options: JudgeOptions,
    attrs: Mapping[str, Attr] | None = None,
) -> Verdict:
    """By the judge that the project's form needs."""
    if form.submission is not None:
        return judge_module(form.submission, prepared, chip, profile, options)
    if form.composition is not None:
        return judge_composition(project, form.composition, prepared, chip, profile, options)
    if project.is_file():
        return judge_source(project, prepared, chip, profile, options)
    return judge(project, prepared, chip, profile, options, spec=form.spec, attrs=attrs)


def _time(
    verdict: Verdict,
    recording: Recording | None,
    chip: Chip,
    progress: Progress,
    composition: Graph | None = None,
) -> None:
    """Times the first run, when that was asked for and it left a log."""
    logs = recording.logs() if recording is not None else []
    if logs:
        from npusmith.timing.eager import pytorch_us
        from npusmith.timing.rung import give_rung, time_logs

        progress.step("time", "the first set of inputs, on the timing model")
        give_rung(verdict, time_logs(logs, chip), pytorch_us(composition, chip))


def judge_once(
    project: Path,
    task: Path | None,
    chip: Chip,
    tolerance: str,
    progress: Progress,
    work: Path,
    options: RunOptions,
    recording: Recording | None,
) -> tuple[Verdict, Prepared | None]:
    """`run` on the task's first random set of inputs alone, its log kept when `recording` says so.

    The prepared task lies in `work`; it is None for a source that is run without a task.
    """
    profile = check_profile(tolerance)
    _check_run(project, task, options)
    if task is None:
        return _run_alone(project, chip, progress, options, recording), None
    spec = None if project.is_file() else read_bindings(project)
    form = _Form(_read_file(project), spec, read_composition(project))
    clock = _Clock()
    prepared = _prepare(task, work, progress, clock, options.seed, once=True)
    how = options.judging(progress, recording)
    verdict = _judge_any(project, form, prepared, chip, profile, how, options.attrs)
    verdict.seconds = {**clock.laps, **verdict.seconds}
    verdict.provenance |= {"seed": options.seed, "sets of inputs": "the first random one alone"}
    return verdict, prepared


def debug(
    project: Path,
    task: Path | None,
    chip: Chip,
    tolerance: str,
    progress: Progress,
    options: RunOptions,
    *,
    core: int | None,
) -> Verdict:
    """`run` on one set of inputs under gdb, which talks with standard input and output.

    `core`: stop where this block begins, too. A session that the user ends early leaves a verdict
    of a run that did not end. Raises what `run` does, and debugger-missing.
    """
    if project.suffix in (".json", ".py"):
        raise NpusmithError("usage", f"{project} is a submission: --gdb takes a project or source")
    debugger = find_debugger([project if project.is_dir() else project.parent], core)
    traced = replace(options, watch=replace(options.watch, debugger=debugger))
    with temporary_folder("npusmith-debug-") as work:
        verdict, _ = judge_once(
            project, task, chip, tolerance, progress, Path(work), traced, recording=None
        )
    return verdict


def check(file: Path, chip: Chip, options: BuildOptions = PLAIN) -> Verdict:
    """Parse, check the rules and compile; run nothing.

    Raises file-missing, and file-kind for what is neither a tile program nor C++.
    """
    if not file.exists():
        raise NpusmithError("file-missing", f"{file} does not exist", seen=str(file))
    if not file.is_dir() and file.suffix not in _CHECKED:
        raise NpusmithError(
            "file-kind", f"{file} is neither a tile program nor C++", Place(str(file))
        )
    _named_in_utf8(file)
    verdict = Verdict(
        verdict="fail", rung=Rung.NONE, compiled=False, correct=False, task="", tolerance="",
        chip=chip.name, project=str(file),
    )  # fmt: skip
    try:
        return (
            _check_program(file, chip, verdict)
            if file.suffix == ".py" and not file.is_dir()
            else _check_cpp(file, chip, verdict, options)
        )
    except NpusmithError as error:
        verdict.error = error.record()
        return verdict


class _Clock:
    """Wall time of each step, for provenance only."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._start = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = round(now - self._start, 3)
        self._start = now


def _prepare(
    task: Path,
    work: Path,
    progress: Progress,
    clock: _Clock,
    seed: int,
    *,
    once: bool = False,
    on_graph: OnGraph | None = None,
) -> Prepared:
    """What earlier runs left, or a fresh one. `once`: the first random set of inputs alone.

    `on_graph`: told of the graph as soon as it is known.
    """
    progress.step("read", str(task))
    opened = open_task(task)
    sets = "one set" if once else "every set"
    progress.step("reference", f"capture the graph and run PyTorch on {sets} of inputs")
    seeds = seeds_for(seed)
    prepared = (
        open_references(opened, work, sets=Sets(seeds=seeds[:1], edges=False, shapes=False))
        if once
        else open_references(opened, work, on_graph=on_graph, sets=Sets(seeds=seeds))
    )
    clock.lap("reference")
    return prepared


def _check_program(file: Path, chip: Chip, verdict: Verdict) -> Verdict:
    verdict.program = str(file)
    program = _read_program(file, chip, verdict)
    if program is None:
        return verdict
    with temporary_folder("npusmith-") as work:
        write_project(lower(program, chip), chip, Path(work), plain_spec(program))
        verdict.findings = check_source(Path(work), chip)
    return _compiled(verdict)


def _named_in_utf8(*paths: Path) -> None:
    """C++, JSON and HTML name these paths, and all three are UTF-8 text."""
    for path in paths:
        try:
            str(path.absolute()).encode()
        except UnicodeEncodeError as error:
            shown = ascii(str(path))
            raise NpusmithError(
                "file-unusable", f"the path {shown} is not UTF-8", seen=str(error)
            ) from error


def _plain_text(file: Path) -> str:
    """The text of a file that anybody may have named; a pipe or a device would never end."""
    place = Place(str(file))
    if not file.is_file():
        raise NpusmithError("file-unusable", f"{file} is not a plain file", place)
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise NpusmithError("file-unusable", f"{file} is too large", place, seen=f"{size:,} bytes")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise NpusmithError(
            "file-unusable", f"{file} is not UTF-8 text", place, seen=str(error)
        ) from error


def _check_cpp(file: Path, chip: Chip, verdict: Verdict, options: BuildOptions) -> Verdict:
    verdict.findings = check_source(file, chip, options)
    return _compiled(verdict)


def _compiled(verdict: Verdict) -> Verdict:
    if not any(item.level is Level.ERROR for item in verdict.findings):
        verdict.compiled, verdict.rung, verdict.verdict = True, Rung.COMPILED, "pass"
    return verdict


# -------------------------------------------------------------------------------- files of results


def _moved(verdict: Verdict, folder: Path, out: Path) -> Verdict:
    """The verdict with every place named where the result will lie, not where it was made."""
    text = to_json(verdict.model_dump(mode="json"))
    old, new = (json.dumps(str(path), ensure_ascii=False)[1:-1] for path in (folder, out))
    return Verdict.model_validate_json(text.replace(old, new))


def _write_results(
    folder: Path, verdict: Verdict, program: Program | None, prepared: Prepared, chip: Chip
) -> None:
    from npusmith.report.html import write_report

    verdict.provenance["code"] = code_digest(folder)
    write_result(folder, verdict.model_dump(mode="json"))
    write_report(
        folder,
        verdict,
        program,
        task_source=prepared.task.text,
        shapes=_shapes(folder, program, prepared.graph),
        chip=chip,
    )


def _shapes(
    folder: Path, program: Program | None, graph: Graph
) -> dict[str, tuple[int, ...]] | None:
    """The kernel's tensors at the task's first set of inputs; None where they are not known."""
    spec = read_bindings(folder)
    if spec is None or program is None or len(program.outputs) != len(graph.outputs):
        return None
    given = {item.position if item.kind == "user" else item.target: item for item in graph.inputs}
    found = {
        port.name: given[port.position if port.source is Source.USER else port.target].shape
        for port in spec.inputs
    }
    results = zip(program.outputs, graph.outputs, strict=True)
    return found | {tensor.name: graph.spec(name).shape for tensor, name in results}
