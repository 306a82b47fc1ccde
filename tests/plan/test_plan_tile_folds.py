"""Reductions along axes of a tile, at the captured sizes and at others, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, capture, plan

from npusmith.ir.text import show
from npusmith.plan import write
from npusmith.target.chips import find_chip

Tensor = torch.Tensor
Shapes = tuple[tuple[int, ...], ...]


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + 1)
    return torch.randn(*shape, generator=generator).to(dtype)


def _outputs(x: Tensor) -> tuple[Tensor, ...]:
    return x.softmax(-1), x.sum((-1, -2)), x.amax(-2)


def _nested(x: Tensor) -> Tensor:
    far = (x - x.amax((1, 2), keepdim=True)).exp().sum(1, keepdim=True)
    return (far / x.abs().sum(2, keepdim=True)).softmax(1)


def _centred(x: Tensor) -> Tensor:
    return (x - x.mean()) / (x.var() + 1e-5).sqrt() + x.mean(-1, keepdim=True)


def _added(x: Tensor, r: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = x + r
    return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6) * w, y


# what is computed, and the shapes of its operands: as captured, then others
CASES: dict[str, tuple[Callable[..., Any], list[Shapes]]] = {
    "uneven rows": (
        lambda x: x.softmax(-1),
        [((700, 17),), ((333, 17),), ((5, 9),), ((40, 400),), ((3, 3000),), ((0, 17),), ((3, 0),)],
    ),
    "rows of whole blocks": (
        lambda x: x.softmax(-1),
        [((700, 16),), ((333, 17),), ((51, 24),), ((40, 400),), ((3, 3000),)],
    ),
    "long uneven rows": (lambda x: x.softmax(-1), [((200, 101),), ((33, 99),), ((7, 8),)]),
    "two axes": (
        lambda x: x.mean((-1, -2)),
        [((40, 30, 7, 7),), ((9, 31, 5, 6),), ((1, 2, 40, 40),)],
    ),
    "a middle axis": (lambda x: x.softmax(1), [((400, 5, 16),), ((9, 31, 5),), ((9, 100, 50),)]),
    "a row of weights": (
        lambda x, w, b: F.layer_norm(x, x.shape[-1:]) * w + b,
        [((400, 50), (50,), (50,)), ((9, 31), (31,), (31,)), ((9, 600), (600,), (600,))],
    ),
    "a mask of windows": (
        lambda x, m: (x + m).softmax(-1),
        [((16, 4, 49, 49), (16, 1, 1, 49)), ((3, 2, 9, 9), (3, 1, 1, 9))],
    ),
    "groups of channels": (
        lambda x: F.group_norm(x, 4), [((16, 64, 7, 7),), ((3, 8, 5, 5),)],
    ),
    "several outputs": (_outputs, [((160, 5, 9),), ((3, 50, 9),)]),
    "outputs of one loop": (
        _added,
        [((600, 17), (600, 17), (17,)), ((5, 24), (5, 24), (24,)), ((5, 3000), (5, 3000), (3000,))],
    ),
    "outputs that are other outputs, or inputs": (
        lambda x: (x.softmax(-1), x.softmax(-1) * 2, x + 1, x), [((600, 17),), ((5, 9),)],
    ),
    "outputs of other orders": (
        lambda x: (x.softmax(-1), x.softmax(1).permute(0, 2, 1), x.sum(1)),
        [((200, 5, 9),), ((5, 9, 3),)],
    ),
    "places and values": (
        lambda x: (x.argmax(-1), x.amax(-1), x.argmin(-1)), [((600, 17),), ((5, 9),)],
    ),
    "rows of slices": (lambda x: x[:, 1:].softmax(-1), [((700, 17),), ((40, 9),)]),
    "rows of rows": (
        lambda x: x.softmax(-1).amax(-2), [((100, 6, 7),), ((9, 20, 30),), ((3, 1, 1),)],
    ),
    "places": (lambda x: x.argmax(-1), [((700, 17),), ((50, 100),)]),
    "variance": (lambda x: x.var(-1), [((700, 33),), ((40, 65),)]),
    "numbers of everything": (_centred, [((700, 33),), ((5, 8),), ((40, 300),)]),
    "a number of padded rows": (
        lambda x: (x.softmax(-1) * x).mean(), [((700, 33),), ((5, 8),), ((50, 700),)],
    ),
    "the largest of everything": (
        lambda x: x.softmax(-1) / x.abs().max(), [((700, 40),), ((5, 8),)],
    ),
    "rows of one axis and of two": (
        lambda x: x.softmax(-1) * x.abs().mean((-1, -2), keepdim=True),
        [((50, 7, 9),), ((5, 3, 8),), ((5, 1, 1),), ((2, 30, 90),)],
    ),
    "two axes, and each of them": (_nested, [((60, 5, 17),), ((6, 8, 16),), ((6, 1, 1),)]),
    "a sum of rows that are longer than a tile": (
        lambda x: (x.permute(2, 0, 1).softmax(0) * x.permute(2, 0, 1)).sum(),
        [((50, 7, 9),), ((5, 3, 8),)],
    ),
    "a number of all of another input": (
        lambda x, c: (x.flip(1) * c.amax(), c.flip(0) * c.softmax(-1).sum()),
        [((70, 9), (3, 5)), ((7, 16), (4, 8)), ((7, 16), (1, 1)), ((7, 16), (40, 80))],
    ),
    "a sum of what loops reduce": (
        lambda x, c: x.flip(1) + c.softmax(-1).sum(0)[0],
        [((70, 9), (3, 5)), ((7, 16), (4, 8)), ((7, 16), (40, 80))],
    ),
    "a largest number and a permuted output": (
        lambda x, c: (x.transpose(0, 1) * x.amax(), c * (0.5 + c.amax())),
        [((70, 7, 8), (1, 1, 8)), ((9, 5, 6), (1, 1, 6))],
    ),
    "a mean of distances": (
        lambda a, p, n: F.triplet_margin_loss(a, p, n),
        [((700, 33),) * 3, ((5, 33),) * 3, ((9, 700),) * 3],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_folded_is_pytorchs(name: str) -> None:
    model, shapes = CASES[name]
    made = plan(model, *(normal(*shape) for shape in shapes[0]))
    for others in shapes:
        agrees(made, model, *(normal(*shape) for shape in others))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("cols", [17, 24, 101])
def test_rows_of_halves(cols: int, dtype: torch.dtype) -> None:
    x = normal(600, cols, dtype=dtype)
    made = plan(lambda x: x.softmax(-1), x)
    agrees(made, lambda x: x.softmax(-1), x)
    agrees(made, lambda x: x.softmax(-1), normal(5, cols + 3, dtype=dtype))


def test_tiles_that_many_buffers_share_have_room_beside_long_rows() -> None:
    def model(x: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
        return (x * i).softmax(-1) * i, i + 1

    for shape in [(300, 101), (30, 99)]:
        given = normal(*shape) / 10, torch.arange(shape[0] * shape[1]).view(shape) % 9
        if shape == (300, 101):
            made = plan(model, *given)
        agrees(made, model, *given)


def test_several_numbers_are_made_in_one_pass() -> None:
    """The losses and their weights: one loop over the rows for both."""
    x, classes = normal(7000, 17), torch.arange(7000) % 17
    # a chip with a small buffer is quicker with several kernels
    made = write(capture(F.cross_entropy, x, classes), "op_custom", find_chip("910B2"))
    quick = show(made.program).partition('"all other shapes"')[0]
    assert quick.count("combine_sum") == 2
    assert quick.count("for piece_from in") == 1
    agrees(made, F.cross_entropy, x, classes)
    agrees(made, F.cross_entropy, normal(50, 9), torch.arange(50) % 9)


def test_a_sum_that_is_stored_and_its_norm_read_their_inputs_once() -> None:
    given = normal(600, 64), normal(600, 64), normal(64)
    made = write(capture(_added, *given), "op_custom", find_chip("910B2"))
    assert show(made.versions[0].program).count("for piece in") == 1


def test_names_of_host_variables_are_no_names_of_tensors() -> None:
    class Model(torch.nn.Module):
        def forward(self, dim0: Tensor, inner_0: Tensor, held_0: Tensor) -> Tensor:
            return (dim0 * inner_0).softmax(-1) + held_0.sum()

    given = normal(700, 17), normal(17), normal(5)
    agrees(plan(Model(), *given), Model(), *given)


def test_rows_that_no_tile_has_room_for_are_not_folded_in_one() -> None:
    """All sizes are numbers: 63 rows for each index of the axis that is cut."""

    def model(x: Tensor) -> Tensor:
        x = F.interpolate(F.avg_pool2d(x, 1, 3, 0), size=(3, 1), mode="area")
        return F.interpolate(F.adaptive_avg_pool2d(x, (1, 2)), size=(7, 9), mode="area")

    x = normal(2, 6, 8, 7).half()
    agrees(plan(model, x), model, x)


def test_a_fold_to_one_number_stands_in_the_tile_even_where_a_loop_reduces_the_rest() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        summed = x.abs().sum(1)[:, :50]
        return summed.max(), summed.amax(1)

    x = normal(2, 2, 100)
    made = plan(model, x)
    agrees(made, model, x)
    agrees(made, model, normal(2, 7, 100))
