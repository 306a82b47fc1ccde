"""Loops in time: unrolled where they are short, scans where they are long."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.utils._pytree import tree_flatten

from npusmith.task.compare import difference, program_difference
from npusmith.task.export import export_graph
from npusmith.task.graph import SCAN, Graph
from npusmith.task.recurrent_layers import UNROLLED, as_loops, steps_in_time
from npusmith.task.shapes import Class
from npusmith.task.symbolic_sizes import find_symbolic
from npusmith.task.user import Inputs


def captured(model: nn.Module, *args: Any, as_in: Graph | None = None) -> Graph:
    leaves, tree = tree_flatten(args)
    return export_graph(model.eval(), Inputs(tuple(leaves), tree), "task.py", as_in).graph


def scans(graph: Graph) -> list[Graph]:
    """What they do in a step."""
    return [node.body for node in graph.nodes if node.op == SCAN and node.body is not None]


KINDS = ((nn.LSTM, 2), (nn.GRU, 1), (nn.RNN, 1), (partial(nn.RNN, nonlinearity="relu"), 1))


@pytest.mark.parametrize(("make", "states"), KINDS)
def test_long_loops_become_scans_and_short_ones_are_unrolled(make: Any, states: int) -> None:
    model = make(3, 4)
    long = captured(model, torch.rand(UNROLLED + 1, 2, 3))
    (step,) = scans(long)
    assert steps_in_time(long) == UNROLLED + 1
    assert len(step.outputs) == states + 1
    assert [item.shape for item in step.inputs[:states]] == [(2, 4)] * states
    assert any("aten." + kind in node.op for node in long.eager for kind in ("lstm", "gru", "rnn"))
    short = captured(model, torch.rand(2, 2, 3))
    assert not scans(short) and steps_in_time(short) == 0


@pytest.mark.parametrize(("make", "states"), [*KINDS, (partial(nn.LSTM, proj_size=2), 2)])
@pytest.mark.parametrize("how", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True},
                                 {"batch_first": True, "num_layers": 2}])  # fmt: skip
def test_a_scan_gives_what_the_layer_gives(make: Any, states: int, how: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model, x = make(3, 4, **how).eval(), torch.rand(11, 12, 3)
    leaves, tree = tree_flatten((x,))
    found = export_graph(model, Inputs(tuple(leaves), tree), "task.py")
    with torch.no_grad():
        wanted = tree_flatten(model(x))[0]
        given = tree_flatten(as_loops(found.program.module())(x))[0]
    for one, two in zip(given, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


def test_a_scan_of_torch_is_one_and_what_a_step_takes_from_sizes_is_known() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
            def step(state: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                state = torch.tanh(state.view(-1).view(state.shape) + row)
                return state, state.clone()

            return scan(step, h, x)[1]

    own = captured(Model(), torch.rand(5, 3, 4), torch.rand(3, 4))
    (step,) = scans(own)
    assert [item.shape for item in step.inputs] == [(3, 4), (3, 4)]
    other = captured(Model(), torch.rand(7, 11, 4), torch.rand(11, 4))
    assert not difference(own, other) or "12" in difference(own, other)
    (told,) = scans(find_symbolic(
        own, [(5, 3, 4), (3, 4)],
        [Class(3, frozenset({(0, 1), (1, 0)}))], [[(7, 11, 4), (11, 4)]], lambda _: other,
    ))  # fmt: skip
    assert told.symbolic


def test_layers_and_directions_count() -> None:
    model = nn.LSTM(3, 4, num_layers=3, bidirectional=True, batch_first=True)
    assert steps_in_time(captured(model, torch.rand(2, 20, 3))) == 20 * 3 * 2


def test_other_sizes_are_captured_as_the_own_ones() -> None:
    """A graph that is another one at fewer steps would serve the captured number alone."""
    model = nn.GRU(3, 4)
    own = captured(model, torch.rand(100, 2, 3))
    other = captured(model, torch.rand(5, 2, 3), as_in=own)
    assert not program_difference(own, other) and steps_in_time(other) == 5
    short = captured(model, torch.rand(5, 2, 3))
    assert steps_in_time(captured(model, torch.rand(100, 2, 3), as_in=short)) == 0


def test_the_model_is_as_before() -> None:
    model, x = nn.LSTM(3, 4).eval(), torch.rand(80, 2, 3)
    with torch.no_grad():
        before = model(x)[0]
        captured(model, x)
        assert torch.equal(model(x)[0], before)
