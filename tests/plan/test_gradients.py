"""Forwards that ask autograd for gradients: torch's own as the oracle."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, capture, plan
from torch import nn

from npusmith.errors import TaskError


class Vjp(nn.Module):  # type: ignore[misc]
    """Gradients of a layer, as the layer's backward takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(48), nn.Linear(48, 20)

    def layer(self, x: Any) -> Any:
        return F.gelu(self.linear(self.norm(x)))

    def forward(self, x: Any, gradient: Any) -> Any:
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            return torch.autograd.grad(self.layer(leaf), [leaf, *self.parameters()], gradient)


class Step(Vjp):
    """One step down an energy."""

    def forward(self, x: Any) -> Any:
        return x - 0.1 * torch.func.grad(lambda at: self.layer(at).square().mean())(x)


@pytest.mark.parametrize(
    ("model", "shapes"), [(Vjp, ((3, 7, 48), (3, 7, 20))), (Step, ((3, 7, 48),))]
)
def test_a_forward_with_gradients_is_captured_and_right(
    model: type[nn.Module], shapes: tuple[tuple[int, ...], ...]
) -> None:
    torch.manual_seed(1)
    made, given = model(), [torch.randn(shape) for shape in shapes]
    agrees(plan(made, *given), made, *given)


def test_what_a_gradient_raises_at_its_own_trace_is_the_task_s() -> None:
    """Forwards that compute gradients are called once more, below autograd."""

    calls: list[int] = []

    class Once(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            calls.append(1)
            if len(calls) > 1:
                raise ValueError("a second call")
            return torch.func.grad(lambda at: self.layer(at).square().mean())(x)

    with pytest.raises(TaskError, match="a second call"):
        capture(Once(), torch.ones(4, 3))
