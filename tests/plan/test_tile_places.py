"""Places in a tile: what sizes tell is worked out once, and tiles are of nearly one length."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan

from npusmith.ir.nodes import For, Op
from npusmith.ir.walk import statements


@pytest.mark.parametrize(("mode", "most"), [("constant", 0), ("reflect", 2)])
def test_places_that_are_those_of_every_tile_are_worked_out_once(mode: str, most: int) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (1, 1, 1, 1), mode=mode)

    x = torch.randn(3, 4, 21, 24)
    made = plan(fn, x)
    agrees(made, fn, x)
    loops = [stmt for stmt in statements(made.program.kernel.body) if isinstance(stmt, For)]
    names = [[op.name for op in statements(loop.body) if isinstance(op, Op)] for loop in loops]
    gathering = next(found for found in names if "gather" in found)
    assert sum(name in ("max", "maxs", "min", "mins") for name in gathering) <= most


@pytest.mark.parametrize("rows", [5, 9, 41])
def test_rows_of_the_last_tile_are_as_many_as_there_are(rows: int) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (1, 1, 1, 1))

    x = torch.randn(2, rows, 60)
    agrees(plan(fn, x), fn, x)


@pytest.mark.parametrize("width", [24, 21])
def test_the_middle_tap_is_copied_by_rows_where_these_are_whole_blocks(width: int) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x.exp(), 3, 1, 1)

    x = torch.randn(2, 3, 12, width)
    made = plan(fn, x)
    agrees(made, fn, x)
    agrees(made, fn, torch.randn(2, 3, 9, width + 8))
