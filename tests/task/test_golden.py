"""What the model gives in float64 is compared as plain values."""

from __future__ import annotations

import pytest
import torch

from npusmith.task.golden import Golden
from npusmith.task.user import check_inputs


class Held(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.weight[0:3], x + self.weight


def test_a_parameter_that_is_an_output_has_no_gradient_in_the_golden() -> None:
    model, x = Held(), torch.randn(3, 4)
    native = [item.detach() for item in model(x)]
    golden, said = Golden(model, "task.py").run(check_inputs([x], "task.py", "inputs"), native)
    assert not said
    assert [item.dtype for item in golden] == [torch.float64] * 2
    assert not any(item.requires_grad for item in golden)
    assert torch.equal(golden[0].float(), native[0])
    golden[0].numpy()  # of what asks for a gradient there is none


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_the_nearest_elements_are_those_that_float32_says(mode: str) -> None:
    class Resize(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.interpolate(x, size=(3, 33606), mode=mode)

    x = torch.randn(1, 2, 5, 67205)
    native = [Resize()(x)]
    golden, said = Golden(Resize(), "task.py").run(check_inputs([x], "task.py", "inputs"), native)
    assert not said and torch.equal(golden[0].float(), native[0])


class ByLambda(torch.nn.Module):
    """Its lambda knows its layer, not the layer of its copy."""

    def __init__(self) -> None:
        super().__init__()
        layer = self.layer = torch.nn.Linear(8, 8)
        self.register_buffer("scale", torch.full((8,), 0.1))
        self.block = lambda x: torch.relu(layer(x) * self.scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x) + x


def test_a_function_that_holds_the_models_own_layers_is_in_float64_too() -> None:
    model, x = ByLambda().eval(), torch.randn(4, 8)
    before = {name: item.clone() for name, item in model.state_dict().items()}
    native = [model(x).detach()]
    (golden,), said = Golden(model, "task.py").run(check_inputs([x], "task.py", "inputs"), native)
    assert not said and golden.dtype == torch.float64
    assert (golden != native[0]).any() and torch.allclose(golden.float(), native[0])
    after = model.state_dict()
    assert all(after[name].dtype == torch.float32 for name in before)
    assert all(torch.equal(item, after[name]) for name, item in before.items())
