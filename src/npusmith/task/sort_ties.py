"""Equal elements in a sort: PyTorch leaves their order open, and so does the judge.

References are made with equal elements in the order in which they stand. Where the outputs of an
edge set would be others with equal elements turned around, the set says nothing about a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from npusmith.task.decompositions import middle_place, picked
from npusmith.task.graph import Graph

TIES = "equal elements are put in order, which PyTorch leaves open"
_ATEN = torch.ops.aten
_WORDS = ("sort", "topk", "kthvalue", "median", "nanmedian")


def has_sorts(graph: Graph) -> bool:
    """Whether elements are put in an order, of which places are taken."""
    return any(node.op.split(".")[1:2] in [[word] for word in _WORDS] for node in graph.nodes)


class StableSorts(TorchDispatchMode):  # type: ignore[misc]
    """Sorts keep the order of equal elements; `reverse`: they turn it around."""

    def __init__(self, reverse: bool = False) -> None:
        super().__init__()
        self.reverse = reverse
        self.met = False  # whether there was one

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = _RULES.get(func)
        if rule is None or args[0].dim() == 0:
            return func(*args, **kwargs)
        self.met = True
        result = func(*args, **kwargs)
        values, places = rule(self._places, *args, **kwargs)
        return type(result)((values, places)) if isinstance(result, tuple) else values

    def _places(self, x: Tensor, dim: int, descending: bool) -> Tensor:
        turned = x.flip(dim) if self.reverse else x
        places = _ATEN.sort.stable(turned, stable=True, dim=dim, descending=descending)[1]
        return x.shape[dim] - 1 - places if self.reverse else places


Places = Callable[[Tensor, int, bool], Tensor]


def _sort(at: Places, x: Tensor, dim: int = -1, descending: bool = False) -> Any:
    places = at(x, dim, descending)
    return x.gather(dim, places), places


def _stable_sort(
    at: Places, x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> Any:
    if stable:
        return _ATEN.sort.stable(x, stable=True, dim=dim, descending=descending)
    return _sort(at, x, dim, descending)


def _topk(
    at: Places, x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    places = at(x, dim, largest).narrow(dim, 0, k).contiguous()  # as PyTorch's own: it is viewed
    return x.gather(dim, places), places


def _kthvalue(at: Places, x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    places = at(x, dim, False).narrow(dim, k - 1, 1).contiguous()
    return tuple(picked(item, dim, keepdim) for item in (x.gather(dim, places), places))


def _median(ignored: bool) -> Callable[..., Any]:
    def rule(at: Places, x: Tensor, dim: int, keepdim: bool = False) -> Any:
        places = at(x, dim, False).gather(dim, middle_place(x, dim, ignored))
        return tuple(picked(item, dim, keepdim) for item in (x.gather(dim, places), places))

    return rule


_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN.sort.default: _sort,
    _ATEN.sort.stable: _stable_sort,
    _ATEN.topk.default: _topk,
    _ATEN.kthvalue.default: _kthvalue,
    _ATEN.median.dim: _median(False),
    _ATEN.nanmedian.dim: _median(True),
}
