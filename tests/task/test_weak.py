"""Do-nothing kernels are found out, and only where they would pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npusmith.task.weak import find_null_kernels

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
