"""The filter's instructions, run by a small interpreter: both machines are tested on either."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from npusmith.sandbox.seccomp import ARCHES, NUMBERS, build

ALLOW, KILL = 0x7FFF0000, 0x80000000
PID, PATH_AT = 42, 0x7F12_3456_7890
THREAD, NEW_USER, FORK = 0x00010000, 0x10000000, 17
HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), 0),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"), 1),
}


def run(steps: bytes, audit: int, number: int, *args: int) -> int:
    """Classic BPF on struct seccomp_data; gives the filter's verdict."""
    args = (*args, *(0,) * (6 - len(args)))
    data = struct.pack("<iIQ6Q", number, audit, 0, *args)
    at, word = 0, 0
    while True:
        code, yes, no, value = struct.unpack_from("=HBBI", steps, 8 * at)
        at += 1
        if code == 0x20:
            (word,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return value
        else:
            held = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}[code]
            at += yes if held else no


@pytest.fixture(params=sorted(ARCHES))
def machine(request):
    return request.param


def verdict(machine: str, name: str, *args: int, **how: bool) -> int:
    rules = {"processes": False, "network": False, "tree": True, **how}
    steps = build(machine, pid=PID, path_at=PATH_AT, **rules)
    arch = ARCHES[machine]
    number = NUMBERS[name][arch.column]
    if number < 0:
        pytest.skip(f"{machine} has no {name}")
    return run(steps, arch.audit, number, *args)


def denied(code: int = errno.EPERM) -> int:
    return 0x00050000 | code


@pytest.mark.parametrize(
    "name", ["ptrace", "mount", "bpf", "keyctl", "setns", "unshare", "kexec_load"]
)
@pytest.mark.parametrize("processes", [False, True])
def test_kernel_doors_are_always_denied(machine, name, processes):
    assert verdict(machine, name, processes=processes, network=True) == denied()


def test_ordinary_calls_pass(machine):
    steps = build(machine, processes=False, network=False, pid=PID, path_at=PATH_AT, tree=True)
    taken = {row[ARCHES[machine].column] for row in NUMBERS.values()}
    free = [number for number in range(300) if number not in taken]
    assert all(run(steps, ARCHES[machine].audit, number) == ALLOW for number in free)


def test_another_machine_s_calls_kill(machine):
    steps = build(machine, pid=PID, path_at=PATH_AT, processes=True, network=True, tree=True)
    assert run(steps, 0x40000003, 4) == KILL  # i386


def test_x32_calls_do_not_exist():
    steps = build("x86_64", processes=True, network=True, pid=PID, path_at=PATH_AT, tree=True)
    assert run(steps, ARCHES["x86_64"].audit, 0x40000000 | 101) == denied(errno.ENOSYS)


def test_fork_is_denied_and_threads_are_not(machine):
    assert verdict(machine, "clone", FORK) == denied()
    assert verdict(machine, "clone", FORK, processes=True) == ALLOW
    assert verdict(machine, "clone", THREAD) == ALLOW
    assert verdict(machine, "clone3") == denied(errno.ENOSYS)


@pytest.mark.parametrize("processes", [False, True])
def test_new_namespaces_are_denied_even_with_a_thread(machine, processes):
    assert verdict(machine, "clone", NEW_USER | THREAD, processes=processes) == denied()


def test_only_the_launcher_s_own_path_can_be_executed(machine):
    assert verdict(machine, "execve", PATH_AT) == ALLOW
    assert verdict(machine, "execve", PATH_AT + 1) == denied()
    assert verdict(machine, "execve", PATH_AT + (1 << 32)) == denied()
    assert verdict(machine, "execve", PATH_AT + 1, processes=True) == ALLOW


def test_only_the_program_itself_can_be_signalled(machine):
    assert verdict(machine, "kill", PID) == ALLOW
    assert verdict(machine, "tgkill", PID) == ALLOW
    assert verdict(machine, "kill", 1) == denied()
    assert verdict(machine, "kill", 0xFFFFFFFF) == denied()
    assert verdict(machine, "pidfd_send_signal") == denied()


def test_sockets_follow_the_policy(machine):
    assert verdict(machine, "socket") == denied()
    assert verdict(machine, "socket", network=True) == ALLOW


def test_numbers_agree_with_the_kernel_s_headers(machine):
    header, column = HEADERS[machine]
    if not header.exists():
        pytest.skip("no kernel headers here")
    text = header.read_text()
    known = {name: int(n) for name, n in re.findall(r"__NR3?2?6?4?_(\w+)\s+(\d+)", text)}
    ours = {name: row[column] for name, row in NUMBERS.items() if row[column] >= 0}
    assert {name: number for name, number in ours.items() if name in known} == {
        name: known[name] for name in ours if name in known
    }
    assert len(set(ours) & set(known)) > 40


def test_no_file_may_lend_the_user_s_rights(machine):
    create, other = 0o100, 0o1
    for name, before in (("chmod", (0,)), ("fchmodat", (0, 0)), ("mknodat", (0, 0))):
        if NUMBERS[name][ARCHES[machine].column] < 0:
            continue
        assert verdict(machine, name, *before, 0o4755) == denied()
        assert verdict(machine, name, *before, 0o2755) == denied()
        assert verdict(machine, name, *before, 0o755) == ALLOW
    assert verdict(machine, "openat", 0, 0, create, 0o4755) == denied()
    assert verdict(machine, "openat", 0, 0, 0x400000, 0o2755) == denied()
    assert verdict(machine, "openat", 0, 0, create, 0o644) == ALLOW
    assert verdict(machine, "openat", 0, 0, other, 0o4755) == ALLOW  # the mode is not looked at
    assert verdict(machine, "openat2") == denied(errno.ENOSYS)  # its mode lies in memory


@pytest.mark.parametrize("name", ["fchmod", "fchmodat", "utimensat", "fchmodat2"])
def test_modes_and_times_need_a_tree_of_the_box_s_own(machine, name):
    assert verdict(machine, name) == ALLOW
    assert verdict(machine, name, tree=False) == denied()


@pytest.mark.parametrize("name", ["fchown", "fsetxattr", "memfd_create", "shmget", "mq_open"])
@pytest.mark.parametrize("processes", [False, True])
def test_owners_attributes_and_hidden_memory_are_always_denied(machine, name, processes):
    assert verdict(machine, name, processes=processes, network=True) == denied()


def test_shared_memory_without_a_file_is_denied(machine):
    private, shared, anonymous = 2, 1, 0x20
    assert verdict(machine, "mmap", 0, 0, 0, shared | anonymous) == denied()
    assert verdict(machine, "mmap", 0, 0, 0, shared | 2 | anonymous) == denied()  # validated
    assert verdict(machine, "mmap", 0, 0, 0, private | anonymous) == ALLOW
    assert verdict(machine, "mmap", 0, 0, 0, shared) == ALLOW


def test_limits_and_priorities_of_others_stay_theirs(machine):
    for name in ("prlimit64", "sched_setaffinity", "sched_setattr"):
        assert verdict(machine, name, 0, 7) == ALLOW
        assert verdict(machine, name, 1, 7) == denied()
        assert verdict(machine, name, 1 << 32, 7) == ALLOW  # the kernel reads 32 bits: 0
    assert verdict(machine, "setpriority", 0, 0, 19) == ALLOW
    assert verdict(machine, "setpriority", 0, 1, 19) == denied()
    assert verdict(machine, "setpriority", 2, 0, 19) == denied()
    assert verdict(machine, "ioprio_set", 1, 0) == ALLOW
    assert verdict(machine, "ioprio_set", 3, 0) == denied()


def test_handles_answer_questions_and_take_no_orders(machine):
    assert verdict(machine, "ioctl", 0, 0x5401) == ALLOW
    for order in (0x5412, 0x40086602, 0x541C, 0x4004667E):  # type, attributes, console, ...
        assert verdict(machine, "ioctl", 0, order) == denied(errno.ENOTTY)


def test_calls_that_nobody_has_looked_at_do_not_exist(machine):
    steps = build(machine, pid=PID, path_at=PATH_AT, processes=True, network=True, tree=True)
    assert run(steps, ARCHES[machine].audit, 470) == denied(errno.ENOSYS)
    assert run(steps, ARCHES[machine].audit, 100_000) == denied(errno.ENOSYS)
