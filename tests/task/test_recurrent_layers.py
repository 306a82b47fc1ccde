"""Loops in time: unrolled where they are short, one node where they are long."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten

from npusmith.task.export import export_graph
from npusmith.task.graph import Graph
from npusmith.task.recurrent_layers import UNROLLED, steps_in_time
from npusmith.task.user import Inputs


def captured(model: nn.Module, *args: Any, as_in: Graph | None = None) -> Graph:
    leaves, tree = tree_flatten(args)
    return export_graph(model.eval(), Inputs(tuple(leaves), tree), "task.py", as_in).graph


def operations(graph: Graph) -> set[str]:
    return {node.op.split(".")[1] for node in graph.nodes}


def test_long_loops_stay_whole_and_short_ones_do_not() -> None:
    for model, kind in ((nn.LSTM(3, 4), "lstm"), (nn.GRU(3, 4), "gru"), (nn.RNN(3, 4), "rnn_tanh")):
        long = captured(model, torch.rand(UNROLLED + 1, 2, 3))
        assert kind in operations(long)
        assert steps_in_time(long) == UNROLLED + 1
        short = captured(model, torch.rand(2, 2, 3))
        assert kind not in operations(short)
        assert steps_in_time(short) == 0


def test_layers_and_directions_count() -> None:
    model = nn.LSTM(3, 4, num_layers=3, bidirectional=True, batch_first=True)
    assert steps_in_time(captured(model, torch.rand(2, 20, 3))) == 20 * 3 * 2


def test_other_sizes_are_captured_as_the_own_ones() -> None:
    """A graph that is another one at fewer steps would serve the captured number alone."""
    model = nn.GRU(3, 4)
    own = captured(model, torch.rand(100, 2, 3))
    assert operations(captured(model, torch.rand(5, 2, 3), as_in=own)) == operations(own)
    short = captured(model, torch.rand(5, 2, 3))
    assert steps_in_time(captured(model, torch.rand(100, 2, 3), as_in=short)) == 0


def test_the_model_is_as_before() -> None:
    model, x = nn.LSTM(3, 4).eval(), torch.rand(80, 2, 3)
    with torch.no_grad():
        before = model(x)[0]
        captured(model, x)
        assert torch.equal(model(x)[0], before)
