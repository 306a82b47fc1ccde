"""Huber loss: a comparison picks one of two pointwise forms, then a mean over every element."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, delta: float):
        super().__init__()
        self.delta = delta

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.huber_loss(prediction, target, delta=self.delta)


def get_inputs():
    return [torch.randn(128, 2048), torch.randn(128, 2048)]


def get_init_inputs():
    return [0.75]
