"""A recurrence in time: each step's product and activation are launched again in a loop."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.layer = nn.RNN(features, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


def get_inputs():
    return [torch.randn(24, 8, 64)]


def get_init_inputs():
    return [64, 96]
