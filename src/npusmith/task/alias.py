"""Values with tensors in them, and what a call did to them: aliases, and inputs written to.

Aliases are looked at in the process in which the call was made; a tensor on disk has no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from npusmith.task.isolated.sparse import open_up


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of nested lists, tuples and dicts, in order; of a sparse one its parts."""
    return [leaf for leaf in pytree.tree_leaves(open_up(value)) if isinstance(leaf, torch.Tensor)]


def mapped(change: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """The same value with every tensor changed."""
    return pytree.tree_map_only(torch.Tensor, change, open_up(value))


def shared(outputs: Any, inputs: Any) -> list[int]:
    """Numbers of the outputs that lie in the memory of an input, views included."""
    held = {_memory(tensor) for tensor in tensors(inputs) if tensor.numel()}
    found = enumerate(tensors(outputs))
    return [at for at, tensor in found if tensor.numel() and _memory(tensor) in held]


def changed(before: Any, after: Any) -> bool:
    """Whether any tensor's bytes differ; a NaN is itself."""
    pairs = zip(tensors(before), tensors(after), strict=True)
    return any(not torch.equal(flat_bytes(first), flat_bytes(second)) for first, second in pairs)


def flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor's elements in logical order, in its own memory where they lie so."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    # one element counts as contiguous whatever its stride, but a view as bytes wants stride 1
    return plain.as_strided((plain.numel(),), (1,)).view(torch.uint8)


def _memory(tensor: torch.Tensor) -> int:
    place: int = tensor.untyped_storage().data_ptr()
    return place
