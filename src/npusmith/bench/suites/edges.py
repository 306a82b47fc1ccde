"""Values for tasks whose own say too little: signed, near one, and those that kernels get wrong.

On inputs from 0 to 1 a relu is the identity and a product of thousands is 0: kernels that do
nothing are right. Such tasks are judged on these too; the suite's own verdict ignores them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from npusmith.task.edges import infinities, nans, negatives

Change = Callable[[torch.Tensor, int], torch.Tensor]
_SPREAD = 0.05  # of the logarithm: a product of thousands stays in range


def signed(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Of mean 0 and spread 1."""
    wide = tensor.double()
    spread = wide.std(unbiased=False) if wide.numel() else wide.sum()
    return ((wide - wide.mean()) / spread.clamp_min(1e-6)).to(tensor.dtype)


def near_one(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Close to 1 or to -1."""
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
    sign = torch.where(torch.rand(tensor.shape, generator=generator) < 0.5, -1.0, 1.0)
    return (sign * torch.exp(_SPREAD * normal)).to(tensor.dtype)


MORE: tuple[tuple[str, Change], ...] = (
    ("signed", signed),
    ("near one", near_one),
    ("negatives", negatives),
    ("inf", infinities),
    ("nan", nans),
)


def changed(item: Any, change: Change, seed: int) -> Any:
    """`item` with its floating-point tensors changed; masks, indices and numbers stay."""
    if isinstance(item, torch.Tensor):
        return change(item, seed) if item.is_floating_point() and item.numel() else item
    if isinstance(item, (list, tuple)):
        return type(item)(changed(part, change, seed + 1) for part in item)
    return item
