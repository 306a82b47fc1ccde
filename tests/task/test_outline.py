"""A graph is captured without values; a task that reads some on the way draws them first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from npusmith.errors import TaskError
from npusmith.task.load import Task
from npusmith.task.outline import outline

Write = Callable[..., Task]


@pytest.mark.parametrize(
    "inputs",
    [
        "[torch.from_numpy(torch.randn(6, 40).numpy())]",  # values that numpy takes
        "[torch.randn(6, 40) * torch.rand(1).item()]",
        "[torch.randint(0, 2, (6, 40)).float(), torch.arange(3).tolist()[1]]",
    ],
)
def test_inputs_may_be_made_from_values(write_task: Write, inputs: str) -> None:
    graph = outline(write_task(inputs=inputs))
    assert [item.shape for item in graph.inputs] == [(6, 40)]


def test_numbers_that_forward_writes_out_are_constants_of_the_graph(write_task: Write) -> None:
    forward = "return x[:, :3] * torch.tensor([0.5, 2.0, 3.5]) + torch.as_tensor(2.5)"
    graph = outline(write_task(forward=forward))
    assert [item.array.tolist() for item in graph.constants] == [[0.5, 2.0, 3.5], 2.5]


def test_what_is_taken_apart_is_on_the_device_of_its_arguments(write_task: Write) -> None:
    forward = "return torch.diagonal_scatter(x, x[:, 0]) + torch.as_strided(x, (4, 8), (1, 2))"
    assert outline(write_task(forward=forward)).nodes
    bags = "return self.bags(torch.arange(8).view(4, 2)) + x[:, :1]"
    graph = outline(write_task(init="self.bags = nn.EmbeddingBag(20, 4)", forward=bags))
    assert any(node.op == "aten.scatter_reduce.two" for node in graph.nodes)


def test_a_model_may_be_made_from_values(write_task: Write) -> None:
    init = "self.largest = torch.randn(9).abs().max().item()\nself.scale = torch.ones(8).numpy()[3]"
    graph = outline(write_task(init=init, forward="return x * self.largest + float(self.scale)"))
    assert [node.op for node in graph.nodes] == ["aten.mul.Tensor", "aten.add.Tensor"]


def test_what_fails_with_values_too_is_the_task_s(write_task: Write) -> None:
    with pytest.raises(TaskError, match="no such thing") as error:
        outline(
            write_task(
                inputs="[torch.tensor(0).no_such_thing]", init="raise OSError('no such thing')"
            )
        )
    assert error.value.code == "task-raised"
