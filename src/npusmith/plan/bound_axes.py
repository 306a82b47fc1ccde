"""Axes that a reduction takes in may not become those along which its result runs.

`x + (x.unsqueeze(-2) - x.unsqueeze(-1)).amax(-1)`: the result runs along the rows of pairs, the
maximum along their columns, and the sum makes the rows of pairs run as x does, which are the
columns. The maximum would then be of the diagonal. A kernel for both is refused; of several, each
has axes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from npusmith.plan.axes import Dim, leaves
from npusmith.plan.dag import Value
from npusmith.plan.reader import Reader, Tensor
from npusmith.task.graph import Node

_BINDS = ("reduce", "running")


@dataclass(frozen=True, slots=True)
class Bound:
    """What a node reduces or scans, and the other axes that its results run along."""

    node: Node
    inner: Dim
    outer: Dim


def bound(reader: Reader, node: Node, made: Iterable[Value]) -> list[Bound]:
    """The axes of reductions among the values that a node has just made."""
    found = reader.known.get(node.name)
    results = found if isinstance(found, tuple) else (found,)
    dims = [dim for item in results if isinstance(item, Tensor) for dim in item.dims]
    rows = {value.axes: None for value in made if value.op in _BINDS}
    result: list[Bound] = []
    for axes in rows:
        inner = leaves(axes)
        outer = {leaf: None for dim in dims for leaf in leaves(dim) if leaf not in inner}
        result.append(Bound(node, inner, tuple(outer)))
    return result


def check(reader: Reader, items: Iterable[Bound]) -> None:
    """Raises PlanError for a reduction whose axes have become those of its result."""
    for item in items:
        if set(leaves(item.inner)) & set(leaves(item.outer)):
            reader.node = item.node
            reader.refuse(
                "plan-repeated-axis", "it reduces one axis and leaves another, and both are one",
                hint="two operators",
            )  # fmt: skip
