"""Poolings are PyTorch's, at other sizes as well: windows, padding, strides, dilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan
from torch import nn

from npusmith.errors import PlanError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

torch.manual_seed(1)
R = torch.randn
Case = tuple[nn.Module, list[torch.Tensor]]


class Folded(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs().sum((1, 3))


# One window, rows of several tiles, more rows than cores, rows off 32 bytes.
LINES = [R(2, 3, 40), R(1, 1, 8), R(2, 3, 2503), R(49, 3, 9)]
PLANES = [R(1, 2, 12, 13), R(3, 1, 11, 11), R(1, 2, 50, 701)]
BLOCKS = [R(1, 2, 8, 9, 10), R(2, 1, 5, 6, 301)]

CASES: dict[str, Case] = {
    "mean of lines": (nn.AvgPool1d(8, 1, 4), [*LINES, R(2, 1, 1)]),
    "mean of lines, stride": (nn.AvgPool1d(3, 2), LINES),
    "mean of lines in the tensor": (nn.AvgPool1d(5, 2, 2, count_include_pad=False), LINES),
    "mean without a batch": (nn.AvgPool1d(8, 1, 4), [R(3, 50), R(7, 9)]),
    "mean 11 x 11": (nn.AvgPool2d(11), [*PLANES, R(1, 1, 44, 11)]),
    "mean 11 x 11, stride 1": (nn.AvgPool2d(11, 1), PLANES),
    "mean in the tensor": (nn.AvgPool2d((2, 3), (1, 2), 1, count_include_pad=False), PLANES),
    "mean, other divisor": (nn.AvgPool2d((2, 3), (1, 2), (1, 0), divisor_override=5), PLANES),
    "mean of blocks": (nn.AvgPool3d(3, 2, 1), BLOCKS),
    "mean of blocks in the tensor": (nn.AvgPool3d(3, 1, 1, count_include_pad=False), BLOCKS),
    "mean of columns": (nn.AvgPool2d((3, 1), 1), PLANES),
    "every other element": (nn.AvgPool2d(1, 2), PLANES),
    "every third of what was folded": (
        nn.Sequential(Folded(), nn.AvgPool2d(1, 3)),
        [R(2, 1, 1, 2, 777), R(2, 3, 7, 2, 40)],
    ),
    "windows of planes in blocks": (nn.AvgPool3d((1, 3, 3), 1), BLOCKS),
    "windows of depth and width": (nn.AvgPool3d((3, 1, 2), (2, 1, 1), (1, 0, 1)), BLOCKS),
    "largest of lines": (nn.MaxPool1d(8, 1, 4), LINES),
    "largest, dilation": (nn.MaxPool1d(3, 2, 1, 2), LINES),
    "a window of padding alone": (nn.MaxPool1d(2, 1, 1, 5), [R(2, 3, 4), R(2, 3, 40)]),
    "largest of planes": (nn.MaxPool2d(4, 1, 1), [*PLANES, R(1, 1, 2, 2)]),
    "largest of many planes": (nn.MaxPool2d(4, 1, 2), [R(4, 2, 1), R(66, 2, 1), R(100, 5, 3)]),
    "largest, dilations": (nn.MaxPool2d((3, 2), (2, 1), (1, 1), (2, 5)), PLANES),
    "largest of blocks": (nn.MaxPool3d(3, 2, 1), BLOCKS),
    "largest of blocks, dilation": (nn.MaxPool3d(3, 2, 1, 2), [R(1, 1, 18, 9, 10), BLOCKS[1]]),
    "largest of odd blocks": (nn.MaxPool3d((2, 3, 4), (1, 2, 3), (1, 0, 2)), BLOCKS),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pooling_gives_pytorchs_values_at_every_size_from_one_program(name: str) -> None:
    model, inputs = CASES[name]
    made = plan(model, inputs[0])
    for x in inputs:
        agrees(made, model, x)
        agrees(made, model, _special(x))


AROUND = ("largest of planes", "mean in the tensor", "largest, dilations", "mean of blocks")


@pytest.mark.parametrize("name", AROUND)
def test_a_pooling_between_operations_serves_other_sizes_and_special_values(name: str) -> None:
    model, inputs = CASES[name]

    def around(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(model(x * 2.0)) + 1.0

    made = plan(around, inputs[0])
    for x in inputs[:2]:
        agrees(made, around, x)
        agrees(made, around, _special(x))


def _special(x: torch.Tensor) -> torch.Tensor:
    """With infinities and NaN here and there."""
    flat = x.clone().reshape(-1)
    for first, value in ((0, torch.inf), (2, -torch.inf), (5, torch.nan)):
        flat[first::37] = value
    return flat.reshape(x.shape)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "model", [nn.AvgPool2d(3, 2, 1), nn.MaxPool2d(4, 1, 1), nn.AvgPool1d(8, 1, 4)], ids=str
)
def test_poolings_of_16_bit_types_are_computed_in_float32(
    model: nn.Module, dtype: torch.dtype
) -> None:
    for x in LINES if isinstance(model, nn.AvgPool1d) else PLANES:
        agrees(plan(model, x.to(dtype)), model, x.to(dtype))


def test_a_pooling_of_no_planes_stores_nothing() -> None:
    model = nn.MaxPool2d(2)
    agrees(plan(model, R(2, 3, 6, 6)), model, R(0, 3, 6, 6))


COMPOSED: dict[str, tuple[Callable[..., Any], torch.Tensor]] = {
    "indices": (lambda x: F.max_pool2d(x, 3, 2, return_indices=True), R(2, 3, 8, 9)),
    "padded indices": (lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1], R(2, 3, 8, 9)),
    "between two operations": (lambda x: F.relu(F.max_pool2d(x.exp(), 2)) + 1, R(2, 3, 8, 9)),
    "padding before": (lambda x: F.max_pool2d(x * 2, 3, stride=2, padding=1), R(2, 3, 8, 9)),
    "ceil_mode": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), R(2, 3, 8, 9)),
    "mean and ceil_mode": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), R(2, 3, 8, 9)),
    "mean without padding": (
        lambda x: F.avg_pool2d(x * 2, 3, padding=1, count_include_pad=False),
        R(2, 3, 8, 9),
    ),
    "mean with a divisor": (lambda x: F.avg_pool2d(x * 2, 3, divisor_override=5), R(2, 3, 8, 9)),
    "mean of lines": (lambda x: F.avg_pool1d(x * 2, 3) + 1, R(3, 8, 9)),
    "adaptive": (lambda x: F.adaptive_avg_pool2d(x + 1, 3), R(2, 3, 8, 9)),
    "adaptive to one": (lambda x: F.adaptive_avg_pool2d(x + 1, 1), R(2, 3, 8, 9)),
    "blocks": (lambda x: F.max_pool3d(x + 1, 2), R(1, 2, 4, 4, 6)),
    "powers": (lambda x: F.lp_pool2d(x.abs() + 1, 2, 2), R(2, 3, 8, 9)),
    "sum of the pooled": (lambda x: F.max_pool2d(x, 2).sum((2, 3)), R(2, 3, 8, 9)),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_a_pooling_composes_with_what_is_around_it(name: str) -> None:
    fn, x = COMPOSED[name]
    made = plan(fn, x)
    agrees(made, fn, x)


@pytest.mark.parametrize(
    ("size", "stride", "padding", "dilation"),
    [(3, 2, 1, 1), (2, 2, 0, 1), (2, 3, 1, 1), (2, 5, 0, 1), (3, 4, 1, 2), (4, 3, 2, 1)],
)
def test_ceil_mode_has_as_many_windows_as_in_pytorch_at_every_size(
    size: int, stride: int, padding: int, dilation: int
) -> None:
    def largest(x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, size, stride, padding, dilation, ceil_mode=True)

    def mean(x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x, size, stride, padding, ceil_mode=True)

    for fn in (largest, mean) if dilation == 1 else (largest,):
        made = plan(fn, R(2, 3, 8, 9))
        for more in range(5):
            agrees(made, fn, R(1, 3, 6 + more, 13 - more))


REFUSED: dict[str, tuple[Callable[..., Any], torch.Tensor, str]] = {
    "int32": (lambda x: F.max_pool2d(x, 2), torch.ones(1, 2, 6, 6, dtype=torch.int32), "dtype"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_pooling_that_cannot_be_written_is_refused_by_its_code(name: str) -> None:
    fn, x, code = REFUSED[name]
    with pytest.raises(PlanError) as caught:
        plan(fn, x)
    assert caught.value.code == f"plan-{code}"
    assert caught.value.legal and caught.value.hint


def test_a_window_of_any_size_is_written_where_it_stands_alone() -> None:
    x = R(1, 1, 40, 40)
    agrees(plan(lambda x: F.avg_pool2d(x, 33, 1), x), lambda x: F.avg_pool2d(x, 33, 1), x)


PLACED: dict[str, tuple[Callable[..., Any], list[torch.Tensor]]] = {
    "lines": (lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True), LINES[:2] + LINES[3:]),
    "planes": (
        lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True), PLANES[:2],
    ),
    "dilation": (lambda x: F.max_pool2d(x, 3, 1, 1, 2, return_indices=True), PLANES[:2]),
    "blocks": (lambda x: F.max_pool3d(x, 3, 2, 1, return_indices=True), [BLOCKS[0]]),
    "adaptive": (lambda x: F.adaptive_max_pool2d(x, (5, 4), return_indices=True), [PLANES[0]]),
    "adaptive, even": (lambda x: F.adaptive_max_pool2d(x, (4, 13), True), [PLANES[0]]),
    "adaptive blocks": (lambda x: F.adaptive_max_pool3d(x, (3, 2, 4), True), [BLOCKS[0]]),
    "only places": (lambda x: F.max_pool2d(x, 3, 2, return_indices=True)[1], PLANES[:2]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACED)
def test_a_window_of_several_nans_has_the_place_of_the_last(name: str) -> None:
    model, inputs = PLACED[name]
    made = plan(model, inputs[0])
    for x in inputs:
        for rate in (0.1, 0.5, 1.0):
            chance = torch.rand(x.shape, generator=torch.Generator().manual_seed(3))
            agrees(made, model, torch.where(chance < rate, torch.nan, x.round()))
        agrees(made, model, torch.full_like(x, -torch.inf))
