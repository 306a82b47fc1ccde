"""Edge sets: the shapes of get_inputs(), with values that kernels get wrong.

Only floating-point inputs are changed; masks, indices and counts stay as they were.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from npusmith.task.parameter_draws import in_order
from npusmith.task.user import Inputs, Tensor

# Largest magnitude of the "large" set: squares, and sums of a million of them, stay in range in
# float32 and bfloat16; squares stay in range in float16.
LARGE = {torch.float32: 1e15, torch.bfloat16: 1e15, torch.float16: 200.0}


def zeros(tensor: Tensor, seed: int) -> Tensor:
    return torch.zeros_like(tensor)


def negatives(tensor: Tensor, seed: int) -> Tensor:
    return -tensor.abs()


def large(tensor: Tensor, seed: int) -> Tensor:
    return _scaled(tensor, LARGE[tensor.dtype])


def subnormal(tensor: Tensor, seed: int) -> Tensor:
    """Magnitudes at and below half of the smallest normal number."""
    return _scaled(tensor, torch.finfo(tensor.dtype).tiny / 2)


def infinities(tensor: Tensor, seed: int) -> Tensor:
    """One infinity in two rows of three, its sign alternating; the third row stays finite."""
    tensor = _sprinkle(tensor, seed, first=0, step=3, value=torch.inf)
    return _sprinkle(tensor, seed + 1, first=1, step=3, value=-torch.inf)


def nans(tensor: Tensor, seed: int) -> Tensor:
    """One NaN in every other row."""
    return _sprinkle(tensor, seed, first=0, step=2, value=torch.nan)


EDGES: tuple[tuple[str, Callable[[Tensor, int], Tensor]], ...] = (
    ("zeros", zeros),
    ("negatives", negatives),
    ("large", large),
    ("subnormal", subnormal),
    ("inf", infinities),
    ("nan", nans),
)


PLAIN = ("negatives",)  # at the task's own shapes alone: no branch of a kernel asks for the sign


def signed(tensor: Tensor, seed: int) -> Tensor:
    """Of mean 0 and spread 1; drawn anew where all values are one, which would all become 0."""
    wide = tensor.double()
    spread = wide.std(unbiased=False) if wide.numel() else wide.sum()
    if spread == 0:
        generator = torch.Generator().manual_seed(seed)
        normal = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        return normal.to(tensor.dtype)
    return ((wide - wide.mean()) / spread.clamp_min(1e-6)).to(tensor.dtype)


def near_one(tensor: Tensor, seed: int) -> Tensor:
    """Close to 1 or to -1: a product of thousands stays in range."""
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
    sign = torch.where(torch.rand(tensor.shape, generator=generator) < 0.5, -1.0, 1.0)
    return (sign * torch.exp(0.05 * normal)).to(tensor.dtype)


# Of suites' tasks: on inputs from 0 to 1 a relu is the identity and a product of thousands is 0.
MORE: tuple[tuple[str, Callable[[Tensor, int], Tensor]], ...] = (
    ("signed", signed),
    ("near one", near_one),
    ("negatives", negatives),
    ("inf", infinities),
    ("nan", nans),
)


def change(
    inputs: Inputs, edge: Callable[[Tensor, int], Tensor], seed: int, *, numbers: bool = True
) -> Inputs:
    """`inputs` with `edge` applied to every floating-point tensor of a type that the chip has.

    Without `numbers` a tensor without axes beside others keeps its value: it is a setting, such as
    the way of rounding. One tensor given twice (as the values of a sparse tensor, say) stays one.
    """
    changed = [
        (numbers or tensor.dim() > 0 or not any(other.dim() for other in inputs.tensors))
        and tensor.dtype in LARGE
        and tensor.numel() > 0
        for tensor in inputs.tensors
    ]
    places = [(item.data_ptr(), item.shape, item.stride()) for item in inputs.tensors]
    rows = zip(inputs.tensors, changed, places, strict=True)
    return inputs.replace(
        [
            _apart(edge, item, seed + 2 * places.index(place)) if on else item
            for item, on, place in rows
        ]
    )


def _apart(edge: Callable[[Tensor, int], Tensor], tensor: Tensor, seed: int) -> Tensor:
    """Of an input that a model derives by, too: the values belong to no graph of their own.

    What rose or fell, such as boundaries of buckets, still does.
    """
    found = in_order(edge(tensor.detach(), seed), tensor.detach())
    return found.requires_grad_(tensor.requires_grad)


def applies(inputs: Inputs) -> bool:
    return any(tensor.dtype in LARGE for tensor in inputs.tensors)


def _scaled(tensor: Tensor, top: float) -> Tensor:
    """Scaled so that the largest finite magnitude is `top`."""
    wide = torch.nan_to_num(tensor.double(), nan=0.0, posinf=0.0, neginf=0.0)
    peak = float(wide.abs().max())
    return (wide * (top / peak if peak else 1.0)).to(tensor.dtype)


def _sprinkle(tensor: Tensor, seed: int, *, first: int, step: int, value: float) -> Tensor:
    """`value` at one random column of the rows first, first + step, ..."""
    columns = tensor.shape[-1] if tensor.dim() else 1
    rows = tensor.clone().reshape(-1, columns)
    picked = torch.arange(first, rows.shape[0], step)
    generator = torch.Generator().manual_seed(seed)
    rows[picked, torch.randint(columns, picked.shape, generator=generator)] = value
    return rows.reshape(tensor.shape)
