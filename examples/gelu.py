"""GELU in its exact form: a pointwise activation that needs the error function."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)


def get_inputs():
    return [2.0 * torch.randn(512, 1000)]


def get_init_inputs():
    return []
