"""Convolutions as matrix products over windows: what the cube unit multiplies without a copy.

A window of a tensor whose channels lie innermost is a few stretches of memory, one for each row of
the kernel; so the compiler multiplies windows where they lie. What has to be in memory first is the
input with channels last (and padded), and the weights in the same order. Products with windows of
1 take both as they are; one channel a group is a sum on the vector unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

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
    around = [(size, size) for size in padding]
    if transposed:
        x, w, around = _turned(x, w, stride, padding, dilation, output_padding, groups)
        stride = (1,) * spatial
    made = _windows(x, w, stride, around, dilation, groups)
    return made if bias is None else made + bias.view(-1, *(1,) * spatial)


def _each(item: Sequence[int], count: int) -> tuple[int, ...]:
    return tuple(item) if len(item) == count else tuple(item) * count


def _turned(
    x: Tensor, w: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    output_padding: Sequence[int], groups: int,
) -> tuple[Tensor, Tensor, list[tuple[int, int]]]:  # fmt: skip
    """A transposed convolution as one: zeros between the elements, the weights turned around."""
    spatial, ends = w.dim() - 2, _each(output_padding, w.dim() - 2)
    for i, step in enumerate(stride):
        if step > 1:
            at = 2 + i
            apart = F.pad(x.unsqueeze(at + 1), [0, 0] * (x.dim() - at - 1) + [0, step - 1])
            x = apart.flatten(at, at + 1).narrow(at, 0, (x.shape[at] - 1) * step + 1)
    kernel = w.shape[2:]
    w = w.flip(list(range(2, 2 + spatial)))
    w = w.view(groups, w.shape[0] // groups, *w.shape[1:]).transpose(1, 2).flatten(0, 1)
    reach = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
    return x, w, [(size, size + end) for size, end in zip(reach, ends, strict=True)]


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
        right = x.reshape(x.shape[0], groups, channels, -1)
        made = torch.matmul(w.view(1, groups, -1, channels), right)
        return made.reshape(x.shape[0], -1, *x.shape[2:])
    order = range(2, w.dim())
    weights = w.permute(0, *order, 1).contiguous().view(1, groups, w.shape[0] // groups, -1)
    last = x.permute(0, *range(2, x.dim()), 1).contiguous()
    last = _padded(last, around, behind=1)
    found = _slid(last, kernel, stride, dilation, first=1)  # n, o..., c, k...
    sizes = found.shape[1 : 1 + len(kernel)]
    parts = found.unflatten(1 + len(kernel), (groups, channels))
    at = 1 + len(kernel)
    parts = parts.permute(0, at, *range(at + 2, parts.dim()), at + 1, *range(1, at))
    right = parts.reshape(x.shape[0], groups, prod(kernel) * channels, prod(sizes))
    made = torch.matmul(weights, right)
    return made.reshape(x.shape[0], w.shape[0], *sizes)


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
