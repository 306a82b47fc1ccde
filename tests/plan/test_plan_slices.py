"""Slices with numbers serve every size at which they are the same slice, and refuse the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import agrees, capture_at, plan, plan_graph

from npusmith.ir.text import show_expr
from npusmith.lang.extents import extent, serves

# A module of a matrix of 12 columns, what is legal, and sizes of the columns that it has to serve.
CASES: dict[str, tuple[Callable[..., Any], list[str], tuple[int, ...]]] = {
    "to a column": (lambda x: x[:, :7] + 1, ["x.shape[1] >= 7"], (7, 12, 50)),
    "between two columns": (lambda x: x[:, 3:7].sum(-1), ["x.shape[1] >= 7"], (7, 9, 50)),
    "the last columns": (lambda x: x[:, -5:] * 2, ["x.shape[1] >= 5"], (5, 12, 70)),
    "without the last": (lambda x: x[:, 2:-2] * 2, ["x.shape[1] >= 4"], (4, 12, 70)),
    "past the end": (lambda x: x[:, 1:40] * 2, ["x.shape[1] >= 1", "x.shape[1] <= 40"], (1, 9, 40)),
    "every third": (lambda x: x[:, 1::3] * 2, ["x.shape[1] >= 2"], (2, 3, 11, 12, 13)),
    "every other of ten": (lambda x: x[:, 1:10:2] * 2, ["x.shape[1] >= 10"], (10, 11, 64)),
    "even and odd": (
        lambda x: x[:, ::2] * x[:, 1::2],
        ["(x.shape[1] + 1) // 2 == x.shape[1] // 2", "x.shape[1] >= 2"],
        (2, 8, 64),
    ),
    "beside seven": (
        lambda x: x[:, :7] + x[:, 5:], ["x.shape[1] - 5 == 7", "x.shape[1] >= 7"], (12,),
    ),
    "a slice of a slice": (lambda x: x[:, 2:][:, :3] * 2, ["x.shape[1] >= 5"], (5, 12, 30)),
    "replaced": (
        lambda x: torch.slice_scatter(x, x[:, :3] * 2, 1, 4, 7), ["x.shape[1] >= 7"], (7, 12, 40),
    ),
    "a diagonal above": (
        lambda x: x.diagonal(2) * 2, ["x.shape[1] >= 2"], (2, 5, 12, 40),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_slice_with_numbers_serves_all_sizes_that_have_it(name: str) -> None:
    model, legal, sizes = CASES[name]
    made = plan(model, torch.randn(6, 12))
    shown = [show_expr(expr).replace("args_0", "x") for expr in made.spec.legal or ()]
    assert [text for text in shown if "shape[0]" not in text] == legal
    for size in sizes:
        assert serves(made.spec, {"args_0": (6, size)})
        agrees(made, model, torch.randn(6, size))


@pytest.mark.parametrize("name", CASES)
def test_where_pytorch_takes_another_slice_the_operator_refuses(name: str) -> None:
    """Of all sizes to 45: what is served has the shape of PyTorch's result."""
    model, _, _ = CASES[name]
    made = plan(model, torch.randn(6, 12))
    for size in range(46):
        shapes = {"args_0": (6, size)}
        if serves(made.spec, shapes):
            wanted = tuple(model(torch.randn(6, size)).shape)
            assert tuple(extent(dim, shapes) for dim in made.spec.outputs[0].dims) == wanted


def test_a_slice_that_ends_where_the_axis_did_is_as_long_on_longer_ones() -> None:
    def last_three(x: torch.Tensor) -> torch.Tensor:
        return x.narrow(0, 1, 3) * 2.0

    made = plan_graph(capture_at(last_three, (torch.randn(4, 8),), (torch.randn(7, 8),)))
    for rows in (4, 5, 30):
        agrees(made, last_three, torch.randn(rows, 8))

    def all_but_one(x: torch.Tensor) -> torch.Tensor:
        return x[1:4] * 2.0

    made = plan_graph(capture_at(all_but_one, (torch.randn(4, 8),), (torch.randn(3, 8),)))
    for rows in (4, 3, 2):
        agrees(made, all_but_one, torch.randn(rows, 8))
