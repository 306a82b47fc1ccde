"""The boxed child that runs a reference at shapes that are larger than memory, on a few slices.

The inputs are zeros but for the first and the last slices along one dimension, so that what the
whole model gives there follows from these slices alone. Which dimension, and in which way, is found
by trying (`WAYS`). Orders come on stdin as for any reference; what is written is in ends.json.
"""

from __future__ import annotations

import copy
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from npusmith.bench.suites.sliced import ENDS, Ends, Piece, Sliced, write_whole
from npusmith.errors import TaskError
from npusmith.task.called import Called
from npusmith.task.error_bounds import find_bounds
from npusmith.task.golden import Golden
from npusmith.task.user import Inputs, load_file, set_seed, user_code
from npusmith.task.wire import Orders, TensorFile

WAYS = {
    "apart": "slices need nothing of each other",
    "zeros": "slices of zeros add nothing",
    "mean": "the output is a mean over slices",
}
_FILLED = 2  # slices at either end
_PIECES = 4096  # of a slice in memory
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_NEAR = 1e-5  # the same sum, split otherwise
_ANY_ERROR = (Exception,)
Values = dict[int, list[torch.Tensor]]  # by input: both ends, or all of one that has no slices


def main() -> None:
    orders = Orders.model_validate_json(sys.stdin.buffer.read())
    torch.set_num_threads(2)
    with torch.device("meta"):
        torch.empty(0)  # PyTorch notes now which functions obey it: stubs do not
    folder = Path(orders.folder)
    try:
        sections = Sections(orders, folder)
        sections.start()
        found = sections.find()
    except TaskError as error:
        found = Ends(error=f"{error.code}: {error.message}")
    except _ANY_ERROR as error:
        found = Ends(error=f"{type(error).__name__}: {error}"[:500])
    (folder / ENDS).write_text(found.model_dump_json(), encoding="utf-8")
    os._exit(0)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Slices of the inputs: along which dimension, of which inputs, how many at either end."""

    dim: int
    size: int
    filled: int
    chosen: frozenset[int]


class Sections(Called):
    """A model at its true shapes, and what it gives at both ends."""

    why = "its slices depend on each other along every dimension"

    def find(self) -> Ends:
        module = load_file(self.path, self.orders.text)
        if hasattr(module, "get_input_groups"):
            raise TaskError("task-inputs", "the task has groups of inputs")
        self.build(module)
        set_seed(self.orders.model_seed)
        with torch.device("meta"), user_code(self.path, "get_inputs()"):
            self.given, self.tree = pytree.tree_flatten(list(module.get_inputs()))
        for cut in self._cuts():
            for low, top in ((-4.0, 4.0), (0.0, 1.0)):  # signed, where that gives finite values
                found = self._look(cut, self._draw(cut, low, top))
                if found:
                    return found.model_copy(update={"parameters": self.parameters()})
        raise TaskError("task-inputs", self.why)

    # --- which slices

    def _cuts(self) -> Iterator[_Cut]:
        """The outermost dimension first; of the inputs all that have it, or those of full rank."""
        shapes = {at: item.shape for at, item in enumerate(self.given) if _is_tensor(item)}
        rank = max((len(shape) for shape in shapes.values()), default=0)
        whole = next((shape for shape in shapes.values() if len(shape) == rank), ())
        for dim in range(min(rank, 2)):
            size = whole[dim]
            if size < 2 or math.prod(whole[:dim]) > _PIECES:
                continue
            fit = {at for at, shape in shapes.items() if len(shape) > dim and shape[dim] == size}
            full = {at for at in fit if len(shapes[at]) == rank}
            for chosen in {frozenset(fit): None, frozenset(full): None}:
                yield _Cut(dim, size, max(1, min(_FILLED, size // 2)), chosen)

    def _draw(self, cut: _Cut, low: float, top: float) -> Values:
        made = torch.Generator().manual_seed(self.orders.model_seed)
        values = {}
        for at, item in enumerate(self.given):
            if not _is_tensor(item):
                continue
            shape = list(item.shape)
            if at in cut.chosen:
                shape[cut.dim] = cut.filled
            count = 2 if at in cut.chosen else 1
            values[at] = [_random(shape, item.dtype, low, top, made) for _ in range(count)]
        return values

    # --- what the model gives

    def _look(self, cut: _Cut, values: Values) -> Ends | None:
        """The record, where the model treats its slices in one of the ways."""
        try:
            ends = [self._of(cut, [(values, end)]) for end in (0, 1)]
            both = self._of(cut, [(values, 0), (values, 1)])
            none = {at: [item * 0 for item in items] for at, items in values.items()}
            none = {at: none[at] if at in cut.chosen else values[at] for at in values}
            wide = self._of(cut, [(values, 0), (none, 0), (values, 1)])
            rest = self._of(cut, [(none, 0), (none, 1)])
        except _ANY_ERROR:
            return None
        if not all(bool(item.isfinite().all()) for item in both):
            return None
        way = "apart" if _apart(cut, both, ends) else "zeros" if _neutral(cut, both, wide) else ""
        if way:
            goldens, bounds = self._exact(cut, values, both)
            return self._found(cut, values, both, way=way, goldens=goldens, bounds=bounds)
        share = 2 * cut.filled / cut.size
        if _is_mean(both, ends):
            part = share * (both[0].double() - rest[0].double())
            limit = abs(float(part)) * 0.02 + abs(float(rest[0])) * 2e-6
            if not (math.isfinite(limit) and limit < 0.25 * abs(float(part))):
                # an end that is not read would not be seen, or zeros have no logarithm
                self.why = "of a mean over so many slices, or over zeros, the ends are not seen"
                return None
            wanted = (rest[0].double() + part).to(both[0].dtype)
            return self._found(cut, values, [wanted], way="mean", limit=limit)
        return None

    def _exact(
        self, cut: _Cut, values: Values, both: list[torch.Tensor]
    ) -> tuple[tuple[TensorFile, ...], tuple[TensorFile, ...]]:
        """The outputs in float64 and how far right answers lie apart, piece by piece.

        Drawn values are not the suite's: signed terms cancel where its own rule expects none to.
        """
        if cut.dim or any(item.dtype not in _FLOATS for item in both):
            return (), ()
        inputs = Inputs(tuple(self._leaves(cut, [(values, 0), (values, 1)])), self.tree)
        wide, note = Golden(self.model, self.path).run(inputs, both)
        if note:
            return (), ()
        bounds = find_bounds(self.model, inputs, both, wide, self.path, self._flat)
        return self._pieces(cut, wide, len(both)), self._pieces(cut, bounds, 2 * len(both))

    def _pieces(
        self, cut: _Cut, items: Sequence[torch.Tensor], first: int
    ) -> tuple[TensorFile, ...]:
        found = [self._output(cut, first + at, item) for at, item in enumerate(items)]
        return tuple(piece.file for item in found for piece in item.pieces)

    def _of(self, cut: _Cut, slices: Sequence[tuple[Values, int]]) -> list[torch.Tensor]:
        """The outputs for these slices, one behind the other."""
        leaves = self._leaves(cut, slices)
        firsts = [end * (cut.size - cut.filled) for _, end in slices]
        places = [first + at for first in firsts for at in range(cut.filled)]
        found = self.call(_narrowed(self.model, cut, places), self._arguments(leaves))
        outputs: list[torch.Tensor] = pytree.tree_leaves(found)
        if not outputs or not all(map(_is_tensor, outputs)):
            raise TaskError("task-outputs", "forward() gives more than tensors")
        return outputs

    def _leaves(self, cut: _Cut, slices: Sequence[tuple[Values, int]]) -> list[Any]:
        leaves = list(self.given)
        for at, whole in slices[0][0].items():
            parts = [values[at][end] for values, end in slices if at in cut.chosen]
            leaves[at] = torch.cat(parts, cut.dim) if at in cut.chosen else whole[0].clone()
        return leaves

    def _arguments(self, leaves: list[Any]) -> list[Any]:
        nested: list[Any] = pytree.tree_unflatten(leaves, self.tree)
        return nested

    # --- files

    def _found(self, cut: _Cut, values: Values, both: list[torch.Tensor], **more: Any) -> Ends:
        inputs = [
            self._sliced(f"in{at}", cut, list(item.shape), values[at])
            if at in cut.chosen
            else write_whole(values[at][0], self.folder, f"in{at}")
            for at, item in enumerate(self.given)
            if _is_tensor(item)
        ]
        return Ends(
            dim=cut.dim, size=cut.size, filled=cut.filled, inputs=tuple(inputs),
            outputs=tuple(self._output(cut, *row) for row in enumerate(both)), **more,
        )  # fmt: skip

    def _output(self, cut: _Cut, at: int, both: torch.Tensor) -> Sliced:
        shape = list(both.shape)
        if not _has_slices(cut, both, 2):
            return write_whole(both, self.folder, f"out{at}")
        shape[cut.dim] = cut.size
        return self._sliced(f"out{at}", cut, shape, list(both.split(cut.filled, cut.dim)))

    def _sliced(self, stem: str, cut: _Cut, shape: list[int], ends: list[torch.Tensor]) -> Sliced:
        """A tensor of that shape with these slices at its ends."""
        inner = math.prod(shape[cut.dim + 1 :])
        pieces = []
        for end, values in enumerate(ends):
            first = end * (cut.size - cut.filled)
            rows = values.reshape(-1, cut.filled * inner)
            starts = tuple((outer * cut.size + first) * inner for outer in range(len(rows)))
            pieces.append(Piece(starts=starts, file=self.write(f"{stem}_{end}", rows)))
        return Sliced(shape=tuple(shape), dtype=pieces[0].file.dtype, pieces=tuple(pieces))


def _is_tensor(item: Any) -> bool:
    return isinstance(item, torch.Tensor)


def _random(
    shape: list[int], dtype: torch.dtype, low: float, top: float, made: torch.Generator
) -> torch.Tensor:
    if not dtype.is_floating_point:
        return torch.randint(0, 2, shape, generator=made).to(dtype)
    return (low + (top - low) * torch.rand(shape, generator=made)).to(dtype)


def _narrowed(model: Any, cut: _Cut, places: list[int]) -> Any:
    """The model with the parameters that belong to these slices, where each has one of its own."""
    model = copy.deepcopy(model)
    for item in (*model.parameters(), *model.buffers()):
        if cut.dim and item.dim() == 1 and item.shape[0] == cut.size:
            item.data = item.data[places].clone()
    return model


def _has_slices(cut: _Cut, output: torch.Tensor, times: int) -> bool:
    return output.dim() > cut.dim and int(output.shape[cut.dim]) == times * cut.filled


def _apart(cut: _Cut, both: list[torch.Tensor], ends: list[list[torch.Tensor]]) -> bool:
    return all(
        _has_slices(cut, item, 2) and _near(item, torch.cat(parts, cut.dim))
        for item, *parts in zip(both, *ends, strict=True)
    )


def _neutral(cut: _Cut, both: list[torch.Tensor], wide: list[torch.Tensor]) -> bool:
    """Whether zeros between the ends change nothing but the size."""
    return all(
        _near(item, _without_middle(cut, out) if _has_slices(cut, item, 2) else out)
        for item, out in zip(both, wide, strict=True)
    )


def _without_middle(cut: _Cut, output: torch.Tensor) -> torch.Tensor:
    first, _, last = output.split(cut.filled, cut.dim)
    return torch.cat([first, last], cut.dim)


def _is_mean(both: list[torch.Tensor], ends: list[list[torch.Tensor]]) -> bool:
    wide = both[0].dtype in (torch.float32, torch.float64)
    if len(both) != 1 or both[0].numel() != 1 or not wide:
        return False
    return _near(both[0], (ends[0][0] + ends[1][0]) / 2)


def _near(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.shape == second.shape and bool(
        torch.allclose(first.double(), second.double(), rtol=_NEAR, atol=_NEAR)
    )


if __name__ == "__main__":
    main()
