"""Rows that a mask selects, as every row beside its mask.

`loss[mask].mean()` computes on as many rows as the mask has ones, which no graph of fixed shapes
can hold. The same values come of all rows where what adds them up leaves the others out, and where
an assignment under the same mask writes the selected ones alone. A captured program in which sizes
depend on values is run once more, each such tensor as all its rows with the mask, and captured.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.traceback import preserve_node_meta

from npusmith.task.traced_module import TracedModule

NOTE = "forward selects rows by a mask: kernels compute every row and leave the others' results out"


class NotSelectable(Exception):
    """Something is done with selected rows that all rows with their mask do not give.

    Arguments: what it is, and the node of the program that does it.
    """


@dataclass(frozen=True, slots=True)
class Places:
    """Values are places of ones in a mask: along one of its axes, or (None) all in a last axis."""

    shape: tuple[int, ...]  # of the mask
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows along an axis, and a mask of one axis that says which of them there are."""

    full: Tensor
    mask: Tensor
    axis: int
    places: Places | None = None

    def shaped_mask(self) -> Tensor:
        """The mask as one for the full tensor."""
        return self.mask.view([-1 if at == self.axis else 1 for at in range(self.full.dim())])

    def filled(self, value: float) -> Tensor:
        """The full tensor with this value where there are no rows."""
        return torch.where(self.shaped_mask(), self.full, constant(value, self.full))

    def count(self) -> Tensor:
        return self.mask.sum()

    def number(self, dtype: torch.dtype) -> Tensor:
        """The count for a mean: to seven digits, which is cheaper than all of them."""
        return self.mask.to(dtype).sum()


def depends_on_values(program: Any) -> bool:
    """Whether a size in an exported program is known only when it runs."""
    return any(_symbols(node) for node in program.graph_module.graph.nodes)


def of_all_rows(
    program: Any, forward: Callable[..., Any], given: tuple[Any, ...], rules: Mapping[str, Rule]
) -> Any:
    """The exported program on all rows; raises NotSelectable, and whatever torch.export does.

    `forward`: what the program was captured from, for names. `rules`: what operations do to rows,
    by name; NotImplemented of one is what it does otherwise.
    """
    run = AllRows(program.module(), rules)

    def on_all(*given: Any) -> Any:
        with preserve_node_meta():  # for the lines that nodes are from
            return run.run(*given)

    module = TracedModule(run.module, on_all, forward)
    try:
        return torch.export.export(module, args=given, strict=False)
    except NotSelectable as error:
        raise NotSelectable(error.args[0], run.node) from error


def _symbols(node: torch.fx.Node) -> set[Any]:
    value = node.meta.get("val")
    values = value if isinstance(value, (tuple, list)) else (value,)
    return {
        symbol
        for item in values
        if isinstance(item, (torch.Tensor, torch.SymInt))
        for symbol in free_unbacked_symbols(item)
    }


Rule = Callable[["AllRows", Any, tuple[Any, ...], dict[str, Any]], Any]


class AllRows(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs a program in core ATen with `Rows` for tensors whose sizes depend on values."""

    def __init__(self, module: Any, rules: Mapping[str, Rule]) -> None:
        super().__init__(module)
        self._rules = rules
        self.node: Any = None
        self._masks: dict[Any, Tensor] = {}  # by the size that depends on them
        # masks by how they are computed, with what they are computed of, whose ids these are
        self._same: dict[Any, tuple[Tensor, Any, Any]] = {}
        self._chosen: dict[int, Tensor | None] = {}  # by the mask of one axis, the program's

    def run_node(self, n: Any) -> Any:
        self.node = n
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = str(target)
        if name.startswith(("aten._assert", "aten.sym_constrain")):
            return None
        if rule := self._rules.get(name):
            found = rule(self, target, args, kwargs)
            if found is not NotImplemented:
                return found
        if not any(isinstance(item, Rows) for item in leaves((args, kwargs))):
            return self._plain(target, args, kwargs)
        if target is operator.getitem:
            return args[0][args[1]]
        if torch.Tag.pointwise not in getattr(target, "tags", ()):
            raise NotSelectable(name)
        return self.on_all(target, args, kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        if any(isinstance(item, Rows) for item in leaves(args)):
            raise NotSelectable("an output")
        return super().output(target, args, kwargs)

    def _plain(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _symbols(self.node) and str(target).startswith("aten."):
            raise NotSelectable(str(target))
        if target in _OF_NUMBERS and any(isinstance(item, Tensor) for item in args):
            return _OF_NUMBERS[target](*args)
        found = super().call_function(target, args, kwargs)
        if not isinstance(found, Tensor) or found.dtype != torch.bool:
            return found
        key = (target, *map(_key, leaves((args, kwargs))))
        return self._same.setdefault(key, (found, args, kwargs))[0]

    # --- what rules need

    def on_all(self, target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The call on all rows."""
        return self.as_rows(target(*whole(list(args)), **whole(kwargs)))

    def as_rows(self, full: Any, places: Places | None = None) -> Any:
        """What a call on all rows gave, with the masks of the sizes that depend on values."""
        value = self.node.meta["val"]
        if isinstance(full, (tuple, list)):
            pairs = zip(full, value, strict=True)
            return tuple(self._as_rows(one, item, places) for one, item in pairs)
        return self._as_rows(full, value, places)

    def _as_rows(self, full: Tensor, value: Any, places: Places | None) -> Any:
        found = _row_axis(value)
        mask = self._masks.get(found[1]) if found is not None else None
        sizes = [size if isinstance(size, int) else -1 for size in value.shape]
        if found is not None and mask is not None:
            sizes[found[0]] = mask.shape[0]
        if sizes != list(full.shape):
            raise NotSelectable(str(self.node.target))
        return full if found is None else Rows(full, mask, found[0], places)

    def selected(self, full: Tensor, mask: Tensor, given: Any, places: Places | None = None) -> Any:
        """The rows under a mask (`given`, as one axis), whose size along it is the mask's own."""
        self.remember(mask)
        found = self.as_rows(full, places)
        self._chosen.setdefault(id(found.mask), self.mask_of(given))
        return found

    def mask_of(self, index: Any) -> Tensor | None:
        """The program's mask behind an index: a mask, one of selected rows, or places of ones."""
        if not isinstance(index, Rows):
            return index
        return index.full if index.places is None else self._chosen.get(id(index.mask))

    def are_under(self, rows: Any, index: Any) -> bool:
        """Whether rows are those under the mask of an index, and not as many under another."""
        return not isinstance(rows, Rows) or self._chosen.get(id(rows.mask)) is self.mask_of(index)

    def sizes(self) -> list[int]:
        """The shape of the node's value with all rows."""
        return [
            size if isinstance(size, int) else self._size(size)
            for size in self.node.meta["val"].shape
        ]

    def _size(self, size: Any) -> int:
        known = {item: mask.shape[0] for item, mask in self._masks.items() if item.is_symbol}
        found = size.node.expr.subs(known)
        if not found.is_Integer:
            raise NotSelectable(str(self.node.target))
        return int(found)

    def row_axis(self) -> tuple[int, Any] | None:
        """The axis of the node's value whose size depends on values, and that size."""
        return _row_axis(self.node.meta["val"])

    def unknown(self) -> bool:
        """Whether the node's value has a size that depends on values."""
        return bool(_symbols(self.node))

    def remember(self, mask: Tensor) -> None:
        """Of a view in which rows stand otherwise."""
        _, size = self.row_axis() or (0, None)
        self._masks.setdefault(size, mask)


def _row_axis(value: Any) -> tuple[int, Any] | None:
    """The axis whose size depends on values, and that size."""
    found = [
        (at, size.node.expr)
        for at, size in enumerate(value.shape)
        if not isinstance(size, int) and free_unbacked_symbols(size)
    ]
    if len(found) > 1:
        raise NotSelectable("two axes depend on values")
    return found[0] if found else None


def _key(item: Any) -> Any:
    return ("tensor", id(item)) if isinstance(item, Tensor) else (type(item), str(item))


def leaves(items: Any) -> list[Any]:
    if isinstance(items, dict):
        items = list(items.values())
    if isinstance(items, (list, tuple)):
        return [leaf for item in items for leaf in leaves(item)]
    return [items]


def whole(items: Any) -> Any:
    if isinstance(items, dict):
        return {key: whole(item) for key, item in items.items()}
    if isinstance(items, (list, tuple)):
        return [whole(item) for item in items]
    return items.full if isinstance(items, Rows) else items


def constant(value: float, like: Tensor) -> Tensor:
    if not like.dtype.is_floating_point and math.isinf(value):
        ends = torch.iinfo(like.dtype) if like.dtype != torch.bool else None
        value = (value > 0) if ends is None else ends.max if value > 0 else ends.min
    return torch.full((), value, dtype=like.dtype)


_OF_NUMBERS: dict[Any, Callable[..., Any]] = {
    torch.sym_max: lambda one, other: torch.maximum(*_tensors(one, other)),
    torch.sym_min: lambda one, other: torch.minimum(*_tensors(one, other)),
    torch.sym_float: lambda one: one.to(torch.float32),
}


def _tensors(*items: Any) -> list[Tensor]:
    return [item if isinstance(item, Tensor) else torch.tensor(item) for item in items]
