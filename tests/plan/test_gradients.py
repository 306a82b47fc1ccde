"""Forwards that ask autograd for gradients: torch's own as the oracle."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan
from torch import nn


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
