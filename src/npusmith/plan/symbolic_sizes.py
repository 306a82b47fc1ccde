"""Sizes that numbers of a graph follow from, as expressions over sizes of inputs.

A class of axes that no input has (how many windows there are, the rows behind a convolution) has
the size of a value that was read before, or a formula over classes before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from npusmith.ir.nodes import Const, Expr
from npusmith.plan.axes import Dim, Dims
from npusmith.plan.index import floor_div, simple
from npusmith.plan.scalars import plus, product, times
from npusmith.task.graph import Graph, SymbolicSize


@dataclass(frozen=True, slots=True)
class SizeExpressions:
    """`inputs`: dimensions of the graph's; `made`: of a value that was read; `axis`: of a class
    that an input has, or a refusal; `size`: of a dimension."""

    graph: Graph
    inputs: Mapping[str, Dims]
    made: Callable[[str], Dims | None]
    axis: Callable[[int], Dim]
    size: Callable[[Dim], Expr]

    def expression(self, item: SymbolicSize) -> Expr:
        """A whole number."""
        scaled = times(product(map(self._class, item.classes)), Const(item.times))
        scaled = plus(scaled, Const(item.inner + (item.over - 1 if item.up else 0)))
        part = floor_div(simple(scaled), Const(item.over))
        count = -item.parts if item.negative else item.parts
        return simple(plus(times(Const(count), part), Const(item.plus)))

    def axes(self, item: SymbolicSize) -> Iterator[Dim]:
        """All that it follows from."""
        for at in item.classes:
            found = self._found(at)
            if isinstance(found, SymbolicSize):
                yield from self.axes(found)
            else:
                yield found

    def _class(self, at: int) -> Expr:
        found = self._found(at)
        return self.expression(found) if isinstance(found, SymbolicSize) else self.size(found)

    def _found(self, at: int) -> Dim | SymbolicSize:
        row = self.graph.classes[at]
        if any(name in self.inputs for name, _ in row.axes):
            return self.axis(at)
        for name, axis in row.axes:
            if (dims := self.made(name)) is not None:
                return dims[axis]
        return self.axis(at) if row.form is None else row.form
