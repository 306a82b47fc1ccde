"""One unit's work in a process of its own, watched from outside: `run_watched(name, orders, ...)`.

The process runs npusmith's own code, which boxes what is not trusted; all that it and its boxes
write lies in one folder. When that grows too large or time is up, the process is killed, and every
box below it ends with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from npusmith.bench.suites import unit_processes
from npusmith.bench.suites.orders import Orders
from npusmith.sandbox.folder import ENDLESS, folder_bytes

_POLL = 0.1
DEFECT = "defect"  # the key of a reply that tells of our own failure
_ANY_ERROR = (Exception,)
_REPLY_BYTES = 64 << 20
_FREE_BYTES = 256 << 20  # what a candidate must leave of the disk


@dataclass(frozen=True, slots=True)
class Ended:
    """What the process replied, or in words why it did not."""

    reply: dict[str, Any]
    error: str = ""
    seconds: float = 0.0


def run_watched(
    name: str, orders: Orders, folder: Path, *, seconds: float, disk_bytes: int
) -> Ended:
    """Run `main` of the module `name` beside this one with `orders` on standard input.

    It writes reply.json into `folder`, which must be new; nothing that it started outlives this.
    """
    start = time.monotonic()
    temporary = folder / "tmp"
    temporary.mkdir()
    asked = orders.model_copy(update={"folder": str(folder)})
    env = {**os.environ, "TMPDIR": str(temporary)}
    unit = unit_processes.start(name, folder, env, asked.model_dump_json().encode())
    try:
        why = _wait(unit, folder, start + seconds, disk_bytes)
    finally:
        unit.end()
    spent = round(time.monotonic() - start, 3)
    if why:
        return Ended({}, why, spent)
    return _reply(folder, unit.code, spent)


def _wait(unit: unit_processes.Unit, folder: Path, deadline: float, disk_bytes: int) -> str:
    while not unit.wait(_POLL):
        if time.monotonic() > deadline:
            return "the candidate had not ended in time"
        used = folder_bytes(folder)
        if used == ENDLESS:
            return "the candidate nested its folders deeper than a path can name"
        if used > disk_bytes:
            return f"the candidate filled the disk: {used >> 20} MB, {disk_bytes >> 20} are allowed"
        status = os.statvfs(folder)
        if used > disk_bytes // 8 and status.f_bavail * status.f_frsize < _FREE_BYTES:
            return f"the disk was full; the candidate had written {used >> 20} MB"
    return ""


def _reply(folder: Path, code: int | None, spent: float) -> Ended:
    path = folder / "reply.json"
    with contextlib.suppress(OSError, ValueError):
        if path.stat().st_size <= _REPLY_BYTES:
            return Ended(json.loads(path.read_bytes()), "", spent)
    with (folder / "log").open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 500))
        said = file.read().decode(errors="replace").strip().splitlines()
    return Ended({}, f"the unit's process ended ({code}) {said[-1] if said else ''}".strip(), spent)


def read_orders() -> Orders:
    """The orders, in the process that works."""
    return Orders.model_validate_json(sys.stdin.buffer.read())


def leave_reply(folder: Path, reply: BaseModel) -> None:
    fresh = folder / ".reply"
    fresh.write_text(reply.model_dump_json(), encoding="utf-8", errors="backslashreplace")
    fresh.replace(folder / "reply.json")


@contextlib.contextmanager
def telling_defects(folder: Path) -> Iterator[None]:
    """An exception that is no error of a candidate's is told as what it is."""
    try:
        yield
    except MemoryError:  # a candidate's outputs may be as large as it likes
        raise
    except _ANY_ERROR as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        words = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        (folder / "reply.json").write_text(json.dumps({DEFECT: words[:500]}))
