"""Slices of inputs and joined outputs in loops over axes: one kernel, values against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from modules import agrees, plan

Tensor = torch.Tensor


def rows(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def zero(x: Tensor) -> Tensor:
    return torch.zeros_like(x[..., :1])


# a model, and inputs at several sizes: those of the first are captured
CASES: dict[str, tuple[Any, list[tuple[Tensor, ...]]]] = {
    "a scan behind a zero": (
        lambda x: torch.cat([zero(x), x], -1).cumsum(-1),
        [(rows(3, 2, 700),), (rows(1, 1, 1),), (rows(5, 3, 9001),)],
    ),
    "down the rows": (
        lambda x: torch.cat([torch.zeros_like(x[:1]), x]).cumsum(0),
        [(rows(3, 700),), (rows(1, 1),), (rows(5, 9001),)],
    ),
    "less rows, of a sum": (
        lambda x: torch.cat([zero(x), x + x], 1)[1:-1].cumsum(1),
        [(rows(5, 700),), (rows(3, 1),), (rows(7, 2503),)],
    ),
    "a product behind a one": (
        lambda x: torch.cat([torch.ones_like(x[:, :1]), 1 + x / 100], 1).cumprod(1),
        [(rows(3, 700),), (rows(1, 1),), (rows(5, 901),)],
    ),
    "halves": (
        lambda x: torch.cat([zero(x), x], -1).cumsum(-1),
        [(rows(3, 700).half(),), (rows(1, 1).half(),), (rows(5, 901).half(),)],
    ),
    "integers": (
        lambda x: torch.cat([zero(x), x], -1).cumsum(-1),
        [((rows(3, 700) * 9).long(),), ((rows(1, 1) * 9).long(),)],
    ),
    "a scan before a zero": (
        lambda x: (torch.cat([zero(x), x.abs().cumsum(1)], 1), x.relu()),
        [(rows(3, 700),), (rows(1, 1),), (rows(5, 9001),)],
    ),
    "joined columns": (
        lambda x, y: torch.cat([x.softmax(-1), y], 1),
        [(rows(3, 700), rows(3, 900)), (rows(1, 1), rows(1, 2)), (rows(5, 9001), rows(5, 3))],
    ),
    "joined rows": (
        lambda x, y: torch.cat([x.softmax(-1), y]),
        [(rows(3, 700), rows(4, 700)), (rows(1, 1), rows(2, 1)), (rows(5, 9001), rows(3, 9001))],
    ),
    "joined behind a last axis of one element, beside a sum": (
        lambda x, y, z: (torch.cat([x.unfold(-4, 1, 1), y], 1), (y * z).sum(1)),
        [
            (rows(1, 3, 3, 8), rows(1, 2, 3, 8, 1), rows(1, 2, 3, 8, 1)),
            (rows(1, 4, 2, 5), rows(1, 3, 2, 5, 1), rows(1, 3, 2, 5, 1)),
        ],
    ),
    "slices of columns": (
        lambda x: x[:, 1:-1].softmax(-1) * x[:, 2:],
        [(rows(3, 700),), (rows(1, 3),), (rows(5, 9001),)],
    ),
    "one of the rows": (
        lambda x: x[:, 0].softmax(-1),
        [(rows(3, 4, 700),), (rows(1, 1, 1),), (rows(5, 3, 901),)],
    ),
    "rows of a softmax": (
        lambda x: x.softmax(-1)[1:],
        [(rows(3, 700),), (rows(2, 1),), (rows(5, 9001),)],
    ),
    "rows from the end": (
        lambda x: x.flip(0).softmax(-1),
        [(rows(3, 700),), (rows(1, 1),), (rows(5, 9001),)],
    ),
    "every other row": (lambda x: x[::2].softmax(-1), [(rows(6, 1400),)]),
    "both halves of a row": (
        lambda x: torch.nn.functional.rms_norm(x[:, :700] * x[:, 700:].sigmoid(), (700,)),
        [(rows(3, 1400),), (rows(7, 1400),)],
    ),
}


APART = {
    "a scan before a zero",
    "joined columns",
}  # stored element by element in one: 240 times as long


@pytest.mark.parametrize("name", CASES)
def test_slices_and_joins_need_no_kernel_of_their_own(name: str) -> None:
    model, cases = CASES[name]
    made = plan(model, *cases[0])
    assert (len(made.program.kernels) == 1) == (name not in APART)
    for given in cases:
        agrees(made, model, *given, loose=20)
