"""Landlock: a process restricts which files it and its children may touch (kernel 5.13 and later).

Facts: Linux kernel documentation, userspace-api/landlock; ABI versions as listed there.
"""

from __future__ import annotations

import ctypes
import os

from npusmith.sandbox import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_VERSION_FLAG = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_CHANGE_DIR = sum(1 << bit for bit in range(4, 13))  # remove and make entries of every kind
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL  # legal for a rule on a file
_READ = EXECUTE | READ_FILE | READ_DIR
_NET_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract UNIX sockets and signals stay inside

# What programs read to start at all: libraries, loader cache, processor facts, devices.
SYSTEM = (
    "/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin",
    "/sys/devices/system/cpu", "/sys/devices/system/node",
    # of /etc what loaders, compilers' links and time need, not what the machine keeps to itself
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd",
)  # fmt: skip
# Not /dev/zero: its shared mappings are memory that no limit of a process counts.
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
# Of a /proc that shows other processes, too; /proc/self is the program's own, not its children's.
_PROC = (
    "/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/self",
    "/proc/stat", "/proc/sys/kernel/random", "/proc/sys/vm/overcommit_memory", "/proc/uptime",
    "/proc/version",
)  # fmt: skip


def abi() -> int:
    """The version that this kernel offers; 0 when there is none."""
    try:
        return kernel.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def _handled(version: int) -> int:
    rights = EXECUTE | WRITE_FILE | READ_FILE | READ_DIR | _CHANGE_DIR
    rights |= _REFER if version >= 2 else 0
    rights |= _TRUNCATE if version >= 3 else 0
    return rights | (_IOCTL if version >= 5 else 0)


def restrict(
    write: list[str], read: list[str] | None, network: bool, alone: bool, trace: bool = False
) -> None:
    """From here on: change only what lies beneath `write`; read all, or `read` and the system's.

    alone: /proc shows the box's own processes only. trace: it holds nothing else, and a debugger
    writes there.
    Raises OSError where the kernel has no Landlock. The caller has set no-new-privileges.
    """
    version = abi()
    if not version:
        raise OSError("this kernel has no Landlock")
    handled = _handled(version)
    rights = handled & ~_READ if read is None else handled
    sizes = ((6, 24), (4, 16), (1, 8))  # bytes of the attribute that each version knows
    size = next(size for known, size in sizes if version >= known)
    net = 0 if network else _NET_TCP
    attribute = (ctypes.c_uint64 * 3)(rights, net, _SCOPES)
    ruleset = kernel.syscall(_CREATE, attribute, ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in write:
            _allow(ruleset, path, rights)
        for path in DEVICES:
            _allow(ruleset, path, rights & (_READ | WRITE_FILE | _TRUNCATE | _IOCTL))
        if trace:
            _allow(ruleset, "/proc", rights & (_READ | WRITE_FILE))
        proc = ("/proc",) if alone else _PROC
        for path in (*SYSTEM, *proc, *read) if read is not None else ():
            _allow(ruleset, path, _READ)
        kernel.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what does not exist, or cannot be opened, needs no permission
    try:
        is_folder = os.path.isdir(path)  # noqa: PTH112 - pathlib costs the launcher 5 ms
        rule = _Beneath(rights if is_folder else rights & _FILE_RIGHTS, fd)
        kernel.syscall(
            _ADD,
            ctypes.c_int(ruleset),
            ctypes.c_int(_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(fd)
