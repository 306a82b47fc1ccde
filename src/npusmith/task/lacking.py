"""Types that PyTorch's CPU has no kernel for: `call(model, args)` does such operations in float32.

avg_pool3d of halves is one: NPUs have it, and PyTorch's CPU says "not implemented for 'Half'". What
it refuses is computed in float32 and rounded once, as its other kernels for these types do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_NARROW = (torch.float16, torch.bfloat16)
_REFUSED = re.compile(r"not implemented for '(Half|BFloat16)'")
_ERRORS = (RuntimeError,)  # NotImplementedError is one


def call(model: Callable[..., Any], args: Sequence[Any], notes: list[str]) -> Any:
    """`model(*args)`, and what was not computed in its own type added to `notes`, once.

    It stands where a reference is computed, never in what is captured or judged.
    """
    if _type_of(args) is None:
        return model(*args)
    held = [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]
    before = [tensor.clone() for tensor in held]
    try:
        return model(*args)
    except _ERRORS as error:
        if not _REFUSED.search(str(error)):
            raise
    for tensor, first in zip(held, before, strict=True):
        if not torch.equal(tensor, first):  # written on the way
            tensor.copy_(first)
    with _Lacking() as mode:
        result = model(*args)
    if mode.note not in notes:
        notes.append(mode.note)
    return result


class _Lacking(TorchDispatchMode):  # type: ignore[misc]
    """While it is on, calls without a kernel for their type go through float32."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, None] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        try:
            return func(*args, **kwargs)
        except _ERRORS as error:
            dtype = _type_of((args, kwargs))
            # a call that writes into its arguments would write into copies of them
            if dtype is None or func._schema.is_mutable or not _REFUSED.search(str(error)):
                raise
            self.found[f"{func._schema.name} of {dtype}".replace("torch.", "")] = None
            args, kwargs = pytree.tree_map(_converter(dtype, torch.float32), (args, kwargs))
            return pytree.tree_map(_converter(torch.float32, dtype), func(*args, **kwargs))

    @property
    def note(self) -> str:
        """What a record says of the reference."""
        names = ", ".join(self.found).replace("::", ".")
        return f"PyTorch's CPU has no {names}: the reference computes it in float32 and rounds"


def _type_of(values: Any) -> torch.dtype | None:
    """The 16-bit type among the tensors of a call."""
    leaves = pytree.tree_leaves(values)
    found = [leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return next((dtype for dtype in found if dtype in _NARROW), None)


def _converter(source: torch.dtype, to: torch.dtype) -> Callable[[Any], Any]:
    def convert(item: Any) -> Any:
        return item.to(to) if isinstance(item, torch.Tensor) and item.dtype == source else item

    return convert
