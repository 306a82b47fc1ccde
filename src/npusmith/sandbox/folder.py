"""Folders in which strangers may have written: make them, measure them, remove them.

Nothing outside of such a folder is ever changed. Entries are reached by folder handles and names,
never through a link, and only folders are made writable again: a file may have a second name
elsewhere. Nesting costs neither recursion nor handles. Standard library only: the launcher uses it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
ENDLESS = 1 << 62  # bytes
_PATH_MAX = 4096
_LIFTED = ".removed-"  # what a nested folder is called once it lies at the top


@contextlib.contextmanager
def temporary_folder(prefix: str, *, within: Path | None = None) -> Iterator[Path]:
    """A new folder of our own that is gone afterwards, whatever was left in it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
    try:
        yield folder
    finally:
        remove_tree(folder)


def remove_tree(folder: str | os.PathLike[str]) -> None:
    """Remove a folder even when what ran in it took away its permissions or nested it deeply.

    A link in its place, and what cannot be removed, stay. Another process may remove it, too.
    """
    with contextlib.suppress(OSError):
        top = _open(folder, None)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)  # noqa: PTH106 - pathlib costs the launcher 5 ms


def folder_bytes(folder: str | os.PathLike[str]) -> int:
    """Space on the disk that a folder takes; what vanishes meanwhile counts as nothing.

    ENDLESS where folders are nested deeper than a path can name: nobody honest does that.
    """
    total = 0
    for entry in walk(folder):
        if len(os.fsencode(entry.path)) >= _PATH_MAX:
            return ENDLESS
        with contextlib.suppress(OSError):
            total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def files_beneath(folder: str | os.PathLike[str]) -> list[Path]:
    """The files and links beneath a folder at any depth, sorted."""
    return sorted(
        Path(entry.path) for entry in walk(folder) if not entry.is_dir(follow_symlinks=False)
    )


def walk(folder: str | os.PathLike[str]) -> Iterator[os.DirEntry[str]]:
    """Every entry beneath a folder, at any depth, links unfollowed; what cannot be read is left."""
    left = [os.fspath(folder)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                left.append(entry.path)
            yield entry


def _open(name: str | os.PathLike[str], parent: int | None) -> int:
    """A handle to a folder that is no link; afterwards its owner may read and change it."""
    found = os.open(name, _LOOK, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(found).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:  # by handle: the name may mean something else now
            os.chmod(f"/proc/self/fd/{found}", mode | stat.S_IRWXU)  # noqa: PTH101
        return os.open(".", _READ, dir_fd=found)
    finally:
        os.close(found)


def _empty(top: int) -> None:
    """Remove all entries of a folder: nested folders are lifted to the top one after the other."""
    lifted = 0
    names = os.listdir(top)
    while names:
        name = names.pop()
        if _unlinked(name, top):
            continue
        with contextlib.suppress(OSError):
            inner = _open(name, top)
            try:
                for child in os.listdir(inner):  # noqa: PTH208 - by handle
                    if not _unlinked(child, inner):
                        lifted = _lift(child, inner, top, lifted)
                        names.append(f"{_LIFTED}{lifted}")
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _unlinked(name: str, parent: int) -> bool:
    """Remove an entry that is no folder; False for a folder."""
    try:
        os.unlink(name, dir_fd=parent)
    except (IsADirectoryError, PermissionError):  # POSIX leaves open which of the two
        with contextlib.suppress(OSError):
            return not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode)
    except OSError:
        return True  # gone already, or it stays
    return True


def _lift(name: str, parent: int, top: int, count: int) -> int:
    """Move a folder to the top under a number of its own; gives the number."""
    os.close(_open(name, parent))  # a folder that moves must be writable: its ".." changes
    while True:
        count += 1
        try:
            os.rename(name, f"{_LIFTED}{count}", src_dir_fd=parent, dst_dir_fd=top)
        except (FileExistsError, NotADirectoryError):
            continue
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            continue
        return count
