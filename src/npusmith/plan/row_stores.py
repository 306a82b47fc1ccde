"""Rows that are stored where an index tensor says, after what is there before."""

from __future__ import annotations

from collections.abc import Callable

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Assign, Binary, BinOp, Choice, Const, For, Load, Name, Span, View
from npusmith.ir.nodes import Value as Read
from npusmith.plan.block import Block, Part, Path, staged
from npusmith.plan.loops import share
from npusmith.plan.passes import inner_reductions
from npusmith.plan.scalars import ONE, ZERO, least, minus, plus
from npusmith.plan.space import Output
from npusmith.plan.writer import Writer, op

PLACE = Name("place_at")
_IDS = 512  # indices at a time


def store_places(w: Writer, root: Path, output: Output, store: Callable[[Path], None]) -> None:
    """Every core has columns of all rows, or rows around them, and goes through the indices.

    So of two rows for one place the last is left, and sums are added in one order, on any number
    of cores. `store`: one row.
    """
    places = output.places
    assert places is not None
    if inner_reductions(w, root, [output.value]):
        raise PlanError("plan-mixed-reductions", "rows that an index places are reduced")
    dealt = frozenset(output.groups) - {places.group}
    share(w, root, dealt, [], lambda path: _through(w, path, output, store))


def _through(w: Writer, path: Path, output: Output, store: Callable[[Path], None]) -> None:
    """All indices, some at a time."""
    places = output.places
    assert places is not None
    tensor, start, count = w.tensors[places.index], Name("ids_from"), Name("id_lines")
    loaded = w.temp(places.dtype, False, Part.LOADED, hint=tensor, lanes=_IDS)
    some, one = Block(path[-1].opened), Block(path[-1].opened | {places.group})
    some.items += [
        Assign(count.id, least(Const(_IDS), minus(w.sizes.size(places.group), start))),
        Load(View(loaded), Span(tensor, start), count),
    ]
    held = loaded
    if places.dtype is DType.INT64:
        held = w.temp(DType.INT32, False, lanes=_IDS)
        some.items.append(op("cast", (held, loaded), (), count, "none"))
    number = Name("id_at")
    one.index[places.group] = plus(start, number)
    one.items.append(Assign(PLACE.id, Read(View(held, number))))
    if places.rows != ZERO:
        wrapped = plus(PLACE, w.sizes.named(places.rows))
        one.items.append(Assign(PLACE.id, Choice(Binary(BinOp.LT, PLACE, ZERO), wrapped, PLACE)))
    store((*path, some, one))
    some.items.append(For(number.id, ZERO, count, ONE, staged(one.items)))
    size = w.sizes.size(places.group)
    path[-1].items.append(For(start.id, ZERO, size, Const(_IDS), staged(some.items)))
