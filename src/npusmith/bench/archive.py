"""A run read back: `with open_run(folder) as run:` gives its plan, items, records and candidates.

Records come one at a time and in a fixed order, so that a report of many needs little memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npusmith.bench.metrics import Summary, Task, summarize_tasks, tasks_of
from npusmith.bench.model import Candidate, Item, Record
from npusmith.bench.plan import Plan
from npusmith.bench.runner import read_candidate, read_plan
from npusmith.store.database import Kept, Store, open_store, whole
from npusmith.store.record import to_json

SUMMARY = "summary"  # the setting under which a finished run keeps its document


class Run:
    """A run's folder, open for reading."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store = folder, store
        self.plan: Plan = read_plan(store)

    def items(self) -> Iterator[Item]:
        for text in self.store.items():
            with whole(self.store.path, "an item"):
                item = Item.model_validate_json(text)
            yield item

    def records(self, item: str = "") -> Iterator[Record]:
        """Without trials, messages and timeline; `full` adds them."""
        return (self._read(kept) for kept in self.store.records(item))

    def full(self, record: Record) -> Record:
        text = self.store.detail(record.key)
        with whole(self.store.path, f"the detail of a record of {record.item}"):
            return record.model_copy(update=_detail(text))

    def candidate(self, record: Record) -> Candidate:
        """What was judged."""
        found = read_candidate(self.store, record.item, record.sample)
        with whole(self.store.path, f"a response of {record.item}"):
            if found is None:
                raise ValueError("it is not there")  # a record has one: see Store.finish
        return found

    def tasks(self) -> dict[str, Task]:
        return tasks_of(self.items(), self.records())

    def summary(self) -> Summary:
        return summarize_tasks(self.tasks())

    def finish(self) -> Summary:
        """The figures of a run that has ended; its store keeps them for an audit."""
        summary = self.summary()
        self.store.replace(SUMMARY, to_json(self.document(summary), indent=None))
        return summary

    def document(self, summary: Summary) -> dict[str, object]:
        """The summary with what the run was: the one form of it for JSON."""
        total, left = self.store.counts()
        plan = self.plan
        return {
            "suite": plan.suite,
            "writer": plan.writer_name,
            "units": total,
            "units_left": left,
            **summary.document(),
            "run": plan.model_dump(mode="json"),
        }

    def _read(self, kept: Kept) -> Record:
        with whole(self.store.path, f"the record of {kept.item}"):
            return Record.model_validate_json(kept.data)


@contextmanager
def open_run(folder: Path) -> Iterator[Run]:
    """Raises run-missing, store-newer and store-damaged."""
    with open_store(folder) as store:
        yield Run(folder, store)


def best(records: Iterator[Record]) -> Record | None:
    """The kernel to show of a task: trusted, then correct, then compiled; the fastest of equals."""
    return max(records, key=rank, default=None)


def rank(record: Record) -> tuple[object, ...]:
    honest = not record.cheating
    return (
        bool(record.official and record.strict and record.clean and honest),
        bool(record.official and honest),
        bool(record.compiled and honest),
        bool(record.compiled),
        -record.time_us if record.time_us else float("-inf"),
        -record.sample,
        -record.trial,
    )


def _detail(text: str) -> dict[str, object]:
    parsed = Record.model_validate(json.loads(text) | _BLANK)
    return {name: getattr(parsed, name) for name in ("trials", "messages", "timeline")}


_BLANK = {
    "key": "", "suite": "", "item": "", "category": "", "writer": "", "sample": 0, "candidate": "",
}  # fmt: skip
