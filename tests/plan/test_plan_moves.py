"""Gathers, scatters and scans behind an element are PyTorch's, at other sizes as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import agrees, plan

from npusmith.ir.nodes import Program
from npusmith.ir.text import show_expr
from npusmith.plan import Plan

Case = tuple[Callable[..., Any], list[tuple[torch.Tensor, ...]]]


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=drawn(sum(shape)))


def places(most: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, most, shape, generator=drawn(most + sum(shape)))


CASES: dict[str, Case] = {
    "scatter": (
        lambda x, i, v: x.scatter(1, i, v),
        [
            (rows(3, 9), places(9, 3, 4), rows(3, 4)),
            (rows(2, 70), places(70, 2, 600), rows(2, 600)),
        ],
    ),
    "scatter_add": (
        lambda x, i, v: x.scatter_add(1, i, v),
        [(rows(3, 9), places(9, 3, 4), rows(3, 4)), (rows(2, 70), places(70, 2, 60), rows(2, 60))],
    ),
    "a scan behind a zero": (
        lambda x: torch.cat([torch.zeros_like(x[..., :1]), x], dim=-1).cumsum(-1),
        [(rows(3, 5),), (rows(50, 2503),)],
    ),
    "a product behind a one, less a row": (
        lambda x: torch.cat([torch.ones_like(x[:, :1]), x], dim=1)[:-1].cumprod(1),
        [(rows(3, 5),), (rows(50, 303),)],
    ),
    "argmax": (lambda x: x.argmax(1), [(rows(2, 5, 6),), (rows(3, 70, 501),)]),
    "argmin of rows": (lambda x: x.argmin(-1), [(rows(2, 5),), (rows(3, 9000),)]),
}


def for_all_sizes(made: Plan) -> Program:
    """The program behind the versions for some sizes."""
    return made.versions[-1].program if made.versions else made.program


@pytest.mark.parametrize("name", CASES)
def test_a_move_gives_pytorchs_values_at_every_size_from_one_program(name: str) -> None:
    model, cases = CASES[name]
    made, other = plan(model, *cases[0]), plan(model, *cases[-1])
    assert for_all_sizes(other) == for_all_sizes(made)
    for given in cases:
        agrees(made, model, *given, loose=20)


def test_the_first_of_equal_elements_and_the_first_nan_are_found() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0, 2.0], [0.0, torch.nan, 9.0, torch.nan]])
    for model in (lambda x: x.argmax(1), lambda x: x.argmin(1)):
        agrees(plan(model, x), model, x)


def test_slices_of_a_size_that_is_a_number() -> None:
    """A condition between two numbers is none: the operator's host code has no tensor to ask."""

    def corners(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[..., :2] - x[..., 2:], x[..., 1:3]], -1)

    x = torch.randn(5, 4)
    agrees(plan(corners, x), corners, x)


def test_an_index_serves_every_size_that_has_it() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x[..., 2] - x[..., -3]

    x = torch.arange(40.0).reshape(10, 4)
    made = plan(model, x)
    for size in (3, 4, 9):
        agrees(made, model, torch.arange(5.0 * size).reshape(5, size))
    assert [show_expr(expr) for expr in made.spec.legal or ()] == ["args_0.shape[1] >= 3"]


def test_rows_are_repeated_by_a_loop() -> None:
    x = torch.randn(4, 5)
    agrees(plan(lambda a: a.repeat_interleave(3, 0), x), lambda a: a.repeat_interleave(3, 0), x)
