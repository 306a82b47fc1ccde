"""Attention in two kernels that run side by side, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, agrees, as_array, capture, capture_at, module
from torch import Tensor

from npusmith.lang import check, interpret
from npusmith.lang.extents import extent
from npusmith.plan import Plan, write
from npusmith.plan.attention_graph import with_attention
from npusmith.plan.node_kinds import ATTENTION
from npusmith.target.chips import find_chip


def drawn(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return tuple(torch.randn(shape, generator=generator).to(dtype) for shape in shapes)


def heads(batch: int, count: int, rows: int, keys: int, depth: int, dtype: torch.dtype) -> Any:
    sides = (batch, count, rows, depth), (batch, count, keys, depth), (batch, count, keys, depth)
    return drawn(*sides, dtype=dtype)


def seen(*shape: int) -> Tensor:
    """A mask in which no row and one row in seven has no key."""
    rows = torch.arange(shape[-2])[:, None]
    return (rows * 5 + torch.arange(shape[-1]) * 3) % 7 > rows % 7


def is_fused(made: Plan) -> bool:
    return [item.beside for item in made.program.host.launches] == [False, True]


def by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / 4.9, -1) @ v


def from_projections(x: Tensor, y: Tensor) -> Tensor:
    batch, rows, size = x.shape
    q, k = (item.view(batch, rows, 4, size // 4).transpose(1, 2) for item in (x, y))
    found = F.scaled_dot_product_attention(q, k, k, is_causal=True)
    return found.transpose(1, 2).reshape(batch, rows, size)


TRUE = find_chip("910B2")  # written for it, and run on few cores, which have many blocks each
HALF, FULL, BRAIN = torch.float16, torch.float32, torch.bfloat16
Call = Callable[..., Any]
attend = F.scaled_dot_product_attention
CASES: dict[str, tuple[Call, tuple[Any, ...], tuple[Any, ...]]] = {
    "float32": (attend, heads(1, 2, 37, 53, 17, FULL), heads(1, 3, 19, 33, 17, FULL)),
    "causal": (
        lambda q, k, v: attend(q, k, v, is_causal=True),
        heads(1, 2, 37, 53, 24, BRAIN), heads(1, 2, 150, 131, 24, BRAIN)),
    "a mask that is added": (
        lambda q, k, v, m: attend(q, k, v, attn_mask=m),
        (*heads(1, 2, 37, 53, 24, HALF), *drawn((37, 53), dtype=HALF)),
        (*heads(1, 2, 18, 101, 24, HALF), *drawn((18, 101), dtype=HALF))),
    "rows without a key": (
        lambda q, k, v, m: attend(q, k, v, attn_mask=m),
        (*heads(2, 2, 37, 53, 24, FULL), seen(2, 1, 37, 53)),
        (*heads(2, 2, 33, 96, 24, FULL), seen(2, 1, 33, 96))),
    "one mask for all rows": (
        lambda q, k, v, m: attend(q, k, v, attn_mask=m),
        (*heads(2, 2, 37, 53, 24, HALF), seen(2, 1, 1, 53)),
        (*heads(2, 2, 21, 64, 24, HALF), seen(2, 1, 1, 64))),
    "taken apart by hand": (
        by_hand, heads(1, 2, 37, 53, 24, HALF), heads(1, 2, 20, 101, 24, HALF)),
    "heads side by side": (
        from_projections, drawn((2, 45, 96), (2, 45, 96), dtype=HALF),
        drawn((3, 131, 96), (3, 131, 96), dtype=HALF)),
    "several heads to one": (
        lambda q, k, v: attend(q, k, v, enable_gqa=True),
        drawn((2, 6, 40, 32), (2, 2, 70, 32), (2, 2, 70, 32), dtype=HALF),
        drawn((3, 6, 33, 32), (3, 2, 51, 32), (3, 2, 51, 32), dtype=HALF)),
    "several heads to one, causal": (  # no head's rows are numbered behind another's
        lambda q, k, v: attend(q, k, v, is_causal=True, enable_gqa=True),
        drawn((2, 6, 40, 32), (2, 2, 70, 32), (2, 2, 70, 32), dtype=BRAIN),
        drawn((3, 6, 33, 32), (3, 2, 51, 32), (3, 2, 51, 32), dtype=BRAIN)),
}  # fmt: skip


def near(made: Plan, model: Call, *args: Tensor) -> None:
    """No farther from the result in float64 than PyTorch, but for the rounding of weights."""
    wide = [arg.double() if arg.is_floating_point() else arg for arg in args]
    wanted, known = model(*wide), model(*args).double()
    arrays = [as_array(args[port.position]) for port in made.spec.inputs]
    shapes = {port.name: item.shape for port, item in zip(made.spec.inputs, arrays, strict=True)}
    (port,) = made.spec.outputs
    shape = tuple(extent(dim, shapes) for dim in port.dims)
    assert shape == tuple(wanted.shape)
    (found,) = interpret(made.program, CHIP, arrays, [(shape, port.dtype)])
    error = (torch.from_numpy(found.astype(np.float64)) - wanted).abs().max()
    room = torch.finfo(args[0].dtype).eps * wanted.abs().max()
    assert error <= 2 * (known - wanted).abs().max() + room


@pytest.mark.parametrize("name", CASES)
def test_attention_is_one_pair_of_kernels_and_right_at_two_shapes(name: str) -> None:
    model, first, second = CASES[name]
    made = write(capture_at(model, first, second), "attend", TRUE)
    assert is_fused(made)
    check(made.program, TRUE)
    for args in (first, second):
        near(made, model, *args)


def test_infinities_go_the_way_of_pytorch() -> None:
    q, k, v = heads(1, 2, 20, 33, 24, FULL)
    made = write(capture(by_hand, q, k, v), "attend", TRUE)
    assert is_fused(made)
    for tensor, value in ((q, torch.inf), (k, -torch.inf), (v, torch.inf), (k, torch.nan)):
        tensor[0, 1, 3, 5] = value
        agrees(made, module(by_hand), q, k, v)


SEVERAL: dict[str, Call] = {
    "the weights are an output": lambda q, k, v: (
        (w := torch.softmax(q @ k.transpose(-1, -2), -1)), w @ v),
    "a factor behind the mask": lambda q, k, v: (
        torch.softmax((q @ k.transpose(-1, -2) + q.sum(-1, keepdim=True)) * 2.0, -1) @ v),
    "a negative factor": lambda q, k, v: torch.softmax(-0.5 * (q @ k.transpose(-1, -2)), -1) @ v,
    "a softmax over rows": lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2), -2) @ v,
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_what_only_looks_like_attention_is_none(name: str) -> None:
    graph = capture(SEVERAL[name], *heads(1, 2, 37, 53, 24, HALF))
    assert not any(node.op == ATTENTION for node in with_attention(graph).nodes)
