"""How operations are taken apart at the capture where torch.export does not, or not so well.

Along whatever dimension a sort goes, it becomes one along the last; medians and the like become a
sort and an index.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_ATEN = torch.ops.aten


def table() -> Any:
    """The decompositions for `ExportedProgram.run_decompositions`."""
    known = torch.export.default_decompositions()
    known.update(_OURS)
    return known


def _last(x: Tensor, dim: int) -> bool:
    return bool(x.dim() > 0 and dim % x.dim() == x.dim() - 1)


def _sort(x: Tensor, dim: int = -1, descending: bool = False) -> Any:
    return _stable_sort(x, stable=True, dim=dim, descending=descending, again=True)


def _stable_sort(
    x: Tensor,
    *,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
    again: bool = False,
) -> Any:
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if _last(x, dim) and not again:
        return NotImplemented  # as it is
    found = _ATEN.sort.stable(_turned(x, dim), stable=True, dim=-1, descending=descending)
    return tuple(_turned(item, dim) for item in found)


def _turned(x: Tensor, dim: int) -> Tensor:
    return x if _last(x, dim) else x.transpose(dim, -1)


def _topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if _last(x, dim):
        return NotImplemented
    return tuple(_turned(item, dim) for item in _ATEN.topk(_turned(x, dim), k, -1, largest, sorted))


def _kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    return tuple(_picked(item.narrow(dim, k - 1, 1), dim, keepdim) for item in _sort(x, dim))


def _picked(item: Tensor, dim: int, keepdim: bool) -> Tensor:
    return item if keepdim else item.squeeze(dim)


def _middle(x: Tensor, dim: int, keepdim: bool, ignored: bool) -> Any:
    """The lower of the two middle elements; NaN where there is one, or among the others."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, places = _sort(x, dim)
    numbers = (x == x).sum(dim, keepdim=True)  # they come first
    middle = torch.div(torch.clamp(numbers - 1, min=0), 2, rounding_mode="floor")
    if not ignored and x.is_floating_point():
        middle = torch.where((x != x).any(dim, keepdim=True), numbers, middle)
    return tuple(_picked(item.gather(dim, middle), dim, keepdim) for item in (values, places))


def _median(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    return _middle(x, dim, keepdim, False)


def _nanmedian(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    return _middle(x, dim, keepdim, True)


def _median_of_all(x: Tensor) -> Any:
    return _middle(x.flatten(), 0, False, False)[0]


def _nanmedian_of_all(x: Tensor) -> Any:
    return _middle(x.flatten(), 0, False, True)[0]


def _stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Not a join that is taken apart again, whose pieces may be as many as they are long."""
    return torch.cat([item.unsqueeze(dim) for item in tensors], dim)


_OURS = {
    _ATEN.stack.default: _stack,
    _ATEN.sort.default: _sort,
    _ATEN.sort.stable: _stable_sort,
    _ATEN.topk.default: _topk,
    _ATEN.kthvalue.default: _kthvalue,
    _ATEN.median.dim: _median,
    _ATEN.nanmedian.dim: _nanmedian,
    _ATEN.median.default: _median_of_all,
    _ATEN.nanmedian.default: _nanmedian_of_all,
}
