"""What a reference gave, kept for every candidate of its item: `make_trials(order) -> Trials`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from npusmith.bench.suites import wire
from npusmith.errors import Place, TaskError
from npusmith.sandbox.box import Boxed, Policy
from npusmith.task.references import code_digest
from npusmith.task.trials import run_python
from npusmith.twin import cache

_REFERENCE = "npusmith.bench.suites.reference"
_REFERENCE_ENDS = "npusmith.bench.suites.ends"
_ENDS = "ends.json"
_KEPT = 64  # items whose trials stay on the disk ...
_KEPT_BYTES = 8 << 30  # ... as far as they fit into this
_RECORD_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Order:
    """Which reference, and how it is called."""

    path: str  # what the text may read lies beside this file
    text: str
    seed: int  # of the model
    seeds: tuple[int, ...]  # of the trials
    training: bool
    beside: str = ""  # digest of what the text reads
    most_bytes: int = 0  # of the inputs of a case; larger ones are skipped
    more: bool = False  # values that kernels get wrong (edges.py), however large the inputs are


@dataclass(frozen=True, slots=True)
class Trials:
    """Inputs, outputs and parameters on disk; nothing here is a candidate's."""

    folder: Path
    record: dict[str, Any]

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.record["trials"]
        return rows

    def value(self, tree: wire.Tree | None) -> Any:
        return None if tree is None else wire.get(tree, self.folder)


def make_trials(order: Order, *, seconds: float, memory_mb: float) -> Trials:
    """Run the reference in the sandbox, or take what an earlier run left in the cache.

    Raises TaskError: the task's own failure, or how its process ended.
    """
    parts = json.dumps(asdict(order), sort_keys=True)
    folder = cache.cache_root() / "suites" / "trials" / cache.digest([code_digest(), parts])
    cache.fetch(folder, lambda fresh: _run(order, fresh, seconds, memory_mb))
    cache.keep_newest(folder.parent, _KEPT, folder, _KEPT_BYTES)
    with (folder / "trials.json").open("rb") as file:
        return Trials(folder, json.loads(file.read(_RECORD_BYTES)))


def make_ends(order: Order, *, seconds: float, memory_mb: float) -> tuple[Path, dict[str, Any]]:
    """What ends.py leaves: the folder with its files, and its record.

    Raises TaskError as make_trials does; what the reference itself does not allow is in the record.
    """
    parts = json.dumps(asdict(order), sort_keys=True)
    folder = cache.cache_root() / "suites" / "ends" / cache.digest([code_digest(), parts])

    def make(fresh: Path) -> None:
        boxed = _child(order, fresh, seconds, memory_mb, _REFERENCE_ENDS)
        if not (fresh / _ENDS).exists():
            raise _ended(order, boxed, seconds, memory_mb)

    cache.fetch(folder, make)
    cache.keep_newest(folder.parent, _KEPT, folder, _KEPT_BYTES)
    return folder, json.loads(wire.read_plain(folder / _ENDS, _RECORD_BYTES))


def _run(order: Order, folder: Path, seconds: float, memory_mb: float) -> None:
    boxed = _child(order, folder, seconds, memory_mb, _REFERENCE)
    record = folder / "trials.json"
    if not record.exists():
        raise _ended(order, boxed, seconds, memory_mb)
    found = json.loads(record.read_bytes())
    if "error" in found:
        raise TaskError(found["code"], found["error"], Place(Path(order.path).name))


def _child(order: Order, folder: Path, seconds: float, memory_mb: float, module: str) -> Boxed:
    """The boxed process that runs the reference, and leaves its record in the folder."""
    policy = Policy(
        write=(folder,), read=(Path(order.path).parent,), seconds=seconds,
        memory_bytes=int(memory_mb * (1 << 20)), file_bytes=4 << 30,
    )  # fmt: skip
    return run_python(module, json.dumps({**asdict(order), "out": str(folder)}), policy, folder)


def _ended(order: Order, boxed: Boxed, seconds: float, memory_mb: float) -> TaskError:
    place = Place(Path(order.path).name)
    if boxed.timed_out:
        return TaskError(
            "task-timeout", f"the reference was still running after {seconds:g} s", place
        )
    if boxed.out_of_memory:
        return TaskError(
            "task-memory", f"the reference needs more than {memory_mb:g} MB of memory", place
        )
    said = boxed.stderr[-300:].decode(errors="replace").strip().rpartition("\n")[2]
    return TaskError(
        "task-crashed", f"the reference's process ended ({boxed.returncode}) {said}".strip(), place
    )
