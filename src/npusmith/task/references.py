"""References that are kept between runs: `open_references(task, ...) -> Prepared`.

What a task's code gives is the same for every candidate, so it is made once: as long as the task,
the data beside it, the seeds, and the code that makes references are the same.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from pydantic import BaseModel, ValidationError

from npusmith import __version__
from npusmith.errors import TwinError
from npusmith.task.load import Task
from npusmith.task.prepared import Prepared
from npusmith.task.trials import DATA, SEEDS, Limits, prepare, readable_beside, reopen
from npusmith.twin import cache

_KEPT, _KEPT_BYTES = 64, 8 << 30  # tasks, as far as they fit into that
_HOW = "how.json"


class _How(BaseModel):
    """What the process that made the references was like."""

    missing: tuple[str, ...]
    seconds: float
    peak_bytes: int


def open_references(
    task: Task,
    folder: Path,
    *,
    seeds: tuple[int, ...] = SEEDS,
    edges: bool = True,
    shapes: bool = True,
    limits: Limits | None = None,
    given: Sequence[Sequence[tuple[int, ...]]] = (),
) -> Prepared:
    """As `prepare`, from the cache where they are; `folder` is used where nothing can be kept."""
    chosen = {"seeds": seeds, "edges": edges, "shapes": shapes, "given": [list(s) for s in given]}
    beside = [
        part for path in readable_beside(task.path) for part in (path.name, path.read_bytes())
    ]
    parts = [code_digest(), str(task.path), task.text, repr(chosen), *beside]
    place = cache.cache_root() / "references" / cache.digest(parts)

    anew = functools.partial(
        prepare, task, seeds=seeds, edges=edges, shapes=shapes, limits=limits, given=given
    )

    def make(fresh: Path) -> None:
        made = anew(folder=fresh)
        how = _How(missing=made.missing, seconds=made.seconds, peak_bytes=made.peak_bytes)
        (fresh / _HOW).write_text(how.model_dump_json(), encoding="utf-8")

    try:
        if cache.fetch(place, make):
            cache.keep_newest(place.parent, _KEPT, place, _KEPT_BYTES)
        found = _read(task, place)
    except TwinError as error:
        if error.code != "cache-unusable":
            raise
        found = None
    return found or anew(folder=folder)


def _read(task: Task, place: Path) -> Prepared | None:
    """What lies there; None where it is not whole any more."""
    try:
        how = _How.model_validate_json((place / _HOW).read_bytes())
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
