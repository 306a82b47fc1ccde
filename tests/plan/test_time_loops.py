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


CASES: dict[str, tuple[nn.Module | Callable[..., Any], list[tuple[int, ...]], int]] = {
    "lstm": (Flat(nn.LSTM(5, 8)), [(12, 3, 5)], 1),
    "gru, both ways": (nn.GRU(5, 8, bidirectional=True), [(12, 3, 5), (2, 3, 8)], 2),
    "relu, two layers": (nn.RNN(5, 8, 2, nonlinearity="relu"), [(12, 3, 5)], 2),
    "the last step alone": (Last(nn.LSTM(5, 8, batch_first=True)), [(3, 12, 5)], 1),
    "a scan with a decay": (decayed, [(12, 10), (5, 5)], 1),
    "states that change places": (swapped, [(12, 3, 7), (3, 7), (3, 7)], 1),
}


@pytest.mark.parametrize("name", CASES)
def test_a_scan_is_a_loop_of_launches_and_serves_any_number_of_steps(name: str) -> None:
    model, shapes, count = CASES[name]
    made = plan_graph(capture_free(model, *map(R, shapes)))
    assert len(loops(made)) == count
    agrees(made, model, *map(R, shapes))
    at = 1 if name.startswith("the last") else 0
    for steps in (1, 29) if count == 1 else (1,):
        changed = [tuple(steps if i == at else n for i, n in enumerate(shapes[0])), *shapes[1:]]
        agrees(made, model, *map(R, changed))


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
