"""Wait until one of some files or folders changes, for --watch."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Sequence
from pathlib import Path

from npusmith.sandbox.folder import walk

_EVERY = 0.2  # seconds between two looks; an editor that saves in steps is done by the next one
_MOST_FILES = 20_000


def wait_for_change(paths: Sequence[Path], before: frozenset[tuple[str, int, int]]) -> None:
    """Return when the files differ from `before` and have stopped to change."""
    last = before
    while True:
        time.sleep(_EVERY)
        now = state(paths)
        if now != before and now == last:
            return
        last = now


def state(paths: Sequence[Path]) -> frozenset[tuple[str, int, int]]:
    """Names, sizes and times of all below folders, and of files with those beside them."""
    found = []
    for path in paths:
        folder = path.absolute() if path.is_dir() else path.absolute().parent
        near = (Path(entry.path) for entry in walk(folder)) if path.is_dir() else folder.iterdir()
        for entry in itertools.islice(near, _MOST_FILES):
            with contextlib.suppress(OSError):  # gone meanwhile
                held = entry.lstat()
                found.append((str(entry), held.st_size, held.st_mtime_ns))
    return frozenset(found)
