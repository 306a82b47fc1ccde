"""Long rows that all cores do together: chosen by the captured sizes, right for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import CHIP, agrees, capture
from torch.nn import functional as F

from npusmith.ir.nodes import Combine, For, SyncCores
from npusmith.ir.walk import statements
from npusmith.lang import check
from npusmith.plan import Plan, write

LONG = 1 << 22


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def draw(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=generator()) * 3 - 1


def plan_for(model: Callable[..., Any], *shapes: tuple[int, ...], everywhere: bool = False) -> Plan:
    """The plan for tensors of these shapes, which take no memory.

    `everywhere`: with the captured schedule for all sizes, not with versions for other ones.
    """
    graph = capture(model, *(torch.empty(shape, device="meta") for shape in shapes))
    made = write(graph, "op_custom", CHIP, everywhere=everywhere)
    check(made.program, CHIP)
    return made


def in_loops(made: Plan) -> int:
    loops = [stmt for stmt in statements(made.program.kernel.body) if isinstance(stmt, For)]
    waits = (Combine, SyncCores)
    return sum(isinstance(item, waits) for loop in loops for item in statements(loop.body))


def deviation(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt()


@pytest.mark.parametrize(("rows", "cols"), [(1, 5), (3, 4099), (6, 700), (9, 1)])
def test_few_long_rows_are_done_by_all_cores_and_right_for_every_size(rows: int, cols: int) -> None:
    for everywhere in (True, False):
        made = plan_for(deviation, (6, LONG), everywhere=everywhere)
        assert in_loops(made) == 1  # mean and variance together
        agrees(made, deviation, draw(rows, cols))


def test_short_rows_are_dealt_to_cores() -> None:
    assert in_loops(plan_for(deviation, (6, 4096))) == 0


def test_many_rows_that_stay_in_l2_are_dealt_to_cores() -> None:
    assert in_loops(plan_for(deviation, (8, LONG))) == 0


def test_a_number_of_each_row_is_stored_once() -> None:
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x.abs().sum(1)
        return x / total[:, None], total

    made = plan_for(both, (5, LONG))
    assert in_loops(made) == 1
    agrees(made, both, draw(5, 3001))


def test_statistics_of_channels_are_taken_over_batch_and_plane() -> None:
    def measured(x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, None, None, training=True)

    made = plan_for(measured, (16, 6, 1024, 1024))
    assert in_loops(made) == 1  # mean and variance together
    agrees(made, measured, draw(3, 6, 9, 11))


def test_weights_run_along_the_row() -> None:
    def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * w / (x * x).mean(1, keepdim=True)

    made = plan_for(scaled, (6, LONG), (LONG,))
    assert in_loops(made) == 1
    agrees(made, scaled, draw(6, 2500), draw(2500))


def test_a_long_sum_by_weights_of_rows_with_an_own_reduction_is_dealt_to_cores() -> None:
    """The product of the two lengths is that of a long row, but no row has it."""

    def mixed(scores: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        known = (scores != -torch.inf).any(-1, keepdim=True)
        return torch.where(known, scores, 0.0) @ v

    made = plan_for(mixed, (1, 1, 2048), (1, 2048, 4096))
    agrees(made, mixed, draw(1, 1, 70), draw(1, 70, 33))
