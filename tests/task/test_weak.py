"""Do-nothing kernels are found out, and only where they would pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from npusmith.target.chips import find_chip
from npusmith.task.judge import empty_verdict
from npusmith.task.load import Task
from npusmith.task.prepared import Prepared
from npusmith.task.verdict import Trial
from npusmith.task.weak import find_null_kernels, note_task

Array = np.ndarray[Any, Any]


@dataclass
class _Sample:
    inputs: list[Array]
    references: list[Array]
    goldens: list[Array | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.goldens = self.goldens or [None] * len(self.references)


X = np.linspace(0.1, 1, 64, dtype=np.float32)


def test_a_task_whose_answer_is_zero_is_weak() -> None:
    assert find_null_kernels([_Sample([X], [np.zeros(64, np.float32)])], "strict") == [
        "a kernel that returns zeros"
    ]


def test_relu_on_positive_inputs_is_passed_by_returning_the_input() -> None:
    assert find_null_kernels([_Sample([X], [np.maximum(X, 0)])], "strict") == [
        "a kernel that returns its input 0"
    ]


def test_one_set_of_inputs_that_tells_them_apart_is_enough() -> None:
    signed = X - 0.5
    samples = [_Sample([X], [np.maximum(X, 0)]), _Sample([signed], [np.maximum(signed, 0)])]
    assert find_null_kernels(samples, "strict") == []


def test_a_product_that_underflows_is_weak() -> None:
    tiny = np.full(8, 1e-42, np.float32)
    assert "a kernel that returns zeros" in find_null_kernels([_Sample([X], [tiny])], "strict")


def test_an_ordinary_task_is_not_weak() -> None:
    assert find_null_kernels([_Sample([X], [np.exp(X)])], "strict") == []


def test_a_task_whose_answer_is_a_number_is_weak() -> None:
    half = _Sample([X], [np.full(64, 0.5, np.float32)])
    names = find_null_kernels([half, _Sample([X * 2], [np.full(64, 0.5, np.float32)])], "strict")
    assert "a kernel that returns one number" in names
    ones = [_Sample([X * at], [np.ones(64, np.float32)]) for at in (1, 2)]
    assert "a kernel that returns ones" in find_null_kernels(ones, "strict")
    counts = [_Sample([X * at], [np.full(3, 7, np.int32)]) for at in (1, 2)]
    assert "a kernel that returns one number" in find_null_kernels(counts, "strict")


def test_a_mean_of_thousands_that_hardly_moves_is_weak() -> None:
    means = [_Sample([X], [np.full(8, 0.5 + at * 1e-6, np.float32)]) for at in range(3)]
    assert "a kernel that returns one number" in find_null_kernels(means, "multikernelbench")


def test_an_answer_that_no_seed_changes_is_weak() -> None:
    same = [_Sample([X * at], [np.exp(X)]) for at in (1, 2, 3)]
    names = find_null_kernels(same, "strict")
    assert names == ["a kernel that returns the first set's answer"]
    assert find_null_kernels(same[:1], "strict") == []  # nothing to tell it by


def test_outputs_of_other_shapes_are_not_the_first_ones() -> None:
    samples = [_Sample([X], [np.exp(X)]), _Sample([X[:9]], [np.exp(X[:9])])]
    assert find_null_kernels(samples, "strict") == []


def test_bool_and_half_outputs_have_constants_too() -> None:
    for kind in (np.bool_, np.float16, ml_dtypes.bfloat16):
        ones = [_Sample([X * at], [np.ones(8, kind)]) for at in (1, 2)]
        assert "a kernel that returns ones" in find_null_kernels(ones, "strict")


def test_a_task_that_takes_no_planned_set_of_other_shapes_says_so(
    write_task: Callable[..., Task], prepare_quickly: Callable[..., Prepared], tmp_path: Path
) -> None:
    known = "((5, 13), (7, 13), (5, 7))"
    test = f"if tuple(x.shape) not in {known}: raise ValueError"
    task = write_task(forward=f"{test}\nreturn x + 1", inputs="[torch.randn(5, 13)]")
    prepared = prepare_quickly(task, tmp_path, seeds=(1,), edges=False)
    verdict = empty_verdict(tmp_path, prepared, find_chip("910B2"), "strict")
    verdict.trials = [
        Trial(name=item.record.name, kind=item.kind, skipped=item.skipped, passed=not item.skipped)
        for item in prepared.trials
    ]
    note_task(verdict, prepared, "strict")
    (said,) = verdict.provenance["task_notes"]
    assert said == "no other shape was judged: the reference refuses all 16"
