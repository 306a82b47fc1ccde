"""Convolutions as matrix products over windows: what the cube unit multiplies without a copy.

A window of a tensor whose channels lie innermost is a few stretches of memory, one for each row of
the kernel; so the compiler multiplies windows where they lie. What has to be in memory first is the
input with channels last (and padded), and the weights in the same order. Products with windows of
1 take both as they are; one channel a group is a sum on the vector unit. A transposed convolution
has a channel for each place between two elements of the input, laid between each other at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

import torch
import torch.nn.functional as F
from torch import Tensor


def convolution(
    x: Tensor, w: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """`aten.convolution` for floats, of one to three spatial dimensions."""
    spatial = w.dim() - 2
    stride, padding, dilation = (_each(item, spatial) for item in (stride, padding, dilation))
    if transposed:
        ends = _each(output_padding, spatial)
        made = _transposed(x, w, stride, padding, dilation, ends, groups)
    else:
        made = _windows(x, w, stride, [(size, size) for size in padding], dilation, groups)
    return made if bias is None else made + bias.view(-1, *(1,) * spatial)


def _each(item: Sequence[int], count: int) -> tuple[int, ...]:
    return tuple(item) if len(item) == count else tuple(item) * count


def _transposed(
    x: Tensor, w: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    ends: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """A transposed convolution as one whose channels are the places between two elements of x.

    Of stride 2, even and odd places of the result are sums over every second element of the kernel
    each: one convolution with twice the channels, which are then laid between each other. What a
    stride and a dilation have in common is zeros in the result.
    """
    spatial = range(w.dim() - 2)
    common = [gcd(*pair) for pair in zip(stride, dilation, strict=True)]
    steps = [step // part for step, part in zip(stride, common, strict=True)]
    apart = [each // part for each, part in zip(dilation, common, strict=True)]
    kernel = w.shape[2:]
    lengths = [
        (x.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + 1 + end
        for i, end in enumerate(ends)
    ]
    around: list[tuple[int, int]] = []
    for i in spatial:
        reach = apart[i] * (kernel[i] - 1)
        if steps[i] > 1:
            w = _filled(w, 2 + i, apart[i], reach + 1 + -(reach + 1) % steps[i])
            apart[i], reach = 1, w.shape[2 + i] // steps[i] - 1
        cut = padding[i] if stride[i] == 1 else 0
        around.append((reach - cut, reach - cut + (ends[i] if stride[i] == 1 else 0)))
    made = _windows(x, _between(w, steps, groups), (1,) * len(steps), around, apart, groups)
    made = _interleaved(made, steps, groups)
    for i in spatial:
        if stride[i] > 1:
            made = _filled(made, 2 + i, common[i], padding[i] + lengths[i])
            made = made.narrow(2 + i, padding[i], lengths[i])
    return made


def _between(w: Tensor, steps: Sequence[int], groups: int) -> Tensor:
    """Weights of a transposed convolution as those of one with a channel for each place."""
    w = w.view(groups, w.shape[0] // groups, *w.shape[1:])
    along: list[int] = []
    places: list[int] = []
    for step in steps:
        along.append(3 + len(along) + len(places))
        if step > 1:
            w = w.unflatten(along[-1], (w.shape[along[-1]] // step, step))
            places.append(along[-1] + 1)
    w = w.flip(along).permute(0, *places, 2, 1, *along)
    return w.flatten(0, 1 + len(places))


def _interleaved(x: Tensor, steps: Sequence[int], groups: int) -> Tensor:
    """The channels that `_between` made, laid between the elements of each dimension."""
    wide = [i for i, step in enumerate(steps) if step > 1]
    x = x.view(x.shape[0], groups, *(steps[i] for i in wide), -1, *x.shape[2:])
    order = [0, 1, 2 + len(wide)]
    for i in range(len(steps)):
        order += [3 + len(wide) + i, *([2 + wide.index(i)] if i in wide else [])]
    x = x.permute(order).flatten(1, 2)
    for i in wide:
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
    order = range(2, w.dim())
    weights = w.permute(0, *order, 1).contiguous().view(groups, w.shape[0] // groups, -1)
    last = x.unflatten(1, (groups, channels))
    last = last.permute(0, *range(3, last.dim()), 1, 2).contiguous()
    last = _padded(last, around, behind=2)
    parts = _slid(last, kernel, stride, dilation, first=1)  # n, o..., g, c, k...
    sizes = parts.shape[1 : 1 + len(kernel)]
    at = 1 + len(kernel)
    parts = parts.permute(0, at, *range(at + 2, parts.dim()), at + 1, *range(1, at))
    return _multiplied(weights, parts).view(x.shape[0], w.shape[0], *sizes)


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
