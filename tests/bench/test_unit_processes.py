"""Units of work are forks of one process, and end with whoever asked for them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.bench.suites import unit_processes

ENV = {**os.environ, "TMPDIR": "/tmp"}


def test_a_unit_tells_its_code_and_leaves_what_it_said(tmp_path: Path) -> None:
    for orders in (b"", b"{}", b"no orders"):
        unit = unit_processes.start("judged", tmp_path, ENV, orders)
        assert unit.wait(120) and unit.code == 1
        unit.end()
        assert "ValidationError" in (tmp_path / "log").read_text()


def test_a_module_of_another_name_is_no_unit(tmp_path: Path) -> None:
    unit = unit_processes.start("no_such_module", tmp_path, ENV, b"")
    assert unit.wait(120) and unit.code == 1
    unit.end()
    assert "ModuleNotFoundError" in (tmp_path / "log").read_text()


def test_a_unit_that_is_let_go_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    asleep = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    held, other = os.pipe(), os.pipe()
    keeper = os.fork()
    if keeper == 0:

        def work(*_: object) -> None:
            os.setsid()
            os.execv(sys.executable, [sys.executable, "-c", asleep])

        monkeypatch.setattr(unit_processes, "_work", work)
        os.close(held[1])
        unit_processes._keep({}, [os.dup(0), os.dup(0), other[1], held[0]])
    os.close(held[0])
    os.close(other[1])
    unit = unit_processes.Unit(other[0], held[1])
    _until(lambda: pid.exists() and pid.read_text() != "")
    assert not unit.wait(0.2)
    unit.end()
    os.waitpid(keeper, 0)
    assert unit.code == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)
