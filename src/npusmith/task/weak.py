"""Tasks whose check a do-nothing kernel would pass.

A kernel that returns zeros, ones, another number, one of its inputs or what was right the first
time is compared with the references of the task's own random inputs under the tolerance in force. A
task that such a kernel passes says nothing about any other kernel, and every report says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from npusmith.errors import CODES, TwinError
from npusmith.sandbox.folder import temporary_folder
from npusmith.task.prepared import Prepared
from npusmith.task.tolerance import compare
from npusmith.task.verdict import Verdict, unjudged
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


_Kernel = Callable[[Sample, int], Array | None]


def note_task(verdict: Verdict, prepared: Prepared, profile: str) -> None:
    """What the task itself does not tell: kernels that would pass, what does not count."""
    verdict.weak_task = weak_task(prepared, profile)
    row = CODES["input-idle"]
    verdict.findings += [
        Finding(code=row.name, level=row.level, message=f"{name}: no output follows it")
        for name in prepared.manifest.idle
    ]
    if said := unjudged(verdict.trials):
        verdict.provenance["task_notes"] = [*prepared.notes, said]


def weak_task(prepared: Prepared, profile: str) -> list[str]:
    """The do-nothing kernels that pass the task's own inputs, or its suite's; found once per task.

    The answer lies beside the task's tensors: it does not depend on the candidate. Others may be
    reading there.
    """
    kept = prepared.folder / f"weak-{profile}.json"
    if kept.exists():
        return [str(name) for name in json.loads(kept.read_text(encoding="utf-8"))]
    own = [item for item in prepared.trials if item.kind in ("random", "group", "case")]
    try:
        names = find_null_kernels([item for item in own if not item.skipped], profile)
    except TwinError:  # types that the chip does not have
        names = []
    with temporary_folder(".weak-", within=prepared.folder) as fresh:
        (fresh / "names").write_text(json.dumps(names), encoding="utf-8")
        (fresh / "names").replace(kept)
    return names


def find_null_kernels(samples: Sequence[Sample], profile: str) -> list[str]:
    """Names of the do-nothing kernels that pass every one of `samples`."""
    if not samples or not any(array.size for array in samples[0].references):
        return []
    return [
        name
        for name, kernel in _candidates(samples)
        if all(_passes(kernel, sample, profile) for sample in reversed(samples))
    ]


def _candidates(samples: Sequence[Sample]) -> Iterator[tuple[str, _Kernel]]:
    """Names of do-nothing kernels, and what each returns for an output of a sample."""
    yield "a kernel that returns zeros", lambda sample, at: np.zeros_like(sample.references[at])
    yield "a kernel that returns ones", lambda sample, at: np.ones_like(sample.references[at])
    for position in range(len(samples[0].inputs)):
        yield f"a kernel that returns its input {position}", partial(_input, position)
    if len(samples) > 1:  # of one set, its own answer is no constant
        first = samples[0].references
        means = [_mean(array) for array in first]
        yield "a kernel that returns one number", lambda sample, at: _filled(sample, at, means[at])
        yield "a kernel that returns the first set's answer", lambda sample, at: first[at]


def _input(position: int, sample: Sample, at: int) -> Array | None:
    return sample.inputs[position] if position < len(sample.inputs) else None


def _mean(array: Array) -> float:
    wide = array.astype(np.float64)
    usual = wide[np.isfinite(wide)]
    return float(usual.mean()) if usual.size else 0.0


def _filled(sample: Sample, at: int, value: float) -> Array:
    native = sample.references[at]
    rounded = value if native.dtype.kind in "fV" else round(value)
    return np.full_like(native, np.asarray(rounded).astype(native.dtype))


def _passes(kernel: _Kernel, sample: Sample, profile: str) -> bool:
    pairs = zip(sample.references, sample.goldens, strict=True)
    for at, (native, golden) in enumerate(pairs):
        answer = kernel(sample, at)
        fits = answer is not None and (answer.shape, answer.dtype) == (native.shape, native.dtype)
        if answer is None or not fits or not compare(answer, native, golden, profile).passed:
            return False
    return True
