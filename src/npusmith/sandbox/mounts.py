"""A file tree of the box's own: only what the policy names is there, and most of it read-only.

Landlock refuses to open files, but not to change their modes, owners, times and attributes, nor to
ask whether they exist; in a tree of its own the program has no name for them. Process 1 of the box
builds the tree in a new mount namespace: bind mounts on an empty memory file system, which becomes
the root. Facts: mount_setattr(2), open_tree(2), move_mount(2), pivot_root(2); Linux 5.12.
Standard library only.
"""

from __future__ import annotations

import ctypes
import os

from npusmith.sandbox import kernel

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on every architecture
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_AT_FDCWD, _EMPTY_PATH, _RECURSIVE = -100, 0x1000, 0x8000
_CLONE, _CLOEXEC = 1, os.O_CLOEXEC
_FROM_HANDLE = 0x4  # MOVE_MOUNT_F_EMPTY_PATH
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8  # both as MS_ and as MOUNT_ATTR_ flags
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_DETACH = 2
_LINKS = (
    ("/dev/fd", "/proc/self/fd"), ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"), ("/dev/stderr", "/proc/self/fd/2"),
)  # fmt: skip


class Attributes(ctypes.Structure):
    """struct mount_attr."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "users")]


def enter(
    stage: str,
    write: list[str],
    read: list[str],
    devices: tuple[str, ...],
    *,
    whole: bool,
    alone: bool,
    trace: bool = False,
) -> bool:
    """Make the tree and enter it; is /proc one of its own, too?

    stage: a folder that the tree is built on; it may be one of `write`. whole: all that can be
    read outside is there, read-only. alone: this process namespace is the box's own. trace: /proc
    is for a debugger, which writes into the memory of others. OSError, and nothing has changed,
    where the kernel refuses.
    """
    kernel.unshare(kernel.CLONE_NEWNS)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    wanted = {os.path.realpath(path): _READ_ONLY | _NO_SETUID | _NO_DEVICES for path in read}
    wanted |= {path: _NO_SETUID for path in devices if not whole}
    wanted |= {os.path.realpath(path): _NO_SETUID | _NO_DEVICES for path in write}
    if whole:
        wanted = {path: flags for path, flags in wanted.items() if not flags & _READ_ONLY}
        wanted["/"] = _READ_ONLY | _NO_SETUID
    trees = [(path, _tree(path, wanted[path])) for path in sorted(_needed(wanted))]
    if not whole:
        _mount("box", stage, "tmpfs", _NO_SETUID | _NO_DEVICES, "mode=755,size=1m")
    null = _tree("/dev/null", _NO_SETUID) if whole else -1
    try:
        for path, tree in trees:
            if tree >= 0:
                _attach(tree, stage, path)
        if null >= 0:  # over a device whose shared mappings are memory that nothing counts
            _attach(null, stage, "/dev/zero")
        own = _add_proc(stage, alone, trace)
        if not whole:
            _add_links(stage, [*write, *read])
        os.chdir(stage)
        kernel.syscall(_PIVOT_ROOT[os.uname().machine], b".", b".")
    except (OSError, KeyError) as error:
        kernel.libc.umount2(os.fsencode(stage), _DETACH)
        raise OSError(f"no tree: {error}") from error
    kernel.check(kernel.libc.umount2(b".", _DETACH), "umount the old root")
    os.chdir("/")
    if not whole:
        _change(_AT_FDCWD, b"/", _READ_ONLY, 0)
    return own


def _needed(wanted: dict[str, int]) -> list[str]:
    """Without what comes along beneath another one, and may do the same there."""
    return [path for path, flags in wanted.items() if flags != wanted.get(_above(path, wanted))]


def _above(path: str, wanted: dict[str, int]) -> str:
    """The nearest folder above that is wanted, too; "" without one."""
    while path != "/":
        path = os.path.dirname(path)  # noqa: PTH120 - pathlib costs the launcher 5 ms
        if path in wanted:
            return path
    return ""


def _tree(path: str, flags: int) -> int:
    """A handle to a copy of what is mounted there, with these flags; -1 for what is not there."""
    try:
        copy = ctypes.c_uint(_CLONE | _CLOEXEC | _RECURSIVE)
        tree = kernel.syscall(_OPEN_TREE, ctypes.c_int(_AT_FDCWD), os.fsencode(path), copy)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        if os.access(path, os.R_OK):
            raise
        return -1
    _change(tree, b"", flags, _EMPTY_PATH | _RECURSIVE)
    return tree


def _change(tree: int, path: bytes, flags: int, how: int) -> None:
    change = Attributes(set=flags)
    size = ctypes.c_size_t(ctypes.sizeof(change))
    options = ctypes.c_uint(how)
    kernel.syscall(_MOUNT_SETATTR, ctypes.c_int(tree), path, options, ctypes.byref(change), size)


def _attach(tree: int, stage: str, path: str) -> None:
    folder = os.path.isdir(path)  # noqa: PTH112
    target = stage if path == "/" else stage + path
    if not os.path.lexists(target):
        os.makedirs(target if folder else os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        if not folder:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o600))
    here, empty = ctypes.c_int(_AT_FDCWD), ctypes.c_uint(_FROM_HANDLE)
    kernel.syscall(_MOVE_MOUNT, ctypes.c_int(tree), b"", here, os.fsencode(target), empty)
    os.close(tree)


def _add_proc(stage: str, alone: bool, trace: bool) -> bool:
    """A /proc that shows this process namespace only; False leaves the outer one, read-only.

    What can be written for a debugger has processes alone, and nothing of the kernel's settings.
    """
    flags = _READ_ONLY | _NO_SETUID | _NO_DEVICES | _NO_EXEC
    os.makedirs(f"{stage}/proc", exist_ok=True)  # noqa: PTH103
    try:
        if alone and trace:
            _mount("proc", f"{stage}/proc", "proc", flags & ~_READ_ONLY, "subset=pid")
        elif alone:
            _mount("proc", f"{stage}/proc", "proc", flags)
        if alone:
            return True
    except OSError:  # parts of the outer one are hidden, as in containers
        alone = False
    _attach(_tree("/proc", flags), stage, "/proc")
    return False


def _add_links(stage: str, paths: list[str]) -> None:
    """What was named by way of a link is found under that name as well."""
    pairs = [(path, os.path.realpath(path)) for path in paths]
    for path, real in (*_LINKS, *pairs):
        if path == real or not _is_free(stage, path):
            continue
        os.makedirs(os.path.dirname(stage + path), exist_ok=True)  # noqa: PTH103, PTH120
        os.symlink(real, stage + path)  # noqa: PTH211


def _is_free(stage: str, path: str) -> bool:
    """May an entry be made there? Not where one is, nor where the way leads through a link."""
    at = ""
    for part in path.strip("/").split("/"):
        at = f"{at}/{part}"
        if os.path.islink(stage + at):  # noqa: PTH114
            return False
        if not os.path.lexists(stage + at):
            return os.stat(os.path.dirname(stage + at)).st_dev == os.stat(stage).st_dev  # noqa: PTH116, PTH120
    return False


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    more = None if options is None else options.encode()
    kernel.check(kernel.libc.mount(*words, ctypes.c_ulong(flags), more), f"mount {target}")
