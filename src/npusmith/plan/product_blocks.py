"""A block of a matrix product that is handed over to vector cores: where its elements stand.

Blocks are rows and columns of the product, at one place of its batch; what stands behind the
product has axes of its own. Both go over the same elements in the same order, so that runs of the
product and axes of what is behind it can be told from each other by their sizes: an axis is a run,
several (56 x 56 places of an image that are one axis behind a convolution), or a part of one
(rows of several sequences).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npusmith.errors import PlanError
from npusmith.ir.nodes import Expr
from npusmith.plan.axes import Atom
from npusmith.plan.index import poly, simple
from npusmith.plan.scalars import ZERO, plus, times


@dataclass(frozen=True, slots=True)
class Span:
    """Some neighbouring axes and the runs of a product that go over them, outermost first."""

    axes: tuple[Atom, ...]
    runs: tuple[int, ...]


def refuse(why: str) -> PlanError:
    return PlanError("plan-cube", f"what stands behind a product cannot take its blocks: {why}")


def spans_of(axes: Sequence[Atom], runs: Sequence[tuple[int, int]]) -> tuple[Span, ...]:
    """What goes over what. `runs`: captured size of each, and elements for a step along it.

    Axes and runs of one element go over nothing.
    """
    left = [axis for axis in axes if axis.size > 1]
    order = sorted((step, at) for at, (size, step) in enumerate(runs) if size > 1)
    found: list[Span] = []
    at = [item for _, item in order]
    reached = 1
    while left or at:
        own: list[Atom] = []
        mine: list[int] = []
        one = other = 1
        while not own or one != other:
            if one <= other and left:
                own.insert(0, left.pop())
                one *= own[0].size
            elif at and runs[at[0]][1] == reached:
                mine.insert(0, at.pop(0))
                other *= runs[mine[0]][0]
                reached *= runs[mine[0]][0]
            else:
                raise refuse("its axes are others")
        if len(own) > 1 and len(mine) > 1:
            raise refuse("its axes are cut elsewhere")
        found.insert(0, Span(tuple(own), tuple(mine)))
    return tuple(found)


def column_axis(spans: Sequence[Span], columns: int) -> Atom | None:
    """The one axis that runs along the run of the columns, where there is one and nothing else."""
    for span in spans:
        if span.runs == (columns,) and len(span.axes) == 1:
            return span.axes[0]
    return None


@dataclass(frozen=True, slots=True)
class ProductBlock:
    """The block at hand: names of the kernel say where it stands.

    `tensor`: the graph's name of the product. `indices`: along each run, of an element of a tile;
    `whole`: all columns are in it. `start`: of its rows that a core takes, where they are handed
    over; `pitch`: elements from one of these rows to the next.
    """

    tensor: str
    spans: tuple[Span, ...]
    sizes: tuple[Expr, ...]
    indices: tuple[Expr, ...]
    row: Expr
    column: Expr
    whole: bool
    start: Expr
    pitch: Expr

    def index(self, axis: Atom) -> Expr:
        """Where along an axis an element stands; the last axis of a run that has several counts on
        over the others, which stand still."""
        for span in self.spans:
            if axis in span.axes:
                if axis is not span.axes[-1]:
                    return ZERO
                found: Expr = ZERO
                for run in span.runs:
                    found = plus(times(found, self.sizes[run]), self.indices[run])
                return found
        return ZERO

    def address(self, indices: Mapping[Atom, Expr]) -> Expr:
        """Where an element is handed over that the product has at these indices.

        Raises plan-cube for elements of other blocks.
        """
        column = self.column
        for axis, index in indices.items():
            if poly(index) == poly(self.index(axis)):
                continue
            if not self.whole or axis is not column_axis(self.spans, len(self.sizes) - 1):
                raise refuse("it reads elements of other blocks")
            column = index
        return simple(plus(plus(self.start, times(self.row, self.pitch)), column))
