"""Outputs that are an input's memory, and inputs that were written to: what a call did to tensors.

Both are looked at in the process in which the call was made; a tensor on disk has no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def shared(outputs: Any, inputs: Any) -> list[int]:
    """Numbers of the outputs that lie in the memory of an input, views included."""
    held = {_memory(tensor) for tensor in _tensors(inputs) if tensor.numel()}
    found = enumerate(_tensors(outputs))
    return [at for at, tensor in found if tensor.numel() and _memory(tensor) in held]


def changed(before: Any, after: Any) -> bool:
    """Whether any tensor's bytes differ; a NaN is itself."""
    pairs = zip(_tensors(before), _tensors(after), strict=True)
    return any(not torch.equal(_raw(first), _raw(second)) for first, second in pairs)


def _memory(tensor: torch.Tensor) -> int:
    place: int = tensor.untyped_storage().data_ptr()
    return place


def _raw(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return plain.reshape(-1).view(torch.uint8)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
