"""Inputs and parameters whose change never changes an output: `find_idle(positions, names, tried)`.

What no output follows, no judge can check: a kernel that leaves it out passes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from npusmith.errors import TaskError
from npusmith.task.parameter_draws import put, tensors_of
from npusmith.task.user import Inputs, Tensor, run_model

KEPT_BYTES = 256 << 20  # of sets of inputs that are tried again
Run = Callable[..., Sequence[Tensor]]  # (model, arguments, path)
MOST_NAMES = 32  # parameters that are changed one after the other


@dataclass(frozen=True, slots=True)
class ReferenceCall:
    """A set of inputs on which the reference ran."""

    inputs: Inputs
    outputs: Sequence[Tensor]
    model: Any

    @property
    def bytes(self) -> int:
        tensors = (*self.inputs.tensors, *self.outputs)
        return sum(tensor.numel() * tensor.itemsize for tensor in tensors)


def keep(tried: list[ReferenceCall], one: ReferenceCall) -> None:
    """Adds a set, and drops the largest where all together are too much."""
    tried.append(one)
    tried.sort(key=lambda item: item.bytes)
    while len(tried) > 1 and sum(item.bytes for item in tried) > KEPT_BYTES:
        tried.pop()


def find_idle(
    positions: Sequence[int],
    names: Sequence[str],
    tried: Sequence[ReferenceCall],
    path: str,
    run: Run = run_model,
) -> list[str]:
    """Words for each idle argument of forward (by position) and parameter (by attribute path)."""
    found = [
        f"input {at}" for at in positions if not any(_moves(item, at, path, run) for item in tried)
    ]
    work: dict[int, Any] = {}
    for name in names[:MOST_NAMES]:
        if not any(_follows(item, name, path, work, run) for item in tried):
            found.append(f"parameter {name}")
    return found


def _moves(item: ReferenceCall, at: int, path: str, run: Run) -> bool:
    """Does an output follow this argument?"""
    for other in _others(item.inputs.tensors[at]):
        tensors = [*item.inputs.tensors]
        tensors[at] = other
        if _differs(item, item.model, item.inputs.replace(tensors), path, run):
            return True
    return False


def _follows(item: ReferenceCall, name: str, path: str, work: dict[int, Any], run: Run) -> bool:
    """Does an output follow this parameter?"""
    model = work.setdefault(id(item.model), None) or copy.deepcopy(item.model)
    work[id(item.model)] = model
    own = tensors_of(model)[name].detach().clone()
    try:
        for other in _others(own):
            put(model, {name: other})
            if _differs(item, model, item.inputs, path, run):
                return True
        return False
    finally:
        put(model, {name: own})


def _others(tensor: Tensor) -> Iterator[Tensor]:
    """Other values, one kind after the other: scaled and shifted, then of the other sign."""
    if tensor.dtype == torch.bool:
        yield ~tensor
    elif tensor.is_floating_point():
        yield (tensor.double() * 1.25 + 0.37).to(tensor.dtype)
        yield (-0.75 * tensor.double() - 0.11).to(tensor.dtype)
    else:
        rolled = tensor.reshape(-1).roll(1).reshape(tensor.shape)  # values that stay legal
        yield tensor + 1 if torch.equal(rolled, tensor) else rolled


def _differs(item: ReferenceCall, model: Any, inputs: Inputs, path: str, run: Run) -> bool:
    try:
        found = run(model, inputs.args(), path)
    except TaskError:
        return True  # it was looked at
    pairs = zip(found, item.outputs, strict=False)
    return len(found) != len(item.outputs) or not all(_same(a, b) for a, b in pairs)


def _same(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())
