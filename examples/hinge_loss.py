"""Hinge loss: rows of predictions against one sign per column, broadcast over the rows."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, prediction: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
        return torch.mean(torch.clamp(1.0 - prediction * sign, min=0.0))


def get_inputs():
    sign = torch.randint(0, 2, (1024,)).float() * 2.0 - 1.0
    return [torch.randn(200, 1024), sign]


def get_init_inputs():
    return []
