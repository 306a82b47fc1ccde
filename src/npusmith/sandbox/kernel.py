"""The few system calls that Python does not wrap, by ctypes. Standard library only.

This file and its neighbours `enter`, `landlock` and `seccomp` run in the launcher under
`python -I -S`, so they import nothing that costs time.
"""

from __future__ import annotations

import ctypes
import os

CLONE_NEWUSER = 0x10000000
CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_NEWIPC = 0x08000000
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION = 0x20080522  # version 3: two 32-bit words for each set

_READ_WRITE, _PRIVATE_ANONYMOUS = 3, 0x22  # PROT_ and MAP_ flags
_PAGE_BITS, _PLACE_BITS = 12, 46  # user addresses have 47 bits

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p


def check(result: int, what: str) -> int:
    """`result`, or OSError with the call's errno when it is negative."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    check(libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero), f"prctl {option}")


def put_somewhere(text: bytes) -> int:
    """The address of a copy that lies where nobody guesses it.

    Launchers are forks of one process: what they allocate lies at the same place in all of them.
    """
    drawn = int.from_bytes(os.urandom(8), "little") % (1 << _PLACE_BITS)
    inside = drawn % (1 << _PAGE_BITS)
    hint, size = drawn - inside, inside + len(text) + 1
    at = libc.mmap(
        ctypes.c_void_p(hint), ctypes.c_size_t(size), _READ_WRITE, _PRIVATE_ANONYMOUS, -1,
        ctypes.c_long(0),
    )  # fmt: skip
    if at is None or at == ctypes.c_void_p(-1).value:
        check(-1, "mmap")
    ctypes.memmove(at + inside, text + b"\0", len(text) + 1)
    return int(at) + inside


def unshare(flags: int) -> None:
    check(libc.unshare(flags), "unshare")


def syscall(number: int, *args: object) -> int:
    return check(libc.syscall(ctypes.c_long(number), *args), f"system call {number}")


def drop_capabilities() -> None:
    """Give up every capability; with no-new-privileges an exec does not bring them back."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    check(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
