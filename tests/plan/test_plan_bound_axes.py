"""A tensor beside a reduction of its own pairs: the axes of the pairs stay two."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from modules import agrees, capture, plan

from npusmith.errors import PlanError
from npusmith.plan.read import read

Tensor = torch.Tensor


def farthest(x: Tensor) -> Tensor:
    return x + (x.unsqueeze(-2) - x.unsqueeze(-1)).amax(-1)


MODELS: dict[str, Callable[[Tensor], Tensor]] = {
    "distances": farthest,
    "a triangle": lambda x: x + (x.unsqueeze(-2) * torch.ones(5, 5).tril()).sum(-1),
    "positions": lambda x: x * (x.unsqueeze(-2) * (torch.arange(5).unsqueeze(-1) + 1)).sum(-1),
    "a running maximum of integers": lambda x: torch.maximum(
        (x * 9).int(), (x * 9).int().cummax(-1)[0]
    ),
    "a scan beside its rows": lambda x: x.sum(-1) + x.cumsum(-1)[:, -1],
}


@pytest.mark.parametrize("name", MODELS)
def test_a_tensor_beside_a_reduction_of_its_pairs(name: str) -> None:
    x = torch.randn(5, 5, generator=torch.Generator().manual_seed(1))
    agrees(plan(MODELS[name], x), MODELS[name], x)


def test_one_kernel_for_both_is_refused() -> None:
    with pytest.raises(PlanError) as caught:
        read(capture(farthest, torch.randn(2, 5)))
    assert caught.value.code == "plan-repeated-axis"


def test_a_softmax_of_a_row_beside_it_is_one_kernel() -> None:
    x = torch.randn(3, 5)
    made = plan(lambda x: x + x.softmax(-1), x)
    assert not made.parts


R = torch.randn
INDEX = torch.tensor([3, 0, 4, 4, 1])
MOVED: dict[str, tuple[Callable[..., Tensor | tuple[Tensor, ...]], tuple[Tensor, ...]]] = {
    "rows and columns by one index": (lambda x, i: x[i][:, i][:, :2], (R(5, 5), INDEX)),
    "the same of a table": (
        lambda x, i: torch.nn.functional.embedding(i, x).index_select(1, i).flip(1)[1:],
        (R(5, 5), INDEX),
    ),
    "a slice of an outer product": (
        lambda x, y: ((x[:, None] * y)[:, :1], x + y), (R(5), R(5)),
    ),
    "an element of each of its rows": (
        lambda x, y, i: ((x[:, None] - y).gather(1, i[:, None]), x + y), (R(5), R(5), INDEX),
    ),
    "the sum of all of it": (lambda x, y: ((x[:, None] * y).sum(), x + y), (R(5), R(5))),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
def test_what_is_moved_along_one_axis_keeps_its_others(name: str) -> None:
    fn, args = MOVED[name]
    agrees(plan(fn, *args), fn, *args)


def test_rows_and_columns_by_one_index_are_one_kernel() -> None:
    fn, args = MOVED["rows and columns by one index"]
    assert not plan(fn, *args).parts
