"""What a task would take in eager PyTorch, and at the least: `find_bounds(path, ...) -> Bounds`.

Both come from the task's captured graph, once for an item; they say nothing of any candidate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from npusmith.bench.plan import judge_of
from npusmith.errors import NpusmithError, TaskError
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import find_chip
from npusmith.task.graph import Graph
from npusmith.task.load import Task, open_task
from npusmith.task.outline import outline
from npusmith.task.trials import Sets, prepare
from npusmith.timing.eager import Eager, estimate
from npusmith.timing.roof import Roof, roof
from npusmith.twin import cache

_FILE = "bounds.json"
_KEPT = 4096  # items; a file of a kilobyte each
_PASSING = ("task-timeout", "task-memory")  # on a machine that is less busy they may not come
_ANY_ERROR = (Exception,)
_TRAINED = re.compile(r"batch_?norm|dropout|rrelu", re.IGNORECASE)
_EVAL = "eager is estimated for the model in eval mode"


class Bounds(BaseModel):
    """Estimates for one item on one chip; `why` says what is missing."""

    model_config = ConfigDict(extra="forbid")

    eager_us: float | None = None
    eager_low_us: float | None = None
    eager_high_us: float | None = None
    eager_basis: str = ""  # "measured", "model", or "measured and model" for a graph with both
    eager_rows: int | None = None  # published rows behind it (timing/eager.py)
    eager_weak: bool = False
    roof_us: float | None = None  # CANN-bench's hardware time
    least: Roof | None = None  # what no kernel for the graph can beat
    shapes: list[list[int]] = []  # of the tensors that forward takes
    why: str = ""
    note: str = ""

    def fit(self, inputs: Sequence[tuple[int, ...]]) -> str:
        """Why these bounds are not of inputs of these shapes; "" when they are."""
        given = [list(shape) for shape in inputs]
        if self.why or given == self.shapes:
            return self.why
        return f"the graph was captured with inputs of {self.shapes}, not {given}"[:300]


def find_bounds(path: Path, chip: str, *, shapes_only: bool = False) -> Bounds:
    """From the cache, or by capturing the graph of the task at `path` in the sandbox.

    shapes_only: its tensors have no memory then (task/outline.py), however large they are. The
    limits of a unit do not hold here: the graph is the item's, whoever asks first.
    """
    try:
        task = open_task(path)
    except NpusmithError as error:
        return Bounds(why=f"{error.code}: {error.message}")
    beside = path.with_suffix(".json")
    parts = [judge_of(chip), chip, task.digest, beside.read_text() if beside.is_file() else ""]
    parts += ["shapes only"] if shapes_only else []
    folder = cache.cache_root() / "suites" / "bounds" / cache.digest(parts)

    def make(fresh: Path) -> None:
        (fresh / _FILE).write_text(
            _capture(task, chip, shapes_only).model_dump_json(), encoding="utf-8"
        )

    try:
        if cache.fetch(folder, make):
            cache.keep_newest(folder.parent, _KEPT, folder)
    except TaskError as error:  # not kept: another time there may be room
        return Bounds(why=f"no graph could be captured: {error.code}: {error.message}"[:300])
    return Bounds.model_validate_json((folder / _FILE).read_text(encoding="utf-8"))


def _capture(task: Task, chip: str, shapes_only: bool) -> Bounds:
    with temporary_folder("npusmith-bounds-") as name:
        try:
            if shapes_only:
                graph = outline(task)
            else:
                graph = prepare(task, Path(name).resolve(), sets=Sets(seeds=())).graph
        except TaskError as error:
            if error.code in _PASSING:
                raise
            return Bounds(why=f"no graph could be captured: {error.code}: {error.message}"[:300])
    row = find_chip(chip)
    try:
        eager, least = estimate(graph, row), roof(graph, row)
    except _ANY_ERROR as error:  # of a model, on a graph of a kind that it does not expect
        return Bounds(why=f"no estimate: {type(error).__name__}: {error}"[:300])
    return Bounds(
        eager_us=eager.us if eager.us > 0 else None,
        eager_low_us=eager.low_us if eager.us > 0 else None,
        eager_high_us=eager.high_us if eager.us > 0 else None,
        eager_basis=_basis(eager),
        eager_rows=eager.rows if eager.us > 0 else None,
        eager_weak=eager.us > 0 and not eager.sure,
        roof_us=least.hardware_us if least.hardware_us > 0 else None,
        least=least,
        shapes=_shapes(graph),
        note=_EVAL if _TRAINED.search(task.text) else "",
        why="" if eager.us > 0 else "the graph has no call that would take time in eager PyTorch",
    )


def _basis(eager: Eager) -> str:
    return " and ".join(sorted({item.basis for item in eager.ops}))


def _shapes(graph: Graph) -> list[list[int]]:
    users = [item for item in graph.inputs if item.kind == "user"]
    return [list(item.shape) for item in sorted(users, key=lambda item: item.position)]
