"""Group normalization of an image: statistics over groups of channels and both spatial axes."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, groups: int, channels: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(8, 32, 24, 24) - 0.25]


def get_init_inputs():
    return [8, 32]
