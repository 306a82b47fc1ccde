"""Scans: a step's kernels in a loop of launches, on parts of the tensors for all steps."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
import torch
from modules import CHIP, agrees, capture_free, plan_graph
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan

from npusmith.ir.nodes import Loop
from npusmith.plan import Plan, write
from npusmith.plan.estimate import WAIT, estimate
from npusmith.plan.schedule import Schedule
from npusmith.task import rolled_loops

torch.manual_seed(7)
R = torch.randn


def loops(made: Plan) -> list[Loop]:
    groups = groupby(item.loop for item in made.program.host.launches)
    return [loop for loop, _ in groups if loop is not None]


class Flat(nn.Module):
    """All outputs, one by one."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *args: Tensor) -> tuple[Tensor, ...]:
        rows, (h, c) = self.layer(*args)
        return rows, h, c


class Last(nn.Module):
    """What classifiers do with a recurrent layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layer(x)[0][:, -1])


def decayed(x: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """A state of two axes, rows that are views, and a step whose outputs are inputs."""

    def step(state: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        return state * torch.sigmoid(decay) + row[:, None] * row, state.sum(1)

    state, rows = scan(step, x.new_zeros(x.shape[1] // 2, x.shape[1] // 2), x.chunk(2, 1)[0])
    return state, rows


def swapped(x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """States that change places, and rows of two tensors, one of them never read."""

    def step(state: Any, rows: Any) -> Any:
        (one, two), (row, _) = state, rows
        return (two + row, one.clone()), (one * row).sum(-1)

    (one, two), rows = scan(step, (a, b), (x, x + 1))
    return one, two, rows


class Own(nn.Module):
    """A loop of its own, with an output in every step."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.out = nn.Linear(12, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        outs = []
        for row in x:
            h = torch.tanh(self.step(torch.cat((row, h), 1)))
            outs.append(self.out(h))
        return torch.stack(outs)


class Cells(nn.Module):
    """A cell of PyTorch, called step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = x.new_zeros(x.shape[0], 8)
        outs = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            outs.append(h.unsqueeze(1))
        return torch.cat(outs, 1), h


def selective(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """A state space model's scan."""
    h = x.new_zeros(x.shape[0], x.shape[2], a.shape[1])
    outs = []
    for t in range(x.shape[1]):
        h = h * torch.exp(-a.abs()) + x[:, t, :, None] * b[:, t, None, :]
        outs.append((h * c[:, t, None, :]).sum(-1))
    return torch.stack(outs, 1)


def smoothed(x: Tensor) -> Tensor:
    """From the second row on, of which each is read in two steps."""
    outs = [x[:, 0]]
    for t in range(1, x.shape[1]):
        outs.append(outs[-1] * 0.9 + x[:, t] * x[:, t - 1])
    return torch.stack(outs, 1)


def gated(x: Tensor, h: Tensor) -> Tensor:
    """A second state that the last step need not make."""
    outs, g = [], h * 0
    for row in x:
        h = torch.sigmoid(h + g) + row
        g = g * 0.5 + h
        outs.append(h)
    return torch.stack(outs)


def of_two_steps(x: Tensor, h: Tensor) -> Tensor:
    """A step that reads the one before the last."""
    before = h
    for row in x:
        h, before = torch.sigmoid(h) * before + row, h
    return h + before


CASES: dict[str, tuple[nn.Module | Callable[..., Any], list[tuple[int, ...]], int]] = {
    "lstm": (Flat(nn.LSTM(5, 8)), [(12, 3, 5)], 1),
    "gru, both ways": (nn.GRU(5, 8, bidirectional=True), [(12, 3, 5), (2, 3, 8)], 2),
    "relu, two layers": (nn.RNN(5, 8, 2, nonlinearity="relu"), [(12, 3, 5)], 2),
    "the last step alone": (Last(nn.LSTM(5, 8, batch_first=True)), [(3, 12, 5)], 1),
    "a scan with a decay": (decayed, [(12, 10), (5, 5)], 1),
    "a loop of the model's": (Own(), [(9, 3, 4), (3, 8)], 1),
    "cells in a loop": (Cells(), [(3, 9, 4)], 1),
    "a state space": (selective, [(2, 6, 5), (5, 4), (2, 6, 4), (2, 6, 4)], 1),
    "a loop from the second row on": (smoothed, [(3, 9, 5)], 1),
    "a state that is not read at last": (gated, [(9, 3, 5), (3, 5)], 1),
    "what two steps before were": (of_two_steps, [(9, 3, 5), (3, 5)], 1),
    "states that change places": (swapped, [(12, 3, 7), (3, 7), (3, 7)], 1),
}


@pytest.mark.parametrize("name", CASES)
def test_a_scan_is_a_loop_of_launches_and_serves_any_number_of_steps(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rolled_loops, "MOST_UNROLLED", 8)
    model, shapes, count = CASES[name]
    made = plan_graph(capture_free(model, *map(R, shapes)))
    assert len(loops(made)) == count
    agrees(made, model, *map(R, shapes))
    if name in ("a state that is not read at last", "what two steps before were"):
        return  # the last step stands behind the loop, under names that depend on their number
    length = max(shapes[0])
    for steps in (3, 19) if count == 1 else (3,):
        other = [tuple(steps if n == length else n for n in shape) for shape in shapes]
        agrees(made, model, *map(R, other))


def test_a_loop_takes_as_long_as_its_steps() -> None:
    made = plan_graph(capture_free(nn.GRU(5, 8), R(12, 3, 5)))
    shapes = {port.name: port.shape for port in (*made.spec.inputs, *made.spec.outputs)}
    few, many = (
        estimate(made.program, {**shapes, "input": (steps, 3, 5), "y0": (steps, 3, 8)}, CHIP)
        for steps in (10, 110)
    )
    assert many - few > 100 * 2 * WAIT


def test_the_other_kernels_take_a_schedule_and_the_loop_stays() -> None:
    model, args = Last(nn.LSTM(5, 8, batch_first=True)), (R(3, 12, 5),)
    graph = capture_free(model, *args)
    made = plan_graph(graph)
    assert any(part.steps is not None for _, part in made.parts)
    given = tuple(
        Schedule(cores=1) if any(item.name == "cores" for item in part.decisions) else Schedule()
        for _, part in made.parts
    )
    again = write(graph, "op_custom", CHIP, Schedule(kernels=given), own=made)
    assert again.program != made.program
    agrees(again, model, *args)
