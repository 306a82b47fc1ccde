"""A linear layer and GELU: a product on cube cores, bias and activation on vector cores."""

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
    return [torch.randn(256, 384)]


def get_init_inputs():
    return [384, 512]
