"""Layer normalization over the last axis, with a weight and a bias that are parameters."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(256, 1024) + 0.5]


def get_init_inputs():
    return [1024]
