"""How much work a call of a model is: `count_work(call)`, the same on every machine.

Elements that its operations read and write, eight multiplications of a product as one, and a share
for each operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_CALL = 10_000  # elements that take as long as the way to an operation
_TOGETHER = 8  # multiplications of a product that take as long as one element


class Work(NamedTuple):
    """Elements as above, and how many operations there are."""

    elements: int
    operations: int


class ManyOperations(Exception):
    """There are more than are counted."""


class _Counter(TorchDispatchMode):  # type: ignore[misc]
    """While it is on, operations are counted."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self.elements = self.operations = 0
        self.most = most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        leaves = pytree.tree_leaves((args, kwargs, result))
        self.operations += 1
        if self.operations > self.most:
            raise ManyOperations
        self.elements += _CALL + sum(
            item.numel() for item in leaves if isinstance(item, torch.Tensor) and not func.is_view
        )
        self.elements += _multiplications(func, args, kwargs, result) // _TOGETHER
        return result


def _multiplications(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    count = flop_registry.get(func._overloadpacket)
    if count is not None:
        return int(count(*args, **kwargs, out_val=result))
    name = func._schema.name
    if "attention" in name:  # each row of the queries with each of the keys, twice
        return int(2 * args[0].numel() * args[1].shape[-2])
    if "rnn" in name or "lstm" in name:  # each step with all weights
        held = [item for item in pytree.tree_leaves(args[1:]) if isinstance(item, torch.Tensor)]
        return int(args[0].numel() // args[0].shape[-1] * sum(item.numel() for item in held))
    return 0


def count_work(call: Callable[[], Any], most: float = math.inf) -> Work:
    """What `call()` does. Raises ManyOperations where it has more than `most`, and is not ended."""
    with _Counter(most) as mode:
        call()
    return Work(mode.elements, mode.operations)
