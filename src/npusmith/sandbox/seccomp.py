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
    "chmod": (90, -1),
    "chown": (92, -1),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "creat": (85, -1),
    "delete_module": (176, 106),
    "execve": (59, 221),
    "execveat": (322, 281),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "file_setattr": (469, 469),
    "finit_module": (313, 273),
    "fork": (57, -1),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, -1),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, -1),
    "iopl": (172, -1),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "lchown": (94, -1),
    "listmount": (458, 458),
    "lookup_dcookie": (212, 18),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "mmap": (9, 222),
    "modify_ldt": (154, -1),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgget": (68, 186),
    "open": (2, -1),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmget": (29, 194),
    "socket": (41, 198),
    "statmount": (457, 457),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utime": (132, -1),
    "utimensat": (280, 88),
    "utimes": (235, -1),
    "vfork": (58, -1),
    "vhangup": (153, 58),
}
_NEWEST = 470  # calls from here on are of kernels that nobody has looked at

# These need a rule of their own below; every other name in the table is always denied.
_MODES = {  # calls that give a file its mode -> the argument with the mode, the one with flags
    "chmod": (1, None), "fchmod": (1, None), "fchmodat": (2, None), "fchmodat2": (2, None),
    "creat": (1, None), "open": (2, 1), "openat": (3, 2), "mknod": (1, None), "mknodat": (2, None),
}  # fmt: skip
# Landlock does not look at these; only in a tree of its own is every file the program's own.
_CHANGES = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat",
)  # fmt: skip
_OTHERS = (  # their first argument is a process: 0 is the caller
    "prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler",
)  # fmt: skip
_RULED = (
    "clone", "clone3", "execve", "execveat", "fork", "vfork", "socket", "openat2", "mmap", "ioctl",
    "setpriority", "ioprio_set", *_MODES, *_CHANGES, *_OTHERS,
)  # fmt: skip
_SIGNALS = ("kill", "tgkill", "tkill", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_OWN = ("kill", "tgkill")  # allowed towards the program itself: abort() needs it
_TRACING = ("ptrace", "process_vm_readv", "process_vm_writev")
_SET_ID = 0o6000  # such a file of ours would lend our rights to whoever starts it
_MAKES = 0x40 | 0x400000  # O_CREAT, O_TMPFILE: else the mode is not looked at
_SHARED, _ANONYMOUS = 0x01, 0x20  # mmap: memory that the limit of private memory does not count
_ASKS = (  # of ioctl: terminal, size, and flags of the handle itself
    0x5401, 0x802C542A, 0x540F, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x5460,
)  # fmt: skip


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


def build(
    machine: str,
    *,
    processes: bool,
    network: bool,
    pid: int,
    path_at: int,
    tree: bool,
    trace: bool = False,
) -> bytes:
    """The filter's instructions, 8 bytes each.

    pid: the only process that may be signalled when `processes` is False. path_at: the address of
    the path that the launcher itself hands to execve; after that exec nobody knows it. tree: what
    the program can name and change is its own. trace: it may trace, as a debugger does.
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
    parts += [_op(_AT_LEAST, _NEWEST, 0, 1), _fail(errno.ENOSYS)]
    denied = [name for name in NUMBERS if name not in (*_RULED, *_SIGNALS)]
    denied += [] if tree else _CHANGES
    denied += [] if network else ["socket"]
    denied = [name for name in denied if not (trace and name in _TRACING)]
    denied += [] if processes else ["fork", "vfork", "execveat"]
    parts += [_when(numbers[name], _DENY) for name in denied]
    # These hide their flags in memory; without them the C library falls back to older calls.
    parts += [_when(numbers[name], _fail(errno.ENOSYS)) for name in ("clone3", "openat2")]
    parts.append(_when(numbers["clone"], *_clone_rule(processes)))
    parts += [_when(numbers[name], *_mode_rule(*where)) for name, where in _MODES.items()]
    parts += [_when(numbers[name], *_own_rule(0)) for name in _OTHERS]
    parts.append(_when(numbers["setpriority"], *_pair_rule(0, 0)))
    parts.append(_when(numbers["ioprio_set"], *_pair_rule(1, 0)))
    parts.append(_when(numbers["mmap"], *_mmap_rule()))
    parts.append(_when(numbers["ioctl"], *_ioctl_rule()))
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


def _mode_rule(mode: int, flags: int | None) -> tuple[bytes, ...]:
    """No file that runs with the rights of its owner or group."""
    check = (_argument(mode), _op(_ANY_BIT, _SET_ID, 0, 1), _DENY, _PASS)
    if flags is None:
        return check
    return (_argument(flags), _op(_ANY_BIT, _MAKES, 1, 0), _PASS, *check)


def _pair_rule(first: int, second: int) -> tuple[bytes, ...]:
    return (
        _argument(0), _op(_EQUAL, first, 1, 0), _DENY,
        _argument(1), _op(_EQUAL, second, 1, 0), _DENY, _PASS,
    )  # fmt: skip


def _mmap_rule() -> tuple[bytes, ...]:
    return (
        _argument(3), _op(_ANY_BIT, _ANONYMOUS, 1, 0), _PASS,
        _op(_ANY_BIT, _SHARED, 0, 1), _DENY, _PASS,
    )  # fmt: skip


def _ioctl_rule() -> tuple[bytes, ...]:
    """Questions only: others type into a terminal, or change a file that is open for reading."""
    asks = [step for word in _ASKS for step in (_op(_EQUAL, word, 0, 1), _PASS)]
    return (_argument(1), *asks, _fail(errno.ENOTTY))


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def load(
    *, processes: bool, network: bool, pid: int, path_at: int, tree: bool, trace: bool = False
) -> None:
    """Put the filter on this process for good; OSError or KeyError where it cannot be."""
    machine = os.uname().machine
    if machine not in ARCHES:
        raise OSError(f"no system-call table for {machine}")
    how = {"processes": processes, "network": network, "tree": tree, "trace": trace}
    steps = build(machine, pid=pid, path_at=path_at, **how)
    memory = ctypes.create_string_buffer(steps, len(steps))
    program = _Program(len(steps) // 8, ctypes.addressof(memory))
    zero = ctypes.c_ulong(0)
    mode = ctypes.c_ulong(_MODE_FILTER)
    result = kernel.libc.prctl(_PR_SET_SECCOMP, mode, ctypes.byref(program), zero, zero)
    kernel.check(result, "seccomp")
