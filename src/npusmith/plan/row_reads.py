"""Whole rows that values name (an embedding): copied as they are, one after another."""

from __future__ import annotations

from npusmith.ir.nodes import Expr, For, Load, Name, Span, Stage, StageKind, Store, View
from npusmith.ir.walk import names
from npusmith.plan.block import Part, Path
from npusmith.plan.dag import Value
from npusmith.plan.element_reads import one_by_one
from npusmith.plan.emit import buffer_dtype
from npusmith.plan.index import poly, steps
from npusmith.plan.index_vectors import tile_buffer, varies
from npusmith.plan.lane_space import Lanes
from npusmith.plan.reader import ELEMENT, WORTH
from npusmith.plan.scalars import ONE, largest, plus, product


def row_of(w: Lanes, value: Value) -> Expr | None:
    """How long the rows are that a read of an input takes; None where it takes no rows.

    Values say where one begins, along outer axes of the tile; along the inner ones it is dense.
    """
    if value.op != "fetch":
        return None
    expr, domain = value.index[0], w.domain(value)
    elements = [Name(name) for name in names(expr) if name.startswith(ELEMENT)]
    along = {lane for element in elements if varies(w, element) for lane in w.spread(element)}
    if not along:
        return None
    inner = [lane for lane in domain if lane > max(along)]
    found = steps(expr, [w.tiling.lanes[lane].name for lane in inner])
    if found is None or w.captured(inner) < WORTH:
        return None
    for lane in inner:
        step = found[1][w.tiling.lanes[lane].name]
        if w.size(lane) != ONE and step != poly(w.depth(lane, domain)):
            return None
    return product(w.size(lane) for lane in inner)


def copy_rows(w: Lanes, path: Path, value: Value, tensor: str, first: Expr, row: Expr) -> For:
    """A loop over the rows of a tile that copies each from an input to another tensor."""
    assert value.dtype is not None
    held = tile_buffer(w, buffer_dtype(value.dtype), Part.THROUGH, hint=tensor)
    store = Store(Span(tensor, plus(first, Name("lane"))), View(held), row)

    def load(place: Expr) -> Load:
        return Load(View(held), Span(w.tensors[value.text], place), row)

    whole = largest(row, ONE)
    return one_by_one(w, path, value, load, (Stage(StageKind.COPY_OUT, (store,)),), whole)
