"""Processes of units of work, forks of one that has imported what they run: `start(...) -> Unit`.

PyTorch and our modules take two to three seconds to import, and a unit often ten to judge. The
process that is forked from runs nothing of a candidate, reads no orders, and ends when whoever
started it is gone. Each unit has a keeper, which tells how it ended, and kills it with all that it
started when it is let go.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from npusmith.sandbox import server

NAMES = ("judged", "timed", "sparse_run")  # modules beside this one, each with a main()
_ORDERS, _LOG, _STATUS, _LEASH = range(4)  # handles of a unit; servers that are lent stand behind
_MESSAGE, _HANDLES = 1 << 20, 64
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from npusmith.bench.suites import unit_processes; unit_processes.serve()"
)
_PATIENCE_MS = 5_000  # for a unit that was killed to be gone
_TICK_MS = 20  # how often a keeper looks where the kernel has no handles of processes
_ANY_ERROR = (BaseException,)


class Unit:
    """A unit under way. `code` is None until it has ended; negative: the signal that ended it."""

    def __init__(self, status: int, leash: int) -> None:
        self.code: int | None = None
        self._status, self._leash = status, leash
        self._said = b""

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, after at most so long."""
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        while self.code is None and poll.poll(seconds * 1000):
            if piece := os.read(self._status, 64):
                self._said += piece
            else:  # a keeper that was killed has said nothing
                self.code = int(self._said or -signal.SIGKILL)
        return self.code is not None

    def end(self) -> None:
        """Kill it, and all that it started, unless it has ended."""
        os.close(self._leash)
        self.wait(_PATIENCE_MS / 1000)
        os.close(self._status)


def start(name: str, folder: Path, env: Mapping[str, str], orders: bytes) -> Unit:
    """Run main() of a module of NAMES in `folder`, with `orders` on standard input.

    What it says on standard error is in `folder`/log. OSError where no process can be started.
    """
    lent, words = server.lend()
    asked = {"name": name, "folder": str(folder), "env": dict(env), "servers": words}
    status, told = os.pipe()
    held, leash = os.pipe()
    try:
        with tempfile.TemporaryFile() as given, (folder / "log").open("wb") as log:
            given.write(orders)
            given.seek(0)
            own = [given.fileno(), log.fileno(), told, held]
            message = json.dumps(asked).encode()
            server.ask(_SERVERS, os.getpid(), _server, message, [*own, *lent])
    except BaseException:
        os.close(status)
        os.close(leash)
        raise
    finally:
        os.close(told)
        os.close(held)
    return Unit(status, leash)


def _server() -> server.Server:
    return server.Server(_START, ["-I", "-B"], (), os.environ)


# By the process that has it, as in sandbox/server.py.
_SERVERS: dict[int, server.Server | server.Lent] = {}


# --------------------------------------------------------------------- in the process of the server


def serve() -> NoReturn:
    """Called as `serve SRC SOCKET_FD`: a unit for each message, until whoever asks is gone."""
    asker = socket.socket(fileno=int(sys.argv[2]))
    asker.set_inheritable(False)
    gc.disable()
    for name in NAMES:
        importlib.import_module(f"npusmith.bench.suites.{name}")
    gc.freeze()  # what is shared is not to be copied
    gc.enable()
    while True:
        message, handles, _, _ = socket.recv_fds(asker, _MESSAGE, _HANDLES)
        for handle in handles:
            os.set_inheritable(handle, False)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            asker.close()
            _keep(json.loads(message), handles)
        for handle in handles:
            os.close(handle)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _keep(asked: Mapping[str, Any], handles: Sequence[int]) -> NoReturn:
    """Start the unit, and tell how it ended."""
    pid = os.fork()
    if pid == 0:
        _work(asked, handles)
    for handle in (handles[_ORDERS], handles[_LOG], *handles[_LEASH + 1 :]):
        os.close(handle)
    status = _outlast(pid, handles[_LEASH])
    os.write(handles[_STATUS], b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _outlast(pid: int, leash: int) -> int:
    """Wait for the unit; kill it when the other end of the leash is let go."""
    poll = select.poll()
    poll.register(leash, 0)
    try:
        poll.register(os.pidfd_open(pid), select.POLLIN)
        tick = None
    except OSError:
        tick = _TICK_MS
    while True:
        seen = [handle for handle, _ in poll.poll(tick)]
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if leash in seen:
            for kill in (os.killpg, os.kill):  # it may not have a group of its own yet
                with contextlib.suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]


def _work(asked: Mapping[str, Any], handles: Sequence[int]) -> NoReturn:
    code = 1
    try:
        os.setsid()
        os.close(handles[_STATUS])
        os.close(handles[_LEASH])
        os.dup2(handles[_ORDERS], 0)
        os.dup2(handles[_LOG], 2)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["env"])
        tempfile.tempdir = None  # the environment names another one
        rows = json.loads(asked["servers"])
        lent = zip(handles[_LEASH + 1 :], rows, strict=True)
        server.borrow(json.dumps([[handle, parts] for handle, (_, parts) in lent]))
        importlib.import_module(f"npusmith.bench.suites.{asked['name']}").main()
        atexit._run_exitfuncs()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except _ANY_ERROR:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)
