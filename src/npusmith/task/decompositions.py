"""How operations are taken apart at the capture where torch.export does not, or not so well.

Along whatever dimension a sort goes, it becomes one along the last; medians and the like become a
sort and an index. Resizes by interpolation and affine grids stay whole: taken apart they are dozens
of nodes in which sizes are numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions

from npusmith.task import recurrent_layers
from npusmith.task.convolutions import convolution
from npusmith.task.special_functions import (
    atan2,
    copysign,
    digamma,
    divided,
    erfinv,
    fmod,
    hypot,
    lgamma,
    remainder,
    signbit,
    wide,
)

_ATEN = torch.ops.aten


def table() -> Any:
    """The decompositions for `ExportedProgram.run_decompositions`."""
    known = torch.export.default_decompositions()
    known.update(_OURS)
    known.update(recurrent_layers.decompositions())
    for name in _WHOLE:
        packet = getattr(_ATEN, name)
        for overload in packet.overloads():
            known.pop(getattr(packet, overload), None)
    return known


def taken_apart() -> frozenset[str]:
    """Names of the operations with a rule here, but for those that it turns, or leaves."""
    found = {str(op).split(".")[1] for op in _OURS} - {
        "sort",
        "topk",
        "div",
        "cummax",
        "cummin",
        "roll",
        "index_put",
    }
    return frozenset(found)


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


def _index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Any:
    """A row that is written wherever a mask is set: a choice between two values."""
    masks = [item for item in indices if item is not None]
    if len(masks) != 1 or masks[0].dtype != torch.bool or indices[-1] is None:
        return NotImplemented
    (mask,) = masks
    first = len(indices) - 1
    rest = x.dim() - first - mask.dim()
    if not mask.dim() or not 0 < values.dim() <= rest:
        return NotImplemented  # a number, or values that are told apart by the place of a row
    shaped = mask.reshape([1] * first + [*mask.shape] + [1] * rest)
    new = values.to(x.dtype)
    return torch.where(shaped, x + new if accumulate else new, x)


def _eye(n: int, *sizes: int, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """By places in int64: PyTorch's own takes the shortest type that they fit into, so that the
    program would be another one for more than 255 rows."""
    given = {"device": options.get("device")}
    rows, columns = (torch.arange(size, **given) for size in (n, *(sizes or (n,))))
    return (rows[:, None] == columns).to(dtype or torch.get_default_dtype())


def _kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    return tuple(picked(item.narrow(dim, k - 1, 1), dim, keepdim) for item in _sort(x, dim))


def picked(item: Tensor, dim: int, keepdim: bool) -> Tensor:
    """An element of each row, as reductions give it."""
    return item if keepdim else item.squeeze(dim)


def _middle(x: Tensor, dim: int, keepdim: bool, ignored: bool) -> Any:
    """The lower of the two middle elements; NaN where there is one, or among the others."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, places = _sort(x, dim)
    at = middle_place(x, dim, ignored)
    return tuple(picked(item.gather(dim, at), dim, keepdim) for item in (values, places))


def middle_place(x: Tensor, dim: int, ignored: bool) -> Tensor:
    """Where the median stands in sorted rows, in which NaN come last; `ignored`: are left out."""
    numbers = (x == x).sum(dim, keepdim=True)
    middle = torch.div(torch.clamp(numbers - 1, min=0), 2, rounding_mode="floor")
    if ignored or not x.is_floating_point():
        return middle
    return torch.where((x != x).any(dim, keepdim=True), numbers, middle)


def _median(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    return _middle(x, dim, keepdim, False)


def _nanmedian(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    return _middle(x, dim, keepdim, True)


def _median_of_all(x: Tensor) -> Any:
    return _middle(x.flatten(), 0, False, False)[0]


def _nanmedian_of_all(x: Tensor) -> Any:
    return _middle(x.flatten(), 0, False, True)[0]


def _copied(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Of what was there its shape and type are left."""
    return source.to(x.dtype).expand(x.shape).clone()


def _stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Not a join that is taken apart again, whose pieces may be as many as they are long."""
    return torch.cat([item.unsqueeze(dim) for item in tensors], dim)


def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if dims or x.dim() < 2:
        return NotImplemented  # as it is
    return x.flatten().roll(shifts, 0).view(x.shape)


def _running_extreme(name: str) -> Any:
    """cummax and cummin of wide integers: every element with all those before it."""

    def rule(x: Tensor, dim: int) -> Any:
        if x.dtype not in (torch.int32, torch.int64) or x.dim() == 0:
            return NotImplemented
        turned = _turned(x, dim)
        at = torch.arange(x.shape[dim], device=x.device)
        before = at <= at.unsqueeze(-1)
        limits = torch.iinfo(x.dtype)
        beyond = torch.full((), limits.min if name == "amax" else limits.max, dtype=x.dtype)
        row = turned.unsqueeze(-2)
        best = getattr(torch, name)(torch.where(before, row, beyond), -1)
        here = before & (row == best.unsqueeze(-1))
        last = torch.where(here, at, torch.full((), -1, dtype=torch.int64)).amax(-1)
        return _turned(best, dim), _turned(last, dim)

    return rule


def _dist(x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    return torch.linalg.vector_norm(x - y, p)


def _ldexp(x: Tensor, y: Tensor) -> Tensor:
    return x * torch.exp2(y.float())


def _searchsorted(
    edges: Tensor, x: Tensor, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Tensor | None = None,
) -> Any:  # fmt: skip
    """How many edges lie before each element."""
    if sorter is not None:
        return NotImplemented
    here = x.unsqueeze(-1)
    row = edges if edges.dim() == 1 else edges.unsqueeze(-2)
    before = ~(row > here) if right or side == "right" else row < here
    before = before | (here != here)
    return before.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _bucketize(x: Tensor, edges: Tensor, *, out_int32: bool = False, right: bool = False) -> Any:
    return _searchsorted(edges, x, out_int32=out_int32, right=right)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = x.flatten().index_put((index.flatten(),), source.flatten(), accumulate)
    return flat.view(x.shape)


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    mask, x = torch.broadcast_tensors(mask, x)
    at = torch.clamp(mask.flatten().cumsum(0) - 1, min=0)
    return torch.where(mask, source.flatten().index_select(0, at).view(x.shape), x)


def _as_strided(
    x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    if not x.is_contiguous():
        return NotImplemented
    at = torch.full([1] * len(size), storage_offset or 0, dtype=torch.int64, device=x.device)
    for i, (count, step) in enumerate(zip(size, stride, strict=True)):
        shape = [count if j == i else 1 for j in range(len(size))]
        at = at + (torch.arange(count, device=x.device) * step).view(shape)
    return x.flatten().index_select(0, at.expand(size).flatten()).view(size)


def _distances(x: Tensor, y: Tensor, p: float, mode: int | None = None) -> Tensor:
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)


_SUM, _MEAN = 0, 1  # modes of a bag; 2 is the largest


@dataclass(frozen=True, slots=True)
class _Bags:
    """The arguments of `aten._embedding_bag` behind its first tensors, in its order."""

    scale_grad_by_freq: bool = False
    mode: int = _SUM
    sparse: bool = False
    per_sample_weights: Tensor | None = None
    include_last_offset: bool = False
    padding_idx: int = -1


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, *given: Any, **named: Any
) -> Any:
    """Rows that indices name, joined bag by bag; a bag starts at its offset.

    Padding has a bag of its own, behind the others.
    """
    bags = _Bags(*given, **named)
    starts = offsets[:-1] if bags.include_last_offset else offsets
    at = torch.arange(indices.shape[0], device=indices.device)
    bag = (starts <= at.unsqueeze(1)).sum(1) - 1
    rows = weight.index_select(0, indices)
    if bags.per_sample_weights is not None:
        rows = rows * bags.per_sample_weights.unsqueeze(1)
    count, width = starts.shape[0], weight.shape[1]
    padded = bags.padding_idx >= 0
    zero = torch.zeros((count + padded, width), dtype=weight.dtype, device=weight.device)
    places = bag.masked_fill(indices == bags.padding_idx, count) if padded else bag
    places = places.unsqueeze(1).expand(-1, width)
    if bags.mode == _SUM:
        found = zero.scatter_add(0, places, rows)
    else:
        kind = "mean" if bags.mode == _MEAN else "amax"
        found = zero.scatter_reduce(0, places, rows, kind, include_self=False)
    kept = found[:count] if padded else found
    return kept, bag, torch.zeros_like(starts), torch.zeros_like(starts)


def _rounded(x: Tensor, *, decimals: int) -> Tensor:
    """To so many decimals, as PyTorch does: scaled, rounded to even, and scaled back."""
    power = 10.0 ** abs(decimals)
    return (x / power).round() * power if decimals < 0 else (x * power).round() / power


def _added_product(product: str) -> Any:
    """beta * x + alpha * the product, which is a kernel of its own on the cube cores."""

    def rule(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        made: Tensor = getattr(torch, product)(a, b)
        made = made if alpha == 1 else made * alpha
        if beta == 0:
            return made
        return made + (x if beta == 1 else x * beta)

    return rule


def _diagonal_scatter(
    x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """The diagonal replaced: along the rest each place takes the element of its row or column."""
    turned = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = turned.shape[-2:]
    across, down = (torch.arange(count, device=x.device) for count in (columns, rows))
    on = across - down.unsqueeze(-1) == offset
    if not src.shape[-1]:
        return x.clone()
    along = torch.arange(rows if offset >= 0 else columns, device=x.device)
    along = along.clamp(max=src.shape[-1] - 1)
    spread = src.index_select(-1, along).unsqueeze(-1 if offset >= 0 else -2)
    return torch.where(on, spread, turned).movedim((-2, -1), (dim1, dim2))


def _rrelu(
    x: Tensor, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3,
    training: bool = False, generator: Any = None,
) -> Any:  # fmt: skip
    if training:
        return NotImplemented  # random: as it is
    return torch.nn.functional.leaky_relu(x, (lower + upper) / 2), noise


_WHOLE = (
    "take_along_dim", "affine_grid_generator",
    "upsample_linear1d", "upsample_trilinear3d", "upsample_bicubic2d",
    *(f"{kind}{rank}d" for kind in ("upsample_nearest", "_upsample_nearest_exact")
      for rank in (1, 2, 3)),
)  # fmt: skip
_OURS = {
    **get_decompositions([_ATEN.max_pool2d_with_indices_backward]),
    _ATEN.addmm.default: _added_product("mm"),
    _ATEN.baddbmm.default: _added_product("bmm"),
    _ATEN.convolution.default: convolution,
    _ATEN.copy.default: _copied,
    _ATEN.cummax.default: _running_extreme("amax"),
    _ATEN.cummin.default: _running_extreme("amin"),
    _ATEN.fmod.Tensor: wide(fmod),
    _ATEN.fmod.Scalar: wide(fmod),
    _ATEN.remainder.Tensor: wide(remainder),
    _ATEN.remainder.Scalar: wide(remainder),
    _ATEN.div.Tensor_mode: wide(divided),
    _ATEN.div.Scalar_mode: wide(divided),
    _ATEN.atan2.default: wide(atan2),
    _ATEN.hypot.default: wide(hypot),
    _ATEN.copysign.Tensor: wide(copysign),
    _ATEN.copysign.Scalar: wide(copysign),
    _ATEN.erfinv.default: wide(erfinv),
    _ATEN.lgamma.default: wide(lgamma),
    _ATEN.digamma.default: wide(digamma),
    _ATEN.signbit.default: signbit,
    _ATEN.ldexp.Tensor: _ldexp,
    _ATEN.round.decimals: wide(_rounded),
    _ATEN.diagonal_scatter.default: _diagonal_scatter,
    _ATEN.rrelu_with_noise_functional.default: _rrelu,
    _ATEN.dist.default: _dist,
    _ATEN._cdist_forward.default: _distances,
    _ATEN._embedding_bag.default: _embedding_bag,
    _ATEN._embedding_bag_forward_only.default: _embedding_bag,
    _ATEN.searchsorted.Tensor: _searchsorted,
    _ATEN.bucketize.Tensor: _bucketize,
    _ATEN.put.default: _put,
    _ATEN.masked_scatter.default: _masked_scatter,
    _ATEN.as_strided.default: _as_strided,
    _ATEN.roll.default: _roll,
    _ATEN.stack.default: _stack,
    _ATEN.sort.default: _sort,
    _ATEN.sort.stable: _stable_sort,
    _ATEN.topk.default: _topk,
    _ATEN.eye.default: _eye,
    _ATEN.eye.m: _eye,
    _ATEN.index_put.default: _index_put,
    _ATEN.kthvalue.default: _kthvalue,
    _ATEN.median.dim: _median,
    _ATEN.nanmedian.dim: _nanmedian,
    _ATEN.median.default: _median_of_all,
    _ATEN.nanmedian.default: _nanmedian_of_all,
}
