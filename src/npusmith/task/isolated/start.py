"""The first process in the box: it loads PyTorch once and makes two processes for each attempt.

It runs nothing of the candidate. Orders come as messages on a pipe of the judge; both children get
their own pipes, and what tells how they ended comes from here.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import torch

from npusmith.sandbox import kernel, landlock, seccomp
from npusmith.task.isolated import WORDS, extension, model
from npusmith.twin import frames

THREADS = 2
_PATIENCE = 2.0  # seconds that the model may live on without the extension


def main() -> None:
    """Called with the path of the control pipes on stdin."""
    base = Path(sys.stdin.buffer.read().decode())
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # no process looks into another one here
    control = _open_pair(base)
    with contextlib.suppress(EOFError):
        while (orders := frames.receive(control[0])[0]).get("kind") != "stop":
            if orders.get("kind") == "start":
                frames.send(control[1], {"kind": "ended", "codes": _attempt(orders, control)})
    os._exit(0)  # PyTorch takes its time to end


def _open_pair(base: Path) -> tuple[int, int]:
    """The pipes `base`.in and `base`.out; their names go, so that nobody else opens them."""
    pair = (os.open(f"{base}.in", os.O_RDONLY), os.open(f"{base}.out", os.O_WRONLY))
    for ending in ("in", "out"):
        os.unlink(f"{base}.{ending}")  # noqa: PTH108 - one call less than pathlib's
    return pair


def _attempt(orders: dict[str, Any], control: tuple[int, int]) -> list[int]:
    """Exit codes of the model's process and of the extension's."""
    judge = _open_pair(Path(orders["pipes"]))
    words = os.open(Path(orders["folder"]) / WORDS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    down, up = os.pipe(), os.pipe()  # to the model, and from it
    owner = os.fork()
    if owner == 0:
        _become(lambda: extension.main(orders, judge, (up[0], down[1])), words, orders, True,
                [*judge, up[0], down[1]])  # fmt: skip
    user = os.fork()
    if user == 0:
        _become(lambda: model.main(orders, (down[0], up[1])), words, orders, False,
                [down[0], up[1]])  # fmt: skip
    for fd in (*judge, *down, *up, words):
        os.close(fd)
    _watch(owner, user, control[0])
    _, status = os.waitpid(owner, 0)
    return [_end(user), os.waitstatus_to_exitcode(status)]


def _watch(owner: int, user: int, control: int) -> None:
    """Until the extension's process ends, or the judge wants both to end: they may be in a loop."""
    try:
        ended = os.pidfd_open(owner)
    except OSError:
        return  # Linux before 5.3: such a loop lasts until the box's time is over
    poller = select.poll()
    for fd in (ended, control):
        poller.register(fd, select.POLLIN)
    ready = [fd for fd, _ in poller.poll()]
    os.close(ended)
    if control in ready:
        for pid in (owner, user):
            os.kill(pid, signal.SIGKILL)


def _end(pid: int) -> int:
    """The exit code of the model's process; 0 when it had to be ended."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 0


def _become(
    run: Any, words: int, orders: dict[str, Any], trusted: bool, kept: list[int]
) -> NoReturn:
    """Nothing of the parent is left open, and no other process can be started or signalled."""
    code = 1
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
        for fd in (1, 2):
            os.dup2(words, fd)
        _close_others(kept)
        if not trusted:
            _shut(orders)
        torch.set_num_threads(THREADS)
        if not (trusted and orders["libraries"]):  # there the twin fills fresh memory itself
            # Fresh tensors hold NaN then, not what was there before: the same in every call.
            torch._C._set_deterministic_algorithms(True, warn_only=True)  # no import of inductor
        run()
        code = 0
    except BaseException as error:
        with contextlib.suppress(BaseException):
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
    finally:
        os._exit(code)


def _close_others(kept: list[int]) -> None:
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    low = 3
    for fd in sorted(kept):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, 4096)


def _shut(orders: dict[str, Any]) -> None:
    """The model writes into the private temporary folder only. A layer that the machine lacks is
    named by the box that this process runs in."""
    with contextlib.suppress(OSError):
        landlock.restrict([os.environ["TMPDIR"]], None, False, True)
    with contextlib.suppress(OSError):
        seccomp.load(processes=False, network=False, pid=os.getpid(), path_at=0, tree=False)
