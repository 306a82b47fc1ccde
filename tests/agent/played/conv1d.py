"""A padded convolution of one dimension with bias."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, filters: int):
        super().__init__()
        self.layer = nn.Conv1d(channels, filters, kernel_size=5, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def get_inputs():
    return [torch.randn(2, 8, 50)]


def get_init_inputs():
    return [8, 24]
