"""Equal elements in a sort, repeated indices in a write: PyTorch leaves their order open.

So does the judge. References are made with equal elements in the order in which they stand. Where
the outputs of an edge set would be others with equal elements turned around, the set says nothing
about a kernel. Of several values for one place references keep the last; elements that would be
others with the first are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from npusmith.task.decompositions import middle_place, picked
from npusmith.task.graph import Graph

TIES = "equal elements are put in order, which PyTorch leaves open"
_ATEN = torch.ops.aten
_WRITES = ("index_put", "scatter", "index_copy")
_WORDS = ("sort", "topk", "kthvalue", "median", "nanmedian")


def has_sorts(graph: Graph) -> bool:
    """Whether elements are put in an order, of which places are taken."""
    return any(node.op.split(".")[1:2] in [[word] for word in _WORDS] for node in graph.nodes)


def has_writes(graph: Graph) -> bool:
    """Whether values are put at places that may be named more than once."""
    return any(node.op.split(".")[1:2] in [[word] for word in _WRITES] for node in graph.nodes)


class LastWrites(TorchDispatchMode):  # type: ignore[misc]
    """Of several values for one place the last is kept; `reverse`: the first."""

    def __init__(self, reverse: bool = False) -> None:
        super().__init__()
        self.reverse = reverse

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        turn = _TURNED.get(func.overloadpacket)
        if turn is None or kwargs:  # a reduction, which has no order
            return func(*args, **(kwargs or {}))
        if self.reverse:
            args = turn(*args)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # writes one value after the other
        try:
            return func(*args)
        finally:
            torch.set_num_threads(threads)


def open_elements(references: Sequence[Tensor], turned: Sequence[Tensor]) -> list[Tensor]:
    """An infinite bound where outputs depend on which value is kept; nothing where none does."""
    pairs = list(zip(references, turned, strict=True))
    differ = [(a != b) & ~((a != a) & (b != b)) for a, b in pairs]
    if not any(bool(item.any()) for item in differ):
        return []
    return [torch.zeros(item.shape).masked_fill_(item, torch.inf) for item in differ]


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


def _turned_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, *more: Any
) -> tuple[Any, ...]:
    """Indices and values of an index_put from the last to the first."""
    given = {at: item for at, item in enumerate(indices) if item is not None}
    masked = any(item.dtype in (torch.bool, torch.uint8) for item in given.values())
    if masked or (more and more[0]):  # a mask names each place once, and a sum has no order
        return (x, indices, values, *more)
    spread = torch.broadcast_tensors(*given.values())
    whole, rank, places = torch.ops.aten.index(x, indices), spread[0].dim(), list(given)
    first = places[0] if places == list(range(places[0], places[-1] + 1)) else 0
    along = list(range(first, first + rank))
    found = list(indices)
    for at, item in zip(given, spread, strict=True):
        found[at] = item.flip(list(range(rank)))
    return (x, found, values.expand(whole.shape).flip(along), *more)


def _turned_along(x: Tensor, dim: int, index: Tensor, source: Any, *more: Any) -> tuple[Any, ...]:
    """Those of a scatter or an index_copy, along its dimension."""
    if not isinstance(source, torch.Tensor) or not index.dim() or not source.dim():
        return (x, dim, index, source, *more)
    if index.dim() < source.dim():  # index_copy: a vector of places
        return (x, dim, index.flip(0), source.flip(dim), *more)
    for at, size in enumerate(index.shape if index.dim() == source.dim() == x.dim() else ()):
        source = source.narrow(at, 0, size)
    return (x, dim, index.flip(dim), source.flip(dim), *more)


_TURNED: dict[Any, Callable[..., tuple[Any, ...]]] = {
    _ATEN.index_put: _turned_put,
    _ATEN.index_put_: _turned_put,
    _ATEN._index_put_impl_: _turned_put,
    _ATEN.scatter: _turned_along,
    _ATEN.scatter_: _turned_along,
    _ATEN.index_copy: _turned_along,
    _ATEN.index_copy_: _turned_along,
}
