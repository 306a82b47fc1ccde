"""Samples of a corpus as a stage reads them: `read_split(path)`, `drawn(samples, mix, seed)`.

A line that cannot be read, or that no command has verified, ends the run with its place: nothing is
skipped in silence.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from npusmith.errors import NpusmithError, Place
from npusmith.train.corpus.sample import Kind, Sample, Split, read_line


def file_of(path: Path, split: Split = Split.TRAIN) -> Path:
    """The file itself, or a corpus's file of that split. Raises file-missing."""
    found = path if path.is_file() else path / f"{split.value}.jsonl"
    if not found.is_file():
        raise NpusmithError("file-missing", f"{path} holds no {found.name}", Place(str(path)))
    return found


def read_split(path: Path, split: Split = Split.TRAIN) -> Iterator[Sample]:
    """The samples of a split. Raises file-missing and corpus-sample."""
    file = file_of(path, split)
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            sample = read_line(line, str(file), number)
            if sample.split is split:
                yield sample


def drawn(samples: Sequence[Sample], mix: Mapping[Kind, float], seed: int) -> list[Sample]:
    """An epoch: each sample as often as its kind is to be seen, parts of a time by a draw.

    Raises train-config for a kind that no sample has.
    """
    kinds = {sample.kind for sample in samples}
    if unknown := sorted(kind.value for kind in set(mix) - kinds):
        raise NpusmithError(
            "train-config", f"mix: no sample is of kind {', '.join(unknown)}",
            legal=", ".join(sorted(kind.value for kind in kinds)),
        )  # fmt: skip
    draw = random.Random(seed)
    found: list[Sample] = []
    for sample in samples:
        times = mix.get(sample.kind, 1.0)
        found += [sample] * (int(times) + (draw.random() < times % 1))
    return found


def facts(path: Path, samples: Sequence[Sample]) -> dict[str, object]:
    """For a run's record: what the data was."""
    with file_of(path).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    kinds = Counter(sample.kind.value for sample in samples)
    return {"sha256": digest, "samples": len(samples), "kinds": dict(sorted(kinds.items()))}
