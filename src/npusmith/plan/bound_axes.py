"""Axes that have to stay apart: what a reduction takes in, what it leaves, what a move replaces.

`x + (x.unsqueeze(-2) - x.unsqueeze(-1)).amax(-1)`: the result runs along the rows of pairs, the
maximum along their columns, and the sum makes the rows of pairs run as x does, which are the
columns. The maximum would then be of the diagonal, and so would be a slice of the pairs. A kernel
for both is refused; of several, each has axes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from npusmith.plan.axes import Dims, leaves
from npusmith.plan.dag import Value
from npusmith.plan.reader import Reader, Tensor
from npusmith.task.graph import Node

_BINDS = ("reduce", "running")


@dataclass(frozen=True, slots=True)
class Bound:
    """Dimensions that a node takes to run along axes of their own."""

    node: Node
    dims: Dims


def bound(reader: Reader, node: Node, made: Iterable[Value]) -> list[Bound]:
    """What a node has just reduced or scanned beside what is left, and what it has moved."""
    found = reader.known.get(node.name)
    results = found if isinstance(found, tuple) else (found,)
    dims = [dim for item in results if isinstance(item, Tensor) for dim in item.dims]
    rows = {value.axes: None for value in made if value.op in _BINDS}
    result = [Bound(node, moved) for moved in reader.moved]
    reader.moved.clear()
    for axes in rows:
        inner = leaves(axes)
        outer = {leaf: None for dim in dims for leaf in leaves(dim) if leaf not in inner}
        result.append(Bound(node, (inner, tuple(outer))))
    return result


def check(reader: Reader, items: Iterable[Bound]) -> None:
    """Raises PlanError where axes that a node takes to be two have become one."""
    for item in items:
        found = [leaf for dim in item.dims for leaf in leaves(dim)]
        if len(set(found)) < len(found):
            reader.node = item.node
            reader.refuse(
                "plan-repeated-axis", "it takes two axes apart, and both are one",
                hint="two operators",
            )  # fmt: skip


def beside(reader: Reader, x: Tensor, which: Iterable[int], others: Dims) -> Tensor:
    """`x` with axes of its own in those of these dimensions that run along one of the others."""
    taken = {leaf for dim in others for leaf in leaves(dim)}
    shared = [i for i in which if taken & set(leaves(x.dims[i]))]
    return reader.with_own_axes(x, shared) if shared else x
