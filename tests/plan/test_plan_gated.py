"""Gated units: two outputs from one input, each of a part of its rows."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, capture_at, own_program, plan, plan_graph

from npusmith.ir.text import show

Tensor = torch.Tensor


def gated(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x.chunk(2, -1)
    g = b.exp()
    return a * g, g


def geglu(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x.chunk(2, -1)
    g = F.gelu(b)
    return a * g, g


def swiglu(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("cols", [1, 5, 64, 257, 512, 1100])
@pytest.mark.parametrize("fn", [gated, geglu, swiglu])
def test_a_gated_unit_is_right_at_odd_numbers_of_rows_and_columns(
    fn: object, cols: int, dtype: torch.dtype
) -> None:
    made = plan(fn, normal(9, 2 * cols).to(dtype))
    for rows in (9, 1, 30, 0):
        agrees(made, fn, normal(rows, 2 * cols).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_one_program_serves_halves_of_all_lengths(dtype: torch.dtype) -> None:
    cases = [(normal(rows, cols).to(dtype),) for rows, cols in ((6, 512), (4, 1024), (9, 384))]
    made = plan_graph(capture_at(gated, *cases))
    for rows, cols in ((6, 512), (4, 1024), (13, 66), (5, 202), (3, 3000), (11, 2), (0, 512)):
        agrees(made, gated, normal(rows, cols).to(dtype))


def test_outputs_that_read_the_same_share_a_loop_where_a_tile_has_room() -> None:
    made = show(plan(gated, normal(9, 512)).program)
    assert "pieces1" not in made and made.count("exp(") == made.count("for piece in")


def test_outputs_have_loops_of_their_own_where_a_tile_has_not() -> None:
    def fn(x: Tensor, *others: Tensor) -> list[Tensor]:
        return [x[:, 1:] * other[:, 1:] for other in others]

    args = [normal(9, 41) for _ in range(8)]
    made = plan(fn, *args)
    assert "pieces6" in show(made.program)
    agrees(made, fn, *args)


def test_outputs_that_read_different_tensors_have_loops_of_their_own() -> None:
    def fn(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x[:, 1:].exp(), y[:, 1:].exp()

    args = normal(9, 40), normal(9, 40)
    made = plan(fn, *args)
    assert "pieces1" in show(made.program)
    agrees(made, fn, *args)


SLICES = {
    "numbers": (
        lambda x: x[:, 8:72] * x[:, 72:136],
        [(9, 200), (1, 136), (0, 150), (7, 137)],
    ),
    "to the end": (lambda x: x[:, 64:] + 1, [(9, 192), (5, 193), (3, 65), (4, 64), (20, 72)]),
    "two axes": (
        lambda x: x[:, 1:, 64:] * 2,
        [(7, 4, 128), (9, 2, 129), (1, 5, 200), (3, 1, 128)],
    ),
    "rows apart": (lambda x: x[::2] + x[1::2], [(20, 64), (4, 65), (2, 8), (30, 1)]),
    "a broadcast": (lambda x: x[:, 64:] * x[:1, 64:], [(9, 192), (5, 193)]),
    "windows that overlap": (lambda x: x.unfold(1, 64, 16) * 2, [(4, 128), (3, 90)]),
}


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32], ids=str
)
@pytest.mark.parametrize("name", SLICES)
def test_slices_of_rows_are_right_whether_rows_are_whole_blocks_or_not(
    name: str, dtype: torch.dtype
) -> None:
    fn, shapes = SLICES[name]
    made = plan(fn, (normal(*shapes[0]) * 8).to(dtype))
    for shape in shapes:
        agrees(made, fn, (normal(*shape) * 8).to(dtype))


def test_rows_of_whole_blocks_are_copied_by_themselves_and_not_gathered() -> None:
    made = show(plan(lambda x: x[:, 64:192] * 2, normal(9, 256)).program)
    assert "128, rows=m, pitch=dim1)" in made and "gather(" not in made


def test_rows_of_a_few_elements_are_gathered_from_what_lies_between() -> None:
    assert "rows=" not in show(own_program(plan(lambda x: x[:, :8] * 2, normal(900, 16))))
