"""Rows and elements that an index names: one program, at several sizes, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan
from torch import nn

Tensor = torch.Tensor
Case = tuple[Callable[..., Any], list[tuple[Tensor, ...]]]


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=drawn(sum(shape)))


def places(most: int, *shape: int, least: int = 0) -> Tensor:
    return torch.randint(least, most, shape, generator=drawn(most + sum(shape)))


def whole(*shape: int) -> Tensor:
    return torch.randint(-(2**60), 2**60, shape, generator=drawn(sum(shape)))


def embedded(index: Tensor, table: Tensor) -> Tensor:
    return F.embedding(index, table)


# a model, and inputs at several sizes: what is captured at the first, and at the last, serves all
CASES: dict[str, Case] = {
    "embedding": (
        embedded,
        [
            (places(9, 3, 4), rows(9, 5)),
            (places(1, 1, 1), rows(1, 1)),
            (places(50, 40, 3), rows(50, 64)),
            (places(20, 2, 5), rows(20, 9001)),
            (places(700, 2, 65), rows(700, 33)),
        ],
    ),
    "no row, and many": (
        lambda i, w: w[i],
        [
            (places(50, 7), rows(50, 64)),
            (places(50, 0), rows(50, 64)),
            (places(50, 7), rows(50, 0)),
            (places(50, 700), rows(50, 64)),
        ],
    ),
    "rows of integers, from the end": (
        lambda i, w: w[i],
        [
            (places(40, 9, least=-40), whole(40, 64)),
            (places(0, 3, least=-1), whole(1, 1)),
            (places(10, 30, least=-10), whole(10, 901)),
        ],
    ),
    "an embedding and positions": (
        lambda i, w, p: F.embedding(i, w) + p,
        [
            (places(50, 4, 7), rows(50, 64), rows(7, 64)),
            (places(50, 10, 3), rows(50, 65), rows(3, 65)),
        ],
    ),
    "rows of a middle axis": (
        lambda i, x: x.index_select(1, i),
        [(places(5, 3), rows(2, 5, 6)), (places(50, 99), rows(3, 50, 17))],
    ),
    "columns": (
        lambda i, x: x.index_select(1, i),
        [(places(9, 4), rows(3, 9)), (places(1000, 1100), rows(50, 1000))],
    ),
    "gather": (
        lambda i, x: x.gather(1, i),
        [
            (places(9, 3, 4), rows(3, 9)),
            (places(700, 5, 1100), rows(5, 700)),
            (places(9001, 3, 50), rows(3, 9001)),
        ],
    ),
    "take_along_dim, from the end": (
        lambda i, x: torch.take_along_dim(x, i, dim=-1),
        [
            (places(9, 2, 3, 4, least=-9), rows(2, 3, 9)),
            (places(70, 2, 2, 11, least=-70), rows(2, 2, 70)),
        ],
    ),
    "take_along_dim, beyond the row": (  # PyTorch takes the remainder
        lambda i, x: torch.take_along_dim(x, i, dim=1),
        [
            (places(9000, 3, 40, least=-9000), rows(3, 70)),
            (places(90, 128, 1), rows(128, 1)),
            (places(900_000, 2, 50, least=-900_000), rows(2, 5000)),
        ],
    ),
    "take_along_dim of one row": (
        lambda i, x: torch.take_along_dim(x, i, dim=1),
        [(places(70, 5, 40, least=-70), rows(1, 70)), (places(9, 3, 50, least=-9), rows(1, 9))],
    ),
    "take_along_dim by one row": (
        lambda i, x: torch.take_along_dim(x, i, dim=1),
        [(places(70, 1, 40, least=-70), rows(5, 70)), (places(9, 1, 50, least=-9), rows(3, 9))],
    ),
    "take_along_dim of all": (
        torch.take_along_dim,
        [(rows(5, 7), places(35, 30)), (rows(1, 1), places(1, 4))],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_indices_name_is_pytorchs_at_every_size(name: str) -> None:
    model, cases = CASES[name]
    for captured in (cases[0], cases[-1]):
        made = plan(model, *captured)
        assert len(made.program.kernels) == 1
        for given in cases:
            agrees(made, model, *given)


def test_the_remainder_of_an_index_may_be_of_a_row_that_stands_alone() -> None:
    def turned(i: Tensor, x: Tensor) -> Tensor:
        return x.gather(1, i % 70)

    given = places(900, 1, 40, least=-900), rows(1, 70)
    agrees(plan(turned, *given), turned, *given)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [33, 64])
def test_picks_of_16_bit_types(dtype: torch.dtype, size: int) -> None:
    line, index, table = rows(3, 40).to(dtype), places(40, 3, 50), rows(40, size).to(dtype)
    agrees(plan(pick, line, index), pick, line, index)
    agrees(plan(embedded, index, table), embedded, index, table)


def pick(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index)


def test_an_embedding_of_a_model_is_bound_to_its_weight() -> None:
    made = plan(nn.Embedding(9, 5), places(9, 3))
    assert [port.source.value for port in made.spec.inputs] == ["parameter", "user"]


def test_a_table_has_no_more_rows_than_an_index_is_exact_for() -> None:
    made = plan(embedded, places(9, 3), rows(9, 8))
    assert "16777216" in repr(made.spec.legal)


def test_a_weighted_mean_of_one_element_of_each_row() -> None:
    def mean(x: Tensor, i: Tensor, w: Tensor) -> Tensor:
        return (x.gather(1, i[:, None])[:, 0] * w[i]).sum() / w[i].sum()

    sizes = ((32, 50), (300, 7), (1, 2))
    cases = [(rows(n, m), places(m, n), rows(m).abs()) for n, m in sizes]
    made = plan(mean, *cases[0])
    for given in cases:
        agrees(made, mean, *given, loose=20)  # terms of both signs cancel
