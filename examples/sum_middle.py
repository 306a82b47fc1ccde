"""Sum over a middle axis: whole rows are accumulated, nothing is reduced inside a register."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x, dim=1)


def get_inputs():
    return [torch.randn(32, 48, 500)]


def get_init_inputs():
    return []
