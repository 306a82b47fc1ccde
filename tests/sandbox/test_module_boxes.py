"""A box that is a fork of a server with modules loaded is like a Python started for it alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from npusmith.sandbox.box import Boxed, Policy, run_boxed
from npusmith.sandbox.server import PythonModule
from npusmith.task.trials import PRELOAD, package_paths

PRELOADS = "import random, tempfile, torch; tempfile.gettempdir(); loaded = 1"


@pytest.fixture
def called(tmp_path: Path) -> Any:
    """called(text): main() with that body, in a box of its own."""
    (tmp_path / "loads_first.py").write_text(PRELOADS)
    number = 0

    def run(body: str, preload: str = "loads_first", **how: Any) -> Boxed:
        nonlocal number
        number += 1
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        (tmp_path / f"called{number}.py").write_text(f"import os, sys\ndef main():\n{lines}")
        work = PythonModule(f"called{number}", preload, (str(tmp_path), *package_paths()))
        policy = Policy(write=(tmp_path,), **how)
        return run_boxed(work, policy, stdin=b"orders", env={"MORE": "1"}, cwd=tmp_path)

    return run


def test_what_was_loaded_is_there_and_the_rest_is_new(called: Any) -> None:
    text = """
print('loads_first' in sys.modules, 'torch' in sys.modules, sys.stdin.read())
print(sorted(os.environ), os.environ['TMPDIR'] == os.environ['HOME'], sys.argv, os.getpid() < 5)
print(sorted(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task')))
import tempfile
print(tempfile.gettempdir() == os.environ['TMPDIR'], os.getcwd() != '/')
"""
    boxed = called(text)
    assert boxed.ok and boxed.stderr == b""
    first, second, third, last = boxed.stdout.decode().splitlines()
    assert first == "True True orders"
    names = {"HOME", "LANG", "MORE", "PATH", "TMPDIR"} | ({*os.environ} & {"LD_LIBRARY_PATH"})
    assert second == f"{sorted(names)} True ['-c'] True"
    assert third == "['0', '1', '2', '3'] 1"  # the listing opens one itself
    assert last == "True True"


def test_forks_of_one_server_draw_other_numbers(called: Any) -> None:
    text = "import random, numpy; print(random.random(), numpy.random.rand())"
    drawn = [called(text).stdout.split() for _ in range(3)]
    assert len({*drawn[0], *drawn[1], *drawn[2]}) == 6


def test_threads_of_pytorch_work_in_a_fork(called: Any) -> None:
    text = (
        "import torch; torch.set_num_threads(2); x = torch.ones(999, 999);"
        "print(int((x @ x).double().sum()), len(os.listdir('/proc/self/task')) > 1)"
    )
    assert called(text, PRELOAD).stdout.split() == [b"997002999", b"True"]


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("sys.exit(7)", 7, ""),
        ("sys.exit('why')", 1, "why"),
        ("print('x', file=sys.stderr)\nos._exit(3)", 3, "x"),
        ("[][1]", 1, "IndexError: list index out of range"),
        ("os.kill(os.getpid(), 11)", -11, ""),
        ("sys.stdout.close()", 0, ""),
        ("open('/etc/npusmith', 'w')", 1, "Read-only file system"),
    ],
)
def test_it_ends_as_a_python_ends(called: Any, text: str, code: int, said: str) -> None:
    boxed = called(text)
    assert boxed.returncode == code
    assert said in boxed.stderr.decode()


def test_a_preload_that_fails_leaves_it_to_the_module_to_say_so(called: Any) -> None:
    boxed = called("import no_such_package", "no_such_package")
    assert boxed.returncode == 1
    assert "No module named 'no_such_package'" in boxed.stderr.decode()


def test_it_starts_no_other_program(called: Any) -> None:
    text = f"os.execv({sys.executable!r}, ['python', '-c', 'print(1)'])"
    boxed = called(text)
    assert b"PermissionError" in boxed.stderr and boxed.stdout == b""
    assert (
        b"0" in called("import subprocess; print(subprocess.call('true'))", processes=True).stdout
    )


def test_memory_and_time_are_limited(called: Any) -> None:
    greedy = called("x = bytearray(3 << 30)", memory_bytes=1 << 30)
    assert greedy.out_of_memory and b"MemoryError" in greedy.stderr
    assert called("while True: pass", seconds=1.0).timed_out
