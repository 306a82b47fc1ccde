"""Loops split where positions are compared, and loops over rows that copy several at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, capture, capture_at, own_program, plan, plan_graph
from torch import Tensor

from npusmith.ir.text import show

Model = Callable[..., Any]


def _drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.rand(shape, generator=torch.Generator().manual_seed(len(shape))) * 9 - 4).to(
        dtype
    )


def _joined(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x, y * 2], 2)


def _rolled(x: Tensor) -> Tensor:
    return x.roll((-3, 2), (1, 2))


def _padded(x: Tensor) -> Tensor:
    return F.pad(x, (1, 1, 2, 1)) * 2


def _of_channels(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return F.relu(torch.cat([x, y, z], 1) + 1)


def _shifted_in_time(x: Tensor) -> Tensor:
    before = F.pad(x, (0, 0, 0, 0, 0, 0, 0, 1))[1:, :8]
    return torch.cat([before, x[:, 8:]], 1)


SPLIT: dict[str, tuple[Model, list[list[tuple[int, ...]]]]] = {
    "join of rows": (_joined, [
        [(2, 3, 50, 24), (2, 3, 12, 24)], [(1, 5, 1, 16), (1, 5, 33, 16)],
        [(3, 1, 7, 40), (3, 1, 0, 40)], [(2, 2, 0, 8), (2, 2, 3, 8)],
    ]),
    "roll of two axes": (_rolled, [
        [(2, 20, 14, 16)], [(1, 9, 12, 8)], [(3, 3, 2, 24)], [(2, 4, 40, 5)],
    ]),
    "pad of planes": (_padded, [
        [(3, 20, 36)], [(2, 5, 64)], [(1, 1, 40)], [(5, 33, 100)],
    ]),
    "three groups of channels": (_of_channels, [
        [(2, 24, 6, 6), (2, 8, 6, 6), (2, 16, 6, 6)],
        [(1, 3, 8, 8), (1, 1, 8, 8), (1, 2, 8, 8)],
    ]),
    "some channels in time": (_shifted_in_time, [
        [(6, 24, 8, 8)], [(2, 10, 12, 4)], [(9, 64, 4, 4)],
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPLIT)
def test_split_loops_agree_at_all_sizes(name: str) -> None:
    model, cases = SPLIT[name]
    drawn = [tuple(_drawn(*shape) for shape in case) for case in cases]
    made = plan_graph(capture_at(model, drawn[0], *drawn[1:3]))
    for args in drawn:
        agrees(made, model, *args)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.int64])
def test_split_loops_of_other_types(dtype: torch.dtype) -> None:
    def model(x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x, y], 1)

    args = _drawn(2, 40, 48, dtype=dtype), _drawn(2, 9, 48, dtype=dtype)
    agrees(plan(model, *args), model, *args)


def test_places_that_values_say_may_be_negative_in_a_part() -> None:
    def model(x: Tensor, y: Tensor, at: Tensor) -> Tensor:
        return torch.cat([x[at], y * 2], 0)

    args = _drawn(40, 96), _drawn(30, 96), torch.tensor([-1, 3, -40, 0, 39, -7])
    agrees(plan(model, *args), model, *args)


def test_each_loop_reads_its_piece_alone() -> None:
    args = _drawn(2, 3, 500, 64), _drawn(2, 3, 12, 64)
    text = show(own_program(plan(_joined, *args)))
    assert "select" not in text
    assert text.count("store(y[") == 4  # each of two parts, with tiles of rows or of parts of one


def test_a_roll_serves_other_sizes() -> None:
    made = plan_graph(capture_at(lambda x: x.roll(3, 0), (_drawn(20, 40),), (_drawn(9, 40),)))
    for rows in (3, 9, 64):
        agrees(made, lambda x: x.roll(3, 0), _drawn(rows, 40))


@pytest.mark.parametrize("shift", [1, -1, 7, 20, -45, 0])
def test_rolls(shift: int) -> None:
    x = _drawn(20, 33)
    for dims in (0, 1, None):

        def model(x: Tensor, dims: int | None = dims) -> Tensor:
            return x - x.roll(shift, dims)

        agrees(plan(model, x), model, x)


# ------------------------------------------------------------------------------- packed rows

FOLDED: dict[str, tuple[Model, list[tuple[int, ...]]]] = {
    "sum": (lambda x: x.sum(1), [(5, 300, 40)]),
    "largest": (lambda x: x.amax(1), [(5, 300, 37)]),
    "mean and largest": (lambda x: torch.cat([x.mean(1), x.amax(1)], -1), [(3, 129, 24)]),
    "weighted": (lambda x, w: (x * w.unsqueeze(-1)).sum(1), [(3, 200, 33), (3, 200)]),
    "attention pooling": (
        lambda x, s: (x * s.softmax(1).unsqueeze(-1)).sum(1), [(3, 200, 64), (3, 200)],
    ),
    "masked mean": (
        lambda x, m: (x * (m > 0)).sum(1) / (m > 0).sum(1), [(3, 200, 64), (3, 200, 1)],
    ),
    "columns": (lambda x: x.std(0), [(999, 100)]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", FOLDED)
def test_rows_that_are_copied_together(name: str, dtype: torch.dtype) -> None:
    model, shapes = FOLDED[name]
    # whole numbers: PyTorch rounds products of float16 that a kernel does not
    args = tuple(_drawn(*shape).round().to(dtype) for shape in shapes)
    made = plan(model, *args)
    agrees(made, model, *args, loose=4)
    wider = [tuple(n + 3 if n > 3 else n for n in shape) for shape in shapes]
    other = tuple(_drawn(*shape).round().to(dtype) for shape in wider)
    agrees(made, model, *other, loose=4)


def test_a_reduction_of_columns_copies_many_rows_at_once() -> None:
    text = show(plan(lambda x: x.sum(1), _drawn(64, 512, 256)).program)
    assert "rows=packed_rows" in text


def test_a_sum_in_front_of_one_element_has_lanes() -> None:
    made = plan(lambda m: (m > 0).sum(1), _drawn(64, 512, 1))
    assert any("is 1 in every shape" in note for note in made.notes)
    agrees(made, lambda m: (m > 0).sum(1), _drawn(64, 512, 1))


def test_what_lies_outside_of_an_image_is_not_split_along_its_rows() -> None:
    """Above, left, inside, right, below: not nine parts."""

    def image(x: Tensor) -> Tensor:
        return F.pad(x, (0, 0, 1, 1, 1, 1))

    x = torch.randn(2, 14, 14, 64)
    made = plan(image, x)
    agrees(made, image, x)
    loops = {int(n) for n in re.findall(r"\bpieces(\d+)\b", show(made.program))}
    assert loops == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("shape", [(2, 4, 4, 8), (3, 5, 3, 7)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_several_padded_rows_in_a_row_of_a_part_go_where_they_belong(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """Heads of 7 or 8 elements are padded on chip; between two rows of the batch lie the others."""

    def first(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(q)
        scores = torch.einsum("bqhd,bkhd->bhqk", q[:, :1], k[:, :1]) * 0.3
        out[:, :1] = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v[:, :1])
        return out

    given = [_drawn(*shape, dtype=dtype) for _ in range(3)]
    agrees(plan_graph(capture(first, *given)), first, *given)
