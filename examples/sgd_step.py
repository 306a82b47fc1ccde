"""One step of SGD with momentum and weight decay: three inputs, two outputs."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, rate: float, momentum: float, decay: float):
        super().__init__()
        self.rate, self.momentum, self.decay = rate, momentum, decay

    def forward(self, weight: torch.Tensor, gradient: torch.Tensor, velocity: torch.Tensor):
        gradient = gradient + self.decay * weight
        velocity = self.momentum * velocity + gradient
        return weight - self.rate * velocity, velocity


def get_inputs():
    return [torch.randn(512, 1000), torch.randn(512, 1000), 0.1 * torch.randn(512, 1000)]


def get_init_inputs():
    return [0.01, 0.9, 0.0005]
