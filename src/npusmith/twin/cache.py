"""Where compiled things are kept, and how two processes make one of them only once.

A folder counts only when its marker file is there. Who makes it holds a lock, starts from nothing
and sets the marker last, so that a build that was killed leaves nothing that looks whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import platformdirs

from npusmith.errors import Place, TwinError
from npusmith.sandbox.folder import folder_bytes, remove_tree

_MARKER = "complete"
_IN_USE = 8  # entries that processes may be reading


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
    """Make sure that `folder` is complete; True when `make(folder)` had to run.

    What `make` raises leaves no folder behind; TwinError cache-unusable if nothing can be written.
    """
    if (folder / _MARKER).exists():
        with contextlib.suppress(OSError):  # in a box it is there to be read only
            os.utime(folder / _MARKER)  # used now: keep_newest goes by this
        return False
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # A few locks for all, so that they do not pile up; strangers wait now and then.
        with _locked(folder.with_name(f"{folder.name[:2]}.lock")):
            if (folder / _MARKER).exists():
                return False
            _make_whole(folder, make)
    except OSError as error:
        raise TwinError(
            "cache-unusable",
            "nothing can be kept in the cache",
            Place(str(folder)),
            seen=str(error),
        ) from error
    return True


def _make_whole(folder: Path, make: Callable[[Path], None]) -> None:
    if folder.exists():
        remove_tree(folder)
    folder.mkdir()
    try:
        make(folder)
        (folder / _MARKER).touch()
    except BaseException:
        remove_tree(folder)
        raise


def keep_newest(parent: Path, count: int, keep: Path, most_bytes: int = 0) -> None:
    """Remove all but the `count` entries used last; what somebody is making is left alone.

    `most_bytes`: of these, those beyond that size go as well, but for a few that may be in use.
    """
    used = {path: _last_use(path) for path in parent.iterdir()}
    complete = sorted((path for path in used if used[path]), key=lambda path: -used[path])
    kept = min(count, _fitting(complete[:count], most_bytes)) if most_bytes else count
    for path in complete[kept:]:
        if path != keep:
            (path / _MARKER).unlink(missing_ok=True)
            remove_tree(path)


def _fitting(folders: Sequence[Path], most_bytes: int) -> int:
    """How many of the first folders take so many bytes together, or `_IN_USE` of them."""
    total = 0
    for at, folder in enumerate(folders):
        with contextlib.suppress(OSError):
            total += folder_bytes(folder)
        if total > most_bytes:
            return max(at, _IN_USE)
    return len(folders)


def _last_use(folder: Path) -> float:
    """When an entry was used last; 0 for what is not a complete entry."""
    try:
        return (folder / _MARKER).stat().st_mtime
    except OSError:
        return 0.0


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
