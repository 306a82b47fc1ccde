"""Constant tensors on the meta device, with the values that the task's code writes out.

`torch.tensor([1.0, 2.0])` has no values there, and they are part of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.overrides import TorchFunctionMode

_MAKERS = (torch.tensor, torch.as_tensor, torch.asarray)
_ATTRIBUTE = "npusmith_values"


class MetaConstants(TorchFunctionMode):  # type: ignore[misc]
    """While it is entered, tensors on the meta device keep the values that they are made of."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        given: Mapping[str, Any] = kwargs or {}
        made = func(*args, **given)
        if func in _MAKERS and made.is_meta:
            with torch._C.DisableTorchFunction(), unset_fake_temporarily():
                try:
                    held = func(*args, **{**given, "device": "cpu"}).detach()
                except (NotImplementedError, RuntimeError):
                    return made  # of a tensor that has no memory itself
            setattr(made, _ATTRIBUTE, (held, made._version))
        return made


def values_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its values, where they are known: not if it was changed since in place."""
    held, version = getattr(tensor, _ATTRIBUTE, (tensor, tensor._version))
    assert isinstance(held, torch.Tensor)
    return held if tensor._version == version else tensor
