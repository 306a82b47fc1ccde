"""Responses on disk as a writer: somebody else's, or a checkout's own answers."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Literal

from npusmith.bench.model import Brief, Candidate, Item
from npusmith.bench.suites.repairs import repair
from npusmith.errors import NpusmithError, Place
from npusmith.sandbox.folder import files_beneath

_TEXTS = (".cpp", ".cc", ".asc", ".h", ".hpp", ".py", ".json", ".txt", ".cmake", ".sh", ".md")
_SUFFIXES = (".json", ".py", ".txt")  # of responses
_MOST_BYTES = 16 << 20
# MultiKernelBench's examples, an operator project before a direct launch
_EXAMPLES = (
    "prompts/ascendc_new_model_{}.py",
    "prompts/ascendc_direct_launch_model_{}.json",
)
Format = Literal["project", "json", "six", "kernel_only", "full", "program"]


class FolderWriter:
    """Responses that somebody else has written."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.name = f"folder:{root.name}"
        self.version = "2"  # responses that change are seen one by one: see `source`

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        """The response. Raises file-missing for an item without one, and file-unusable."""
        place = self._place(brief.item, sample)
        if place is None:
            raise NpusmithError(
                "file-missing", f"{brief.item.name} has no response number {sample}"
            )
        if place.is_dir():
            kind: Format = "project"
            files = read_project_files(place)
        else:
            text = read_text(place)
            kind, files = format_of(text, brief), {place.name: text}
        return Candidate(format=kind, files=files, writer=self.name, sample=sample, seed=seed)

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
        """The checkout's answer, repaired where it must be; raises file-missing."""
        item, notes = brief.item, list[str]()
        name = item.name.partition("@")[0].rpartition("/")[2]
        shown = [path for path in (self.root / text.format(name) for text in _EXAMPLES)
                 if path.is_file()]  # fmt: skip
        folder = self.root / item.source / "answer" / "0"
        if item.suite == "npukernelbench" and folder.is_dir():
            kind: Format = "project"
            files, notes = repair(folder.parents[1].name, read_project_files(folder))
        elif item.suite.startswith("multikernelbench") and shown:
            path = shown[-1] if item.category.endswith("direct_launch") else shown[0]
            kind, files = "six" if path.suffix == ".py" else "json", {path.name: read_text(path)}
        else:
            raise NpusmithError("file-missing", f"the checkout has no answer for {item.name}")
        return Candidate(
            format=kind, files=files, writer=self.name, sample=sample, seed=seed,
            origin={"repairs": notes} if notes else {},
        )  # fmt: skip


def read_project_files(folder: Path) -> dict[str, str]:
    """The text files of a project, by relative path."""
    files: dict[str, str] = {}
    total = 0
    for path in files_beneath(folder):
        if path.is_symlink() or not path.is_file():
            continue
        if path.suffix not in _TEXTS and path.name != "CMakeLists.txt":
            continue
        text = read_text(path)
        total += len(text)
        if total > _MOST_BYTES:
            raise NpusmithError("file-unusable", f"{folder} is too large for a project")
        files[path.relative_to(folder).as_posix()] = text
    if not files:
        raise NpusmithError("file-missing", f"{folder} has no file of a project", seen=str(folder))
    return files


def read_text(path: Path) -> str:
    """Of a file of a bearable size. Raises file-missing and file-unusable."""
    if not path.is_file():
        raise NpusmithError("file-missing", f"{path} is no file", Place(str(path)))
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
