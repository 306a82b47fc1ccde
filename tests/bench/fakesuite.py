"""A suite and a writer for the runner's tests: what a candidate does stands in its text.

Words of a candidate: "pass", "wrong", "broken", "cheat", "die" (its worker), "die once", "raise",
and "sleep 0.1". The root folder holds one file a task, NAME.task, with the words of each sample.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from npusmith.bench.model import Brief, Candidate, Item, Limits, Record
from npusmith.bench.work import WriterAway
from npusmith.errors import NpusmithError
from npusmith.task.verdict import Trial


class FakeSuite:
    name = "fake"

    def __init__(self, root: Path, options: dict[str, str]) -> None:
        self.root, self.options = root, options

    def items(self) -> Iterator[Item]:
        for place, path in enumerate(sorted(self.root.glob("*.task"))):
            text = path.read_text()
            item = Item(
                suite="fake", name=path.stem, category="even" if place % 2 == 0 else "odd",
                level=str(place % 3), dtype="fp16" if place % 2 else "fp32", source=path.name,
                digest=hashlib.sha256(text.encode()).hexdigest(),
                skipped="needs an NPU" if text.startswith("skip") else "",
            )  # fmt: skip
            if self._wants(item):
                yield item

    def _wants(self, item: Item) -> bool:
        pairs = (("categories", item.category), ("levels", item.level), ("names", item.name))
        chosen = [(self.options.get(key, ""), value) for key, value in pairs]
        return all(not names or value in names.split(",") for names, value in chosen)

    def brief(self, item: Item) -> Brief:
        return Brief(item=item, reference=(self.root / item.source).read_text())

    def evaluate(self, item: Item, candidate: Candidate, limits: Limits) -> Record:
        words = next(iter(candidate.files.values())).split()
        if "sleep" in words:
            time.sleep(float(words[words.index("sleep") + 1]))
        if "work" in words:
            _work(float(words[words.index("work") + 1]))
        if "raise" in words:
            raise RuntimeError("the suite has a defect")
        self._die(item, words)
        built = "broken" not in words
        right = built and "wrong" not in words
        return Record(
            key="", suite="fake", item=item.name, category=item.category, level=item.level,
            dtype=item.dtype, writer="", sample=0, candidate="",
            compiled=built, official=right, strict=right, precise=right, clean=built,
            cheating=["aten-compute"] if "cheat" in words else [],
            findings={} if right else {"ub-align": 2},
            time_us=float(len(words)) * 5 if right else None, eager_us=10.0 if right else None,
            eager_basis="model", roof_us=2.0,
            trials=[Trial(name=f"random {n}", seed=limits.seed + n, passed=right,
                              max_abs_error=1e-7) for n in range(2)],
            messages=["error[ub-align]: <b>DataCopy</b>"] if not right else [],
            provenance={"seed": str(limits.seed)},
        )  # fmt: skip

    def _die(self, item: Item, words: list[str]) -> None:
        if "die" not in words:
            return
        mark = self.root / f"{item.name}.died"
        if "once" in words and mark.exists():
            return
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


class FakeWriter:
    """Writes the words that the task holds for the sample: lines, taken in turn.

    Of the spec "away:FILE" it has nobody to ask for "pass" before FILE exists.
    """

    name = "fake"

    def __init__(self, spec: str) -> None:
        self.version, _, self._back = spec.partition(":")

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        lines = brief.reference.splitlines()
        text = lines[sample % len(lines)]
        if text == "refuse":
            raise NpusmithError("plan-reshape", "no")
        if text == "trip":
            raise RuntimeError("the writer has a defect")
        if text == "pass" and self._back and not Path(self._back).exists():
            raise WriterAway("model-down", "nobody answers", seen="http://h/v1")
        return Candidate(format="project", files={"kernel.cpp": text}, writer="fake")


def open_suite(name: str, root: Path, options: dict[str, str]) -> FakeSuite:
    return FakeSuite(root, options)


def open_writer(spec: str, chip: str = "") -> FakeWriter:
    return FakeWriter(spec)


def _work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
