"""Units of work and what they left: `shards/SOURCE-NUMBER.jsonl`, whole or not there.

The last line of a shard says how many samples stand before it and what became of the unit, so that
one that was cut is no shard. A unit depends on its orders and number alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from npusmith.errors import NpusmithError, Place
from npusmith.store.refusal import named_errors
from npusmith.train.corpus.sample import Sample, read_line

FOLDER = "shards"
_NAME = re.compile(r"([a-z]+)-(\d{6})\.jsonl")


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A part of a source; its samples lie in one shard."""

    source: str
    number: int

    @property
    def file(self) -> str:
        return f"{self.source}-{self.number:06}.jsonl"


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a unit: its samples by kind, and counts by what happened (`right`, ...)."""

    unit: Unit
    kinds: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0  # of a processor

    @property
    def samples(self) -> int:
        return self.kinds.total()

    def line(self) -> str:
        return json.dumps(
            {"samples": self.samples, "kinds": self.kinds, "outcomes": self.outcomes,
             "seconds": round(self.seconds, 3)}
        )  # fmt: skip


def write_shard(
    folder: Path, unit: Unit, samples: Iterable[Sample], outcomes: Counter[str], seconds: float
) -> Done:
    """Leaves the shard; nothing, or a hidden file, where the process is killed meanwhile."""
    place = folder / FOLDER
    lines = [item.line() for item in samples]
    kinds = Counter(json.loads(line)["kind"] for line in lines)
    done = Done(unit, kinds, outcomes, seconds)
    text = "".join(f"{line}\n" for line in (*lines, done.line()))
    write_whole(place / unit.file, text.encode())
    return done


def write_whole(path: Path, data: bytes) -> None:
    """The file with these bytes, or as it was. Raises disk-full and file-denied."""
    with named_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with fresh.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise


def read_shards(folder: Path) -> dict[Unit, Done]:
    """The units that are done; what a killed process left is taken away."""
    found: dict[Unit, Done] = {}
    place = folder / FOLDER
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        if path.name.startswith("."):
            path.unlink()
        elif matched := _NAME.fullmatch(path.name):
            unit = Unit(matched[1], int(matched[2]))
            found[unit] = _summary(path, unit)
    return found


def read_samples(folder: Path, unit: Unit) -> Iterator[Sample]:
    """The samples of a shard; raises corpus-sample for a line that is not whole."""
    path = folder / FOLDER / unit.file
    lines = path.read_bytes().split(b"\n")
    done = _summary(path, unit)
    if len(lines) != done.samples + 2:
        raise _cut(path, f"{len(lines) - 2} samples of {done.samples}")
    for number, line in enumerate(lines[:-2], 1):
        yield read_line(line, str(path), number)


def _summary(path: Path, unit: Unit) -> Done:
    """The last line."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        tail = file.read()
    if not tail.endswith(b"\n"):
        raise _cut(path, "its last line has no end")
    try:
        data = json.loads(tail[:-1].rpartition(b"\n")[2])
        return Done(unit, Counter(data["kinds"]), Counter(data["outcomes"]), float(data["seconds"]))
    except (ValueError, KeyError, TypeError) as error:
        raise _cut(path, str(error)) from error


def _cut(path: Path, why: str) -> NpusmithError:
    return NpusmithError("corpus-shard", "a shard is not whole", Place(str(path)), seen=why[:200])
