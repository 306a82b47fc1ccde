"""Convolutions as matrix products over windows: what the cube unit multiplies without a copy.

A window of a tensor whose channels lie innermost is a few stretches of memory, one for each row of
the kernel; so the compiler multiplies windows where they lie. What has to be in memory first is the
input with channels last (and padded), and the weights in the same order. Products with windows of
1 take both as they are; one channel a group is a sum on the vector unit. A transposed convolution
has a channel for each place between two elements of the input, laid between each other at the end;
no element is multiplied with a zero that PyTorch does not have, as infinities would become NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

_LINE = 128  # bytes of L2 that are served at once
_OFTEN = 64  # times the size of the input that windows may take in memory


class _Windows(NamedTuple):
    """The arguments of `aten.convolution` behind its tensors, in its order."""

    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    transposed: bool
    output_padding: Sequence[int]
    groups: int


def convolution(x: Tensor, w: Tensor, bias: Tensor | None, *windows: Any) -> Tensor:
    """`aten.convolution` for floats, of one to three spatial dimensions."""
    given = _Windows(*windows)
    spatial = w.dim() - 2
    stride, padding, dilation = (_each(item, spatial) for item in given[:3])
    if given.transposed:
        ends = _each(given.output_padding, spatial)
        made = _transposed(x, w, stride, padding, dilation, ends, given.groups)
    else:
        made = _windows(x, w, stride, [(size, size) for size in padding], dilation, given.groups)
    return made if bias is None else made + bias.view(-1, *(1,) * spatial)


def _each(item: Sequence[int], count: int) -> tuple[int, ...]:
    return tuple(item) if len(item) == count else tuple(item) * count


@dataclass(frozen=True, slots=True)
class _Places:
    """Some of the places between two elements of x: `count` of them that take equally much.

    Each of them is the sum over `taps` elements of the kernel, every step-th one from `first` on
    (one later for each place), times the elements of x that lie shift, shift + apart, ... before.
    """

    count: int
    first: int
    taps: int
    shift: int
    apart: int

    @property
    def reach(self) -> int:
        return self.shift + self.apart * (self.taps - 1)

    def weights(self, w: Tensor, at: int, step: int) -> Tensor:
        """The kernel's dimension as these elements of it, and the places behind that."""
        rest = w.narrow(at, self.first, w.shape[at] - self.first)
        return rest.unfold(at, self.count, step).movedim(-1, at + 1)


def _places(size: int, step: int, apart: int) -> list[_Places]:
    """All places, for a kernel of that size. None takes a zero: beside an infinity it is NaN."""
    back = pow(apart, -1, step)  # the element of the kernel that place 1 begins with
    found: list[_Places] = []
    for place in range(step):
        first = place * back % step
        taps = max(-(-(size - first) // step), 0)
        one = _Places(1, first, taps, (apart * first - place) // step, apart)
        last = found[-1] if found else None
        alike = last and (last.taps, last.shift) == (one.taps, one.shift)
        if last and alike and first == last.first + last.count:
            found[-1] = replace(last, count=last.count + 1)
        else:
            found.append(one)
    return found


def _transposed(
    x: Tensor, w: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    ends: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """A transposed convolution as some whose channels are the places between two elements of x.

    Of stride 2, even and odd places of the result are sums over every second element of the kernel
    each: one convolution with twice the channels, which are then laid between each other, or two
    where even places take an element more. What a stride and a dilation have in common is zeros in
    the result.
    """
    spatial = range(w.dim() - 2)
    common = [gcd(*pair) for pair in zip(stride, dilation, strict=True)]
    steps = [step // part for step, part in zip(stride, common, strict=True)]
    lengths = [
        (x.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (w.shape[2 + i] - 1) + 1
        for i in spatial
    ]
    places = [_places(w.shape[2 + i], steps[i], dilation[i] // common[i]) for i in spatial]
    reaches = [max(one.reach for one in row if one.taps) for row in places]
    cuts = [(padding[i], padding[i] - ends[i]) if stride[i] == 1 else (0, 0) for i in spatial]
    often = [x.shape[2 + i] + reaches[i] - sum(cuts[i]) for i in spatial]
    alone = all(len(row) == 1 for row in places)
    around = [
        (far - before, far - min(one.shift for one in row) - behind)
        for row, far, (before, behind) in zip(places, reaches, cuts, strict=True)
    ]
    last = _channels_last(x, around) if not alone and not _few(x, w.shape[0] // groups) else None

    def at_places(chosen: Sequence[_Places]) -> Tensor:
        """n, groups, places of each dimension, channels, and how often these places come."""
        ahead = (x.shape[0], groups, *(one.count for one in chosen), w.shape[1])
        if not all(one.taps for one in chosen):
            return x.new_zeros((*ahead, *often))
        weights, apart = _weights(w, chosen, steps, groups), [one.apart for one in chosen]
        if last is not None:
            rows = _rows(weights, groups)  # before the slices: a kernel is a run of operations
            part = last
            for i, one in enumerate(chosen):
                reach = one.apart * (one.taps - 1)
                part = part.narrow(1 + i, reaches[i] - one.reach, often[i] + reach)
            kernel = [one.taps for one in chosen]
            found = _over_channels(part, rows, kernel, (1,) * len(steps), apart)
            return found.view(*ahead, *often)
        own = [
            (one.reach - before, far - one.shift - behind)
            for one, far, (before, behind) in zip(chosen, reaches, cuts, strict=True)
        ]
        found = _windows(x, weights, (1,) * len(steps), own, apart, groups)
        return found.view(*ahead, *often)

    def made(*chosen: _Places) -> Tensor:
        """What is at these places of the first dimensions, and at all of the others."""
        at = len(chosen)
        if at == len(places):
            return at_places(chosen)
        rows = [made(*chosen, one) for one in places[at]]
        return torch.cat(rows, 2 + at) if len(rows) > 1 else rows[0]

    def joined() -> Tensor:
        """All places: at once where each of them is alone."""
        if any(one.count > 1 for row in places for one in row):
            return made()
        rows = [at_places(chosen).flatten(2, 1 + len(places)) for chosen in product(*places)]
        whole = torch.cat(rows, 2) if len(rows) > 1 else rows[0]
        return whole.unflatten(2, [len(row) for row in places])

    result = _interleaved(joined())
    for i in spatial:
        if stride[i] > 1:
            end = padding[i] + lengths[i] + ends[i]
            result = _filled(result, 2 + i, common[i], end)
            result = result.narrow(2 + i, padding[i], end - padding[i])
    return result


def _weights(w: Tensor, places: Sequence[_Places], steps: Sequence[int], groups: int) -> Tensor:
    """Those of these places as weights of a convolution with a channel for each."""
    w = w.view(groups, w.shape[0] // groups, *w.shape[1:])
    for i, one in enumerate(places):
        w = one.weights(w, 3 + 2 * i, steps[i])
    along = [3 + 2 * i for i in range(len(places))]
    w = w.flip(along).permute(0, *(at + 1 for at in along), 2, 1, *along)
    return w.flatten(0, 1 + len(places))


def _interleaved(x: Tensor) -> Tensor:
    """n, groups, places of each dimension, channels, how often they come -> places in order."""
    dims = (x.dim() - 3) // 2
    order = [at for i in range(dims) for at in (3 + dims + i, 2 + i)]
    x = x.permute(0, 1, 2 + dims, *order).flatten(1, 2)
    for i in range(dims):
        x = x.flatten(2 + i, 3 + i)
    return x


def _filled(x: Tensor, at: int, apart: int, length: int) -> Tensor:
    """A dimension of a length, with zeros between its elements and behind them."""
    behind = [0, 0] * (x.dim() - at - 1)
    if apart > 1:
        x = F.pad(x.unsqueeze(at + 1), [*behind, 0, apart - 1]).flatten(at, at + 1)
    missing = length - x.shape[at]
    return F.pad(x, [*behind, 0, missing]) if missing > 0 else x.narrow(at, 0, length)


def _windows(
    x: Tensor, w: Tensor, stride: Sequence[int], around: Sequence[tuple[int, int]],
    dilation: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """out[n, co, o...]: the sum over ci and k... of w[co, ci, k...] times a window of x[n, ci]."""
    channels, kernel = w.shape[1], w.shape[2:]
    if channels == 1 and groups > 1:
        return _depthwise(x, w, stride, around, dilation)
    steps = (*stride, *(side for pair in around for side in pair))
    if prod(kernel) == 1 and set(steps[: len(stride)]) == {1} and not any(steps[len(stride) :]):
        made = _multiplied(w.view(groups, -1, channels), x)
        return made.view(x.shape[0], -1, *x.shape[2:])
    if _few(x, channels) and prod(kernel) <= _OFTEN * prod(stride):
        parts = _slid(_padded(x, around, behind=0), kernel, stride, dilation, first=2)
        sizes, at = parts.shape[2 : 2 + len(kernel)], 2 + len(kernel)
        parts = parts.permute(0, 1, *range(at, parts.dim()), *range(2, at))
        weights = w.flatten(1).unflatten(0, (groups, -1))
        return _multiplied(weights, parts).view(x.shape[0], w.shape[0], *sizes)
    rows = _rows(w, groups)
    return _over_channels(_channels_last(x, around), rows, kernel, stride, dilation)


def _channels_last(x: Tensor, around: Sequence[tuple[int, int]]) -> Tensor:
    return _padded(x.permute(0, *range(2, x.dim()), 1).contiguous(), around, behind=1)


def _rows(w: Tensor, groups: int) -> Tensor:
    """Weights as matrices of a group each, in the order of windows with channels last."""
    rows = w.permute(0, *range(2, w.dim()), 1).contiguous()
    return rows.view(groups, w.shape[0] // groups, -1)


def _over_channels(
    last: Tensor, rows: Tensor, kernel: Sequence[int], stride: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:  # fmt: skip
    """Of an input with channels last, whose windows are rows of channels."""
    groups, made, _ = rows.shape
    last = last.unflatten(-1, (groups, -1))
    parts = _slid(last, kernel, stride, dilation, first=1)  # n, o..., g, c, k...
    sizes = parts.shape[1 : 1 + len(kernel)]
    at = 1 + len(kernel)
    parts = parts.permute(0, at, *range(at + 2, parts.dim()), at + 1, *range(1, at))
    return _multiplied(rows, parts).view(last.shape[0], groups * made, *sizes)


def _few(x: Tensor, channels: int) -> bool:
    """Whether windows are quicker stored than read where they lie, a row of channels at a time.

    Rows of less than a line of L2 are served no faster than whole lines. What is stored has the
    size of the input, times the places of a window that an element is in.
    """
    return bool(channels * x.element_size() < _LINE)


def _multiplied(weights: Tensor, x: Tensor) -> Tensor:
    """Of each group: its channels by k, times what of each image is k by places.

    How many places there are is left to the shape: as a number it is a product of sizes of the
    result, which no formula over sizes of the input gives.
    """
    groups, _, depth = weights.shape
    left = weights.expand(x.shape[0], *weights.shape).flatten(0, 1)
    return torch.bmm(left, x.contiguous().view(x.shape[0] * groups, depth, -1))


def _depthwise(
    x: Tensor, w: Tensor, stride: Sequence[int], around: Sequence[tuple[int, int]],
    dilation: Sequence[int],
) -> Tensor:  # fmt: skip
    kernel = w.shape[2:]
    found = _slid(_padded(x, around, behind=0), kernel, stride, dilation, first=2)
    each = w.shape[0] // x.shape[1]
    taps = w.view(x.shape[1], each, *(1,) * len(kernel), *kernel)
    made = (found.unsqueeze(2) * taps).sum(list(range(-len(kernel), 0)))
    return made.flatten(1, 2)


def _padded(x: Tensor, around: Sequence[tuple[int, int]], behind: int) -> Tensor:
    """Zeros around spatial dimensions, of which the last has so many others behind it."""
    if not any(side for pair in around for side in pair):
        return x
    return F.pad(x, [0, 0] * behind + [side for pair in reversed(around) for side in pair])


def _slid(
    x: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], first: int
) -> Tensor:
    """All windows: dimensions from `first` on say where one begins, the last ones where in it."""
    for i, (size, step, apart) in enumerate(zip(kernel, stride, dilation, strict=True)):
        x = x.unfold(first + i, (size - 1) * apart + 1, step)
        if apart > 1:
            x = x[..., ::apart]
    return x
