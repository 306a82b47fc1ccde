"""The order of equal elements, which PyTorch leaves open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from npusmith.task.sort_ties import LastWrites, StableSorts
from npusmith.task.tolerance import compare

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


X, AT = torch.zeros(2, 4), torch.tensor([1, 3, 1])
ROWS = torch.arange(6.0).view(2, 3) + 1
WRITES: dict[str, Callable[[], torch.Tensor]] = {
    "index_put": lambda: X.index_put((torch.tensor([[0], [1]]), AT), ROWS),
    "an index behind a slice": lambda: _assigned(X.clone(), AT, ROWS),
    "scatter": lambda: X.scatter(1, AT.expand(2, 3), ROWS),
    "scatter, in place": lambda: X.clone().scatter_(1, AT.expand(2, 3), ROWS),
    "scatter of a part": lambda: X.scatter(1, AT.expand(2, 3), ROWS.repeat(2, 2)),
    "index_copy": lambda: X.index_copy(1, AT, ROWS),
}


def _assigned(x: torch.Tensor, at: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    x[:, at] = rows
    return x


@pytest.mark.parametrize("name", WRITES)
def test_of_several_values_for_one_place_the_last_or_the_first_is_kept(name: str) -> None:
    with LastWrites():
        assert WRITES[name]().tolist() == [[0, 3, 0, 2], [0, 6, 0, 5]]
    with LastWrites(reverse=True):
        assert WRITES[name]().tolist() == [[0, 1, 0, 2], [0, 4, 0, 5]]


def test_sums_and_masks_stay_as_they_are() -> None:
    for fn in (
        lambda: X.index_put((torch.tensor([0]), AT), ROWS[0], accumulate=True),
        lambda: X.scatter(1, AT.expand(2, 3), ROWS, reduce="add"),
        lambda: X.index_put((X == 0,), torch.arange(8.0)),
        lambda: X.scatter(1, AT.expand(2, 3), 5.0),
    ):
        with LastWrites(reverse=True):
            found = fn()
        assert torch.equal(found, fn())


@pytest.mark.parametrize("kind", ["float32", "int32"])
def test_an_element_that_several_values_are_put_at_is_left_out(
    write_task, prepare_quickly, tmp_path, kind: str
) -> None:
    task = write_task(
        forward="y = y.clone()\ny[:, z] = x\nreturn y",
        inputs=f"[torch.arange(6, dtype=torch.{kind}).view(2, 3), "
        f"torch.ones(2, 8, dtype=torch.{kind}), torch.tensor([1, 5, 1])]",
    )
    trial = prepare_quickly(task, tmp_path, seeds=(1,), edges=False, shapes=False).trials[0]
    want, bound = trial.references[0], trial.bounds[0]
    assert bound is not None and np.isinf(bound).nonzero()[1].tolist() == [1, 1]
    other = want.copy()
    other[:, 1] = trial.inputs[0][:, 0]  # the first value
    assert compare(other, want, trial.goldens[0], "strict", bound).passed
    other[0, 5] = 7
    assert not compare(other, want, trial.goldens[0], "strict", bound).passed
