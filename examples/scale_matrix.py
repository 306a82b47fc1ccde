"""A matrix times a number: forward's second argument is a plain float, fixed in the kernel."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, matrix: torch.Tensor, factor: float) -> torch.Tensor:
        return matrix * factor


def get_inputs():
    return [torch.randn(700, 1001), 3.14]


def get_init_inputs():
    return []
