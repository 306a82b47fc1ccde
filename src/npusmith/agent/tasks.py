"""Prepared tasks that several sessions share: captured once, if their tensors are not too many."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from npusmith.bench.plan import judge_digest
from npusmith.sandbox.folder import remove_tree
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared
from npusmith.task.trials import DATA, SEEDS, Sets, prepare, reopen

_SEEDS = tuple(seed + 7919 for seed in SEEDS)  # away from those that a verdict is made on
_MOST_BYTES = 64 << 20  # kept on disk for one task


@contextmanager
def open_prepared(path: Path, home: Path) -> Iterator[Prepared]:
    """The task, prepared here or by an earlier session."""
    task = open_task(path)
    folder = home / f"{task.digest[:16]}-{judge_digest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # whoever has it open may keep it so for long
        kept = reopen(task, folder / DATA)
        if kept is None:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the other samples of a task wait for the first
            kept = reopen(task, folder / DATA) or prepare(task, folder, sets=Sets(seeds=_SEEDS))
            fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield kept
        finally:
            if _bytes(kept) > _MOST_BYTES:
                _remove(kept.folder, lock.fileno())


def _remove(data: Path, lock: int) -> None:
    """Unless another session is at it."""
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(data)


def _bytes(prepared: Prepared) -> int:
    return sum(trial.bytes for trial in prepared.trials)
