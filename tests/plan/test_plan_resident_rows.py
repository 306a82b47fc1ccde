"""Long rows that stay on chip: other compositions than those of mHC, right at every size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import modules
import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan
from torch import Tensor

from npusmith.ir.nodes import Op
from npusmith.ir.walk import statements
from npusmith.plan import Plan
from npusmith.target.chips import find_chip

CHIP = replace(find_chip("910B2"), vector_cores=3, cube_cores=1)
WIDTHS = (96, 1, 200, 3601)


@pytest.fixture(autouse=True)
def chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "CHIP", CHIP)


def _operations(made: Plan) -> list[str]:
    bodies = [kernel.body for kernel in made.program.kernels]
    return [stmt.name for body in bodies for stmt in statements(body) if isinstance(stmt, Op)]


def _resident(made: Plan) -> bool:
    return any("stay on chip" in note for note in made.notes)


def _activated(x: Tensor, g: Tensor, h: Tensor) -> Tensor:
    return (torch.relu(x).unsqueeze(1) * h.unsqueeze(-1)).sum(2)


def _gated(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    gate = torch.sigmoid(h).unsqueeze(-1)
    return (x.unsqueeze(1) * gate).sum(2) + 0.5 * g, (g.unsqueeze(1) - x.unsqueeze(2)).abs().amax(1)


def _pairs(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    mixed = torch.matmul(h, g)
    return torch.matmul(x, g.transpose(-1, -2)), mixed, (x * g).sum(-1)


def _powers(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    return torch.matmul(x.exp(), g.transpose(-1, -2)), torch.matmul(h, g)


def _numbers(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    weighted = x.unsqueeze(1) * h.unsqueeze(-1)
    return weighted.sum(-1), weighted.sum(2) - g


def _drawn(width: int, dtype: torch.dtype, count: int = 7) -> list[Tensor]:
    shapes = ((count, 3, width), (count, 3, width), (count, 3, 3))
    return [torch.randn(shape).to(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "fn", [_activated, _gated, _pairs, _powers, _numbers], ids=lambda fn: fn.__name__
)
def test_rows_and_numbers_are_pytorchs_at_every_width(
    fn: Callable[..., object], dtype: torch.dtype
) -> None:
    torch.manual_seed(11)

    def wide(*args: Tensor) -> object:
        return fn(*(arg.float() for arg in args))

    made = plan(wide, *_drawn(96, dtype))
    for width in WIDTHS:
        agrees(made, wide, *_drawn(width, dtype, 5), loose=8)


def test_rows_that_are_zero_beyond_their_end_alone_are_added_up_on_chip() -> None:
    assert "sum_blocks" in _operations(_planned(_pairs))
    assert not _resident(_planned(_powers))


def test_numbers_multiply_and_add_rows_in_one_instruction() -> None:
    made = _planned(_activated)
    assert _resident(made) and _operations(made).count("axpy") == 6


def _planned(fn: Callable[..., object]) -> Plan:
    return plan(fn, *_drawn(96, torch.float32))


def test_special_values_of_numbers_and_rows_stay_where_they_are() -> None:
    torch.manual_seed(12)
    x, g, h = _drawn(300, torch.float32)
    x[1, 2, 299], g[2, 0, 0], h[4, 1, 1] = torch.inf, torch.nan, -torch.inf
    agrees(_planned(_pairs), _pairs, x, g, h, loose=4)


def test_a_strip_has_room_for_its_step_or_rows_are_no_residents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thirteen rows to a strip: on a small chip a tile holds fewer than 128 elements of each."""
    monkeypatch.setattr(modules, "CHIP", replace(CHIP, ub_total_bytes=40 * 1024))

    def model(x: Tensor) -> Tensor:
        scores = F.softmin(x, -3)
        centred = scores - scores.mean(2, keepdim=True)
        return centred / (centred.abs().sum(-2, keepdim=True) + 0.5)

    x = torch.randn(6, 13, 31)
    agrees(plan(model, x), model, x)
