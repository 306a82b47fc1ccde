"""Tiles of two axes: outputs that run along another axis than what they read."""

import pytest
import torch
from modules import CHIP, agrees, own_program, plan

from npusmith.ir.text import show

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(7)).to(dtype)


def _blocks(made: object) -> bool:
    return "a tile is a block of two axes" in show(made.program)  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_long_axes_are_transposed_in_blocks_of_any_size(dtype: torch.dtype) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.t() + 1

    made = plan(model, _random(256, 192, dtype=dtype))
    assert _blocks(made)
    sizes = ((256, 192), (64, 64), (131, 67), (63, 65), (200, 3), (3, 200), (1, 1), (65, 17))
    for rows, cols in sizes:
        agrees(made, model, _random(rows, cols, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_copy_in_another_order_is_exact(dtype: torch.dtype) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2).contiguous()

    made = plan(model, _random(2, 128, 80, dtype=dtype))
    assert _blocks(made)
    for shape in ((2, 128, 80), (3, 77, 69), (1, 16, 130), (2, 5, 9), (0, 70, 70), (2, 70, 0)):
        agrees(made, model, _random(*shape, dtype=dtype))


def test_axes_that_stand_together_are_one() -> None:
    """Of images whose channels go to the end rows and columns are one long axis."""

    def model(x: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 2, 3, 1).contiguous()

    made = plan(model, _random(2, 64, 9, 11))
    assert _blocks(made)
    for shape in ((2, 64, 9, 11), (1, 70, 7, 3), (2, 129, 12, 12), (3, 3, 5, 5)):
        agrees(made, model, _random(*shape))


def test_channels_go_to_the_front() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x.permute(0, 3, 1, 2))

    made = plan(model, _random(2, 9, 11, 64))
    assert _blocks(made)
    for shape in ((2, 9, 11, 64), (1, 7, 3, 70), (2, 12, 12, 129)):
        agrees(made, model, _random(*shape))


@pytest.mark.parametrize("dtype", FLOATS[:2])
def test_other_inputs_come_in_either_order(dtype: torch.dtype) -> None:
    def model(x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor, cols: torch.Tensor) -> object:
        return torch.maximum(torch.minimum((x * 2).t(), y), rows[:, None]) * cols

    def case(a: int, b: int) -> tuple[torch.Tensor, ...]:
        shapes = ((a, b), (b, a), (b,), (a,))
        return tuple(_random(*shape, dtype=dtype) for shape in shapes)

    made = plan(model, *case(130, 96))
    assert _blocks(made)
    for a, b in ((130, 96), (64, 70), (128, 33), (67, 131), (5, 90), (90, 5)):
        agrees(made, model, *case(a, b))


def test_an_axis_between_the_two_stays_outside() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.permute(2, 1, 0) * 2

    made = plan(model, _random(70, 3, 66))
    assert _blocks(made)
    for shape in ((70, 3, 66), (64, 1, 64), (65, 5, 9)):
        agrees(made, model, _random(*shape))


def test_types_and_outputs_of_several_kinds() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.t().float() + y, torch.where(y > 0, y, x.t().float()).half()

    made = plan(model, _random(80, 90, dtype=torch.float16), _random(90, 80))
    assert _blocks(made)
    for a, b in ((80, 90), (64, 64), (67, 71)):
        agrees(made, model, _random(a, b, dtype=torch.float16), _random(b, a))


def test_slices_are_transposed_too() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x[::2, 3:].t().contiguous()

    made = plan(model, _random(150, 90))
    assert _blocks(made)
    for shape in ((150, 90), (131, 70), (3, 5)):
        agrees(made, model, _random(*shape))


def test_short_axes_and_axes_that_stay_innermost_are_no_blocks() -> None:
    heads = plan(lambda x: x.transpose(1, 2).contiguous(), _random(2, 4, 16, 64))
    few = plan(lambda x: x.permute(0, 2, 3, 1).contiguous(), _random(2, 3, 16, 16))
    for made in (heads, few):
        assert "a tile is a block of two axes" not in show(own_program(made))
    assert CHIP.vector_cores == 4
