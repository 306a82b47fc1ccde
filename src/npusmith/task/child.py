"""The sandboxed child: runs the task's code once, and leaves graph and trials on disk.

Reads its `Orders` as JSON on standard input; writes tensors, then the manifest last. On failure it
writes `error.json` instead. What it prints means nothing. The task's code runs in this very
process, so all that comes out is a claim for the parent to validate; see docs/tasks.md.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from pydantic import BaseModel

from npusmith.errors import TaskError
from npusmith.task.preparing import Preparation
from npusmith.task.wire import ERROR, MANIFEST, Failure, Orders

THREADS = 2


def main() -> None:
    """Entry of the child process; ends with 0 when the manifest is complete."""
    torch.set_num_threads(THREADS)
    torch.set_num_interop_threads(1)
    leave(MANIFEST, lambda orders: _preparation(orders, Path(orders.folder)).run())


def leave(result: str, work: Callable[[Orders], BaseModel]) -> None:
    """Do the work that is ordered on standard input; its result or its failure is on disk then."""
    gc.disable()  # nothing here lives long enough
    orders = Orders.model_validate_json(sys.stdin.buffer.read())
    folder, code = Path(orders.folder), 0
    try:
        _write(folder / result, work(orders))
    except BaseException as error:
        _write(folder / ERROR, failure(error, orders.path))
        code = 1
    os._exit(code)  # threads and exit hooks of the task have no say any more


def _write(path: Path, record: BaseModel) -> None:
    path.write_text(record.model_dump_json(), encoding="utf-8", errors="replace")


def _preparation(orders: Orders, folder: Path) -> Preparation:
    if orders.calling is None:
        from npusmith.task.captured import Captured
        from npusmith.task.captured_intermediates import CapturedIntermediates
        from npusmith.task.export import warm_up

        warm_up()
        return (CapturedIntermediates if orders.intermediates else Captured)(orders, folder)
    from npusmith.task.called import Called

    return Called(orders, folder)


def failure(error: BaseException, path: str) -> Failure:
    if isinstance(error, TaskError):
        place = error.place
        return Failure(
            code=error.code,
            message=error.message,
            line=place.line,
            function=place.function,
            seen=error.seen,
            hint=error.hint,
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Failure(code="task-disk", message=f"trials could not be written: {error}")
    name = type(error).__name__
    code = "task-memory" if isinstance(error, MemoryError) else "task-prepare"
    return Failure(code=code, message=f"preparing the task failed: {name}: {error}"[:500])
