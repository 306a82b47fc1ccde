"""Broadcasts within rows that are short as captured: one program for all sizes, right at each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, own_program, plan
from torch import Tensor

from npusmith.ir.text import show


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


Shapes = tuple[tuple[int, ...], ...]


def _masked(x: Tensor, m: Tensor) -> Tensor:
    return x.masked_fill(m > 0, -1.0)


def _gated(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    return x * torch.sigmoid(g) + torch.exp(b)


def _two(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    return x * w, torch.relu(w) + 1.0


# captured first; then other sizes, those beyond a tile and empty ones among them
CASES: dict[str, tuple[Callable[..., object], tuple[Shapes, ...]]] = {
    "one number for each channel": (
        lambda x, w, b: torch.relu(x * w + b),
        (((3, 5, 7, 7), (5, 1, 1), (5, 1, 1)), ((1, 2, 40, 41), (2, 1, 1), (2, 1, 1)),
         ((2, 1, 1, 1), (1, 1, 1), (1, 1, 1)), ((0, 4, 3, 3), (4, 1, 1), (4, 1, 1))),
    ),
    "one number for each column": (
        lambda x, w, b: (x - b) / (w * w + 1.0),
        (((11, 13, 3), (3,), (3,)), ((2, 2, 1700), (1700,), (1700,)), ((700, 3, 1), (1,), (1,))),
    ),
    "row, column, and both": (
        _gated, (((40, 17), (40, 1), (17,)), ((3, 1100), (3, 1), (1100,)), ((1, 1), (1, 1), (1,))),
    ),
    "outer product": (lambda a, b: a * b, (((50, 1), (1, 17)), ((7, 1), (1, 1200)))),
    "sum of three sides": (
        lambda a, b, c: a + b + c,
        (((6, 1, 1), (1, 5, 1), (6, 1, 9)), ((2, 1, 1), (1, 40, 1), (2, 1, 33))),
    ),
    "every other axis": (
        lambda x, w: F.gelu(x) * w,
        (((2, 3, 4, 5, 6), (3, 1, 5, 1)), ((1, 2, 7, 1, 9), (2, 1, 1, 1))),
    ),
    "mask by row": (_masked, (((9, 8, 12), (9, 1, 12)), ((4, 3, 5), (4, 1, 5)))),
    "mask by a number of the row": (_masked, (((33, 20), (33, 1)), ((2, 1500), (2, 1)))),
    "where by row": (
        lambda x, m, y: torch.where(m > 0, x, y),
        (((20, 10), (20, 1), (10,)), ((5, 3), (5, 1), (3,))),
    ),
    "two outputs": (_two, (((12, 6, 5), (6, 1)), ((3, 2, 70), (2, 1)))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_broadcast_in_short_rows_is_right_at_every_size(name: str) -> None:
    fn, sets = CASES[name]
    drawn = [[normal(*shape, seed=i) for i, shape in enumerate(shapes)] for shapes in sets]
    made = plan(fn, *drawn[0])
    for args in drawn:
        agrees(made, fn, *args)


def test_what_is_the_same_for_all_tiles_is_read_before_the_first() -> None:
    made = plan(lambda x, w: x * w, normal(30, 20, 4), normal(20, 1, seed=1))
    text = show(own_program(made))
    loop = text.index("for piece in range")
    assert text.index("load(args_1_in") < loop < text.index("load(args_0_in")


def test_what_belongs_to_a_row_is_computed_once_a_row() -> None:
    factors = normal(30, 1, 1, seed=1), normal(20, 1, seed=2)
    made = plan(lambda x, g, w: x * torch.exp(g) * w, normal(30, 20, 4), *factors)
    lines = [line.strip() for line in show(own_program(made)).splitlines()]
    assert next(line for line in lines if line.startswith("exp(")).endswith(", m)")
