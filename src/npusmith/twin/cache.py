"""Where compiled things are kept, and how two processes make one of them only once.

A folder counts only when its marker file is there. Who makes it holds a lock, starts from nothing
and sets the marker last, so that a build that was killed leaves nothing that looks whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import platformdirs

_MARKER = "complete"


def cache_root() -> Path:
    """NPUSMITH_CACHE, or the user's cache folder."""
    named = os.environ.get("NPUSMITH_CACHE")
    return Path(named) if named else platformdirs.user_cache_path("npusmith")


def digest(parts: Iterable[str | bytes]) -> str:
    """A key for these contents; their order and boundaries count."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:24]


def fetch(folder: Path, make: Callable[[Path], None]) -> bool:
    """Make sure that `folder` is complete; True when `make(folder)` had to run."""
    if (folder / _MARKER).exists():
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(folder.name + ".lock")):
        if (folder / _MARKER).exists():
            return False
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
        make(folder)
        (folder / _MARKER).touch()
    return True


def keep_newest(parent: Path, count: int, keep: Path) -> None:
    """Remove all but the `count` entries used last; what somebody is making is left alone."""
    entries = sorted(
        (path for path in parent.iterdir() if path.is_dir() and (path / _MARKER).exists()),
        key=lambda path: (path / _MARKER).stat().st_mtime,
        reverse=True,
    )
    for path in entries[count:]:
        if path != keep:
            (path / _MARKER).unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
