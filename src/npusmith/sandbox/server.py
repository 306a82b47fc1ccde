"""The process that launchers are forked from: `find_server().ask(handles)`.

Python's start would cost each box more than all its layers together. The server runs nothing of a
box, reads no orders, and ends when whoever started it is gone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

_START = (
    "import sys; sys.path.append(sys.argv[1]); import npusmith.sandbox.enter as box; box.serve()"
)
_ROOT = str(Path(__file__).parents[2])
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH")  # the environment that the server itself needs
_PATIENCE = 5.0  # seconds for the server to end
_TRIES = 2  # a server may have been killed since the last box


class Server:
    """One process, and the socket that it takes handles from; threads may share it."""

    def __init__(self) -> None:
        # Messages of their own, so that those of several threads do not mix.
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, _ROOT, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                cwd="/",
            )
        weakref.finalize(self, _end, self._socket, self._process, os.getpid())

    def ask(self, handles: Sequence[int]) -> None:
        """Start a launcher with these handles; OSError when the server is gone."""
        socket.send_fds(self._socket, [b"x"], handles)


def _end(server: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    server.close()
    if os.getpid() == owner:  # not in a process that was forked from it
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)


def start_launcher(handles: Sequence[int]) -> None:
    """Have a launcher make a box; it gets copies of these handles (enter.HANDLES)."""
    for left in reversed(range(_TRIES)):
        try:
            _server(os.getpid()).ask(handles)
            return
        except BrokenPipeError:
            if not left:
                raise
            _server.cache_clear()


@functools.lru_cache(maxsize=1)
def _server(owner: int) -> Server:
    """Of that process: one that was forked from it starts its own."""
    return Server()
