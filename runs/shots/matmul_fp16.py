"""A batched product in half precision: blocks of the result on cube cores, sums in float32."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.bmm(a, b)


def get_inputs():
    return [
        torch.randn(4, 256, 192, dtype=torch.float16),
        torch.randn(4, 192, 320, dtype=torch.float16),
    ]


def get_init_inputs():
    return []
