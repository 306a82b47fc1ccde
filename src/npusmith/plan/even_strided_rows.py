"""Rows that lie apart, copied by one instruction: in every tile they are equally long.

A tile that needs less of each row than others copies as much. Near the end of the tensor it begins
earlier, and what it needs stands so much further on. Rows of whole blocks have no gaps on chip, so
that one instruction casts them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.ir.nodes import Assign, Expr, Name, Size
from npusmith.plan.block import Path
from npusmith.plan.dag import Value
from npusmith.plan.index import simple
from npusmith.plan.lane_space import Lanes
from npusmith.plan.scalars import ONE, ZERO, least, minus, plus, times


def even_row(
    w: Lanes, value: Value, whole: Expr, most: Sequence[Expr], sizes: Sequence[Expr],
    far: Sequence[int],
) -> Expr:  # fmt: skip
    """Elements of a row that any tile copies: to a whole number of blocks, where they are there."""
    tensor = w.tensors[value.text]
    length = w.sizes.define(f"{tensor}_size", Size(tensor))
    there = minus(length, span(most, sizes, far))
    return w.sizes.named(least(whole, least(sizes[far[-1]], there)))


def span(extents: Sequence[Expr], sizes: Sequence[Expr], far: Sequence[int]) -> Expr:
    """Elements from the start of the first row that is copied to that of the last."""
    total: Expr = ZERO
    for at in far:
        total = plus(total, times(minus(extents[at], ONE), sizes[at]))
    return simple(total)


def first_of(w: Lanes, path: Path, value: Value, low: Expr, reach: Expr) -> Expr:
    """Where a copy begins: where it has to, or earlier, so that it ends inside the tensor."""
    tensor = w.tensors[value.text]
    length = w.sizes.define(f"{tensor}_size", Size(tensor))
    name = w.fresh("copied_from_")
    path[-1].items.append(Assign(name, least(w.scalar(path, low), minus(length, reach))))
    return Name(name)
