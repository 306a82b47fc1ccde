"""Products with vectors, and of matrices with short axes, on the vector unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, capture_at, plan, plan_graph

from npusmith.ir.text import show

torch.manual_seed(5)
R = torch.randn
Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]


def head(a: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(F.linear(a.exp(), w, b)) * a


def weighed(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.addmm(c, a, b, beta=0.5, alpha=2.0)


def two_layers(a: torch.Tensor, w: torch.Tensor, b: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.linear(F.relu(F.linear(a, w, b)), v)


CASES: dict[str, Case] = {
    "mv": (lambda a, v: (a @ v).relu(), (R(37, 301), R(301)), (R(5, 40), R(40))),
    "mv of halves": (
        lambda a, v: a @ v, (R(37, 301).half(), R(301).half()), (R(5, 40).half(), R(40).half()),
    ),
    "one column": (lambda a, b: a @ b, (R(37, 301), R(301, 1)), (R(5, 40), R(40, 1))),
    "linear with one output": (
        head, (R(3, 7, 301), R(1, 301), R(1)), (R(2, 9, 77), R(1, 77), R(1)),
    ),
    "a row times a matrix": (
        lambda a, w: (a @ w).softmax(-1), (R(1, 301), R(301, 64)), (R(1, 33), R(33, 50)),
    ),
    "dot": (lambda a, b: a * torch.dot(a, b), (R(1000), R(1000)), (R(77), R(77))),
    "addmm": (weighed, (R(4, 64), R(4, 5), R(5, 64)), (R(4, 33), R(4, 5), R(5, 33))),
    "addmv": (
        lambda c, a, b: torch.addmv(c, a, b, beta=0.5, alpha=2.0),
        (R(5), R(5, 60), R(60)), (R(9), R(9, 33), R(33)),
    ),
    "baddbmm": (
        torch.baddbmm, (R(6, 1, 64), R(6, 1, 50), R(6, 50, 64)),
        (R(2, 1, 33), R(2, 1, 9), R(2, 9, 33)),
    ),
    "two small layers": (
        two_layers, (R(8, 12), R(16, 12), R(16), R(1, 16)), (R(20, 12), R(16, 12), R(16), R(1, 16)),
    ),
}  # fmt: skip


def test_a_product_beside_another_result_of_the_same_rows() -> None:
    """Rows that are loaded one by one fill a part of a tile."""

    def model(x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.matmul(x, x.transpose(-1, -2)), (x * h.unsqueeze(-1)).sum(1)

    for batch, rows, cols in ((9, 5, 96), (3, 2, 130)):
        given = R(batch, rows, cols), R(batch, rows)
        agrees(plan(model, *given), model, *given, loose=10)


@pytest.mark.parametrize("name", CASES)
def test_products_without_the_cube_unit(name: str) -> None:
    fn, captured, others = CASES[name]
    made = plan_graph(capture_at(fn, captured, others))
    agrees(made, fn, *captured)
    agrees(made, fn, *others)


def test_a_matrix_of_one_column_is_a_vector() -> None:
    one, two = (plan(torch.matmul, R(64, 4096), R(*shape)) for shape in ((4096, 1), (4096,)))
    assert len(show(one.program)) == len(show(two.program))
