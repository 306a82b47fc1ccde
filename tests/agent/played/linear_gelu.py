"""A linear layer and GELU, sizes that no tile divides."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.layer = nn.Linear(features, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.layer(x))


def get_inputs():
    return [torch.randn(50, 40)]


def get_init_inputs():
    return [40, 72]
