"""Whoever asked may die or be interrupted, and layers may lack: nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import npusmith
from npusmith.sandbox.probe import probe

SOURCE = str(Path(npusmith.__file__).parents[1])
ASKER = """
import sys; sys.path.insert(0, {source!r})
from pathlib import Path
from npusmith.sandbox.box import Policy, run_boxed
print("asking", flush=True)
run_boxed(["sh", "-c", "setsid sleep {mark} & echo up; sleep {mark}"],
          Policy(write=(), seconds=100, processes=True), cwd=Path({folder!r}))
"""
# Inside an outer box there are no namespaces to be had: a machine without them, for real.
INNER = """
import sys; sys.path.insert(0, {source!r})
from pathlib import Path
from npusmith.sandbox.box import Policy, run_boxed
here = Path.cwd()
box = run_boxed([sys.executable, "-I", "-c", {text!r}],
                Policy(write=(here,), seconds=5, processes={processes}), cwd=here)
print(sorted(box.missing), box.returncode, box.stderr.decode().strip().splitlines()[-1:])
"""


def sleepers(mark: str) -> list[str]:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if f"sleep {mark}" in line]


def wait_until(condition, seconds: float = 10.0) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_asker_dies_or_is_interrupted(tmp_path, number):
    mark = f"8765.{int(number)}{os.getpid()}"
    text = ASKER.format(source=SOURCE, mark=mark, folder=str(tmp_path))
    private = tmp_path / "private"
    private.mkdir()
    private.chmod(0o1777)  # as the system's own is
    asker = subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(private)},
        # A job in the background of a script starts with SIGINT ignored, and would stay so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert wait_until(lambda: len(sleepers(mark)) >= 2)
        assert list(private.iterdir())
        asker.send_signal(number)
        assert asker.wait(20) != 0
        assert wait_until(lambda: not sleepers(mark))
        assert wait_until(lambda: not list(private.iterdir()))
        assert private.stat().st_mode & 0o7777 == 0o1777
    finally:
        asker.kill()
        asker.communicate()


def nested(boxed, text: str, *, processes: bool = False) -> str:
    source = INNER.format(source=SOURCE, text=text, processes=processes)
    result = boxed(source, processes=True)
    assert result.ok, result.stderr
    return result.stdout.decode()


@pytest.mark.skipif(not probe()["landlock"], reason="the inner box needs Landlock")
def test_missing_layers_are_named_and_the_others_still_hold(boxed):
    said = nested(boxed, "open('/tmp/npusmith-inner', 'w')")
    assert "user-namespace" in said and "pid-namespace" in said and "network-namespace" in said
    assert "landlock" not in said and "seccomp" not in said
    assert "PermissionError" in said or "Read-only file system" in said  # the outer box's tree


def test_without_namespaces_sockets_and_forks_are_still_denied(boxed):
    assert "PermissionError" in nested(boxed, "import socket; socket.socket()")
    assert "PermissionError" in nested(boxed, "import os; os.fork()")


COUNT = """
import os, subprocess, time
def count(mark):
    seen = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{name}/cmdline", "rb").read()
        except OSError:
            continue
        seen += line.startswith(b"sleep") and mark in line
    return seen
control = subprocess.Popen(["sleep", "6543.22"])
limit = time.monotonic() + 10
while not count(b"6543.22") and time.monotonic() < limit:
    time.sleep(0.01)  # a new process shows its name a moment after it was started
print(count(b"6543.21"))
print(count(b"6543.22"))
"""


def test_without_a_process_namespace_descendants_still_die(boxed):
    text = "import subprocess as s; s.Popen('setsid sleep 6543.21 & sleep 6543.21 &', shell=True)"
    source = INNER.format(source=SOURCE, text=text, processes=True) + COUNT
    result = boxed(source, processes=True)
    assert result.ok, result.stderr
    first, left, control = result.stdout.decode().splitlines()
    assert "pid-namespace" in first
    assert (left, control) == ("0", "1")
