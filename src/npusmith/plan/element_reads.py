"""Elements that are read one by one, through the core's own piece of workspace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    CoreId,
    Expr,
    For,
    Load,
    Name,
    ScalarFn,
    Span,
    Stage,
    StageKind,
    Stmt,
    Store,
    View,
)
from npusmith.ir.nodes import Value as Read
from npusmith.ir.walk import names, subexpressions
from npusmith.plan.block import Part, Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.emit import buffer_dtype
from npusmith.plan.host import TILE
from npusmith.plan.index import replaced
from npusmith.plan.index_vectors import tile_buffer, varies
from npusmith.plan.lane_space import LANE, Lanes
from npusmith.plan.reader import ELEMENT
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    largest,
    least,
    minus,
    plus,
    product,
    quotient,
    remainder,
    times,
)
from npusmith.plan.widening import Copied, widened


def each(w: Lanes, path: Path, value: Value, result: str) -> None:
    """Element by element, through the core's own piece of workspace."""
    assert value.dtype is not None
    dtype = buffer_dtype(value.dtype)
    work = w.sizes.workspace(Binary(BinOp.MUL, Name("cores"), TILE))
    w.types[work] = dtype
    first = Binary(BinOp.MUL, CoreId(), TILE)
    one = w.temp(dtype, False, Part.THROUGH, hint=w.tensors[value.text])
    path[-1].items.append(copies(w, path, value, work, first, one))
    raw = tile_buffer(w, dtype, Part.LOADED, hint=w.tensors[value.text])
    count = w.count(path, True)
    path[-1].items.append(Load(View(raw), Span(work, first), count))
    widened(w, path, value, Copied(raw, count), True, into=result)


def copies(w: Lanes, path: Path, value: Value, tensor: str, first: Expr, one: str) -> For:
    """A loop over lanes that copies one element each from an input to another tensor."""
    store = Store(Span(tensor, plus(first, Name("lane"))), View(one), ONE)
    return one_by_one(w, path, value, alone(w, value, one), (Stage(StageKind.COPY_OUT, (store,)),))


def alone(w: Lanes, value: Value, one: str) -> Callable[[Expr], Load]:
    """One element into a buffer of its own."""
    return lambda place: Load(View(one), Span(w.tensors[value.text], place), ONE)


def one_by_one(
    w: Lanes, path: Path, value: Value, load: Callable[[Expr], Load], then: tuple[Stmt, ...],
    step: Expr = ONE,
) -> For:  # fmt: skip
    """A loop over lanes that brings `step` elements each on chip; `then`: what is done with them.

    `load`: the copy from a place.
    """
    for name in names(value.index[0]):
        if name.startswith(ELEMENT) and varies(w, Name(name)):
            w.ready(path, Name(name))
    where = w.scalar(path, replaced(value.index[0], partial(_at_lane, w, path)))
    place = Assign("place_at", where)
    return For(
        "lane", ZERO, w.count(path, True), step,
        (
            Stage(StageKind.COMPUTE, (place,)) if _reads(where) else place,
            Stage(StageKind.COPY_IN, (load(Name("place_at")),)),
            *then,
        ),
    )  # fmt: skip


def _at_lane(w: Lanes, path: Path, name: str) -> Expr | None:
    """What a number of a lane, or an element, is inside of the loop; None for other names."""
    lane = Name("lane")
    if name.startswith(LANE):
        number = int(name[1:])
        rows = w.tail(w.now)
        at_: Expr = lane
        if number in rows:
            last = minus(product(w.size(other) for other in rows), ONE)
            at_ = least(remainder(lane, largest(w.pitch(rows), ONE)), last)
        index = quotient(at_, largest(w.depth(number), ONE))
        outermost = number == (rows if number in rows else w.now)[0]
        return index if outermost else remainder(index, largest(w.size(number), ONE))
    if name.startswith(ELEMENT) and varies(w, Name(name)):
        element = w.elements[int(name[1:])]
        own = w.domain(element)
        at: Expr = ZERO
        for other in own:
            index = replaced(Name(w.tiling.lanes[other].name), partial(_at_lane, w, path))
            at = plus(at, times(index, w.depth(other, own)))
        read: Expr = Read(View(w.held(path, element), at))
        if element.kind is Kind.FLOAT:
            read = Call(ScalarFn.INT, (read,))
        return read
    return None


def _reads(expr: Expr) -> bool:
    return any(isinstance(item, Read) for item in subexpressions(expr))
