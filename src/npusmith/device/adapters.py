"""aclnn functions that do more than call the operator: stand-ins for hand-written op_api code.

The rule is: inputs, attributes, outputs that are not also inputs, each in the order of the
definition. Some hand-written functions of PCL's NPUKernelBench take them in another order, compute
in other element types than the caller's, or along another axis; what they do is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

Finish: TypeAlias = Callable[[], None]  # what is left to do when the kernel has run
_Steps: TypeAlias = Callable[[list[object]], Finish]  # changes the operator's arguments in place


@dataclass(frozen=True, slots=True)
class Adapter:
    """`order`: for each argument of the operator, its position among those of the function."""

    op: str
    order: tuple[int, ...]
    words: tuple[int, tuple[str, ...]] | None = None  # an argument given as a number for a word
    steps: _Steps | None = None

    def sort(self, values: list[object]) -> list[object]:
        """The function's arguments as the operator has them."""
        found = [values[at] for at in self.order]
        if self.words is not None:
            at, words = self.words
            number = found[at]
            found[at] = words[number] if isinstance(number, int) else number
        return found


class _Replaced:
    """Arguments that were put in the place of the caller's; `finish` carries results back."""

    def __init__(self, values: list[object]) -> None:
        self._values = values
        self._back: list[tuple[torch.Tensor, torch.Tensor, tuple[int, int]]] = []

    def cast(self, at: int, dtype: torch.dtype) -> None:
        """Compute argument `at` in another element type."""
        given = self._values[at]
        if isinstance(given, torch.Tensor) and given.dtype != dtype:
            self._put(at, given, given.to(dtype), (0, 0))

    def turn(self, at: int, axes: tuple[int, int]) -> None:
        """Compute with two axes of argument `at` exchanged."""
        given = self._values[at]
        if isinstance(given, torch.Tensor) and axes[0] != axes[1]:
            self._put(at, given, given.transpose(*axes).contiguous(), axes)

    def reshape(self, at: int, shape: Sequence[int]) -> None:
        """Compute with argument `at` in another shape of as many elements."""
        given = self._values[at]
        if isinstance(given, torch.Tensor) and list(given.shape) != list(shape):
            self._put(at, given, given.reshape(shape).clone(), (0, 0))

    def _put(
        self, at: int, given: torch.Tensor, fresh: torch.Tensor, axes: tuple[int, int]
    ) -> None:
        self._values[at] = fresh
        self._back.append((given, fresh, axes))

    def finish(self) -> None:
        with torch.no_grad():
            for given, fresh, axes in reversed(self._back):
                given.copy_((fresh.transpose(*axes)).reshape(given.shape))


def _batch_norm(values: list[object]) -> Finish:
    """Short shapes get a height and a width of 1; absent weights are ones, absent biases zeros;
    statistics are computed in float, weights too unless both have the input's type."""
    replaced = _Replaced(values)
    x = values[0]
    if isinstance(x, torch.Tensor) and x.dim() > 1:
        for at, fill in ((1, 1.0), (2, 0.0)):
            if values[at] is None:
                values[at] = torch.full((x.shape[1],), fill, dtype=x.dtype)
        weight, bias = values[1:3]
        if isinstance(weight, torch.Tensor) and isinstance(bias, torch.Tensor):
            wide = torch.promote_types(weight.dtype, bias.dtype)
            for at in (1, 2):
                replaced.cast(at, wide if wide == x.dtype else torch.float32)
        for at in (0, 8):
            replaced.reshape(at, [*x.shape, 1, 1][: max(4, x.dim())])
    for at in (3, 4, 9, 10):
        replaced.cast(at, torch.float32)
    return replaced.finish


def _top_k(values: list[object]) -> Finish:
    """The kernel works along the last axis, and its indices are int32."""
    replaced = _Replaced(values)
    x, axis = values[0], values[3]
    if isinstance(x, torch.Tensor) and isinstance(axis, int) and x.dim():
        last = x.dim() - 1
        for at in (0, 5, 6):
            replaced.turn(at, (axis % x.dim(), last))
        values[3] = last
    replaced.cast(6, torch.int32)
    return replaced.finish


ADAPTERS: dict[str, Adapter] = {
    # (input, weight, bias, mean, var, training, momentum, eps, out, save_mean, save_rstd);
    # the definition has epsilon, momentum, is_training
    "aclnnBatchNorm": Adapter("BatchNormV3", (0, 1, 2, 3, 4, 7, 6, 5, 8, 9, 10), steps=_batch_norm),
    "aclnnLayerNorm": Adapter("LayerNormV4", (0, 1, 2, 3, 4, 5, 6, 7)),
    # (gradOutput, self, target, reduction, out); the definition has predict, label, dout
    "aclnnMseLossBackward": Adapter(
        "MseLossGradV2", (1, 2, 0, 3, 4), words=(3, ("none", "mean", "sum"))
    ),
    # (self, k, dim, largest, sorted, values, indices); the definition has sorted, dim, largest
    "aclnnTopKV3": Adapter("TopKV3", (0, 1, 4, 2, 3, 5, 6), steps=_top_k),
}
