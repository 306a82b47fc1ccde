"""Programs of the user's own CANN: called with a log, ended with all that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

LATE = 124  # the code of a program that did not end in time


def call(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path, seconds: float
) -> int:
    """Run it in `folder` with all that it prints in `log`; its exit code, or LATE."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            argv, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return LATE
        finally:  # also after Ctrl-C: make and the compilers below it
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
