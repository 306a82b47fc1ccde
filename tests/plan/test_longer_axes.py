"""A batch of one in get_inputs() is no number of the operator where the model takes any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, agrees, capture_free, plan_graph
from torch import nn

from npusmith.ir.spec import Source
from npusmith.ir.text import show_expr
from npusmith.plan import write
from npusmith.plan.schedule import Schedule

Shape = tuple[int, ...]


def gathered(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.gather(x, 1, (y.abs() * 3).long())


def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.masked_fill(mask < 0, float("-inf")), -1)


def scaled(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * scale + x.mean((2, 3), keepdim=True))


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, width = x.shape
        q, k, v = self.qkv(x).view(batch, rows, 3, 4, 4).permute(2, 0, 3, 1, 4)
        found = (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v
        return self.out(found.transpose(1, 2).reshape(batch, rows, width))


def rotated(q: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    angle = (at * 9)[:, None, :, None] * torch.arange(1, 9) / 8
    a, b = q.chunk(2, -1)
    return q * torch.cat([angle, angle], -1).cos() + torch.cat([-b, a], -1)


ONE = "x.shape[0] == 1"
SERVED: dict[str, tuple[nn.Module | Callable[..., Any], list[Shape]]] = {
    "softmax": (lambda x: torch.softmax(x, -1), [(1, 100)]),
    "layer norm": (nn.LayerNorm(24), [(1, 12, 24)]),
    "group norm": (nn.GroupNorm(4, 8), [(1, 8, 5, 5)]),
    "batch norm": (nn.BatchNorm2d(8), [(1, 8, 5, 5)]),
    "pooling": (lambda x: F.max_pool2d(x, 2).mean((2, 3)), [(1, 8, 6, 6)]),
    "a mask of one head": (masked, [(1, 4, 8, 8), (1, 1, 8, 8)]),
    "a scale of each channel": (scaled, [(1, 6, 5, 5), (1, 6, 1, 1)]),
    "places": (gathered, [(1, 30), (1, 30)]),
    "a mean over the batch": (lambda x: x.mean(0), [(1, 40)]),
    "a convolution": (nn.Conv2d(3, 4, 3, padding=1), [(1, 3, 6, 7)]),
    "attention": (F.scaled_dot_product_attention, [(1, 4, 12, 8)] * 3),
    "heads of attention": (Heads(), [(1, 7, 16)]),
    "a loss": (F.mse_loss, [(1, 40), (1, 40)]),
    "positions of another rank": (rotated, [(1, 5, 19, 16), (1, 19)]),
}


@pytest.mark.parametrize("name", SERVED)
def test_a_batch_of_one_is_served_at_any_size(name: str) -> None:
    model, shapes = SERVED[name]
    torch.manual_seed(3)
    made = plan_graph(capture_free(model, *map(torch.randn, shapes)))
    users = [port for port in made.spec.inputs if port.source is Source.USER]
    assert [port.shape for port in users] == shapes  # what is tuned is tuned for the task's own
    assert not any("shape[0] == 1" in show_expr(item) for item in made.spec.legal or ())
    for batch in (1, 3):
        agrees(made, model, *(torch.randn(batch, *shape[1:]) for shape in shapes))


@pytest.mark.parametrize(
    ("model", "shapes", "legal"),
    [
        (torch.add, [(1, 64), (8, 64)], "== 1"),  # it is repeated
        (lambda x: x.squeeze() * 2, [(1, 64)], "== 1"),  # the output has another rank then
        (lambda x: x * (3 if x.shape[0] == 1 else 2), [(1, 64)], ""),  # both as the model has it
    ],
)
def test_a_size_of_1_that_means_something_stays(
    model: Callable[..., Any], shapes: list[Shape], legal: str
) -> None:
    made = plan_graph(capture_free(model, *map(torch.randn, shapes)))
    found = [show_expr(item) for item in made.spec.legal or () if "shape[0]" in show_expr(item)]
    assert [legal in item for item in found] == ([True] if legal else [])
    agrees(made, model, *map(torch.randn, shapes))
    if not legal:
        agrees(made, model, torch.randn(4, 64))


def test_a_schedule_of_several_kernels_is_one_for_any_batch() -> None:
    model = nn.Conv2d(3, 4, 3, padding=1)
    graph = capture_free(model, torch.randn(1, 3, 6, 7))
    made = plan_graph(graph)
    _, *rest = made.schedule.kernels
    again = write(graph, "op_custom", CHIP, Schedule(kernels=(Schedule(cores=1), *rest)))
    assert made.longer and again.longer and again.spec == made.spec
    assert again.program != made.program
    for batch in (1, 3):
        agrees(again, model, torch.randn(batch, 3, 6, 7))


def test_several_kernels_that_compute_something_else_for_a_batch_of_one_are_for_it_alone() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x.squeeze().softmax(0).view(x.shape) @ y).softmax(-1)

    made = plan_graph(capture_free(model, torch.randn(1, 32), torch.randn(32, 16)))
    args = torch.randn(1, 32), torch.randn(32, 16)
    agrees(made, model, *args)
    if not any(show_expr(item) == "args_0.shape[0] == 1" for item in made.spec.legal or ()):
        agrees(made, model, torch.randn(5, 32), args[1])
