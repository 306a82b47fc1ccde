"""One step of Adam as a fused kernel: four inputs, three outputs, a square root and a division."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, rate: float, beta1: float, beta2: float, epsilon: float, step: int):
        super().__init__()
        self.rate, self.beta1, self.beta2, self.epsilon = rate, beta1, beta2, epsilon
        self.correction1 = 1.0 - beta1**step
        self.correction2 = 1.0 - beta2**step

    def forward(
        self,
        weight: torch.Tensor,
        gradient: torch.Tensor,
        mean: torch.Tensor,
        square: torch.Tensor,
    ):
        mean = self.beta1 * mean + (1.0 - self.beta1) * gradient
        square = self.beta2 * square + (1.0 - self.beta2) * gradient * gradient
        scale = torch.sqrt(square / self.correction2) + self.epsilon
        weight = weight - self.rate * (mean / self.correction1) / scale
        return weight, mean, square


def get_inputs():
    shape = (256, 1024)
    return [
        torch.randn(shape),
        torch.randn(shape),
        0.1 * torch.randn(shape),
        0.01 * torch.rand(shape),
    ]


def get_init_inputs():
    return [0.001, 0.9, 0.999, 1e-8, 10]
