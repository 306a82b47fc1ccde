"""How much work a call of a model is: `count_work(call)`, the same on every machine.

Elements that its operations read and write, eight multiplications of a product as one, and a share
for each operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_CALL = 10_000  # elements that take as long as the way to an operation
_TOGETHER = 8  # multiplications of a product that take as long as one element


class _Work(TorchDispatchMode):  # type: ignore[misc]
    """While it is on, operations are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.done = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        leaves = pytree.tree_leaves((args, kwargs, result))
        self.done += _CALL + sum(
            item.numel() for item in leaves if isinstance(item, torch.Tensor) and not func.is_view
        )
        self.done += _multiplications(func, args, kwargs, result) // _TOGETHER
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


def count_work(call: Callable[[], Any]) -> int:
    """What `call()` does, in elements."""
    with _Work() as mode:
        call()
    return int(mode.done)
