"""Writers that need no model: `open_writer(spec) -> Writer`.

- `plan`: the deterministic writer; the same brief always gets the same project or refusal;
- `folder:PATH`: responses on disk, PATH/<item>/<sample>.json, .py, .txt or a project's folder;
- `answers:ROOT`: the reference answers of the suite's own checkout, where it has some.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

from npusmith import __version__
from npusmith.bench.model import Brief, Candidate, Item, Writer
from npusmith.errors import NpusmithError, Place
from npusmith.ir.text import show
from npusmith.lang import check_all, parse
from npusmith.lower import lower, write_project
from npusmith.pipeline import _write_bindings
from npusmith.plan import write
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.load import open_task
from npusmith.task.trials import Limits, prepare

_TEXTS = (".cpp", ".cc", ".asc", ".h", ".hpp", ".py", ".json", ".txt", ".cmake", ".sh", ".md")
_MOST_BYTES = 16 << 20
Format = Literal["project", "json", "six", "kernel_only", "full", "program"]


def open_writer(spec: str) -> Writer:
    """`plan`, `folder:PATH` or `answers:ROOT`; NpusmithError usage or file-missing otherwise."""
    kind, _, rest = spec.partition(":")
    if kind == "plan" and not rest:
        return PlanWriter()
    if kind in ("folder", "answers") and rest:
        root = Path(rest)
        if not root.is_dir():
            raise NpusmithError(
                "file-missing", f"{root} is no folder", Place(str(root)), seen=str(root)
            )
        return FolderWriter(root) if kind == "folder" else AnswerWriter(root)
    raise NpusmithError(
        "usage", f"no writer is called {spec}", seen=spec[:80],
        legal="plan, folder:PATH, answers:ROOT",
    )  # fmt: skip


class PlanWriter:
    """Captures the task and writes one project; more samples are the same project."""

    name = "plan"
    version = __version__

    def __init__(self, chip: str = DEFAULT_CHIP, seconds: float = 300) -> None:
        self.chip = find_chip(chip)
        self.limits = Limits(seconds=seconds)

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
        with tempfile.TemporaryDirectory(prefix="npusmith-plan-") as name:
            folder = Path(name).resolve()
            task = open_task(brief.path)
            prepared = prepare(task, folder / "capture", seeds=(), limits=self.limits)
            plan = write(prepared.graph, brief.operator or f"{prepared.name}_custom", self.chip)
            spec = replace(plan.spec, task_source=task.text)
            text = show(plan.program)
            program = parse(text, f"{spec.name}.tile.py")
            if wrong := check_all(program, self.chip):
                raise wrong[0]
            project = folder / "project"
            project.mkdir()
            (project / f"{spec.name}.tile.py").write_text(text, encoding="utf-8")
            write_project(lower(program, self.chip), self.chip, project, spec)
            _write_bindings(project, spec)
            return read_project_files(project)


class FolderWriter:
    """Responses that somebody else has written; an item without one is a refusal."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.name = f"folder:{root.name}"
        self.version = "1"  # a candidate's digest is of its text: a changed file is a new unit

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        for name in dict.fromkeys((brief.item.name, brief.item.name.partition("@")[0])):
            for place in (self.root / name / str(sample), self.root / name):
                if place.is_dir() and any(place.glob("op_kernel/*")):
                    return self._made("project", read_project_files(place), sample, seed)
            for suffix in (".json", ".py", ".txt"):
                for file in (self.root / name / f"{sample}{suffix}", self.root / f"{name}{suffix}"):
                    if file.is_file() and (
                        file.parent.name != Path(name).parent.name or not sample
                    ):
                        text = _read_text(file)
                        kind = _format_of(text, brief)
                        return self._made(kind, {file.name: text}, sample, seed)
        missing = f"file-missing: {brief.item.name} has no response number {sample}"
        return Candidate(
            format="project", files={}, writer=self.name, sample=sample, seed=seed, refusal=missing
        )

    def _made(self, kind: Format, files: dict[str, str], sample: int, seed: int) -> Candidate:
        return Candidate(format=kind, files=files, writer=self.name, sample=sample, seed=seed)


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
    for path in sorted(folder.rglob("*")):
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


def _format_of(text: str, brief: Brief) -> Format:
    """By the look of the text, among the formats that the item takes."""
    for kind in ("kernel_only", "full"):
        if kind in brief.formats:
            return "kernel_only" if kind == "kernel_only" else "full"
    if "program" in brief.formats and "@kernel" in text and "kernel_src" not in text:
        return "program"
    head = text.partition("```")[2] or text
    return "json" if head.removeprefix("json").lstrip().startswith("{") else "six"
