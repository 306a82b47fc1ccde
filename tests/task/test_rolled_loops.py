"""Loops that a model runs itself: equal steps are a scan, and others stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

from npusmith.task import rolled_loops
from npusmith.task.compare import program_difference
from npusmith.task.export import export_graph
from npusmith.task.graph import SCAN, Graph
from npusmith.task.intermediates import with_intermediates
from npusmith.task.rolled_loops import FEWEST
from npusmith.task.user import Inputs

R = torch.randn


@pytest.fixture(autouse=True)
def _short_loops_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolled_loops, "MOST_UNROLLED", 8)


class Call(torch.nn.Module):
    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *args: Tensor) -> Any:
        return self.fn(*args)


def captured(fn: Callable[..., Any], *args: Tensor, as_in: Graph | None = None) -> Graph:
    leaves, tree = tree_flatten(args)
    return export_graph(Call(fn).eval(), Inputs(tuple(leaves), tree), "task.py", as_in).graph


def scans(graph: Graph) -> list[Graph]:
    return [node.body for node in graph.nodes if node.op == SCAN and node.body is not None]


def sums(x: Tensor, h: Tensor) -> Tensor:
    outs = []
    for row in x:
        h = torch.sigmoid(h) + row
        outs.append(h)
    return torch.stack(outs)


def test_equal_steps_are_a_scan_of_one() -> None:
    graph = captured(sums, R(9, 3), R(3))
    (body,) = scans(graph)
    assert [node.op for node in body.nodes] == ["aten.sigmoid.default", "aten.add.Tensor"]
    assert [item.shape for item in body.inputs] == [(3,), (3,)]
    assert len(graph.nodes) == 2  # with the rows that it gives
    longer = captured(sums, R(31, 3), R(3))
    assert [node.op for node in longer.nodes] == [node.op for node in graph.nodes]
    assert not scans(captured(sums, R(FEWEST - 1, 3), R(3)))


def test_short_loops_stay_and_the_own_sizes_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel holds them, with the states on chip: 9 steps of 2 operations, say."""
    long = captured(sums, R(40, 3), R(3))
    monkeypatch.undo()
    short = captured(sums, R(9, 3), R(3))
    assert not scans(short)
    assert scans(captured(sums, R(200, 3), R(3)))
    assert not scans(captured(sums, R(200, 3), R(3), as_in=short))
    assert scans(captured(sums, R(9, 3), R(3), as_in=long))
    product = captured(with_products, R(3, 9, 4), R(3, 5), R(5, 4), R(5), R(5, 5))
    assert scans(product)
    few = captured(with_products, R(3, 8, 4), R(3, 5), R(5, 4), R(5), R(5, 5))
    assert not scans(few)


def test_two_loops_behind_each_other_are_two_scans() -> None:
    graph = captured(lambda x, h: sums(sums(x, h), h), R(9, 3), R(3))
    assert len(scans(graph)) == 2


def with_their_axis(x: Tensor, h: Tensor) -> Tensor:
    outs = []
    for t in range(len(x)):
        h = torch.sigmoid(h) + x[t : t + 1]
        outs.append(h)
    return torch.stack(outs)


def test_rows_may_keep_their_axis() -> None:
    (body,) = scans(captured(with_their_axis, R(9, 3), R(1, 3)))
    assert [node.op.split(".")[1] for node in body.nodes] == ["sigmoid", "unsqueeze", "add"]


def with_products(x: Tensor, h: Tensor, w: Tensor, b: Tensor, v: Tensor) -> Tensor:
    for t in range(x.shape[1]):
        h = torch.tanh(torch.nn.functional.linear(x[:, t], w, b) + h @ v)
    return h


def test_products_of_rows_are_one_for_all_steps() -> None:
    graph = captured(with_products, R(3, 9, 4), R(3, 5), R(5, 4), R(5), R(5, 5))
    (body,) = scans(graph)
    assert [node.op for node in body.nodes].count("aten.mm.default") == 1
    products = [node for node in graph.nodes if node.op == "aten.mm.default"]
    assert [node.shape for node in products] == [(27, 5)]
    (scan,) = (node for node in graph.nodes if node.op == SCAN)
    assert [len(part) for part in scan.args if isinstance(part, tuple)] == [1, 1, 1]
    assert [item.shape for item in body.inputs] == [(3, 5), (3, 5), (5, 5)]


def smoothed(x: Tensor) -> Tensor:
    outs = [x[:, 0]]
    for t in range(1, x.shape[1]):
        outs.append(outs[-1] * 0.9 + x[:, t] * x[:, t - 1])
    return torch.stack(outs, 1)


def test_a_loop_may_begin_behind_the_first_row() -> None:
    graph = captured(smoothed, R(3, 9, 4))
    (body,) = scans(graph)
    assert [item.shape for item in body.inputs] == [(3, 4)] * 3  # a state and two rows
    assert graph.spec(graph.outputs[0]).shape == (3, 9, 4)
    other = captured(smoothed, R(3, 30, 4))
    assert [node.op for node in other.nodes] == [node.op for node in graph.nodes]


def with_parts_of_a_step(x: Tensor, h: Tensor) -> Tensor:
    for row in x:
        h = torch.softmax(h, 0)
        h = torch.cat([h[1:], h[:1]]) + row
    return h


def test_parts_that_a_step_takes_of_its_own_values_are_no_rows() -> None:
    assert len(scans(captured(with_parts_of_a_step, R(9, 3), R(3)))) == 1


def of_complex_numbers(x: Tensor, h: Tensor) -> Tensor:
    z = torch.complex(x, x)
    for t in range(len(x)):
        h = torch.sigmoid(h) + (z[t] * z[0]).real
    return h


def test_rows_of_a_type_that_the_chip_lacks_stay() -> None:
    assert not scans(captured(of_complex_numbers, R(9, 3), R(3)))


def with_a_state_that_nobody_reads_at_last(x: Tensor, h: Tensor) -> Tensor:
    outs, g = [], h * 0
    for row in x:
        h = torch.sigmoid(h + g) + row
        g = g * 0.5 + h
        outs.append(h)
    return torch.stack(outs)


def test_the_last_step_may_be_shorter() -> None:
    graph = captured(with_a_state_that_nobody_reads_at_last, R(9, 3), R(3))
    (body,) = scans(graph)
    assert len(body.outputs) == 3
    assert graph.spec(graph.outputs[0]).shape == (9, 3)
    other = captured(with_a_state_that_nobody_reads_at_last, R(30, 3), R(3))
    assert [node.op for node in other.nodes] == [node.op for node in graph.nodes]


def backwards(x: Tensor, h: Tensor) -> Tensor:
    for t in reversed(range(len(x))):
        h = torch.sigmoid(h) + x[t]
    return h


def with_the_step_before_last(x: Tensor, h: Tensor) -> Tensor:
    before = h
    for row in x:
        h, before = torch.sigmoid(h) * before + row, h
    return h + before


def all_but_one(x: Tensor, h: Tensor) -> Tensor:
    for row in x[1:]:
        h = torch.sigmoid(h) + row
    return h + x[0]


def growing(x: Tensor, h: Tensor) -> Tensor:
    for t, row in enumerate(x):
        h = torch.sigmoid(h) * t + row
    return h


def one_is_another(x: Tensor, h: Tensor) -> Tensor:
    for t, row in enumerate(x):
        h = (torch.tanh if t == 5 else torch.sigmoid)(h) + row
    return h


def a_middle_one_is_asked_for(x: Tensor, h: Tensor) -> Tensor:
    outs = []
    for row in x:
        h = torch.sigmoid(h) + row
        outs.append(h)
    return outs[4] * h


def rows_twice(x: Tensor, h: Tensor) -> Tensor:
    for t in range(len(x)):
        h = torch.sigmoid(h) + x[t] * x[0]
    return h


@pytest.mark.parametrize(
    ("fn", "count"),
    [
        (backwards, 0), (with_the_step_before_last, 1), (all_but_one, 1), (growing, 0),
        (one_is_another, 0), (a_middle_one_is_asked_for, 0), (rows_twice, 1),
    ],
)  # fmt: skip
def test_what_is_no_equal_step_stays(fn: Callable[..., Any], count: int) -> None:
    graph = captured(fn, R(9, 3), R(3))
    assert len(scans(graph)) == count
    known = {item.name for item in graph.inputs}
    for node in graph.nodes:  # whatever it is, it can be read from the first to the last
        refs = [arg for arg in node.args if hasattr(arg, "ref")]
        assert {item.ref for item in refs} <= known
        known.add(node.name)
    assert set(graph.outputs) <= known


def selective(x: Tensor, w: Tensor, c: Tensor) -> Tensor:
    """A step that adds up, and the operations of a step again behind the loop."""
    h, outs = x.new_zeros(x.shape[0], x.shape[2]), []
    for t in range(x.shape[1]):
        h = h * torch.exp(x[:, t]) + w
        outs.append((h * c[:, t]).sum(-1))
    y = torch.stack(outs, 1)
    return y * torch.exp(y) + x.mean(-1)


def test_steps_that_add_up_are_a_scan_where_they_are_more_than_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """21 of them in one program took seven minutes to be written, as ten kernels."""
    monkeypatch.undo()

    def given(steps: int) -> tuple[Tensor, ...]:
        return R(2, steps, 5), R(5), R(2, steps, 5)

    assert scans(captured(selective, *given(9)))
    assert not scans(captured(selective, *given(8)))


def test_what_stands_behind_a_loop_is_the_same_for_any_number_of_steps() -> None:
    def given(steps: int) -> tuple[Tensor, ...]:
        return R(2, steps, 5), R(5), R(2, steps, 5)

    own = captured(selective, *given(9))
    assert any(node.name == "mul_behind_1" for node in own.nodes)
    for steps in (2, 3, 40):
        other = captured(selective, *given(steps), as_in=own)
        assert program_difference(own, other) == ""
    leaves, tree = tree_flatten(given(9))
    made = export_graph(Call(selective).eval(), Inputs(tuple(leaves), tree), "task.py")
    found = with_intermediates(made, ["exp_behind_1"], "task.py").program.module()(*leaves)
    y = selective(*leaves)
    torch.testing.assert_close(found[0], y)
    assert found[1].shape == y.shape  # a value of the program, by the name that it has there
