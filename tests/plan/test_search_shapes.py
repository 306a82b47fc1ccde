"""Estimates at a task's own shapes: what shrinks, what it stands for, and one real evaluation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from modules import capture, capture_free
from torch import nn

from npusmith.lang.extents import serves
from npusmith.plan import Plan, write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.shrink import Shrunk, output_shapes, shrink
from npusmith.target.chips import find_chip
from npusmith.task.graph import Graph
from npusmith.task.load import open_task
from npusmith.task.outline import outline

CHIP = find_chip("910B2")
SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(4096, 393216)]

def get_init_inputs():
    return []
"""


def graph_of(fn: Callable[[torch.Tensor], torch.Tensor], *shape: int) -> Graph:
    return capture(fn, torch.empty(shape, device="meta"))


def plan_of(graph: Graph) -> Plan:
    return write(graph, "task_custom", CHIP)


def test_a_graph_at_its_own_shapes_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "task.py"
    path.write_text(SOURCE)
    graph = outline(open_task(path))
    assert graph.inputs[0].shape == (4096, 393216)
    assert graph.spec(graph.outputs[0]).shape == (4096, 393216)


def test_what_l2_holds_is_timed_as_it_is() -> None:
    graph = graph_of(torch.relu, 1024, 4096)
    found = shrink(graph, plan_of(graph).spec, CHIP)
    assert (found.inputs, found.share, found.l2_bytes) == (((1024, 4096),), 1.0, 0.0)


def test_rows_are_fewer_and_as_long_as_before() -> None:
    graph = graph_of(lambda x: torch.softmax(x, 1), 65536, 16384)
    found = shrink(graph, plan_of(graph).spec, CHIP)
    rows, cols = found.inputs[0]
    assert cols == 16384 and rows % CHIP.vector_cores == 0
    assert found.share == pytest.approx(65536 / rows)
    assert found.outputs == found.inputs
    # what is read twice has to lie in L2 as it would
    assert found.l2_bytes >= 2 * CHIP.vector_cores * cols * 4


def test_a_reduced_dimension_shrinks_with_l2() -> None:
    graph = graph_of(lambda x: x / torch.norm(x), 65536, 16384)
    found = shrink(graph, plan_of(graph).spec, CHIP)
    assert found.inputs[0][1] == 16384
    assert found.share == 65536 / found.inputs[0][0]
    assert found.l2_bytes == CHIP.l2_bytes / found.share


def test_what_the_operator_refuses_does_not_shrink() -> None:
    """A depthwise convolution holds its channels, and another number is refused by its tiling."""
    with torch.device("meta"):
        graph = capture_free(nn.Conv2d(64, 64, 3, groups=64), torch.empty(16, 64, 300, 300))
    spec = plan_of(graph).spec
    found = shrink(graph, spec, CHIP)
    assert not found.whole
    assert serves(spec, {p.name: s for p, s in zip(spec.inputs, found.inputs, strict=True)})


def test_products_are_timed_at_their_own_shapes() -> None:
    graph = capture(torch.mm, *(torch.empty(9000, 9000, device="meta") for _ in range(2)))
    assert shrink(graph, plan_of(graph).spec, CHIP).whole


def test_axes_of_a_small_output_are_no_rows_of_the_work() -> None:
    def both(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.relu(), w.t().contiguous()

    graph = capture(both, *(torch.empty(n, 4096, device="meta") for n in (60_000, 64)))
    found = shrink(graph, plan_of(graph).spec, CHIP)
    rows = found.inputs[0][0]
    assert found.inputs[1] == (64, 4096)
    assert found.share == pytest.approx(60_000 / rows, rel=0.01)


def test_shapes_of_outputs_follow_those_of_inputs() -> None:
    graph = graph_of(lambda x: x.sum(1, keepdim=True), 128, 64, 4096)
    spec = plan_of(graph).spec
    assert output_shapes(spec, [(3, 5, 7)]) == ((3, 1, 7),)


def test_fewer_rows_tell_the_time_of_all() -> None:
    """The same kernel, over all rows and over an eighth of them."""
    graph = graph_of(torch.tanh, 3072, 8192)
    plan = plan_of(graph)

    def cycles(rows: int, share: float) -> float:
        shapes = Shrunk(((rows, 8192),), ((rows, 8192),), share, float(4 << 20))
        return Evaluator(plan.spec, CHIP, shapes).time(plan.program).cycles

    whole = cycles(3072, 1.0)
    assert cycles(384, 8.0) == pytest.approx(whole, rel=0.05)
    assert cycles(3072, 1.0) == whole
