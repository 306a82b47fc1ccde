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
