"""What parameters and buffers hold in a set of inputs: `Draws(model, names, seed, agrees)`.

A fresh model has weights of one, biases of zero and a running variance of one: a kernel that
leaves them out is right. So most sets of inputs are judged with drawn values. Drawn are floating
tensors; zero or one in a mask, infinities, integers and what is shared with other tensors stay.
Where all values are positive (variances, scales), drawn ones are; where a vector rises or falls,
the drawn one does.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

import torch

Tensor = Any
Model = Any

SMALL_BYTES = 8 << 20  # parameters up to this are drawn three times, larger ones once ...
MOST_BYTES = 512 << 20  # ... and beyond this not at all
MANY, FEW = 3, 1
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_ANY_ERROR = (Exception,)  # of a model that cannot be copied, or that refuses drawn values


class Style(Enum):
    """How far the values go from the model's own; the first with a finite answer is taken."""

    WIDE = "wide"
    POSITIVE = "positive"  # what was all zero becomes positive: a model may take its root
    GENTLE = "gentle"  # within 5 % of the model's own, zeros stay


def tensors_of(model: Model) -> dict[str, Tensor]:
    """Parameters and buffers by attribute path; one that has several paths under each."""
    return {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }


def drawn_names(model: Model, wanted: Iterable[str] | None = None) -> list[str]:
    """The paths that are drawn, in the model's order; of these alone where `wanted` names some."""
    held = tensors_of(model)
    uses: dict[int, set[int]] = {}
    for tensor in held.values():
        if tensor.numel():
            uses.setdefault(tensor.untyped_storage().data_ptr(), set()).add(id(tensor))
    names = list(held) if wanted is None else [name for name in held if name in set(wanted)]
    return [
        name
        for name in names
        if _may_change(held[name]) and len(uses[held[name].untyped_storage().data_ptr()]) == 1
    ]


def _may_change(tensor: Tensor) -> bool:
    if tensor.dtype not in _FLOATS or not tensor.numel() or tensor.is_sparse:
        return False
    strides = zip(tensor.stride(), tensor.shape, strict=True)
    if any(step == 0 and size > 1 for step, size in strides):
        return False  # one element under several indices
    if not bool(torch.isfinite(tensor).all()):
        return False  # a mask for softmax
    low, high = (float(item) for item in tensor.detach().aminmax())
    is_mask = low == 0 and high == 1 and bool(((tensor == 0) | (tensor == 1)).all())
    return not is_mask


def draw(tensor: Tensor, seed: int, style: Style = Style.WIDE) -> Tensor:
    """Other values of the tensor's shape, type, sign and magnitude."""
    generator = torch.Generator().manual_seed(seed)
    wide = tensor.detach().double()
    low, high = (float(item) for item in wide.aminmax())
    if style is Style.GENTLE:
        found = wide * (1 + 0.05 * (2 * _uniform(wide, generator) - 1))
    elif low == 0 == high:
        found = 0.5 * torch.randn(wide.shape, generator=generator, dtype=torch.float64)
        found = found.abs() + 0.01 if style is Style.POSITIVE else found
    elif low >= 0 or high <= 0:  # a zero among them stays
        found = wide * torch.exp(1.4 * _uniform(wide, generator) - 0.7)
    else:
        spread, mean = float(wide.std(unbiased=False)), float(wide.mean())
        found = mean + spread * torch.randn(wide.shape, generator=generator, dtype=torch.float64)
    return in_order(found, wide).to(tensor.dtype)


def _uniform(like: Tensor, generator: Any) -> Tensor:
    return torch.rand(like.shape, generator=generator, dtype=torch.float64)


def in_order(found: Tensor, before: Tensor) -> Tensor:
    """Sorted where the values before rose or fell: boundaries of buckets, frequencies.

    NaN has no place in an order: they keep their values there.
    """
    if before.dim() != 1 or before.numel() < 3 or before[0] == before[-1]:
        return found
    steps = before.diff()
    if not bool((steps >= 0).all()) and not bool((steps <= 0).all()):
        return found
    kept = before if bool(found.isnan().any()) else found
    return kept.sort(descending=bool(before[0] > before[-1])).values


def put(model: Model, values: dict[str, Tensor]) -> None:
    """Write values into the parameters and buffers of these names, in place."""
    held = tensors_of(model)
    with torch.no_grad():
        for name, value in values.items():
            held[name].copy_(value)


class Draws:
    """A model with its own values (number 0), and copies of it with drawn ones.

    `agrees(model, names)`: does this copy, with other values under these names, still give finite
    answers that follow from them? What it refuses keeps its own values, and a note says so.
    """

    def __init__(
        self,
        model: Model,
        names: Sequence[str],
        seed: int,
        agrees: Callable[[Model, Sequence[str]], bool],
    ) -> None:
        self.models = [model]
        self.values: list[dict[str, Tensor]] = [{}]
        self.notes: list[str] = []
        self.seed = seed
        self._agrees = agrees
        held = tensors_of(model)
        size = sum(held[name].nbytes for name in names)
        if size > MOST_BYTES:
            self.notes.append(f"parameters of {size >> 20} MiB are too large to be drawn")
        elif names:
            self._draw(names, MANY if size <= SMALL_BYTES else FEW)

    def number(self, trial: int) -> int:
        """Which values a trial has: the model's own in the first, drawn ones in most others."""
        if len(self.models) == 1:
            return 0
        if len(self.models) == 2:
            return int(trial % 3 > 0)
        return trial % len(self.models)

    def _draw(self, names: Sequence[str], count: int) -> None:
        try:
            kept, style = self._choose(names)
            left = [name for name in names if name not in kept]
            if left:
                some = ", ".join(left[:5]) + (" and more" if len(left) > 5 else "")
                self.notes.append(f"keep their own values in every set of inputs: {some}")
            for number in range(1, count + 1) if kept else ():
                values = self._values(kept, number, style)
                self._add(values)
        except _ANY_ERROR as error:
            self.models, self.values = self.models[:1], self.values[:1]
            said = f"{type(error).__name__}: {error}"[:200]
            self.notes.append(f"parameters could not be drawn: {said}")

    def _choose(self, names: Sequence[str]) -> tuple[list[str], Style]:
        """The names that may be drawn together, and how."""
        for style in Style:
            if self._holds(names, style):
                return list(names), style
        alone = [name for name in names[:32] if self._holds([name], Style.GENTLE)]
        return (alone if alone and self._holds(alone, Style.GENTLE) else []), Style.GENTLE

    def _holds(self, names: Sequence[str], style: Style) -> bool:
        model = copy.deepcopy(self.models[0])
        put(model, self._values(names, 1, style))
        return self._agrees(model, names)

    def _values(self, names: Sequence[str], number: int, style: Style) -> dict[str, Tensor]:
        held = tensors_of(self.models[0])
        seeds = {name: hash_of(self.seed, number, name) for name in names}
        return {name: draw(held[name], seeds[name], style) for name in names}

    def _add(self, values: dict[str, Tensor]) -> None:
        model = copy.deepcopy(self.models[0])
        put(model, values)
        self.models.append(model)
        self.values.append(values)


def hash_of(seed: int, number: int, name: str) -> int:
    """A seed of a tensor's own, the same in every process."""
    return zlib.crc32(f"{seed} {number} {name}".encode(errors="replace"))
