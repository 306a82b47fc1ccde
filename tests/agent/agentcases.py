"""The task that the agent's tests are about, a program that solves it, and requests."""

from __future__ import annotations

from npusmith.agent.talk import Message, Request

TASK = '''
"""Softsign of a small matrix."""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (1 + torch.abs(x))


def get_inputs():
    return [torch.randn(64, 100)]


def get_init_inputs():
    return []
'''
PROGRAM = '''"""softsign"""

TILE = 2048


@host
def host(x, y):
    size = x.size
    tiles = ceil_div(size, TILE)
    cores = max(1, min(tiles, chip.vector_cores))
    launch(tiny_custom, cores, size=size, tiles=tiles, tiles_per_core=ceil_div(tiles, cores))


@kernel
def tiny_custom(x: input(float32), y: output(float32), size: int, tiles: int, tiles_per_core: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    t = ub(TILE, float32)
    first = core_id() * tiles_per_core
    for piece in range(first, min(first + tiles_per_core, tiles)):
        n = min(TILE, size - piece * TILE)
        with copy_in:
            load(xt, x[piece * TILE], n)
        with compute:
            abs(t, xt, n)
            adds(t, t, 1.0, n)
            div(yt, xt, t, n)
        with copy_out:
            store(y[piece * TILE], yt, n)
'''


def fenced(text: str) -> str:
    return f"Here it is.\n\n```python\n{text}```\n"


def ask(text: str = "write", seed: int = 0) -> Request:
    return Request(messages=(Message(role="user", content=text),), seed=seed, max_tokens=100)
