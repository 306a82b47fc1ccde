"""Suites whose tasks are Python files in KernelBench's format: what they have in common."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from npusmith.bench.model import Brief, Candidate, Entry, Item, Limits, Record
from npusmith.bench.suites import judging, othershapes, sizes, submit, texts, trueshape
from npusmith.bench.suites.options import SEEDS, SuiteOptions
from npusmith.bench.suites.selection import check_patterns, matches
from npusmith.bench.suites.times import add_own_times
from npusmith.bench.suites.trials import Order
from npusmith.errors import NpusmithError, Place
from npusmith.task import rules
from npusmith.twin.cache import cache_root

_TEXT_BYTES = 1 << 20
_FORMATS = ("json", "six", "project", "program")


class TorchSuite(ABC):
    """Reads tasks in batches; a subclass says which there are and how they are judged."""

    name = ""
    rule: rules.Named
    rule_name = ""
    seed = 1024  # the suite's own
    official = 0  # trials that the suite itself looks at; 0: all
    scale_mb = 0.0  # what shapes are reduced to where nobody says; 0: not at all

    def __init__(self, root: Path, options: SuiteOptions) -> None:
        self.root = Path(root).resolve()
        usual = 0.0 if options.shapes in ("original", "full") else self.scale_mb
        given = usual if options.scale_mb is None else options.scale_mb
        self.options = options.model_copy(update={"scale_mb": given})
        self.check()

    # --- what a subclass says

    @abstractmethod
    def check(self) -> None:
        """Raise for a folder that is no checkout of the suite."""

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """The tasks in their fixed order, from the names of files alone."""

    def text_of(self, path: Path, name: str) -> str:
        """The reference in KernelBench's format."""
        return read_text(path)

    def beside(self, path: Path) -> bytes:
        """What the reference reads besides its own text."""
        lines = path.with_suffix(".json")
        return lines.read_bytes() if lines.is_file() else b""

    def marks(self) -> tuple[str, ...]:
        """What the options make another item of, for its name."""
        return ()

    def prompt_of(self, item: Item) -> str:
        return ""

    def description_of(self, item: Item) -> str:
        return ""

    def plan_of(self, item: Item, order: Order) -> judging.Plan:
        return judging.Plan(
            order, self.rule, self.rule_name, self.official, eager=self.options.eager
        )

    def measured(self, tasks: Sequence[sizes.Sized], entries: Sequence[Entry]) -> list[sizes.Size]:
        """How large the inputs of these tasks are."""
        return sizes.measure(tasks, self.options.scale_mb or 0)

    def dtype_of(self, entry: Entry, found: list[str]) -> str:
        return texts.input_dtype(found)

    # --- the Protocol

    def items(self) -> Iterator[Item]:
        """The chosen tasks; sizes are found in batches, so that no more is in memory."""
        chosen = self.chosen()
        while batch := list(islice(chosen, sizes.BATCH)):
            yield from self._look(batch)

    def chosen(self) -> Iterator[Entry]:
        entries = list(self.entries())
        check_patterns(self.options.names, map(_names, entries))
        yield from filter(self._is_chosen, entries)

    def brief(self, item: Item) -> Brief:
        path, text = self._path(item)
        return Brief(
            item=item,
            reference=text,
            description=self.description_of(item),
            prompt=self.prompt_of(item),
            path=path,
            original=self.original(item)[0] if "@" in item.name else None,
            training=self.options.training,
            formats=_FORMATS,
        )

    def evaluate(self, item: Item, candidate: Candidate, limits: Limits) -> Record:
        """The record of one unit: see judging.py."""
        if item.skipped:
            record = judging.start_record(self.name, item, candidate, limits)
            record.skipped = item.skipped
            return record
        plan = self.plan_of(item, self._order(item, limits))
        record = judging.judge(plan, item, candidate, limits)
        if self.options.other_shapes and othershapes.wants_check(record, candidate):
            othershapes.add_check(record, plan.order, candidate, limits)
        record.provenance["shapes"] = self.shapes_of(item)
        if self._is_reduced(item):
            if trueshape.wants_check(record, candidate):
                self._check_true(record, plan, item, candidate, limits)
            add_own_times(record, candidate, self.original(item)[0], limits)
        return record

    def _check_true(
        self, record: Record, plan: judging.Plan, item: Item, candidate: Candidate, limits: Limits
    ) -> None:
        """One more check, at the shapes that the item has of its own."""
        if not self.options.true_mb:
            record.true_shape = f"{trueshape.NOT_RUN}: true_mb is 0"
            return
        path, text = self.original(item)
        text = texts.strip_imports(text) if texts.read_facts(text, path.name).stubbed else text
        training = record.provenance.get("mode") == "training"
        order = replace(plan.order, path=str(path), text=text, seeds=(), training=training)
        shape = trueshape.Shape(order, rules.find(plan.rule), int(self.options.true_mb * 1e6))
        trueshape.add_check(record, shape, candidate, limits)

    def shapes_of(self, item: Item) -> str:
        """Whose shapes a verdict is about."""
        if not self._is_reduced(item):
            return "the checkout's own, full size"
        path, name = self.root / item.source, item.name.partition("@")[0]
        _, size = self._sized(path, name, self.text_of(path, name))
        if size.kept:
            return f"reduced to {len(size.kept)} of {len(size.groups)} groups"
        return f"reduced to {size.scaled / 1e6:.0f} MB: {', '.join(size.changes)}"[:300]

    def _is_reduced(self, item: Item) -> bool:
        return item.name.endswith("MB") and "@" in item.name

    def export(self, item: Item, candidate: Candidate, folder: Path, chip: str) -> None:
        """Write the candidate as a ready operator project; `folder` is new."""
        submit.export(candidate, folder, chip)

    # --- parts

    def _is_chosen(self, entry: Entry) -> bool:
        options = self.options
        return (
            (not options.categories or entry.category in options.categories)
            and (not options.levels or entry.level in options.levels)
            and matches(options.names, _names(entry))
        )

    def _look(self, batch: Sequence[Entry]) -> Iterator[Item]:
        """Items of a few entries: what cannot be evaluated says why."""
        rows: list[tuple[Entry, str, bytes, str]] = []
        for entry in batch:
            text, beside, why = "", b"", ""
            try:
                text, beside = self.text_of(entry.path, entry.name), self.beside(entry.path)
                facts = texts.read_facts(text, entry.path.name)
                why = facts.why
                text = texts.strip_imports(text) if facts.stubbed and not why else text
            except NpusmithError as error:
                why = f"{error.code}: {error.message}"
            rows.append((entry, text, beside, why))
        fit = [row for row in rows if not row[3]]
        runnable = [sizes.Sized(entry.path, text, beside) for entry, text, beside, _ in fit]
        found = iter(self.measured(runnable, [row[0] for row in fit]))
        for entry, text, beside, why in rows:
            size = sizes.Size() if why else next(found)
            yield self._item(entry, text, beside, why, size)

    def _item(self, entry: Entry, text: str, beside: bytes, why: str, size: sizes.Size) -> Item:
        if not beside:
            size.kept = []  # groups are chosen by the lines of their file
        scaled = bool(size.text or size.kept)
        # the least that the rule reaches may be more than what was asked for
        megabytes = max(self.options.scale_mb or 0, round(size.scaled / 1e6))
        marks = (*self.marks(), *((f"{megabytes:g}MB",) if scaled else ()))
        name = "@".join((entry.name, *marks))
        parts = [text, beside.decode(errors="replace"), str(self.options.training)]
        if scaled:
            parts += [f"{self.options.scale_mb:g}", *size.changes, *map(str, size.kept)]
        total = hashlib.sha256(json.dumps([self.rule_name, *parts]).encode()).hexdigest()
        return Item(
            suite=self.name, name=name, category=entry.category, level=entry.level,
            dtype=self.dtype_of(entry, size.dtypes),
            source=entry.path.relative_to(self.root).as_posix(), digest=total,
            skipped=why or self._too_large(size),
        )  # fmt: skip

    def _too_large(self, size: sizes.Size) -> str:
        if size.kept or size.bytes is None:
            return ""
        groups = f" in {len(size.groups)} groups" if size.groups else ""
        least = size.scaled if size.text else size.bytes
        if least > self.options.input_mb * 1e6:
            more = "; the least of the rule for smaller shapes" if size.text else ""
            more = f"; {size.unscaled}" if size.unscaled else more
            return f"{least / 1e6:.0f} MB of inputs{groups}{more}"
        return ""

    def _path(self, item: Item) -> tuple[Path, str]:
        """The task file as it is run, and its text: the checkout's, or a copy in the cache."""
        path = self.root / item.source
        plain = item.name.partition("@")[0]
        original = self.text_of(path, plain)
        if item.skipped:
            return path, original
        text, size = self._sized(path, plain, original)
        if text == read_text(path) and not size.kept:
            return path, text
        folder = cache_root() / "suites" / "tasks" / item.digest[:24]
        copy = folder / f"{path.stem}.py"
        lines = self.beside(path)
        write_once(copy, text.encode())
        if lines:
            write_once(copy.with_suffix(".json"), _keep_lines(lines, size.kept))
        return copy, text

    def original(self, item: Item) -> tuple[Path, str]:
        """The task as it was before its shapes were reduced."""
        path = self.root / item.source
        return path, self.text_of(path, item.name.partition("@")[0])

    def _sized(self, path: Path, name: str, original: str) -> tuple[str, sizes.Size]:
        facts = texts.read_facts(original, path.name)
        text = texts.strip_imports(original) if facts.stubbed else original
        sized = sizes.Sized(path, text, self.beside(path))
        size = self.measured([sized], [Entry(name, "", "", path)])[0]
        return size.text or text, size

    def _order(self, item: Item, limits: Limits) -> Order:
        path, text = self._path(item)
        # the default is the suite's own
        base = (self.seed + limits.seed - Limits().seed) % SEEDS
        return Order(
            path=str(path), text=text, seed=base, seeds=self.trial_seeds(base, limits.trials),
            training=self.options.training,
        )  # fmt: skip

    def trial_seeds(self, base: int, count: int) -> tuple[int, ...]:
        return tuple(base + at for at in range(count))


def read_text(path: Path) -> str:
    """A file of the checkout."""
    try:
        if path.stat().st_size > _TEXT_BYTES:
            raise NpusmithError("file-unusable", f"{path.name} is too large", Place(str(path)))
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NpusmithError("file-missing", f"{path} does not exist", seen=str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise NpusmithError(
            "file-unusable", f"{path.name} cannot be read", Place(str(path)), seen=str(error)[:200]
        ) from error


def _names(entry: Entry) -> tuple[str, str]:
    return entry.name, entry.name.rpartition("/")[2]


def refuse_root(root: Path, what: str, wanted: Sequence[str]) -> NpusmithError:
    """The error for a folder that is not the suite, with what was seen there."""
    there = sorted(item.name for item in root.iterdir())[:12] if root.is_dir() else []
    seen = ", ".join(there) or ("an empty folder" if root.is_dir() else "no such folder")
    return NpusmithError(
        "file-missing",
        f"{root} is no checkout of {what}: it has no {', no '.join(wanted)}",
        Place(str(root)), seen=seen[:300],
    )  # fmt: skip


def _keep_lines(lines: bytes, kept: Sequence[int]) -> bytes:
    if not kept:
        return lines
    rows = [line for line in lines.splitlines(keepends=True) if line.strip()]
    return b"".join(rows[at] for at in kept if at < len(rows))


def write_once(path: Path, data: bytes) -> None:
    """A file of the cache; readers see it whole or not at all."""
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    fresh.write_bytes(data)
    fresh.replace(path)
