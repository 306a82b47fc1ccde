"""Equal kernels of a program: written once, launched with other tensors and numbers."""

from __future__ import annotations

import itertools

import pytest
import torch
from modules import CHIP, agrees, capture, plan

from npusmith.ir.nodes import Note, TensorRole
from npusmith.ir.text import show
from npusmith.ir.walk import statements
from npusmith.lang import legal
from npusmith.plan.shared_kernels import share_kernels
from npusmith.plan.write import write


class Layers(torch.nn.Module):
    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(one, two) for one, two in itertools.pairwise(widths)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def launched(program) -> list[str]:
    return [launch.kernel for launch in program.host.launches]


@pytest.mark.parametrize("widths", [(64, 64, 64), (48, 48, 48, 48), (64, 64, 64, 32)])
def test_equal_layers_are_one_kernel_with_other_weights(widths: tuple[int, ...]) -> None:
    x = torch.randn(20, widths[0])
    model = Layers(widths)
    made = plan(model, x)
    assert len(launched(made.program)) == len(made.parts) > len(made.program.kernels)
    agrees(made, model, x)
    other = torch.randn(7, widths[0])
    agrees(made, model, other)
    assert legal(show(made.program), "layers.tile.py", CHIP) == made.program


def test_what_a_shared_kernel_says_is_true_of_every_launch() -> None:
    program = plan(Layers((64, 64, 64)), torch.randn(20, 64)).program
    tensors = {item.name for item in program.tensors}
    for kernel in program.kernels:
        assert tensors.isdisjoint(item.name for item in kernel.tensors)
        words = [stmt.text for stmt in statements(kernel.body) if isinstance(stmt, Note)]
        assert not any(name in " ".join(words).split() for name in tensors - {"x", "y"})
        assert not any(item.name.startswith(("mm", "relu", "p_")) for item in kernel.buffers)
        assert all(item.role is not TensorRole.SCRATCH for item in kernel.tensors)


def test_kernels_that_differ_in_a_number_stay_two() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.softmax(x, 0) * 2.0, 0) * 3.0

    graph = capture(twice, torch.randn(40, 300))
    program = write(graph, "op", CHIP).program
    assert share_kernels(program) == program
    assert len(set(launched(program))) == len(program.kernels)
