"""Where a candidate lies while it is built: below the cache, at a place named by its text.

Compilers' caches know a text by its path as well, so that a candidate which is judged again, timed,
or the same as another one is compiled once. Python candidates are unpacked anew each time, in one
of a few slots that all share: a binding that did not change is not compiled again. A slot belongs
to one process at a time.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npusmith.bench.model import Candidate
from npusmith.bench.suites.submit import write_files
from npusmith.errors import TwinError
from npusmith.sandbox.folder import remove_tree
from npusmith.twin import cache

_KEPT = 256  # candidates whose files stay
_SLOTS = 512  # processes that build candidates at the same time
_ENTRY = "entry"  # beside the candidate's files


def unpack(candidate: Candidate, chip: str) -> tuple[Path, str]:
    """The folder, and the file of a submission with a class there; "" for an operator project.

    Raises what write_files raises, and cache-unusable.
    """
    key = cache.digest([_ENTRY, candidate.digest, chip])
    folder = cache.cache_root() / "suites" / "candidates" / key

    def write(fresh: Path) -> None:
        (fresh / _ENTRY).write_text(write_files(candidate, fresh, chip), encoding="utf-8")

    if cache.fetch(folder, write):
        cache.keep_newest(folder.parent, _KEPT, folder)
    return folder, (folder / _ENTRY).read_text(encoding="utf-8")


@contextmanager
def slot() -> Iterator[Path]:
    """An empty folder at a place that stays the same, for as long as nobody else has it."""
    folder = cache.cache_root() / "suites" / "slots"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(_SLOTS):
        with (folder / f"slot{number}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            work = folder / f"slot{number}"
            if work.exists():  # of a process that was killed
                remove_tree(work)
            work.mkdir()
            try:
                yield work
            finally:
                remove_tree(work)
            return
    raise TwinError("cache-unusable", "too many processes build candidates at once")
