"""Functions of floats that no instruction computes, out of those that one does.

They are written in PyTorch, for the capture to take operations apart (decompositions.py): exact
remainders by error-free products, angles, the gamma functions, the inverse of erf.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def wide(fn: Any) -> Any:
    """Computed in float32 where the operands are narrower; integers stay as they are."""

    def rule(x: Tensor, *others: Any, **kwargs: Any) -> Any:
        tensors = [item for item in (x, *others) if isinstance(item, Tensor)]
        dtype = torch.result_type(x, others[0] if others else 1.0)
        if not any(item.is_floating_point() for item in tensors) or dtype == torch.float64:
            return NotImplemented
        items = [item.float() if isinstance(item, Tensor) else item for item in (x, *others)]
        return fn(*items, **kwargs).to(dtype)

    return rule


_STEP, _STEPS, _SPLIT = 23, 6, 4097.0  # bits of a quotient, how often, and 2**12 + 1


def _rest(x: Tensor, y: Tensor, number: float | None) -> Tensor:
    """|x| modulo |y|, exact: 23 bits of the quotient at a time, products with their errors.

    A product's error is that of Dekker (1971), with halves of 12 bits. `number`: what y is, where
    it is a number: its halves are made here, because arithmetic of constants is in float64 later.
    """
    scale: Any = torch.where(y.abs() > 2.0**100, 2.0**-24, 1.0) if number is None else 1.0
    by: Any = y.abs() * scale if number is None else abs(_single(number))
    rest = x.abs() * scale
    high = by * _SPLIT - (by * _SPLIT - by) if number is None else _upper_half(by)
    low = by - high
    for step in reversed(range(_STEPS)):
        factor = 2.0 ** (_STEP * step)
        own, top, bottom = by * factor, high * factor, low * factor
        times = torch.trunc(rest / own)
        upper = times * _SPLIT - (times * _SPLIT - times)
        lower = times - upper
        product = times * own
        error = ((upper * top - product) + upper * bottom + lower * top) + lower * bottom
        rest = torch.where((times != 0) & (own < torch.inf), (rest - product) - error, rest)
    rest = torch.where(rest < 0, rest + by, rest)
    rest = torch.where(rest >= by, rest - by, rest)
    rest = torch.where(torch.isinf(x) | (y == 0) | (y != y), torch.nan, rest)
    return torch.where(x.abs() < y.abs(), x.abs(), rest / scale)


def _tensor(x: Any) -> Tensor:
    """Numbers as tensors that the graph makes: it may have no constants of its own here."""
    return x if isinstance(x, Tensor) else torch.full((), _single(x), dtype=torch.float32)


def _single(x: float) -> float:
    """The nearest float32."""
    return ctypes.c_float(x).value


def _upper_half(x: float) -> float:
    """The upper 12 bits of a float32."""
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    found: float = struct.unpack("<f", struct.pack("<I", bits & 0xFFFFF000))[0]
    return found


def fmod(x: Any, y: Any) -> Tensor:
    number = None if isinstance(y, Tensor) else float(y)
    x, y = _tensor(x), _tensor(y)
    rest = _rest(x, y, number)
    return torch.where(x < 0, -rest, rest)


def remainder(x: Any, y: Any) -> Tensor:
    rest = fmod(x, y)
    y = _tensor(y)
    return torch.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def divided(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    """As ATen's div_floor_floating: by way of the remainder."""
    if rounding_mode is None:
        return torch.div(x, y)
    if rounding_mode == "trunc":
        return torch.trunc(_tensor(x) / y)
    rest = fmod(x, y)
    x, y = _tensor(x), _tensor(y)
    off = (rest != 0) & ((y < 0) != (rest < 0))
    found = (x - rest) / y - torch.where(off, 1.0, 0.0)
    whole = torch.floor(found)
    whole = torch.where(found - whole > 0.5, whole + 1.0, whole)
    return torch.where(y == 0, x / y, whole)


def atan2(y: Tensor, x: Tensor) -> Tensor:
    steep = y.abs() > x.abs()
    below, above = torch.where(steep, y, x), torch.where(steep, x, y)
    both = torch.isinf(x) & torch.isinf(y)
    ratio = torch.where(both, torch.sign(above) * torch.sign(below), above / below)
    angle = torch.atan(torch.where((x == 0) & (y == 0), 0.0, ratio))
    left = torch.where(signbit(y), angle - math.pi, angle + math.pi)
    up = torch.where(y < 0, -math.pi / 2, math.pi / 2) - angle
    return torch.where(steep, up, torch.where(signbit(x), left, angle))


def hypot(x: Tensor, y: Tensor) -> Tensor:
    most, least = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = torch.where(most == 0, 0.0, least / most)
    found = most * torch.sqrt(1.0 + ratio * ratio)
    return torch.where(torch.isinf(x) | torch.isinf(y), torch.inf, found)


def signbit(x: Tensor) -> Tensor:
    if not x.is_floating_point():
        return x < 0
    return (x < 0) | ((x == 0) & (1.0 / x < 0))


def copysign(x: Tensor, y: Any) -> Tensor:
    size = x.abs()
    return torch.where(signbit(_tensor(y)), -size, size)


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


def erfinv(x: Tensor) -> Tensor:
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


def lgamma(x: Tensor) -> Tensor:
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


def digamma(x: Tensor) -> Tensor:
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
