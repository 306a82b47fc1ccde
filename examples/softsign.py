"""Softsign, x / (1 + |x|): a pointwise activation from plain arithmetic."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (1.0 + torch.abs(x))


def get_inputs():
    return [4.0 * torch.randn(256, 3000)]


def get_init_inputs():
    return []
