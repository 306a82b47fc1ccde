"""A convolution of one dimension: a product over windows that are read where they lie."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, filters: int):
        super().__init__()
        self.layer = nn.Conv1d(channels, filters, kernel_size=3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def get_inputs():
    return [torch.randn(4, 32, 256)]


def get_init_inputs():
    return [32, 64]
