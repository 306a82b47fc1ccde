"""Kernels of the user's own: `NAME.py`, a task, beside `NAME.tile.py`, `NAME.asc` or folder `NAME`.

Each is judged on the twin like any candidate, and becomes a sample only when it is right. Their
texts stay in the user's corpus; nothing of them is in the package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from npusmith import pipeline
from npusmith.agent.prompt import fence, task_part
from npusmith.errors import NpusmithError
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.task.load import open_task
from npusmith.train.corpus.program_hash import program_hash
from npusmith.train.corpus.sample import Kind, Sample, Split
from npusmith.train.levels import Level
from npusmith.train.on_twin import judge_on_twin
from npusmith.train.opened import Tasks
from npusmith.writers.folder import read_project_files, read_text

_TILE, _SOURCE = ".tile.py", ".asc"


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """A task and what is beside it: a tile program, a source or a project."""

    task: Path
    kernel: Path

    @property
    def command(self) -> str:
        return f"npusmith run {self.kernel.name} --task {self.task.name}"


class _Silent:
    def step(self, name: str, detail: str = "") -> None:
        """Says nothing: the run tells of its samples."""


def find_kernels(root: Path) -> list[OwnKernel]:
    """In the order of their paths; raises file-missing, and run-empty where there is none."""
    if not root.is_dir():
        raise NpusmithError("file-missing", f"{root} is no folder", seen=str(root))
    found = [
        OwnKernel(task, kernel)
        for task in sorted(root.rglob("*.py"))
        if not task.name.endswith(_TILE)
        for kernel in _beside(task)
    ]
    if not found:
        raise NpusmithError(
            "run-empty", f"{root} has no task with a kernel beside it",
            legal="NAME.py beside NAME.tile.py, NAME.asc or the folder NAME",
        )  # fmt: skip
    return found


def _beside(task: Path) -> Iterator[Path]:
    files = (task.with_suffix(_TILE), task.with_suffix(_SOURCE))
    yield from (path for path in files if path.is_file())
    if (folder := task.with_suffix("")).is_dir():
        yield folder


def own_kernel(kernel: OwnKernel, chip: Chip) -> tuple[list[Sample], Counter[str]]:
    """Its sample, if it is right; what became of it."""
    try:
        said = _judged(kernel, chip)
        if said != "right":
            return [], Counter({f"own kernel {said}": 1})
        return [_sample(kernel, chip)], Counter({"own kernel right": 1})
    except NpusmithError as error:
        return [], Counter({f"own kernel {error.code}": 1})


def _judged(kernel: OwnKernel, chip: Chip) -> str:
    if not kernel.kernel.name.endswith(_TILE):
        verdict = pipeline.run(kernel.kernel, kernel.task, chip, "default", _Silent())
        return "right" if verdict.correct else "wrong"
    with temporary_folder("npusmith-own-") as work:
        tasks = Tasks(work / "tasks", chip, "strict")
        with tasks.use(kernel.task) as opened:
            text = fence(read_text(kernel.kernel), "python")
            found = judge_on_twin(text, opened, work)
        tasks.close()
    return "right" if found["level"] == Level.RIGHT else "wrong"


def _sample(kernel: OwnKernel, chip: Chip) -> Sample:
    task = open_task(kernel.task)
    path = kernel.kernel
    files = read_project_files(path) if path.is_dir() else {path.name: read_text(path)}
    tile = path.name.endswith(_TILE)
    blocks = [
        fence(text, "python" if tile else f"cpp {name}") for name, text in sorted(files.items())
    ]
    what = "tile program" if tile else "Ascend C"
    return Sample(
        kind=Kind.CODE, family="own", split=Split.TRAIN,
        prompt=f"{task_part(task.text, (), chip)}\n\nWrite the {what}.",
        completion="\n".join(blocks), verified_by=kernel.command,
        program_hash=program_hash("\n".join(files.values())) if tile else "",
        meta={"form": f"own {kernel.kernel.name}", "chip": chip.name},
    )  # fmt: skip
