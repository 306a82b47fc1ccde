"""Inputs that rise or fall, such as boundaries of buckets, do so in every set of inputs."""

from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

from npusmith.task import edges
from npusmith.task.resized import resize
from npusmith.task.user import Inputs

BOUNDARIES = torch.linspace(-2, 2, 11)


def given(*tensors: torch.Tensor) -> Inputs:
    leaves, tree = pytree.tree_flatten(list(tensors))
    return Inputs(tuple(leaves), tree)


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("name", [name for name, _ in edges.EDGES])
def test_boundaries_stay_in_order_in_edge_sets_and_at_other_sizes(name: str, falls: bool) -> None:
    edge, own = dict(edges.EDGES)[name], BOUNDARIES.flip(0) if falls else BOUNDARIES
    base = given(torch.randn(50), own)
    for inputs in (base, resize(base, [(9,), (179,)], 5), resize(base, [(9,), (4,)], 5)):
        changed, boundaries = edges.change(inputs, edge, 1).tensors
        turned = boundaries.flip(0) if falls else boundaries
        assert bool((turned[1:] >= turned[:-1]).all())
        assert bool(changed.isnan().any()) == (name == "nan")


def test_values_in_no_order_get_what_a_set_is_named_for() -> None:
    base = given(torch.randn(50), torch.ones(7))
    for tensor in edges.change(base, edges.nans, 1).tensors:
        assert tensor.isnan().any()


def test_equal_values_and_masks_are_drawn_as_before() -> None:
    mask = torch.tensor([False, False, True, True])
    ones, drawn = resize(given(torch.ones(5), mask), [(9,), (64,)], 3).tensors
    assert ones.tolist() == [1.0] * 9
    assert drawn.any() and not drawn.all() and not torch.equal(drawn, drawn.sort().values)
