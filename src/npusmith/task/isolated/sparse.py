"""Sparse COO tensors taken apart into the dense tensors of their places and values.

Whatever looks at the tensors of a value sees those two, so that nothing else knows of a layout;
`open_up(value)` puts nodes of a pytree in place of sparse tensors, and unflattening makes them
sparse tensors again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from npusmith.task.isolated.containers import named_items


@dataclass(frozen=True, slots=True)
class _Coo:
    """A sparse tensor as a node of a pytree."""

    tensor: torch.Tensor


def is_sparse(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.sparse_coo


def parts(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Places, (sparse axes, n), and values, (n, dense axes...), in the tensor's own memory."""
    plain = tensor.detach()
    return plain._indices(), plain._values()


def build(held: Sequence[Any], size: Sequence[int], coalesced: bool) -> torch.Tensor:
    """The sparse tensor of such parts; ValueError where they are none."""
    try:
        return torch.sparse_coo_tensor(
            *held, size=tuple(size), is_coalesced=coalesced, check_invariants=True
        )
    except (RuntimeError, TypeError) as error:
        raise ValueError("a sparse tensor that is none") from error


def open_up(value: Any) -> Any:
    """The value with a node in place of each sparse tensor, and dicts for containers of a module's
    own, which are leaves to PyTorch.
    """
    return pytree.tree_map(_opened, value)


def _opened(leaf: Any) -> Any:
    if is_sparse(leaf):
        return _Coo(leaf)
    held = named_items(leaf)
    return leaf if held is None else open_up(held)


def _flatten(node: _Coo) -> tuple[list[Any], Any]:
    tensor = node.tensor
    return list(parts(tensor)), (tuple(tensor.shape), tensor.is_coalesced())


def _unflatten(children: Any, context: Any) -> Any:
    size, coalesced = context
    return build(list(children), size, coalesced)


pytree.register_pytree_node(_Coo, _flatten, _unflatten)
