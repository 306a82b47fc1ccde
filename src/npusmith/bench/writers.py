"""Who proposes candidates: `open_writer(spec) -> Writer`.

- `plan`: the deterministic writer; the same brief always gets the same project or refusal; `plan:N`
  tries N schedules on the timing model first;
- `folder:PATH`: responses on disk, PATH/<item>/<sample>.json, .py, .txt or a project's folder;
- `answers:ROOT`: the reference answers of the suite's own checkout, where it has some;
- `agent:OPTIONS`: a model, in rounds (agent/writer.py, docs/agent.md).
"""

from __future__ import annotations

import hashlib
import importlib
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from npusmith import __version__
from npusmith.bench.model import Brief, Candidate, Item, Writer
from npusmith.errors import NpusmithError, Place, TaskError
from npusmith.ir.opname import entry_name, operator_name
from npusmith.ir.text import show
from npusmith.lang import legal
from npusmith.lower import lower, write_project
from npusmith.plan import write
from npusmith.plan.search import search_plan
from npusmith.sandbox.folder import files_beneath, temporary_folder
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.compare import difference
from npusmith.task.graph import Graph
from npusmith.task.load import Task, open_task
from npusmith.task.outline import outline
from npusmith.task.trials import Limits, prepare

_TEXTS = (".cpp", ".cc", ".asc", ".h", ".hpp", ".py", ".json", ".txt", ".cmake", ".sh", ".md")
_SUFFIXES = (".json", ".py", ".txt")  # of responses
_MOST_BYTES = 16 << 20
_AGENT = "npusmith.agent.writer"  # by name: the agent imports the bench, not the other way round
Format = Literal["project", "json", "six", "kernel_only", "full", "program"]


def open_writer(spec: str, chip: str = DEFAULT_CHIP) -> Writer:
    """`plan`, `folder:PATH`, `answers:ROOT`, `agent:OPTIONS`; raises usage and file-missing."""
    kind, _, rest = spec.partition(":")
    if kind == "plan" and (not rest or rest.isdecimal()):
        return PlanWriter(chip, search=int(rest or 0))
    if kind in ("folder", "answers") and rest:
        root = Path(rest)
        if not root.is_dir():
            raise NpusmithError(
                "file-missing", f"{root} is no folder", Place(str(root)), seen=str(root)
            )
        return FolderWriter(root) if kind == "folder" else AnswerWriter(root)
    if kind == "agent" and rest:
        found: Writer = importlib.import_module(_AGENT).open_writer(rest, chip)
        return found
    raise NpusmithError(
        "usage", f"no writer is called {spec}", seen=spec[:80],
        legal="plan, plan:N, folder:PATH, answers:ROOT, agent:model=NAME,base-url=URL,...",
    )  # fmt: skip


class PlanWriter:
    """Captures the task and writes one project; more samples are the same project.

    An item of reduced shapes gets the kernel of the task's own, which is the one that is timed.
    `search`: schedules of it that are tried on the timing model.
    """

    version = __version__

    def __init__(self, chip: str = DEFAULT_CHIP, seconds: float = 300, search: int = 0) -> None:
        self.chip = find_chip(chip)
        self.limits = Limits(seconds=seconds)
        self.search = search
        self.name = f"plan:{search}" if search else "plan"

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        start = time.monotonic()
        files: dict[str, str] = {}
        refusal = ""
        try:
            files = self._project(brief)
        except NpusmithError as error:
            refusal = f"{error.code}: {error.message}"[:500]
        return Candidate(
            format="project", files=files, writer=self.name, sample=sample, seed=seed,
            refusal=refusal, seconds=round(time.monotonic() - start, 3),
        )  # fmt: skip

    def _project(self, brief: Brief) -> dict[str, str]:
        if brief.path is None or "project" not in brief.formats:
            raise NpusmithError("usage", "the item has no task file that could be captured")
        with temporary_folder("npusmith-plan-") as name:
            folder = Path(name).resolve()
            task = open_task(brief.path)
            graph = self._whole(brief, self._graph(task, folder / "capture", brief.training))
            entry = entry_name(brief.operator) if brief.operator else operator_name(task.name)
            plan = write(graph, entry, self.chip)
            if self.search:
                plan, _ = search_plan(plan, graph, self.chip, self.search)
            spec = replace(plan.spec, task_source=task.text, type=brief.operator)
            text = show(plan.program)
            program = legal(text, f"{spec.name}.tile.py", self.chip)
            project = folder / "project"
            project.mkdir()
            (project / f"{spec.name}.tile.py").write_text(text, encoding="utf-8")
            write_project(lower(program, self.chip), self.chip, project, spec)
            return read_project_files(project)

    def _whole(self, brief: Brief, graph: Graph) -> Graph:
        """The graph at the task's own shapes, where it is the same but for sizes."""
        if brief.original is None:
            return graph
        try:
            whole = outline(open_task(brief.original), training=brief.training, limits=self.limits)
        except TaskError:
            return graph  # the text beside it was changed to be read at all
        return graph if difference(whole, graph) else whole

    def _graph(self, task: Task, folder: Path, training: bool) -> Graph:
        """In the suite's mode; where that takes values on the way, in eval mode."""
        try:
            return outline(task, training=training, limits=self.limits)
        except TaskError as error:
            if error.code != "task-export":
                raise
        return prepare(task, folder, seeds=(), limits=self.limits).graph


class FolderWriter:
    """Responses that somebody else has written; an item without one is a refusal."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.name = f"folder:{root.name}"
        self.version = "2"  # responses that change are seen one by one: see `source`

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        place = self._place(brief.item, sample)
        if place is None:
            missing = f"file-missing: {brief.item.name} has no response number {sample}"
            return Candidate(
                format="project", files={}, writer=self.name, sample=sample, seed=seed,
                refusal=missing, source=self.source(brief.item, sample),
            )  # fmt: skip
        source = self.source(brief.item, sample)
        if place.is_dir():
            kind: Format = "project"
            files = read_project_files(place)
        else:
            text = _read_text(place)
            kind, files = format_of(text, brief), {place.name: text}
        return Candidate(
            format=kind, files=files, writer=self.name, sample=sample, seed=seed, source=source
        )

    def source(self, item: Item, sample: int) -> str:
        """Where the response stands and when it was written, so that a change is seen quickly."""
        place = self._place(item, sample)
        if place is None:
            return "none"
        if place.suffix in _SUFFIXES:
            return f"{place} {_written(place)}"
        text = "\n".join(f"{part} {_written(part)}" for part in files_beneath(place))
        return f"{place} {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:32]}"

    def _place(self, item: Item, sample: int) -> Path | None:
        """The file or the project's folder of a response; what has no number is sample 0."""
        for name in dict.fromkeys((item.name, item.name.partition("@")[0])):
            base = self.root / name
            names = _names(base)
            if str(sample) in names and (base / str(sample) / "op_kernel").is_dir():
                return base / str(sample)
            if not sample and "op_kernel" in names:
                return base
            for suffix in _SUFFIXES:
                numbered = base / f"{sample}{suffix}"
                if numbered.name in names and numbered.is_file():
                    return numbered
                if not sample and (only := self.root / f"{name}{suffix}").is_file():
                    return only
        return None


def _names(folder: Path) -> frozenset[str]:
    """What a folder holds; there are folders with 100,000 responses, asked for one by one."""
    try:
        return _listed(folder, folder.stat().st_mtime_ns)
    except OSError:
        return frozenset()


@lru_cache(maxsize=8)
def _listed(folder: Path, changed: int) -> frozenset[str]:
    return frozenset(path.name for path in folder.iterdir())


def _written(place: Path) -> str:
    facts = place.lstat()
    return f"{facts.st_size} {facts.st_mtime_ns}"


class AnswerWriter:
    """A checkout's own answers: answer/0 of PCL's NPUKernelBench, MultiKernelBench's examples."""

    name = "answers"
    version = "1"

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        try:
            kind, files = self._answer(brief.item)
            return Candidate(format=kind, files=files, writer=self.name, sample=sample, seed=seed)
        except NpusmithError as error:
            return Candidate(
                format="project", files={}, writer=self.name, sample=sample, seed=seed,
                refusal=f"{error.code}: {error.message}",
            )  # fmt: skip

    def _answer(self, item: Item) -> tuple[Format, dict[str, str]]:
        if item.suite == "npukernelbench":
            folder = self.root / item.source / "answer" / "0"
            if folder.is_dir():
                return "project", read_project_files(folder)
        if item.suite == "multikernelbench":
            name = Path(item.source).stem
            for kind, file in (
                ("six", f"ascendc_new_model_{name}.py"),
                ("json", f"ascendc_direct_launch_model_{name}.json"),
            ):
                path = self.root / "prompts" / file
                if path.is_file():
                    return ("six" if kind == "six" else "json"), {file: _read_text(path)}
        raise NpusmithError("file-missing", f"the checkout has no answer for {item.name}")


def read_project_files(folder: Path) -> dict[str, str]:
    """The text files of a project, by relative path."""
    files: dict[str, str] = {}
    total = 0
    for path in files_beneath(folder):
        if path.is_symlink() or not path.is_file():
            continue
        if path.suffix not in _TEXTS and path.name != "CMakeLists.txt":
            continue
        text = _read_text(path)
        total += len(text)
        if total > _MOST_BYTES:
            raise NpusmithError("file-unusable", f"{folder} is too large for a project")
        files[path.relative_to(folder).as_posix()] = text
    if not files:
        raise NpusmithError("file-missing", f"{folder} has no file of a project", seen=str(folder))
    return files


def _read_text(path: Path) -> str:
    if path.stat().st_size > _MOST_BYTES:
        raise NpusmithError("file-unusable", f"{path} is too large", Place(str(path)))
    return path.read_text(encoding="utf-8", errors="replace")


def format_of(text: str, brief: Brief) -> Format:
    """By the look of the text, among the formats that the item takes."""
    for kind in ("kernel_only", "full"):
        if kind in brief.formats:
            return "kernel_only" if kind == "kernel_only" else "full"
    if "program" in brief.formats and "@kernel" in text and "kernel_src" not in text:
        return "program"
    head = text.partition("```")[2] or text
    return "json" if head.removeprefix("json").lstrip().startswith("{") else "six"
