"""A system-call filter, assembled by hand as classic BPF; x86_64 and aarch64.

A denied call fails with EPERM, so a program in Python gets a PermissionError with its line. Facts:
Linux kernel documentation, userspace-api/seccomp_filter; numbers from the kernel's unistd tables.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import NamedTuple

from npusmith.sandbox import kernel

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16  # offsets in struct seccomp_data
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_CLONE_THREAD = 0x00010000
_CLONE_NEW = 0x7E020000  # user, mount, pid, net, ipc, uts and cgroup namespaces
_X32_BIT = 0x40000000  # the x32 calls are a second door to the same kernel functions

# name -> (x86_64, aarch64); -1 where an architecture lacks the call.
NUMBERS: dict[str, tuple[int, int]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "execve": (59, 221),
    "execveat": (322, 281),
    "finit_module": (313, 273),
    "fork": (57, -1),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, -1),
    "iopl": (172, -1),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "socket": (41, 198),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vfork": (58, -1),
}
# These need a rule of their own below; every other name in the table is always denied.
_RULED = ("clone", "clone3", "execve", "execveat", "fork", "vfork", "socket")
_SIGNALS = ("kill", "tgkill", "tkill", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_OWN = ("kill", "tgkill")  # allowed towards the program itself: abort() needs it


class Arch(NamedTuple):
    """One machine: its audit word and its column of NUMBERS."""

    audit: int
    column: int


ARCHES = {"x86_64": Arch(0xC000003E, 0), "aarch64": Arch(0xC00000B7, 1)}


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value & 0xFFFFFFFF)


def _fail(code: int) -> bytes:
    return _op(_RETURN, _ERRNO | code)


_DENY = _fail(errno.EPERM)
_PASS = _op(_RETURN, _ALLOW)


def _argument(index: int, word: int = 0) -> bytes:
    return _op(_LOAD, _ARGUMENTS_AT + 8 * index + 4 * word)  # little-endian: word 0 is the low half


def _when(number: int, *body: bytes) -> bytes:
    """`body` runs for this call only, and always returns."""
    steps = b"".join(body)
    return _op(_EQUAL, number, 0, len(steps) // 8) + steps if number >= 0 else b""


def build(machine: str, *, processes: bool, network: bool, pid: int, path_at: int) -> bytes:
    """The filter's instructions, 8 bytes each.

    pid: the only process that may be signalled when `processes` is False. path_at: the address of
    the path that the launcher itself hands to execve; after that exec nobody knows it.
    """
    arch = ARCHES[machine]
    numbers = {name: row[arch.column] for name, row in NUMBERS.items()}
    parts = [
        _op(_LOAD, _ARCH_AT),
        _op(_EQUAL, arch.audit, 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":
        parts += [_op(_AT_LEAST, _X32_BIT, 0, 1), _fail(errno.ENOSYS)]
    denied = [name for name in NUMBERS if name not in (*_RULED, *_SIGNALS)]
    denied += [] if network else ["socket"]
    denied += [] if processes else ["fork", "vfork", "execveat"]
    parts += [_when(numbers[name], _DENY) for name in denied]
    # clone3 hides its flags in memory; without it the C library falls back to clone.
    parts.append(_when(numbers["clone3"], _fail(errno.ENOSYS)))
    parts.append(_when(numbers["clone"], *_clone_rule(processes)))
    if not processes:
        parts.append(_when(numbers["execve"], *_exec_rule(path_at)))
        parts += [_when(numbers[name], *_own_rule(pid)) for name in _OWN]
        parts += [_when(numbers[name], _DENY) for name in _SIGNALS if name not in _OWN]
    return b"".join([*parts, _PASS])


def _clone_rule(processes: bool) -> tuple[bytes, ...]:
    spaces = (_argument(0), _op(_ANY_BIT, _CLONE_NEW, 0, 1), _DENY)
    if processes:
        return (*spaces, _PASS)
    return (*spaces, _op(_ANY_BIT, _CLONE_THREAD, 0, 1), _PASS, _DENY)


def _exec_rule(path_at: int) -> tuple[bytes, ...]:
    low, high = path_at & 0xFFFFFFFF, path_at >> 32
    return (
        _argument(0, 0),
        _op(_EQUAL, low, 1, 0),
        _DENY,
        _argument(0, 1),
        _op(_EQUAL, high, 1, 0),
        _DENY,
        _PASS,
    )


def _own_rule(pid: int) -> tuple[bytes, ...]:
    return (_argument(0), _op(_EQUAL, pid, 1, 0), _DENY, _PASS)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def load(*, processes: bool, network: bool, pid: int, path_at: int) -> None:
    """Put the filter on this process for good; OSError or KeyError where it cannot be."""
    machine = os.uname().machine
    if machine not in ARCHES:
        raise OSError(f"no system-call table for {machine}")
    steps = build(machine, processes=processes, network=network, pid=pid, path_at=path_at)
    memory = ctypes.create_string_buffer(steps, len(steps))
    program = _Program(len(steps) // 8, ctypes.addressof(memory))
    zero = ctypes.c_ulong(0)
    mode = ctypes.c_ulong(_MODE_FILTER)
    result = kernel.libc.prctl(_PR_SET_SECCOMP, mode, ctypes.byref(program), zero, zero)
    kernel.check(result, "seccomp")
