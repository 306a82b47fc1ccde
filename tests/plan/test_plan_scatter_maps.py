"""Scatters between other operations, and of forms that no program of its own takes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from modules import agrees, plan

torch.manual_seed(1)
R = torch.randn
T = torch.tensor
Sets = list[tuple[torch.Tensor, ...]]


def below(size: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, size, shape)


CASES: dict[str, tuple[Any, Sets]] = {
    "scatter_add": (
        lambda x, i, y: x.scatter_add(1, i, y) + 1,
        [(R(3, 7), below(7, 3, 4), R(3, 4)), (R(5, 9), below(9, 5, 6), R(5, 6))],
    ),
    "scatter_add along rows": (
        lambda x, i, y: (x * 2).scatter_add(0, i, y),
        [(R(5, 7), below(5, 3, 7), R(3, 7)), (R(5, 70), below(5, 6, 70), R(6, 70))],
    ),
    "fewer indices and more values than places": (
        lambda x, i, y: (x * 2).scatter_add(0, i, y),
        [(R(5, 7), below(5, 3, 4), R(6, 6))],
    ),
    "the last of equal indices is stored": (
        lambda x, i, y: (x * 2).scatter(0, i, y),
        [(R(5, 7), below(5, 9, 7), R(9, 7))],
    ),
    "a number": (lambda x, i: x.scatter(1, i, 2.0).relu(), [(R(5, 7), below(7, 5, 7))]),
    "at places of its own": (
        lambda x: x.scatter(1, x.argmax(1, keepdim=True), 0.0),
        [(R(5, 7),), (R(9, 70),)],
    ),
    "index_put": (lambda x, i, y: (x + 1).index_put((i,), y), [(R(5, 7), T([3, -1, 0]), R(3, 7))]),
    "index_put of pairs": (
        lambda x, i, j, y: (x + 1).index_put((i, j), y, True),
        [(R(5, 7, 3), T([3, -1, 3]), T([1, 2, 1]), R(3, 3))],
    ),
    "index_put of one row": (
        lambda x, i, y: (x + 1).index_put((i,), y),
        [(R(5, 7), T([3, -1, 0]), R(7))],
    ),
    "index_add of columns": (
        lambda x, i, y: (x + 1).index_add(1, i, y),
        [(R(5, 7).half(), T([3, 2, 3]), R(5, 3).half())],
    ),
    "into zeros": (
        lambda i, y: torch.zeros(50, 7).scatter_add(0, i, y) * 2,
        [(below(50, 30, 7), R(30, 7))],
    ),
    "many indices stand alone": (
        lambda x, i, y: x.exp().scatter_add(0, i, y) * 2,
        [(R(5, 3), below(5, 200, 3), R(200, 3))],
    ),
    "between two softmaxes": (
        lambda x, i, y: x.scatter_add(1, i, y.softmax(-1)).softmax(-1),
        [(R(3, 7), below(7, 3, 4), R(3, 4))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_scatter_gives_pytorchs_values(name: str) -> None:
    fn, sets = CASES[name]
    made = plan(fn, *sets[0])
    for args in sets:
        agrees(made, fn, *args)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("word", ["sum", "prod", "amax", "amin", "mean"])
def test_scatter_reduce_takes_in_the_element_itself_or_not(word: str, own: bool) -> None:
    def fn(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.exp().scatter_reduce(1, i, y, word, include_self=own)

    args = (R(3, 7), below(7, 3, 4), R(3, 4))
    agrees(plan(fn, *args), fn, *args)


def test_a_piece_beside_a_scatter_keeps_its_axes_of_one_element() -> None:
    def fn(
        a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return b.scatter(1, d, c), torch.cat([a.unfold(-4, 1, 1), b], 1)

    b, c = torch.rand(1, 2, 3, 8, 1), torch.rand(1, 2, 3, 8, 1)
    args = torch.randn(1, 3, 3, 8), b, c, b.argsort(1)
    agrees(plan(fn, *args), fn, *args)


@pytest.mark.parametrize("dim", [0, 1])
def test_a_tensor_is_scattered_into_itself(dim: int) -> None:
    def fn(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.scatter(dim, i, x * 2)

    args = R(3, 3), torch.stack([torch.randperm(3) for _ in range(3)], 1 - dim)
    agrees(plan(fn, *args), fn, *args)
