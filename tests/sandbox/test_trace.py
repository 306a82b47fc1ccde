"""What a debugger may do in the box: trace its own programs, and nothing more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from npusmith.sandbox.box import Boxed, Policy, run_boxed

TRACE = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def attach(pid):
    ctypes.set_errno(0)
    done = libc.ptrace(16, pid, None, None)
    print('attach', pid == 1 and 'keeper' or 'child', done == 0)
    return done == 0
child = os.fork()
if child == 0:
    while True: signal.pause()
attach(1)
if attach(child):
    os.waitpid(child, 0)
    with open(f'/proc/{child}/mem', 'rb+') as memory: print('memory', memory.writable())
os.kill(child, 9)
print('settings', os.path.exists('/proc/sys'))
try: open('/proc/1/mem', 'rb+')
except OSError: print('keeper closed')
try: open('/proc/sys/kernel/core_pattern', 'w')
except OSError: print('core_pattern closed')
"""


def boxed(tmp_path: Path, trace: bool, without: tuple[str, ...] = ()) -> Boxed:
    policy = Policy(write=(tmp_path,), seconds=30, processes=True, trace=trace)
    return run_boxed([sys.executable, "-c", TRACE], policy, cwd=tmp_path, without=without)


def test_a_debugger_traces_its_own_programs_and_sees_no_settings(tmp_path: Path) -> None:
    done = boxed(tmp_path, trace=True)
    if "private-proc" in done.missing:
        pytest.skip("this machine gives the box no /proc of its own")
    assert done.stdout.decode().split("\n")[:-1] == [
        "attach keeper False", "attach child True", "memory True", "settings False",
        "keeper closed", "core_pattern closed",
    ]  # fmt: skip


@pytest.mark.parametrize("without", [("pid-namespace",), ("mount-namespace",)])
def test_nobody_traces_where_other_processes_have_names(
    tmp_path: Path, without: tuple[str, ...]
) -> None:
    said = boxed(tmp_path, trace=True, without=without).stdout.decode()
    assert "attach child False" in said and "core_pattern closed" in said


def test_nobody_traces_who_was_not_asked_to(tmp_path: Path) -> None:
    said = boxed(tmp_path, trace=False).stdout.decode()
    assert "attach child False" in said and "core_pattern closed" in said
