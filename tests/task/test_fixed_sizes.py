"""Sizes that a model's arithmetic holds as numbers: found at capture, refused by the operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from npusmith.errors import PlanError, TaskError
from npusmith.ir.dtypes import DType
from npusmith.ir.text import show_expr
from npusmith.plan import write
from npusmith.target.chips import find_chip
from npusmith.task.fixed_sizes import find_fixed
from npusmith.task.graph import Graph
from npusmith.task.load import Task
from npusmith.task.outline import capture, outline
from npusmith.task.shapes import Class, Shape, aligned
from npusmith.task.trials import make_orders

CHIP = find_chip("910B2")
OWN = [(6, 40)]
SETS = [[(1, 40)], [(7, 101)], [(49, 33)]]


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Callable[[Task], Graph]]:
    """The work of outline's child in this very process: for harmless texts, and fast."""
    threads = torch.get_num_threads()
    yield lambda task: capture(make_orders(task, tmp_path))
    torch.set_default_device(None)
    torch.set_num_threads(threads)


def fixed(differs: Callable[[Shape], bool]) -> tuple[tuple[int, int], ...]:
    words = {True: "another graph", False: ""}
    return find_fixed(OWN, aligned(OWN), SETS, lambda sized: words[differs(sized[0])])


def test_only_the_axis_whose_size_changes_the_graph_is_fixed() -> None:
    assert fixed(lambda shape: shape[1] != 40) == ((0, 1),)
    assert fixed(lambda shape: shape[0] != 6) == ((0, 0),)
    assert fixed(lambda shape: shape[0] * shape[1] != 240) == ((0, 0), (0, 1))


def test_a_branch_that_only_larger_sizes_take_fixes_what_differs_there() -> None:
    assert fixed(lambda shape: shape[1] > 100) == ((0, 0), (0, 1))


def test_a_graph_that_follows_all_sizes_has_none_that_is_fixed() -> None:
    assert fixed(lambda shape: False) == ()
    assert fixed(lambda shape: 1 in shape) == ()  # a size of 1 leaves operations out


def test_a_single_step_leaves_operations_out_as_a_size_of_1_does() -> None:
    """Of windows of four one is left: what is permuted there does not move."""
    own = [(6, 12)]
    free = [Class(6, frozenset({(0, 0)})), Class(12, frozenset({(0, 1)}), step=4)]

    def found(*sets: Shape) -> tuple[tuple[int, int], ...]:
        words = {True: "another graph", False: ""}
        return find_fixed(own, free, [[s] for s in sets], lambda x: words[x[0][1] == 4])

    assert found((7, 4), (5, 20)) == ()
    assert found((7, 4)) == ()

    def differs(sized: list[Shape]) -> str:
        return "" if sized[0][0] == 6 else "another graph"

    assert find_fixed(own, free, [[(7, 4)]], differs) == ((0, 0),)


@pytest.mark.parametrize(
    ("forward", "inputs", "legal"),
    [
        ("return x.sum() / x.shape[0]", "torch.randn(1000)", []),
        ("return x * x.size(1) ** -0.5", "torch.randn(6, 64)", []),
        ("return x / x.shape[-1] ** 0.5", "torch.randn(3, 5, 40)", []),
        ("return x * (-9.21 / x.shape[-1])", "torch.randn(3, 17, 10)", []),
        ("return x * float(x.shape[-1] - 1)", "torch.randn(3, 17, 10)", []),
        (
            "s, i = x.sort(1); return torch.empty_like(s).scatter_(1, i, s.cumsum(1))",
            "torch.randn(5, 13)",
            ["x.shape[0] * x.shape[1] * x.shape[1] <= 268435456"],
        ),
        ("return F.max_pool2d(x, 3, 2, 1, ceil_mode=True)", "torch.randn(2, 3, 15, 18)", []),
        ("return x.mean() * x.numel()", "torch.randn(6, 40)", []),
        (
            "import math; return x * math.log(x.shape[0])",
            "torch.randn(1000)",
            ["x.shape[0] == 1000"],
        ),
        (
            "import math; return x * math.log(x.numel())",
            "torch.randn(6, 40)",
            ["x.shape[0] == 6", "x.shape[1] == 40"],
        ),
        (
            "return x.view(*x.shape[:-1], 5, 4).exp()",
            "torch.randn(6, 20)",
            ["x.shape[1] == 20"],
        ),
        ("return x.view(-1, 3).exp()", "torch.randn(6, 15)", ["x.shape[1] % 3 == 0"]),
        (
            "return x.view(8, 8).exp()",
            "torch.randn(1, 64)",
            ["x.shape[0] == 1", "x.shape[1] == 64"],
        ),
        (
            "a, b = x[:, ::2], x[:, 1::2]; n = b.size(1); return a[:, :n] * b",
            "torch.randn(3, 10)",
            ["(x.shape[1] + 1) // 2 == x.shape[1] // 2", "x.shape[1] >= 2", "x.shape[1] % 2 == 0"],
        ),
        (
            "return x.exp() if x.shape[1] % 2 == 0 else x.sin()",
            "torch.randn(3, 10)",
            ["x.shape[1] % 2 == 0"],
        ),
        (
            "return x.exp() if x.shape[1] == 10 else x.sin()",
            "torch.randn(3, 10)",
            ["x.shape[1] == 10"],
        ),
        ("return x.view(-1, x.shape[1]) * 2 + x.sum() / 40", "torch.randn(6, 40)", []),
        (  # all places are inside then; PyTorch itself asks for 3
            "return torch.nn.functional.pad(x, (2, 1, 1, 1), mode='reflect')",
            "torch.randn(2, 3, 9, 17)",
            ["x.shape[2] >= 2", "x.shape[3] >= 2"],
        ),
        (
            "return torch.pixel_shuffle(x, 3) * 2",
            "torch.randn(2, 18, 7, 11)",
            ["x.shape[1] % 9 == 0"],
        ),
    ],
)
def test_an_operator_refuses_sizes_that_its_kernel_has_as_other_numbers(
    write_task: Callable[..., Task],
    captured: Callable[[Task], Graph],
    forward: str,
    inputs: str,
    legal: list[str],
) -> None:
    graph = captured(write_task(forward=forward, inputs=f"[{inputs}]"))
    spec = write(graph, "a_custom", CHIP).spec
    assert [show_expr(item) for item in spec.legal or ()] == legal


def test_a_size_of_an_input_that_the_kernel_does_not_take_is_refused_at_once(
    write_task: Callable[..., Task], captured: Callable[[Task], Graph]
) -> None:
    task = write_task(
        forward="import math; return x + math.log(y.shape[0])",
        inputs="[torch.randn(6, 40), torch.randn(9)]",
    )
    with pytest.raises(PlanError, match="size 0 of argument 1 is a number") as error:
        write(captured(task), "a_custom", CHIP)
    assert error.value.code == "plan-fixed-size"


@pytest.mark.parametrize(
    ("forward", "inputs", "message"),
    [
        ("return x.view(y.shape[0], -1) * 2", "torch.randn(12), torch.randn(4, 5)", "size 0 of"),
        (
            "return nn.functional.interpolate(x, y.shape[-2:], mode='bilinear', antialias=True)",
            "torch.randn(1, 2, 5, 6), torch.randn(1, 1, 10, 9)", "sizes of y decide",
        ),
    ],
)  # fmt: skip
def test_a_size_of_an_argument_that_is_not_read_is_never_a_number_unseen(
    write_task: Callable[..., Task],
    captured: Callable[[Task], Graph],
    forward: str,
    inputs: str,
    message: str,
) -> None:
    graph = captured(write_task(forward=forward, inputs=f"[{inputs}]"))
    with pytest.raises(PlanError, match=message) as error:
        write(graph, "a_custom", CHIP)
    assert error.value.code == "plan-fixed-size"


def test_a_graph_knows_the_numbers_that_forward_was_called_with(
    write_task: Callable[..., Task],
) -> None:
    text = (
        "class Model(nn.Module):\n"
        "    def forward(self, x, alpha, shift=(1, 2.5), *, mode='sum'):\n"
        "        return x * alpha + shift[1]\n"
        "def get_inputs():\n    return [torch.randn(6, 40), 3.0]\n"
    )
    assert outline(write_task(text=text)).literals == (3.0, 1, 2.5, "sum")


def test_inputs_that_are_made_of_values_have_a_graph(write_task: Callable[..., Task]) -> None:
    x = "torch.from_numpy(torch.randn(6, 40).numpy() * 2)"
    graph = outline(write_task(forward="return x.exp()", inputs=f"[{x}, {x}]"))
    assert graph.inputs[0].shape == (6, 40)


def test_a_number_that_each_draw_has_anew_has_none(write_task: Callable[..., Task]) -> None:
    text = (
        "class Model(nn.Module):\n"
        "    def forward(self, x, k):\n"
        "        return x * k\n"
        "def get_inputs():\n    return [torch.randn(6, 40), torch.rand(1).item()]\n"
    )
    with pytest.raises(TaskError) as error:
        outline(write_task(text=text))
    assert error.value.code == "task-raised"


def test_nan_in_a_graph_is_the_same_at_every_size(
    write_task: Callable[..., Task], captured: Callable[[Task], Graph]
) -> None:
    forward = "return F.kl_div(x.log_softmax(-1), y, reduction='sum')"
    task = write_task(forward=forward, inputs="[torch.randn(6, 40), torch.rand(6, 40)]")
    assert captured(task).fixed == ()


def test_an_identity_of_many_rows_is_the_same_program(
    write_task: Callable[..., Task], captured: Callable[[Task], Graph]
) -> None:
    """PyTorch takes it apart with the shortest type of integers that its sizes fit into."""
    task = write_task(
        forward="return x + torch.eye(x.shape[0], x.shape[1])", inputs="[torch.randn(9, 20)]"
    )
    spec = write(captured(task), "a_custom", CHIP).spec
    assert not spec.legal
    types = {node.dtype for node in captured(task).nodes if node.op == "aten.arange.start_step"}
    assert types == {DType.INT64}
