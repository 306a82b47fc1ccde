"""Running extremes, their places, and running sums of exponentials, along any axis."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from modules import agrees, plan

torch.manual_seed(1)
R = torch.randn

SCANS: dict[str, Any] = {
    "cummax": lambda x, d: x.cummax(d),
    "cummin": lambda x, d: (x * 2).cummin(d),
    "logcumsumexp": lambda x, d: torch.logcumsumexp(x, d) + 1,
}


def special(*shape: int) -> torch.Tensor:
    x = R(*shape)
    flat = x.flatten()
    flat[::7], flat[3::11], flat[5::13] = torch.inf, -torch.inf, torch.nan
    return x


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", SCANS)
def test_a_scan_of_extremes_gives_pytorchs_values(name: str, dim: int) -> None:
    def fn(x: torch.Tensor) -> Any:
        return SCANS[name](x, dim)

    made = plan(fn, R(4, 5))
    equal = torch.randint(0, 3, (9, 70)).float()
    for x in (R(4, 5), R(700, 3), R(3, 2500), special(9, 70), equal):
        agrees(made, fn, x)


@pytest.mark.parametrize("name", SCANS)
def test_a_long_line_is_scanned_across_its_tiles(name: str) -> None:
    def fn(x: torch.Tensor) -> Any:
        return SCANS[name](x, 0)

    x = R(20_000)
    agrees(plan(fn, x), fn, x)


def test_a_scan_of_extremes_stands_between_moves() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x[1:].T.cummax(0)[0] * 2

    agrees(plan(fn, R(30, 5)), fn, R(30, 5))


def test_a_flipped_sum_that_lies_in_memory_is_read_row_by_row_at_other_sizes() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.cummin(2)[0].flip(0).cumsum(0).flip(0).cummax(0)[0]

    made = plan(fn, R(3, 11, 13))
    for x in (R(3, 11, 13), R(256, 2, 23)):
        agrees(made, fn, x)


def test_what_is_expanded_is_copied_before_a_scan_runs_along_it() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.expand(3, 5).cumsum(0)

    agrees(plan(fn, R(1, 5)), fn, R(1, 5))
