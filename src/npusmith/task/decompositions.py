"""How operations are taken apart at the capture where torch.export does not, or not so well.

Along whatever dimension a sort goes, it becomes one along the last; medians and the like become a
sort and an index. Resizes by interpolation and affine grids stay whole: taken apart they are dozens
of nodes in which sizes are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_ATEN = torch.ops.aten


def table() -> Any:
    """The decompositions for `ExportedProgram.run_decompositions`."""
    known = torch.export.default_decompositions()
    known.update(_OURS)
    for name in _WHOLE:
        packet = getattr(_ATEN, name)
        for overload in packet.overloads():
            known.pop(getattr(packet, overload), None)
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


# ------------------------------------------------------------------------------ element by element


def _wide(fn: Any) -> Any:
    """Computed in float32 where the operands are narrower; integers stay as they are."""

    def rule(x: Tensor, *others: Any, **kwargs: Any) -> Any:
        tensors = [item for item in (x, *others) if isinstance(item, Tensor)]
        dtype = torch.result_type(*((others and (x, others[0])) or (x, 1.0)))
        if not any(item.is_floating_point() for item in tensors) or dtype == torch.float64:
            return NotImplemented
        items = [item.float() if isinstance(item, Tensor) else item for item in (x, *others)]
        return fn(*items, **kwargs).to(dtype)

    return rule


_STEP, _STEPS, _SPLIT = 23, 6, 4097.0  # bits of a quotient, how often, and 2**12 + 1


def _rest(x: Tensor, y: Tensor) -> Tensor:
    """|x| modulo |y|, exact: 23 bits of the quotient at a time, products with their errors.

    A product's error is that of Dekker (1971), with halves of 12 bits.
    """
    large = y.abs() > 2.0**100
    scale = torch.where(large, 2.0**-24, 1.0)
    rest, by = x.abs() * scale, y.abs() * scale
    high = by * _SPLIT - (by * _SPLIT - by)
    low = by - high
    for step in reversed(range(_STEPS)):
        factor = 2.0 ** (_STEP * step)
        own, top, bottom = by * factor, high * factor, low * factor
        times = torch.trunc(rest / own)
        upper = times * _SPLIT - (times * _SPLIT - times)
        lower = times - upper
        product = times * own
        error = ((upper * top - product) + upper * bottom + lower * top) + lower * bottom
        rest = torch.where((times != 0) & torch.isfinite(own), (rest - product) - error, rest)
    rest = torch.where(rest < 0, rest + by, rest)
    rest = torch.where(rest >= by, rest - by, rest)
    rest = torch.where(torch.isinf(x) | (y == 0) | (y != y), torch.nan, rest)
    return torch.where(x.abs() < y.abs(), x.abs(), rest / scale)


def _tensor(x: Any) -> Tensor:
    """Numbers as tensors that the graph makes: it may have no constants of its own here."""
    return x if isinstance(x, Tensor) else torch.full((), x, dtype=torch.float32)


def _fmod(x: Any, y: Any) -> Tensor:
    x, y = _tensor(x), _tensor(y)
    rest = _rest(x, y)
    return torch.where(x < 0, -rest, rest)


def _remainder(x: Any, y: Any) -> Tensor:
    rest, y = _fmod(x, y), _tensor(y)
    return torch.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def _divided(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    """As ATen's div_floor_floating: by way of the remainder."""
    x, y = _tensor(x), _tensor(y)
    if rounding_mode is None:
        return torch.div(x, y)
    if rounding_mode == "trunc":
        return torch.trunc(x / y)
    rest = _fmod(x, y)
    off = (rest != 0) & ((y < 0) != (rest < 0))
    found = (x - rest) / y - torch.where(off, 1.0, 0.0)
    whole = torch.floor(found)
    whole = torch.where(found - whole > 0.5, whole + 1.0, whole)
    return torch.where(y == 0, x / y, whole)


def _atan2(y: Tensor, x: Tensor) -> Tensor:
    steep = y.abs() > x.abs()
    below, above = torch.where(steep, y, x), torch.where(steep, x, y)
    both = torch.isinf(x) & torch.isinf(y)
    ratio = torch.where(both, torch.sign(above) * torch.sign(below), above / below)
    angle = torch.atan(torch.where((x == 0) & (y == 0), 0.0, ratio))
    left = torch.where(_signbit(y), angle - math.pi, angle + math.pi)
    up = torch.where(y < 0, -math.pi / 2, math.pi / 2) - angle
    return torch.where(steep, up, torch.where(_signbit(x), left, angle))


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    most, least = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = torch.where(most == 0, 0.0, least / most)
    found = most * torch.sqrt(1.0 + ratio * ratio)
    return torch.where(torch.isinf(x) | torch.isinf(y), torch.inf, found)


def _signbit(x: Tensor) -> Tensor:
    if not x.is_floating_point():
        return x < 0
    return (x < 0) | ((x == 0) & (1.0 / x < 0))


def _copysign(x: Tensor, y: Any) -> Tensor:
    size = x.abs()
    return torch.where(_signbit(_tensor(y)), -size, size)


# Giles (2010), "Approximating the erfinv function", single precision.
_ERFINV = (
    (2.5, (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
           -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)),
    (3.0, (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
           -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)),
)  # fmt: skip


def _polynomial(x: Tensor, factors: Sequence[float]) -> Tensor:
    total = x * factors[0] + factors[1]
    for factor in factors[2:]:
        total = total * x + factor
    return total


def _erfinv(x: Tensor) -> Tensor:
    size = -torch.log1p(-x * x)
    (near, inner), (far, outer) = _ERFINV
    found = torch.where(
        size < 5.0, _polynomial(size - near, inner), _polynomial(torch.sqrt(size) - far, outer)
    )
    return torch.where(x.abs() == 1.0, x * torch.inf, found * x)


# Stirling's series of lgamma and digamma, for arguments of at least 8.
_SHIFT = 8


def _above(x: Tensor) -> Tensor:
    """What reflection leaves: arguments of at least 1/2."""
    return torch.where(x < 0.5, 1.0 - x, x)


def _turn(x: Tensor) -> Tensor:
    """How far the nearest whole number is, exactly."""
    part = x - torch.floor(x)
    return torch.where(part > 0.5, part - 1.0, part)


def _lgamma(x: Tensor) -> Tensor:
    up = _above(x)
    large = up >= _SHIFT
    product = torch.where(large, 1.0, up)
    for step in range(1, _SHIFT):
        product = product * torch.where(large, 1.0, up + step)
    far = torch.where(large, up, up + _SHIFT)
    square = 1.0 / (far * far)
    series = (1 / 12 - square * (1 / 360 - square / 1260)) / far
    logs = torch.log(far)
    found = (far - 0.5) * logs - far + 0.5 * math.log(2 * math.pi) + series - torch.log(product)
    found = torch.where((up - 1.5).abs() <= 0.75, _near_two(up), found)
    mirrored = math.log(math.pi) - torch.log(torch.sin(math.pi * _turn(x).abs())) - found
    result = torch.where(x < 0.5, mirrored, found)
    pole = (x <= 0) & (x == torch.floor(x))
    return torch.where(torch.isinf(x) | pole, torch.inf, result)


# Zeta series of lgamma(1 + z) - log(1 + z) + z (1 - Euler's constant) about z = 1.
_ZETA = (1.6449340668482264, 1.2020569031595943, 1.0823232337111382, 1.0369277551433699,
         1.0173430619844491, 1.0083492773819228, 1.0040773561979443, 1.0020083928260822,
         1.0009945751278181, 1.0004941886041195, 1.0002460865533080, 1.0001227133475785,
         1.0000612481350587, 1.0000305882363070)  # fmt: skip


def _near_two(x: Tensor) -> Tensor:
    """About 1 and 2, where it is 0: its series at 2, and one step down for arguments below 3/2."""
    low = x < 1.5
    z = torch.where(low, x - 1.0, x - 2.0)
    terms = [(1 if k % 2 == 0 else -1) * (zeta - 1.0) / k for k, zeta in enumerate(_ZETA, 2)]
    total = _polynomial(z, [*reversed(terms)]) * z * z + z * (1.0 - 0.5772156649015329)
    return torch.where(low, total - torch.log1p(z), total)


def _digamma(x: Tensor) -> Tensor:
    up = _above(x)
    large = up >= _SHIFT
    total = torch.where(large, 0.0, 1.0 / up)
    for step in range(1, _SHIFT):
        total = total + torch.where(large, 0.0, 1.0 / (up + step))
    far = torch.where(large, up, up + _SHIFT)
    square = 1.0 / (far * far)
    series = square * (1 / 12 - square * (1 / 120 - square / 252))
    found = torch.log(far) - 0.5 / far - series - total
    mirrored = found - math.pi / torch.tan(math.pi * _turn(x))
    result = torch.where(x < 0.5, mirrored, found)
    result = torch.where((x < 0) & (x == torch.floor(x)), torch.nan, result)
    result = torch.where(x == 0, -torch.inf / torch.where(x == 0, 1.0 / x, 1.0).sign(), result)
    return torch.where(x == torch.inf, torch.inf, result)


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


# ----------------------------------------------------------------------------------- other elements


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
    at = torch.full([1] * len(size), storage_offset or 0, dtype=torch.int64)
    for i, (count, step) in enumerate(zip(size, stride, strict=True)):
        shape = [count if j == i else 1 for j in range(len(size))]
        at = at + (torch.arange(count) * step).view(shape)
    return x.flatten().index_select(0, at.expand(size).flatten()).view(size)


_WHOLE = (
    "upsample_linear1d", "upsample_trilinear3d", "upsample_bicubic2d", "affine_grid_generator",
    *(f"{kind}{rank}d" for kind in ("upsample_nearest", "_upsample_nearest_exact")
      for rank in (1, 2, 3)),
)  # fmt: skip
_OURS = {
    _ATEN.cummax.default: _running_extreme("amax"),
    _ATEN.cummin.default: _running_extreme("amin"),
    _ATEN.fmod.Tensor: _wide(_fmod),
    _ATEN.fmod.Scalar: _wide(_fmod),
    _ATEN.remainder.Tensor: _wide(_remainder),
    _ATEN.remainder.Scalar: _wide(_remainder),
    _ATEN.div.Tensor_mode: _wide(_divided),
    _ATEN.div.Scalar_mode: _wide(_divided),
    _ATEN.atan2.default: _wide(_atan2),
    _ATEN.hypot.default: _wide(_hypot),
    _ATEN.copysign.Tensor: _wide(_copysign),
    _ATEN.copysign.Scalar: _wide(_copysign),
    _ATEN.erfinv.default: _wide(_erfinv),
    _ATEN.lgamma.default: _wide(_lgamma),
    _ATEN.digamma.default: _wide(_digamma),
    _ATEN.signbit.default: _signbit,
    _ATEN.ldexp.Tensor: _ldexp,
    _ATEN.dist.default: _dist,
    _ATEN.searchsorted.Tensor: _searchsorted,
    _ATEN.bucketize.Tensor: _bucketize,
    _ATEN.put.default: _put,
    _ATEN.masked_scatter.default: _masked_scatter,
    _ATEN.as_strided.default: _as_strided,
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
