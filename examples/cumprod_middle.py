"""Running product along a middle axis: whole rows are accumulated and each state is stored."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumprod(x, dim=1)


def get_inputs():
    return [torch.rand(16, 30, 500) + 0.5]


def get_init_inputs():
    return []
