"""References that are kept between runs: `open_references(task, ...) -> Prepared`.

What a task's code gives is the same for every candidate, so it is made once: as long as the task,
the data beside it, the seeds, and the code that makes references are the same.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from pydantic import BaseModel, ValidationError

from npusmith.errors import TaskError, TwinError
from npusmith.task.graph import Graph
from npusmith.task.load import Task
from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.trials import (
    DATA,
    EVERY_SET,
    Limits,
    OnGraph,
    Sets,
    prepare,
    readable_beside,
    reopen,
)
from npusmith.twin import cache
from npusmith.version import __version__

_KEPT, _KEPT_BYTES = 64, 8 << 30  # tasks, as far as they fit into that
_HOW = "how.json"


class _Made(BaseModel):
    """What the process that made the references was like."""

    missing: tuple[str, ...]
    seconds: float
    peak_bytes: int


def open_references(
    task: Task,
    folder: Path,
    sets: Sets = EVERY_SET,
    *,
    limits: Limits | None = None,
    on_graph: OnGraph | None = None,
) -> Prepared:
    """As `prepare`, from the cache where they are; `folder` is used where nothing can be kept.

    `on_graph` may hold up other processes that need references.
    """
    try:
        found = keep_references(task, sets, limits=limits, on_graph=on_graph)
    except TwinError as error:
        if error.code != "cache-unusable":
            raise
        found = None
    # nobody can ask for bounds later
    return found or prepare(
        task, folder, replace(sets, bounds=True), limits=limits, on_graph=on_graph
    )


def keep_references(
    task: Task,
    sets: Sets = EVERY_SET,
    *,
    limits: Limits | None = None,
    on_graph: OnGraph | None = None,
) -> Prepared | None:
    """From the cache; None where others took them away in the meantime. Raises cache-unusable."""
    told: list[Graph] = []

    def tell(graph: Graph) -> None:
        told.append(graph)
        if on_graph is not None:
            on_graph(graph)

    beside = [
        part for path in readable_beside(task.path) for part in (path.name, path.read_bytes())
    ]
    parts = [code_digest(), str(task.path), task.text, repr(sets.orders()), *beside]

    def make(fresh: Path) -> None:
        made = prepare(task, fresh, sets, limits=limits, on_graph=tell if on_graph else None)
        made_by = _Made(missing=made.missing, seconds=made.seconds, peak_bytes=made.peak_bytes)
        (fresh / _HOW).write_text(made_by.model_dump_json(), encoding="utf-8")

    found = _read(task, keep_folder("references", parts, make))
    found = None if found is None else replace(found, sets=sets)
    if found is not None and on_graph is not None and not told:
        on_graph(found.graph)
    return found


def with_bounds(prepared: Prepared, names: Sequence[str]) -> dict[str, TrialData]:
    """The sets of these names with error bounds, which take long; without those that have none."""
    if prepared.sets is None or not names:
        return {}
    try:
        found = keep_references(prepared.task, replace(prepared.sets, bounded=tuple(names)))
    except (TaskError, TwinError):
        return {}
    rows = () if found is None else found.trials
    return {item.name: item for item in rows if item.name in names and item.record.bounds}


def keep_folder(kind: str, parts: Sequence[str | bytes], make: Callable[[Path], None]) -> Path:
    """The folder of the cache for these parts, which `make` has filled now or earlier."""
    place = cache.cache_root() / kind / cache.digest(parts)
    if cache.fetch(place, make):
        cache.keep_newest(place.parent, _KEPT, place, _KEPT_BYTES)
    return place


def _read(task: Task, place: Path) -> Prepared | None:
    """What lies there; None where it is not whole any more."""
    try:
        how = _Made.model_validate_json((place / _HOW).read_bytes())
    except (OSError, ValidationError):
        return None
    kept = reopen(task, place / DATA)
    return None if kept is None else replace(kept, **how.model_dump())


@functools.cache
def code_digest() -> str:
    """Of what makes references: our own code, and PyTorch's version."""
    total = hashlib.sha256(f"{__version__} {metadata.version('torch')}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()
