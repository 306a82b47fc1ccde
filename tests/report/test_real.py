"""The pictures of a real tile program: what lowering and the host function make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.lang import parse
from npusmith.report.html import pictures
from npusmith.target.chips import CHIPS

KERNELS = Path(__file__).parents[1] / "kernels"
TEXT = (KERNELS / "softmax_three_pass.tile.py").read_text(encoding="utf-8")
CHIP = CHIPS["910B2"]


@pytest.mark.parametrize("rows", [1, 47, 48, 1024])
def test_cores_of_the_picture_share_all_rows(rows: int) -> None:
    shape = (rows, 1000)
    shown = pictures(parse(TEXT), CHIP, {"x": shape, "y": shape})
    (launch,) = shown.launches
    assert launch.split.unit == "row"
    assert sum(launch.split.shares) == rows
    assert launch.split.cores == min(rows, CHIP.vector_cores)


def test_memory_of_the_picture_is_that_of_the_lowered_program() -> None:
    shown = pictures(parse(TEXT), CHIP, None)
    assert shown.launches == ()
    (memory,) = shown.memories
    rows = {row.name: row for row in memory.rows}
    assert (rows["xt"].copies, rows["xt"].role) == (2, "loaded")
    assert (rows["yt"].copies, rows["yt"].role) == (2, "stored")
    assert memory.used <= CHIP.ub_bytes
