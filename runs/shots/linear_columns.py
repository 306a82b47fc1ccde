"""ReLU of a linear layer, the largest of each column: a product, then a vector kernel."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.layer = nn.Linear(features, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.layer(x)).amax(0)


def get_inputs():
    return [torch.randn(256, 384)]


def get_init_inputs():
    return [384, 512]
