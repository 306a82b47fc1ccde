"""Exclusive running sum along rows that are longer than a tile: what was added is carried on."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sums = torch.cumsum(x.narrow(1, 0, x.size(1) - 1), dim=1)
        return torch.cat((torch.zeros_like(x.select(1, 0).unsqueeze(1)), sums), dim=1)


def get_inputs():
    return [torch.rand(50, 9001)]


def get_init_inputs():
    return []
