"""RMS normalization in bfloat16, computed in float32 as language models do."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(features).bfloat16())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scale = torch.rsqrt(torch.mean(wide * wide, dim=-1, keepdim=True) + 1e-6)
        return (wide * scale).to(x.dtype) * self.weight


def get_inputs():
    return [torch.randn(256, 2048).bfloat16()]


def get_init_inputs():
    return [2048]
