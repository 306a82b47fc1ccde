"""The order of equal elements, which PyTorch leaves open."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from npusmith.task.sort_ties import StableSorts

EQUAL = torch.tensor([[2.0, 1.0, 2.0, 1.0, 3.0]])
CASES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], list[int], list[int]]] = {
    "sort": (lambda x: x.sort().indices, [1, 3, 0, 2, 4], [3, 1, 2, 0, 4]),
    "argsort": (lambda x: x.argsort(descending=True), [4, 0, 2, 1, 3], [4, 2, 0, 3, 1]),
    "topk": (lambda x: x.topk(2).indices, [4, 0], [4, 2]),
    "kthvalue": (lambda x: x.kthvalue(1).indices, [1], [3]),
    "median": (lambda x: x.median(1).indices, [0], [2]),
    "stable": (lambda x: x.sort(stable=True).indices, [1, 3, 0, 2, 4], [1, 3, 0, 2, 4]),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_elements_stand_one_way_or_the_other(name: str) -> None:
    fn, first, last = CASES[name]
    for reverse, places in ((False, first), (True, last)):
        with StableSorts(reverse):
            assert fn(EQUAL).flatten().tolist() == places


def test_values_are_those_of_pytorch() -> None:
    x = torch.randn(4, 9)
    x[0, 3] = float("nan")
    for fn in (lambda x: x.median(1), lambda x: x.nanmedian(1), lambda x: x.topk(3, 1), torch.sort):
        with StableSorts():
            found = fn(x)
        assert isinstance(found, type(fn(x)))
        torch.testing.assert_close(tuple(found), tuple(fn(x)), equal_nan=True)


def test_places_of_the_largest_may_be_viewed(write_task, prepare_here) -> None:
    """As PyTorch gives them, in one piece: `reshape` is a view in the captured graph."""
    task = write_task(
        forward="found = torch.topk(x, 3, dim=-1)[1].reshape(-1)\n"
        "return torch.zeros(8, dtype=torch.int64).scatter_add(0, found, torch.ones_like(found))",
        inputs="[torch.randn(5, 8)]",
    )
    assert not prepare_here(task, seeds=(1,)).trials[0].skipped
