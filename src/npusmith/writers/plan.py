"""The deterministic writer: the same brief always gets the same project, or the same refusal."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from npusmith.bench.model import Brief, Candidate, Exposed
from npusmith.errors import NpusmithError, PlanError, TaskError
from npusmith.ir.nodes import Program
from npusmith.ir.opname import entry_name, operator_name
from npusmith.ir.spec import OpSpec
from npusmith.ir.text import show
from npusmith.lang import legal
from npusmith.lang.extents import serves
from npusmith.lower import CONSTANTS, constants_text, lower, package_files, write_project
from npusmith.plan import Plan, write
from npusmith.plan.estimate import estimate, shapes_of
from npusmith.plan.expose_intermediates import expose_intermediates
from npusmith.plan.pytorch_fallback import with_fallback
from npusmith.plan.schedule import SavedSchedule, check_task, load, save
from npusmith.plan.search import DEFAULT as DEFAULT_SEARCH
from npusmith.plan.search import Found, search_plan
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.task.compare import difference
from npusmith.task.composition import COMPOSITION, composition_text, left_nodes
from npusmith.task.graph import Graph
from npusmith.task.load import Task, open_task
from npusmith.task.module_forward import composed_file
from npusmith.task.outline import outline
from npusmith.task.trials import Limits, Sets, prepare
from npusmith.version import __version__
from npusmith.writers.folder import read_project_files, read_text

_TOO_LONG = "plan-length"  # of one operator

__all__ = ["DEFAULT_SEARCH", "PlanWriter", "read_schedule"]


@dataclass(frozen=True, slots=True)
class Written:
    """An operator: its tile program, what it takes and gives, and the graph that it is for."""

    program: Program
    spec: OpSpec
    graph: Graph


class PlanWriter:
    """Captures the task and writes one project; more samples are the same project.

    An item of reduced shapes gets the kernel of the task's own, which is the one that is timed.
    `search`: schedules of it that are tried on the timing model. `schedule`: replayed instead.
    `whole`: a module of which a part cannot be written is refused; otherwise that part is left to
    PyTorch. One that is too long for an operator becomes several all the same.
    """

    version = __version__

    def __init__(
        self,
        chip: Chip,
        *,
        search: int = DEFAULT_SEARCH,
        schedule: SavedSchedule | None = None,
        whole: bool = True,
        seconds: float = 300,
        step: Callable[[str, str], None] = lambda name, detail: None,
    ) -> None:
        self.chip, self.search, self._step = chip, search, step
        self.schedule, self.whole = schedule, whole
        self.limits = Limits(seconds=seconds)
        self.name = f"plan:{search}"
        self.written: Written | None = None  # by the last write, where it is one operator

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        """One project.

        Raises TaskError, and PlanError for what cannot be written, and for a schedule of another
        task.
        """
        start = time.monotonic()
        if brief.path is None or "project" not in brief.formats:
            raise NpusmithError("usage", "the item has no task file that could be captured")
        task = open_task(brief.path)
        judged = brief.graph or self._graph(task, brief.training)
        graph = judged if brief.graph else self._whole(brief, judged)
        entry = entry_name(brief.operator) if brief.operator else operator_name(task.name)
        own_us = self.written = None
        try:
            plan, origin, graph = self._plan(judged, graph, entry)
        except PlanError as error:
            if self.schedule is not None or (self.whole and error.code != _TOO_LONG):
                raise
            files, origin = self._composed(task, judged, error)
            exposed = None
        else:
            self._step("lower", "tile program to Ascend C")
            spec = replace(
                plan.spec, task_source=task.text, type=brief.operator, returns=graph.returns
            )
            files = self._files(plan.program, spec)
            exposed = self._exposed(plan, graph) if brief.intermediates else None
            self.written = Written(plan.program, spec, graph)
            if graph is not judged:
                own_us = estimate(plan.program, shapes_of(graph, plan.spec), self.chip)
        return Candidate(
            format="project", files=files, writer=self.name, sample=sample, seed=seed,
            seconds=round(time.monotonic() - start, 3), origin=origin, exposed=exposed,
            own_us=own_us,
        )  # fmt: skip

    def _plan(
        self, judged: Graph, graph: Graph, entry: str
    ) -> tuple[Plan, dict[str, object], Graph]:
        """One operator, what is said of it, and the graph that it was written for.

        judged: the graph at the sizes that are judged, which may be reduced ones.
        """
        origin: dict[str, object] = {}
        found: Found | None = None
        if self.schedule is not None:
            plan = write(graph, entry, self.chip, check_task(self.schedule, graph, self.chip))
        else:
            plan = write(graph, entry, self.chip)
            if graph is not judged and not serves(plan.spec, shapes_of(judged, plan.spec)):
                graph, plan = judged, write(judged, entry, self.chip)
        if self.schedule is None and self.search:
            self._step("search", f"at most {self.search} schedules on the timing model")
            plan, found = search_plan(plan, graph, entry, self.chip, self.search)
            origin["search"] = [trial.record() for trial in found.trials]
        tried = f"{len(found.trials)} schedules" if found else "none"
        origin["search_policy"] = f"{tried} tried of at most {self.search}"
        origin["notes"] = [f"schedule: {plan.schedule}", *plan.notes]
        origin["schedule"] = save(plan.schedule, graph, self.chip)
        return plan, origin, graph

    def _composed(
        self, task: Task, graph: Graph, error: PlanError
    ) -> tuple[dict[str, str], dict[str, object]]:
        """Several operators, and PyTorch for the rest."""
        rest = "" if self.whole else ", and PyTorch for the rest"
        self._step("compose", f"not one operator ({error.code}): several{rest}")
        made = with_fallback(graph, operator_name(task.name), self.chip, error)
        if self.whole and left_nodes(made.graph):
            raise error
        self._step("lower", f"{len(made.plans)} tile programs to Ascend C")
        files: dict[str, str] = {}
        operators = []
        for plan in made.plans:
            name = f"{plan.spec.name}.tile.py"
            files[name], read = read_back(plan.program, plan.spec, self.chip)
            operators.append((lower(read, self.chip), plan.spec))
        package, count = entry_name(operator_name(task.name)), len(left_nodes(made.graph))
        files |= package_files(operators, package, self.chip, left=count)
        files["model_new.py"] = composed_file(made.graph, task.text)
        files[COMPOSITION] = composition_text(made.graph)
        if graph.constants:
            files[CONSTANTS] = constants_text(graph.constants)
        left = [f"left to PyTorch: {item.node.op}: {item.why}" for item in made.left]
        notes = [note for plan in made.plans for note in plan.notes]
        why = f"not one operator: {error.code}: {error.message}"
        return files, {"notes": [why, *left, *dict.fromkeys(notes)]}

    def _files(self, program: Program, spec: OpSpec) -> dict[str, str]:
        """The project's, with the tile program as it is read back from its text."""
        text, read = read_back(program, spec, self.chip)
        with temporary_folder("npusmith-plan-") as name:
            folder = Path(name).resolve()
            (folder / f"{spec.name}.tile.py").write_text(text, encoding="utf-8")
            write_project(lower(read, self.chip), self.chip, folder, spec)
            return read_project_files(folder)

    def _exposed(self, plan: Plan, graph: Graph) -> Exposed | None:
        """For the judge, where there are several kernels."""
        whole = graph.longer if plan.longer and graph.longer is not None else graph
        found = expose_intermediates(plan, whole, self.chip) if plan.parts else None
        if found is None:
            return None
        files = self._files(found.plan.program, found.plan.spec)
        return Exposed(files=files, values=found.values, longer=plan.longer)

    def _whole(self, brief: Brief, graph: Graph) -> Graph:
        """The graph at the task's own shapes, where it is the same but for sizes."""
        if brief.original is None:
            return graph
        try:
            whole = outline(open_task(brief.original), training=brief.training, limits=self.limits)
        except TaskError:
            return graph  # the text beside it was changed to be read at all
        return graph if difference(whole, graph) else whole

    def _graph(self, task: Task, training: bool) -> Graph:
        """In the suite's mode; where that takes values on the way, in eval mode."""
        try:
            return outline(task, training=training, limits=self.limits)
        except TaskError as error:
            if error.code != "task-export":
                raise
        with temporary_folder("npusmith-plan-") as name:
            return prepare(
                task, Path(name).resolve(), limits=self.limits, sets=Sets(seeds=())
            ).graph


def read_back(program: Program, spec: OpSpec, chip: Chip) -> tuple[str, Program]:
    """The text of a tile program, and the program that it says, which is what is lowered."""
    text = show(program)
    return text, legal(text, f"{spec.name}.tile.py", chip)


def read_schedule(file: Path) -> SavedSchedule:
    """A schedule to replay. Raises plan-schedule-file, file-missing and file-unusable."""
    return load(read_text(file), str(file))
