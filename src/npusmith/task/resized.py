"""Inputs of other shapes: rows and columns drawn from those that a task gives."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from npusmith.task.parameter_draws import in_order
from npusmith.task.shapes import Shape
from npusmith.task.user import Inputs, Tensor

_DISTINCT = 64  # values of a tensor that is continuous
_FIRST = 4096


def resize(base: Inputs, sized: Sequence[Shape], seed: int) -> Inputs:
    """The inputs with these shapes, of the same ranks; what rose or fell still does."""
    generator = torch.Generator().manual_seed(seed)
    tensors = []
    for given, shape in zip(base.tensors, sized, strict=True):
        tensor = given
        # Shrink before growing, so that nothing on the way is larger than both ends.
        order = sorted(range(len(shape)), key=lambda axis: shape[axis] - tensor.shape[axis])
        for axis in order:
            if shape[axis] != tensor.shape[axis]:
                picked = torch.randint(tensor.shape[axis], (shape[axis],), generator=generator)
                tensor = tensor.index_select(axis, picked)
        drawn = _apart(tensor, generator)
        tensors.append(in_order(drawn, given) if given.is_floating_point() else drawn)
    return base.replace(tensors)


def joined(sets: Sequence[Inputs]) -> Inputs:
    """Sets of inputs as one: tensors with a leading axis of 1 have the rows of all of them.

    The first alone where others have other shapes, types or numbers.
    """
    first = sets[0]
    alike = [
        item for item in sets
        if [(t.shape, t.dtype) for t in item.tensors] == [(t.shape, t.dtype) for t in first.tensors]
        and item.literals == first.literals
    ]  # fmt: skip
    rows = zip(*(item.tensors for item in alike), strict=True)
    return first.replace([
        torch.cat(row) if row[0].dim() and row[0].shape[0] == 1 else row[0] for row in rows
    ])  # fmt: skip


def rerank(base: Inputs, sized: Sequence[Shape], seed: int) -> Inputs:
    """The inputs with a leading axis more or fewer, where the shapes have it."""
    generator = torch.Generator().manual_seed(seed)
    pairs = zip(base.tensors, sized, strict=True)
    return base.replace([_reranked(tensor, shape, generator) for tensor, shape in pairs])


def _reranked(tensor: Tensor, shape: Shape, generator: torch.Generator) -> Tensor:
    """The tensor repeated along a new leading axis, or the first part of it without that axis."""
    if tensor.dim() > len(shape):
        return tensor[0].contiguous()
    if tensor.dim() == len(shape):
        return tensor
    return _apart(tensor.expand(shape).contiguous(), generator)


def _apart(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Repeated elements of a continuous tensor drawn apart, each up to 3 % towards zero.

    A judge that counts small errors would count one element as often as it is repeated. Sign, zero
    and bounds such as [0, 1) are kept; a tensor of a few distinct values stays as it is.
    """
    if not tensor.is_floating_point() or not _varies(tensor):
        return tensor
    factor = 1.0 - 0.03 * torch.rand(tensor.shape, generator=generator)
    return (tensor * factor).to(tensor.dtype)


def _varies(tensor: Tensor) -> bool:
    """Whether it has many distinct values: the first elements tell, nearly always."""
    most = min(_DISTINCT, tensor.numel())
    first = tensor.flatten()[:_FIRST]
    return any(len(part.unique()) >= most for part in (first, tensor))
