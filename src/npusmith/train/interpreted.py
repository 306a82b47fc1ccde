"""Completions that are tile programs, by the interpreter: `interpret_all(texts, opened, ...)`.

Several share a box; one that was stopped there, or took the box down, has another one to itself,
so that what is said of it does not depend on its company.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

from npusmith.sandbox.box import Boxed, Policy
from npusmith.task.trials import run_python
from npusmith.train import boxed
from npusmith.train.levels import Level
from npusmith.train.opened import Opened

_MEMORY = 2 << 30
_MODULE = boxed.__name__
_GRACE = 10.0  # seconds of a box besides those of its completions
_RESOURCES = "agent-endless"


def interpret_all(texts: Sequence[str], opened: Opened, seconds: float) -> list[dict[str, Any]]:
    """What was found of each, as boxed.py writes it."""
    found = _run(texts, opened, seconds)
    if len(texts) == 1:
        return found
    again = (
        _run([text], opened, seconds)[0] if _was_stopped(item) else item
        for text, item in zip(texts, found, strict=True)
    )
    return list(again)


def _was_stopped(found: dict[str, Any]) -> bool:
    return any(note["code"] in (_RESOURCES, "internal") for note in found["notes"])


def _run(texts: Sequence[str], opened: Opened, seconds: float) -> list[dict[str, Any]]:
    folder = opened.prepared.folder
    orders = boxed.Orders(
        tuple(texts), opened.chip, opened.ports, opened.sets, folder, opened.profile, seconds
    )
    policy = Policy(
        read=(folder,), seconds=_GRACE + 4 * seconds * len(texts), memory_bytes=_MEMORY
    )  # fmt: skip
    ended = run_python(_MODULE, pickle.dumps(orders), policy, folder, preload=_MODULE)
    lines = [json.loads(line) for line in ended.stdout.decode().splitlines()]
    return lines + [_lost(ended)] * (len(texts) - len(lines))


def _lost(ended: Boxed) -> dict[str, Any]:
    """Of a completion that has no line: its box, or that of one before it, ended early."""
    why = "too long" if ended.timed_out else f"signal {ended.signal}"
    why = "out of memory" if ended.out_of_memory else why
    message = f"the program was stopped in NumPy: {why}"
    note = {"code": _RESOURCES, "line": 0, "message": message, "seen": ""}
    return {"level": Level.NOTHING, "share": 0.0, "us": None, "notes": [note]}
