"""Result folders that are whole or not there at all.

`with new_folder(target) as tmp:` gives a hidden folder beside the target. When the block ends
without an error, everything in it is flushed to disk and it takes the target's place in one step;
an older result stays until that step. When the block fails, or the process is killed, the target is
as it was. A killed process leaves its hidden folder; the next new_folder for that target takes it
away.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from npusmith.errors import NpusmithError
from npusmith.sandbox.folder import remove_tree, walk
from npusmith.store.record import read_result
from npusmith.store.refusal import named_errors

_AT_FDCWD = -100
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_HIDDEN = ".result-"  # prefix of the hidden folders, before the target's name
_OLD = ".npusmith-old"  # where _swap keeps the old result for a moment


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill; it becomes `target` when the block ends without an error.

    Raises folder-foreign, disk-full and file-denied; every other error passes through.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100 - keeps a symbolic link's own name
    refuse_foreign(target)
    missing = [path for path in target.parents if not path.exists()]
    with named_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        tmp, lock = _hidden(target)
    try:
        with named_errors(target):
            yield tmp
            _flush(tmp)
            _place(tmp, target)
    finally:
        remove_tree(tmp)
        os.close(lock)
        with suppress(OSError):  # those that hold something now stay
            for path in missing:
                path.rmdir()


def refuse_foreign(target: Path) -> None:
    """Raises folder-foreign unless target is absent, empty, or an earlier result of npusmith."""
    if target.is_dir() and not target.is_symlink():
        if read_result(target) is not None or not any(target.iterdir()):
            return
        seen = f"{target} is a folder without a result.json of npusmith"
    elif target.exists() or target.is_symlink():
        seen = f"{target} is not a plain folder"
    else:
        return
    raise NpusmithError("folder-foreign", "will not replace what is there", seen=seen)


def _hidden(target: Path) -> tuple[Path, int]:
    """A locked folder beside target: the lock tells a running writer from a dead one."""
    while True:
        tmp = Path(tempfile.mkdtemp(prefix=f"{_HIDDEN}{target.name}-", dir=target.parent))
        tmp.chmod(0o777 & ~_umask())  # mkdtemp's 0700 is not what a result should have
        lock = os.open(tmp, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if tmp.exists():  # else another process swept it between the two calls
            return tmp, lock
        os.close(lock)


def _sweep(target: Path) -> None:
    """Removes what killed writers of the same target left."""
    for path in target.parent.glob(f"{_HIDDEN}{glob.escape(target.name)}-????????"):
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if (path / _OLD).exists() and not target.exists():
                    (path / _OLD).rename(target)  # killed between the two renames of _swap
                remove_tree(path)
            finally:
                os.close(lock)


def _place(tmp: Path, target: Path) -> None:
    """Puts tmp where target is; what was there ends up in tmp and is removed by the caller."""
    refuse_foreign(target)  # it may have changed while the result was made
    if not target.exists():
        tmp.rename(target)
    elif not _exchange(tmp, target):
        _swap(tmp, target)
    _sync(target.parent)


def _exchange(tmp: Path, target: Path) -> bool:
    """One atomic step; False where the system or the file system cannot do it."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    args = (_AT_FDCWD, os.fsencode(tmp), _AT_FDCWD, os.fsencode(target), _EXCHANGE)
    if renameat2(*args) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(target))


def _swap(tmp: Path, target: Path) -> None:
    """Two renames; a failure of the second puts the old result back."""
    keep = Path(tempfile.mkdtemp(prefix=f"{_HIDDEN}{target.name}-", dir=target.parent))
    target.rename(keep / _OLD)
    try:
        tmp.rename(target)
    except OSError:
        (keep / _OLD).rename(target)
        keep.rmdir()
        raise
    remove_tree(keep)


def _flush(folder: Path) -> None:
    for entry in walk(folder):
        if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
            _sync(Path(entry.path))
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
