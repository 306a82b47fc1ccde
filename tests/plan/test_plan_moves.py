"""Gathers, scatters, resizes and samples are PyTorch's, at other sizes as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan
from torch import nn

from npusmith.errors import PlanError

Case = tuple[Callable[..., Any], list[tuple[torch.Tensor, ...]]]


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=drawn(sum(shape)))


def places(most: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, most, shape, generator=drawn(most + sum(shape)))


def stored(x: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return x.index_put((index,), values)


def nearest(factor: float) -> Callable[..., Any]:
    return lambda x: F.interpolate(x, scale_factor=factor, mode="nearest")


def resized(
    mode: str, size: tuple[int, ...], align: bool = False, **more: Any
) -> Callable[..., Any]:
    return lambda x: F.interpolate(x, size=size, mode=mode, align_corners=align, **more)


def doubled(mode: str, align: bool) -> Callable[..., Any]:
    return lambda x: F.interpolate(x, scale_factor=2.0, mode=mode, align_corners=align)


def warped(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    return F.grid_sample(x, grid, align_corners=False)


def turned(x: torch.Tensor, theta: torch.Tensor) -> torch.Tensor:
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)


def grid(n: int, high: int, wide: int) -> torch.Tensor:
    return 2.4 * torch.rand(n, high, wide, 2, generator=drawn(high + wide)) - 1.2


THETA = torch.tensor([[[0.866, -0.5, 0.1], [0.5, 0.866, -0.2]]])

CASES: dict[str, Case] = {
    "embedding": (
        F.embedding,
        [(places(9, 3, 4), rows(9, 5)), (places(700, 2, 65), rows(700, 33))],
    ),
    "rows of a middle axis": (
        lambda x, i: x.index_select(1, i),
        [(rows(2, 5, 6), places(5, 3)), (rows(3, 50, 17), places(50, 99))],
    ),
    "columns": (
        lambda x, i: x.index_select(1, i),
        [(rows(3, 9), places(9, 4)), (rows(50, 1000), places(1000, 1100))],
    ),
    "gather": (
        lambda x, i: x.gather(1, i),
        [(rows(3, 9), places(9, 3, 4)), (rows(5, 700), places(700, 5, 1100))],
    ),
    "take_along_dim": (
        lambda x, i: torch.take_along_dim(x, i, dim=-1),
        [(rows(2, 3, 9), places(9, 2, 3, 4)), (rows(2, 2, 70), places(70, 2, 2, 11))],
    ),
    "index_add": (
        lambda x, i, v: x.index_add(0, i, v),
        [(rows(5, 3), places(5, 9), rows(9, 3)), (rows(40, 301), places(40, 70), rows(70, 301))],
    ),
    "index_put": (  # every place once: which of two values PyTorch keeps depends on its threads
        stored,
        [
            (rows(5, 3), torch.tensor([3, -5, 4]), rows(3, 3)),
            (rows(40, 270), torch.arange(39, 0, -2), rows(20, 270)),
        ],
    ),
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
    "nearest of lines": (nearest(4.0), [(rows(2, 3, 7),), (rows(1, 1, 300),)]),
    "nearest of planes": (nearest(3.0), [(rows(2, 1, 4, 5),), (rows(1, 2, 3, 70),)]),
    "linear": (doubled("linear", False), [(rows(2, 3, 7),), (rows(1, 1, 300),)]),
    "bilinear": (doubled("bilinear", False), [(rows(2, 1, 4, 5),), (rows(1, 3, 1, 270),)]),
    "bilinear, smaller": (
        resized("bilinear", (3, 5)),
        [(rows(1, 2, 12, 13),), (rows(2, 1, 9, 40),)],
    ),
    "bilinear, corners": (
        resized("bilinear", (7, 9), True),
        [(rows(1, 2, 4, 5),), (rows(1, 1, 3, 9),)],
    ),
    "trilinear": (doubled("trilinear", True), [(rows(1, 2, 3, 4, 5),), (rows(2, 1, 2, 2, 33),)]),
    "bicubic": (resized("bicubic", (7, 9)), [(rows(1, 2, 4, 5),), (rows(1, 1, 6, 40),)]),
    "bicubic, corners": (resized("bicubic", (12, 12), True), [(rows(1, 2, 4, 5),)]),
    "grid": (warped, [(rows(2, 3, 5, 6), grid(2, 4, 7)), (rows(1, 2, 70, 130), grid(1, 33, 40))]),
    "affine": (turned, [(rows(1, 2, 5, 6), THETA), (rows(1, 1, 40, 33), THETA)]),
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


@pytest.mark.parametrize("name", CASES)
def test_a_move_gives_pytorchs_values_at_every_size_from_one_program(name: str) -> None:
    model, cases = CASES[name]
    made = plan(model, *cases[0])
    assert plan(model, *cases[-1]).program == made.program
    for given in cases:
        agrees(made, model, *given, loose=20)


def test_an_antialiased_resize_takes_in_what_lies_under_its_triangle() -> None:
    model = resized("bilinear", (4, 6), antialias=True)
    for x in (rows(1, 2, 8, 12), rows(1, 1, 8, 12)):
        agrees(plan(model, x), model, x, loose=20)
    up = resized("bilinear", (9, 14), antialias=True)
    agrees(plan(up, rows(1, 2, 4, 5)), up, rows(1, 2, 4, 5), loose=20)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_moves_of_16_bit_types(dtype: torch.dtype) -> None:
    x = rows(1, 2, 6, 9).to(dtype)
    for model in (nearest(2.0), doubled("bilinear", False)):
        agrees(plan(model, x), model, x)
    line, index = rows(3, 40).to(dtype), places(40, 3, 50)
    agrees(plan(pick, line, index), pick, line, index)


def pick(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return x.gather(1, index)


def test_the_first_of_equal_elements_and_the_first_nan_are_found() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0, 2.0], [0.0, torch.nan, 9.0, torch.nan]])
    for model in (lambda x: x.argmax(1), lambda x: x.argmin(1)):
        agrees(plan(model, x), model, x)


REFUSED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], str]] = {
    "reflected borders": (
        lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=False),
        (rows(1, 1, 4, 4), grid(1, 3, 3)), "plan-unsupported-op",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_move_that_cannot_be_written_is_refused_by_its_code(name: str) -> None:
    model, given, code = REFUSED[name]
    with pytest.raises(PlanError) as caught:
        plan(model, *given)
    assert caught.value.code == code


def test_an_embedding_of_a_model_is_bound_to_its_weight() -> None:
    made = plan(nn.Embedding(9, 5), places(9, 3))
    assert [port.source.value for port in made.spec.inputs] == ["parameter", "user"]
