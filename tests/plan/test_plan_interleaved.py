"""Many small matrices: tiles in which an element is a row of lanes, one for each matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import modules
import pytest
import torch
from modules import agrees, plan
from torch import Tensor

from npusmith.plan import Plan
from npusmith.target.chips import find_chip

CHIP = replace(find_chip("910B2"), vector_cores=3, cube_cores=1)  # tiles are long


@pytest.fixture(autouse=True)
def chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "CHIP", CHIP)


def _interleaved(made: Plan) -> bool:
    scalars = [item for kernel in made.program.kernels for item in kernel.scalars]
    return any(scalar.name.startswith("pitch_0") for scalar in scalars)


def _masked(x: Tensor, y: Tensor) -> Tensor:
    a, b = x.view(-1, 3, 4), y.view(-1, 3, 4)
    top = a.amax(-1, keepdim=True)
    return torch.where(a < b.mean(1, keepdim=True), a - top, b * 2)


def _shared(x: Tensor, row: Tensor) -> Tensor:
    a = x.view(-1, 3, 4)
    return (a * row.view(3, 4)).sum(1) - row.view(3, 4).exp().sum(0)


def _several(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a = x.view(-1, 3, 3)
    norm = a / (a.square().sum((1, 2), keepdim=True) + 1)
    return norm, norm.sum(-1), a.amin((1, 2))


def _rows(x: Tensor, scale: Tensor) -> Tensor:
    a = x.view(-1, 2, 3)
    return (a - a.mean(-1, keepdim=True)) * scale.view(-1, 1, 1)


def _products(x: Tensor, y: Tensor) -> Tensor:
    return torch.bmm(x.view(-1, 3, 4), y.view(-1, 4, 3)).softmax(-1)


FEW = [(_masked, (12, 12)), (_several, (9,)), (_products, (12, 12))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("fn", "cols"), FEW, ids=lambda item: getattr(item, "__name__", ""))
def test_small_matrices_give_pytorchs_values_at_other_numbers_of_them(
    fn: Callable[..., Tensor], cols: tuple[int, ...], dtype: torch.dtype
) -> None:
    torch.manual_seed(8)
    made = plan(fn, *(torch.randn(300, size).to(dtype) for size in cols))
    assert _interleaved(made)
    for count in (300, 1, 64, 65, 1300):
        agrees(made, fn, *(torch.randn(count, size).to(dtype) for size in cols), loose=4)


def test_infinities_and_nan_stay_in_their_matrix() -> None:
    x = torch.randn(130, 12)
    x[3, 4], x[70, 0], x[129, 11] = torch.inf, torch.nan, -torch.inf
    made = plan(_masked, x, x.flip(0))
    agrees(made, _masked, x, x.flip(0))


def test_numbers_of_each_matrix_and_of_all_of_them_are_operands() -> None:
    torch.manual_seed(9)
    x, row = torch.randn(150, 12), torch.randn(12)
    agrees(plan(_shared, x, row), _shared, x, row)
    x, scale = torch.randn(200, 6), torch.randn(200)
    made = plan(_rows, x, scale)
    assert _interleaved(made)
    agrees(made, _rows, x, scale)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (5,)], ids=str)
def test_one_number_is_spread_before_a_tile_is_known(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    def fn(x: Tensor) -> Tensor:
        return x.expand(3, *shape).amax(0)

    x = torch.randn(shape).to(dtype)
    agrees(plan(fn, x), fn, x)
