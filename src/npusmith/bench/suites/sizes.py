"""How large the inputs of tasks are: `measure(tasks, scale_mb)`, found in the sandbox and kept.

A few tasks are sized in one boxed process; what is known already is read from the cache. A task
that ends the process, or cannot be sized, has no size: its own run will tell.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from npusmith.sandbox.box import Policy
from npusmith.sandbox.folder import temporary_folder
from npusmith.task.trials import run_python
from npusmith.twin.cache import cache_root, digest
from npusmith.version import __version__

BATCH = 16  # tasks in one process: what a reader holds at a time
# what is kept in the cache is of these rules
_PACKAGE = Path(__file__).parents[2]
_RULES = [
    (_PACKAGE / name).read_bytes()
    for name in ("bench/suites/scale.py", "bench/suites/probe.py", "task/work.py")
]
_SECONDS_EACH = 30.0


@dataclass(frozen=True, slots=True)
class Sized:
    """A task's text by the name of its file, which stands beside what it reads."""

    path: Path
    text: str
    beside: bytes = b""  # what the text reads, e.g. the shapes of its groups


class Size(BaseModel):
    """What the probe found. `bytes` is None where it could not be found, and `error` says why."""

    model_config = ConfigDict(extra="ignore")

    bytes: int | None = None
    dtypes: list[str] = []
    groups: list[int] = []
    kept: list[int] = []  # positions of the groups that fit
    scaled: int = 0
    text: str = ""  # with smaller shapes
    changes: list[str] = []
    unscaled: str = ""
    error: str = ""


def measure(tasks: Sequence[Sized], scale_mb: float) -> list[Size]:
    """The sizes of these tasks, in order."""
    most = int(scale_mb * 1e6)
    keys = [_key(task, most) for task in tasks]
    found = [_read(key) for key in keys]
    left = [at for at, size in enumerate(found) if size is None]
    while left:
        lines = _run([tasks[at] for at in left], most)
        for at, size in zip(left, lines, strict=False):
            found[at] = size
            _write(keys[at], size)
        left = left[len(lines) :]
    return [size for size in found if size is not None]


def _key(task: Sized, most: int) -> Path:
    name = digest([__version__, *_RULES, str(most), task.text, task.beside])
    return cache_root() / "suites" / "sizes" / f"{name}.json"


def _read(path: Path) -> Size | None:
    with contextlib.suppress(OSError, ValidationError):
        return Size.model_validate_json(path.read_bytes())
    return None


def _write(path: Path, size: Size) -> None:
    """A cache that cannot be written costs time, nothing else."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(size.model_dump_json(), encoding="utf-8")
        fresh.replace(path)


def _run(tasks: Sequence[Sized], most: int) -> list[Size]:
    """Sizes of the tasks up to the one, if any, that ended the process."""
    with temporary_folder("npusmith-sizes-") as name:
        folder = Path(name).resolve()
        out = folder / "results"
        orders = {
            "tasks": [(str(task.path), task.text) for task in tasks],
            "scale_bytes": most,
            "out": str(out),
        }
        policy = Policy(
            write=(folder,), read=tuple({task.path.parent for task in tasks}),
            seconds=10 + _SECONDS_EACH * len(tasks), memory_bytes=4 << 30,
        )  # fmt: skip
        boxed = run_python("npusmith.bench.suites.probe", json.dumps(orders), policy, folder)
        lines = _lines(out)
    sizes = [Size.model_validate(line) for line in lines if "at" in line]
    if len(sizes) < len(tasks):
        why = "took too long" if boxed.timed_out else "ended its process"
        sizes.append(Size(error=f"get_inputs() {why}"))
    return sizes[: len(tasks)]


def _lines(path: Path) -> list[dict[str, Any]]:
    found = []
    with contextlib.suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return found
