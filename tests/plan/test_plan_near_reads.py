"""Reads of one input that are a few elements apart share a copy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from modules import CHIP, agrees, capture, plan

from npusmith.ir.text import show
from npusmith.plan.write_kernel import write_kernel

Tensor = torch.Tensor


def area(x: Tensor) -> Tensor:
    return (x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1])


def product(a: Tensor, b: Tensor) -> Tensor:
    real = a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1]
    return torch.stack([real, a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]], -1)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


CASES: dict[str, tuple[Callable[..., Tensor], list[tuple[Tensor, ...]]]] = {
    "corners of boxes": (area, [(normal(900, 4),), (normal(7, 4),), (normal(0, 4),)]),
    "complex numbers": (
        product,
        [(normal(300, 2), normal(300, 2)), (normal(0, 2), normal(0, 2)), (normal(1, 2),) * 2],
    ),
    "neighbours": (lambda x: (x[1:] - x[:-1]).abs(), [(normal(900),), (normal(7),)]),
    "neighbours of halves": (
        lambda x: (x[:, 1:] - x[:, :-1]).abs(), [(normal(90, 33).half(),), (normal(7, 5).half(),)],
    ),
    "backwards": (
        lambda x: x.flip(-1)[..., 1:] + x.flip(-1)[..., :-1], [(normal(30, 90),), (normal(2, 11),)],
    ),
    "wide integers": (
        lambda x: x[:, 0] * x[:, 3] + x[:, 1],
        [(torch.arange(1500).reshape(300, 5) * 2**33 - 2**41,)],
    ),
    "far apart": (lambda x: x[:, 0] + x[:, 200], [(normal(50, 201),)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_reads_beside_each_other_are_pytorchs(name: str) -> None:
    model, inputs = CASES[name]
    made = plan(model, *inputs[0])
    for given in inputs:
        agrees(made, model, *given)


def test_four_columns_are_one_copy() -> None:
    # of longer rows they are copied one by one, in other kernels
    text = show(write_kernel(capture(area, normal(900, 4)), "op", CHIP).program)
    assert text.count("args_0[b_from") == 1
