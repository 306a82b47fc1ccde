"""From shards to what people load: `publish(out, built, against)`.

One file of JSON lines for each split, the same as Parquet where pyarrow is installed, and a card.
Samples that say the same are written once; what stands in a suite is left out (decontaminate.py).
"""

from __future__ import annotations

import importlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npusmith.errors import NpusmithError
from npusmith.store.refusal import named_errors
from npusmith.train.corpus.card import card
from npusmith.train.corpus.decontaminate import Suites
from npusmith.train.corpus.sample import Sample, Split, read_line
from npusmith.train.corpus.shards import Unit, read_samples, write_whole

_BATCH = 2000
_COLUMNS = (
    "id", "kind", "family", "split", "prompt", "completion", "chosen", "rejected", "verified_by",
    "program_hash", "meta",
)  # fmt: skip


@dataclass(slots=True)
class Statistics:
    """Of what was published, and why the rest was not."""

    splits: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    programs: set[str] = field(default_factory=set)
    doubled: int = 0
    contaminated: Counter[str] = field(default_factory=Counter)  # by how
    prompt_bytes: list[int] = field(default_factory=list)
    completion_bytes: list[int] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        self.splits[sample.split.value] += 1
        self.kinds[sample.kind.value] += 1
        self.families[sample.family] += 1
        self.prompt_bytes.append(len(sample.prompt.encode()))
        self.completion_bytes.append(len(sample.completion.encode()))
        if sample.program_hash:
            self.programs.add(sample.program_hash)

    @property
    def samples(self) -> int:
        return self.splits.total()


def publish(
    out: Path, units: list[Unit], suites: Suites, facts: dict[str, Any]
) -> tuple[Statistics, list[Path]]:
    """Writes the files of `out`; each is as it was until it is whole.

    `facts`: what the card says besides. Raises corpus-shard, corpus-sample, disk-full, file-denied.
    """
    statistics = Statistics()
    paths = {split: out / f"{split.value}.jsonl" for split in Split}
    fresh = {split: path.with_name(f".{path.name}") for split, path in paths.items()}
    with named_errors(out):
        files = {split: path.open("w", encoding="utf-8") for split, path in fresh.items()}
        try:
            for sample in _chosen(out, units, suites, statistics):
                files[sample.split].write(sample.line() + "\n")
                statistics.add(sample)
        finally:
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())
                file.close()
        for split, path in paths.items():
            fresh[split].replace(path)
    written = [*paths.values(), *_as_parquet(paths)]
    write_whole(out / "README.md", card(statistics, suites, facts).encode())
    return statistics, [*written, out / "README.md"]


def _chosen(
    out: Path, units: list[Unit], suites: Suites, statistics: Statistics
) -> Iterator[Sample]:
    """Every sample once, without what a suite has."""
    seen: set[str] = set()
    for unit in units:
        for sample in read_samples(out, unit):
            key = _key(sample)
            if key in seen:
                statistics.doubled += 1
                continue
            seen.add(key)
            if how := suites.holds(sample):
                statistics.contaminated[how] += 1
                continue
            yield sample


def _key(sample: Sample) -> str:
    """Of samples about one program, those of one form teach the same."""
    form = sample.meta.get("form")
    if sample.program_hash and form:
        return f"{sample.kind.value} {form} {sample.program_hash}"
    return sample.id


def _as_parquet(paths: dict[Split, Path]) -> list[Path]:
    """The same rows; `meta` is a text of JSON there. None where pyarrow is not installed."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        return []
    schema = arrow.schema([(name, arrow.string()) for name in _COLUMNS])
    made = []
    for path in paths.values():
        target = path.with_suffix(".parquet")
        fresh = target.with_name(f".{target.name}")
        with named_errors(target), parquet.ParquetWriter(fresh, schema) as writer:
            for rows in _batches(path):
                writer.write_table(arrow.Table.from_pylist(rows, schema))
        fresh.replace(target)
        made.append(target)
    return made


def _batches(path: Path) -> Iterator[list[dict[str, str]]]:
    rows: list[dict[str, str]] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            data = json.loads(line)
            data["meta"] = json.dumps(data["meta"])
            rows.append({name: data.get(name, "") for name in _COLUMNS})
            if len(rows) == _BATCH:
                yield rows
                rows = []
    if rows:
        yield rows


def read_corpus(out: Path, split: Split) -> Iterator[Sample]:
    """The samples of a published split; raises corpus-sample and file-missing."""
    path = out / f"{split.value}.jsonl"
    if not path.is_file():
        raise NpusmithError("file-missing", f"{path} does not exist", seen=str(path))
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            yield read_line(line.rstrip(b"\n"), str(path), number)
