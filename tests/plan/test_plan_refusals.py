"""What cannot be written is refused, by a code, with the node and its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, agrees, capture, capture_at, plan, plan_graph

from npusmith.errors import CODES, PlanError
from npusmith.ir.text import show_expr
from npusmith.plan import write
from npusmith.task.graph import Graph

torch.manual_seed(1)
R = torch.randn
I64 = torch.arange(20).reshape(4, 5)

REFUSED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], str]] = {
    "next number": (lambda x: torch.nextafter(x, -x), (R(4, 5),), "plan-unsupported-op"),
    "a number out of a tensor": (lambda x: x * x.max().item(), (R(4, 5),), "plan-unsupported-op"),
    "dropout": (lambda x: F.dropout(x, 0.5, True), (R(4, 5),), "plan-unsupported-op"),
    "product of matrices of integers": (lambda x: x @ x.T, (I64.int(),), "plan-cube"),
    "most frequent": (lambda x: x.mode(1)[0], (R(4, 5),), "plan-data-movement"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused_by_its_code(name: str) -> None:
    fn, args, code = REFUSED[name]
    with pytest.raises(PlanError) as caught:
        plan(fn, *args)
    assert caught.value.code == code
    assert caught.value.legal and caught.value.hint


def test_an_input_of_which_the_sizes_alone_count_decides_what_is_served() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x.mT.masked_fill(y, 1.0), 2.0)

    made = plan(fn, R(3, 5, 4), I64[:, :1] > 9)
    assert "args_1.shape[0] == args_0.shape[2]" in map(show_expr, made.spec.legal or ())
    agrees(made, fn, R(2, 6, 7), torch.ones(7, 1, dtype=torch.bool))


def test_what_takes_complex_numbers_is_not_named_beside_what_makes_them() -> None:
    """abs of a float has a rule; a transform of Fourier has none, and abs would take its result."""
    with pytest.raises(PlanError) as caught:
        plan(lambda x: torch.fft.rfft(x).abs().sum(-1), R(4, 16))
    assert "_fft_r2c" in caught.value.message and "complex" in caught.value.message
    assert "abs" not in caught.value.message


def test_an_input_that_only_decides_which_outputs_there_are_is_read_for_its_size() -> None:
    def first(x: torch.Tensor) -> torch.Tensor:
        return torch.arange(x.shape[0])[:2]

    made = plan_graph(capture_at(first, (R(4, 5),), (R(7, 6),)))
    assert len(made.program.kernels) == 2
    agrees(made, first, R(9, 5))

    def beside(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return first(x), x + 1

    made = plan_graph(capture_at(beside, (R(4, 5),), (R(7, 6),)))
    assert len(made.program.kernels) == 1
    agrees(made, beside, R(9, 5))


def test_a_refusal_names_the_node_its_shapes_and_its_line() -> None:
    graph = capture(lambda x: torch.nextafter(x * 2, x), R(4, 5))
    nodes = [node.model_copy(update={"source": "task.py:12 forward"}) for node in graph.nodes]
    with pytest.raises(PlanError) as caught:
        write(graph.model_copy(update={"nodes": tuple(nodes)}), "op_custom", CHIP)
    text = str(caught.value)
    assert "aten.nextafter.default (nextafter)" in text
    assert "mul: float32[4, 5]" in text
    assert (caught.value.place.file, caught.value.place.line) == ("task.py", 12)


def test_a_refusal_names_every_operation_that_cannot_be_written() -> None:
    with pytest.raises(PlanError) as caught:
        plan(lambda x: torch.nextafter(x.mode(1)[0].exp(), x[:, 0]), R(4, 5))
    assert "aten.mode.default" in str(caught.value) and "aten.nextafter" in str(caught.value)
    assert "aten.exp" not in caught.value.message


def test_bits_read_as_another_type_are_refused_and_nothing_around_them_is() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return (0x5F3759DF - (x.view(torch.int32) >> 1)).view(torch.float32) * x

    with pytest.raises(PlanError) as caught:
        plan(fn, R(4, 5))
    assert caught.value.code == "plan-dtype" and "view_1" in caught.value.message
    assert "aten.mul" not in caught.value.message


def test_a_graph_without_outputs_is_refused() -> None:
    with pytest.raises(PlanError) as caught:
        write(Graph(inputs=(), nodes=(), outputs=()), "op_custom", CHIP)
    assert caught.value.code == "plan-no-output"


def test_more_live_tiles_than_fit_are_spread_over_kernels() -> None:
    def fn(*tensors: torch.Tensor) -> Any:
        return (*(tensor.amax(1) for tensor in tensors), sum(tensors))

    made = plan(fn, *(R(4, 5) for _ in range(40)))
    assert len(made.program.kernels) > 1


def test_every_code_that_is_raised_is_in_the_table() -> None:
    assert {code for _, _, code in REFUSED.values()} <= {
        code for code, row in CODES.items() if row.area == "plan"
    }


def test_an_input_that_only_gives_sizes_is_an_input() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, torch.ones_like(y)

    made = plan(model, R(4, 5), R(6, 7))
    agrees(made, model, R(4, 5), R(6, 7))
    agrees(made, model, R(2, 3), R(5, 9))


def test_sizes_of_an_input_that_the_kernel_does_not_read_are_refused() -> None:
    with pytest.raises(PlanError) as caught:
        plan(lambda x, y: (x + 1, torch.ones(y.shape[0], y.shape[1])), R(4, 5), R(6, 7))
    assert caught.value.code == "plan-fixed-size"
