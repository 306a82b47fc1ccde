"""The processes that launchers are forked from: `start_launcher(handles, module)`.

Python's start would cost each box more than all its layers together, and PyTorch's import far more
than that: boxes of a `PythonModule` are forks of a server that has imported it before. A server
runs nothing of a box, reads no orders, and ends when whoever started it is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

_START = (
    "import sys; sys.path.append(sys.argv[1]); import npusmith.sandbox.enter as box; box.serve()"
)
_ROOT = str(Path(__file__).parents[2])
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH")  # the environment that the server itself needs
_PATIENCE = 5.0  # seconds for the server to end
_Key = TypeVar("_Key")
_TRIES = 2  # a server may have been killed since the last box


@dataclass(frozen=True, slots=True)
class PythonModule:
    """A module of ours, whose main() a box calls; `paths`: what is added to sys.path.

    The box is a fork of a server that has imported `preload` (once for all, before it knows of any
    box) and starts with fresh random states, and with an environment and folders of its own.
    """

    name: str
    preload: str
    paths: tuple[str, ...]


class Server:
    """One process, and the socket that it takes handles from, which threads may share."""

    def __init__(
        self,
        start: str,
        flags: Sequence[str],
        words: Sequence[str],
        env: Mapping[str, str],
    ) -> None:
        """Python with `start` as its program; sys.argv is npusmith's place, a socket, `words`."""
        # Messages of their own, so that those of several threads do not mix.
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, *flags, "-c", start, _ROOT, str(theirs.fileno()), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env=dict(env),
                cwd="/",
            )
        weakref.finalize(self, _end, self.socket, process, os.getpid())


def _of_boxes(module: PythonModule | None) -> Server:
    if module is None:
        return Server(_START, ["-I", "-S"], (), _own_environment())
    return Server(_START, ["-I", "-B"], [module.preload, *module.paths], _own_environment())


def _own_environment() -> dict[str, str]:
    return {
        "LANG": "C.UTF-8",  # a box has it
        # of PyTorch's threads one mostly waits, and need not use a core for it
        "OMP_WAIT_POLICY": "passive",
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
    }


class Lent:
    """A server that another process has started."""

    def __init__(self, handle: int) -> None:
        self.socket = socket.socket(fileno=handle)
        self.socket.set_inheritable(False)


def _end(server: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    server.close()
    if os.getpid() == owner:  # not in a process that was forked from it
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)


def start_launcher(handles: Sequence[int], module: PythonModule | None = None) -> None:
    """Have a launcher make a box; it gets copies of these handles (enter.HANDLES).

    OSError when no server can be started.
    """
    key = (os.getpid(), module and replace(module, name=""))
    ask(_SERVERS, key, lambda: _of_boxes(key[1]), b"x", handles)


def ask(
    servers: MutableMapping[_Key, Server | Lent],
    key: _Key,
    make: Callable[[], Server],
    message: bytes,
    handles: Sequence[int],
) -> None:
    """Send it to the server of this key, which is started where there is none, or no more.

    OSError when none can be started.
    """
    for left in reversed(range(_TRIES)):
        if (found := servers.get(key)) is None:
            found = servers[key] = make()
        try:
            socket.send_fds(found.socket, [message], handles)
        except BrokenPipeError:
            if not left:
                raise
            servers.pop(key, None)
        else:
            return


def lend() -> tuple[list[int], str]:
    """For a process of ours to use our servers: the handles to pass on, and words for `borrow`."""
    me = os.getpid()
    lent = [(found.socket.fileno(), key[1]) for key, found in _SERVERS.items() if key[0] == me]
    rows = [[handle, [module.preload, *module.paths] if module else []] for handle, module in lent]
    return [handle for handle, _ in lent], json.dumps(rows)


def borrow(words: str) -> None:
    """Use the servers of the process that started this one."""
    for handle, parts in json.loads(words):
        module = PythonModule("", parts[0], tuple(parts[1:])) if parts else None
        _SERVERS[os.getpid(), module] = Lent(handle)


# By the process that has them: one that was forked from it starts its own.
_SERVERS: dict[tuple[int, PythonModule | None], Server | Lent] = {}
