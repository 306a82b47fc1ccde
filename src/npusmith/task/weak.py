"""Tasks whose check a do-nothing kernel would pass.

A kernel that returns zeros, or one that returns one of its inputs, is compared with the references
of the task's own random inputs under the tolerance in force. A task that such a kernel passes says
nothing about any other kernel, and every report says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from npusmith.task.tolerance import compare

Array = np.ndarray[Any, Any]


class Sample(Protocol):
    """What this module needs of a trial: arrays by position."""

    @property
    def inputs(self) -> Sequence[Array]: ...
    @property
    def references(self) -> Sequence[Array]: ...
    @property
    def goldens(self) -> Sequence[Array | None]: ...


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
