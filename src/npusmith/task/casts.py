"""Floats that become integers which cannot hold them: what a processor makes of these differs.

PyTorch calls it undefined; an x86 gives -2147483648 for every one of them, an NPU the nearest
integer. Edge sets with such values say nothing about a kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from npusmith.ir.dtypes import DType
from npusmith.task.graph import Graph

UNDEFINED = "a float becomes an integer that cannot hold it, which PyTorch leaves undefined"
_CAST = "aten._to_copy"


def has_casts(graph: Graph) -> bool:
    """Whether a tensor is converted to integers anywhere."""
    made = [node.dtype for node in graph.nodes if node.op.startswith(_CAST)]
    return any(dtype and dtype is not DType.BOOL and not dtype.is_float for dtype in made)


class Casts(TorchDispatchMode):  # type: ignore[misc]
    """While it is on, `undefined` becomes True at the first conversion of that kind."""

    undefined = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if str(func).startswith(_CAST) and args[0].is_floating_point():
            self.undefined |= _is_lossy(args[0], result.dtype)
        return result


def _is_lossy(values: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether some value, cut to a whole number, is outside of the integers of that type."""
    if dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
        return False
    limits = torch.iinfo(dtype)
    whole = values.double().trunc()
    held = (whole >= limits.min) & (whole < limits.max + 1)  # NaN is in neither
    return not bool(held.all())
