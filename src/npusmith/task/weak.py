"""Tasks whose check a do-nothing kernel would pass.

A kernel that returns zeros, or one that returns one of its inputs, is compared with the references
of the task's own random inputs under the tolerance in force. A task that such a kernel passes says
nothing about any other kernel, and every report says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from npusmith.errors import CODES, TwinError
from npusmith.sandbox.folder import temporary_folder
from npusmith.task.prepared import Prepared
from npusmith.task.tolerance import compare
from npusmith.task.verdict import Verdict
from npusmith.twin.finding import Finding

Array = np.ndarray[Any, Any]


class Sample(Protocol):
    """What this module needs of a trial: arrays by position."""

    @property
    def inputs(self) -> Sequence[Array]: ...
    @property
    def references(self) -> Sequence[Array]: ...
    @property
    def goldens(self) -> Sequence[Array | None]: ...


def note_task(verdict: Verdict, prepared: Prepared, profile: str) -> None:
    """What the task itself does not tell: kernels that would pass, inputs that do not count."""
    verdict.weak_task = weak_task(prepared, profile)
    row = CODES["input-idle"]
    verdict.findings += [
        Finding(code=row.name, level=row.level, message=f"{name}: no output follows it")
        for name in prepared.manifest.idle
    ]


def weak_task(prepared: Prepared, profile: str) -> list[str]:
    """The do-nothing kernels that pass the task's own random inputs."""
    own = [item for item in prepared.trials if item.kind in ("random", "group")]
    return kept_names(prepared.folder, profile, lambda: [item for item in own if not item.skipped])


def kept_names(folder: Path, profile: str, samples: Callable[[], Sequence[Sample]]) -> list[str]:
    """The do-nothing kernels that pass the samples of a task; found once per task.

    The answer lies beside the task's tensors: it does not depend on the candidate. Others may be
    reading there.
    """
    kept = folder / f"weak-{profile}.json"
    if kept.exists():
        return [str(name) for name in json.loads(kept.read_text(encoding="utf-8"))]
    try:
        names = find_null_kernels(samples(), profile)
    except TwinError:  # types that the chip does not have
        names = []
    with temporary_folder(".weak-", within=folder) as fresh:
        (fresh / "names").write_text(json.dumps(names), encoding="utf-8")
        (fresh / "names").replace(kept)
    return names


def find_null_kernels(samples: Sequence[Sample], profile: str) -> list[str]:
    """Names of the do-nothing kernels that pass every one of `samples`."""
    if not samples or not any(array.size for array in samples[0].references):
        return []
    return [name for name in _candidates(samples[0]) if _passes_all(name, samples, profile)]


def _candidates(sample: Sample) -> Iterator[str]:
    yield "a kernel that returns zeros"
    for position in range(len(sample.inputs)):
        yield f"a kernel that returns its input {position}"


def _passes_all(name: str, samples: Sequence[Sample], profile: str) -> bool:
    return all(_passes(name, sample, profile) for sample in samples)


def _passes(name: str, sample: Sample, profile: str) -> bool:
    for native, golden in zip(sample.references, sample.goldens, strict=True):
        answer = _answer(name, sample, native)
        if answer is None or not compare(answer, native, golden, profile).passed:
            return False
    return True


def _answer(name: str, sample: Sample, native: Array) -> Array | None:
    if name.endswith("zeros"):
        return np.zeros_like(native)
    given = sample.inputs[int(name.rsplit(" ", 1)[1])]
    same = given.shape == native.shape and given.dtype == native.dtype
    return given if same else None
