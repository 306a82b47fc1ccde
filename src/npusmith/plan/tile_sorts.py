"""Rows of a tile in order: an instruction for each row says where its elements come from.

Rows stand as row instructions want them, from multiples of 32 bytes on (tile_folds.py). What is
read where an order says, and what else is made of it, stays on chip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Call,
    Choice,
    Const,
    Dim,
    Expr,
    ScalarFn,
)
from npusmith.ir.walk import names, subexpressions
from npusmith.plan.block import Path
from npusmith.plan.dag import Value
from npusmith.plan.host import TILE
from npusmith.plan.index import replaced
from npusmith.plan.index_vectors import tile_buffer
from npusmith.plan.lane_reads import captured
from npusmith.plan.lane_space import WHOLE, Domain, Lanes, RowForm, dependencies
from npusmith.plan.read import Meaning
from npusmith.plan.scalars import ONE, ZERO, largest, parts_of, product, quotient, times
from npusmith.plan.sorts import LONGEST
from npusmith.plan.writer import op
from npusmith.target.intrinsics import SORT_STEP

_BLOCK = 8  # elements of 32 bytes
_SCRATCH = 4  # elements for each of a row


# The preferred ones first: the others where none of these has room.
FORMS = (
    (RowForm(even=True), WHOLE),
    (RowForm(even=True, doubled=False), RowForm(doubled=False)),
)


def reserve(w: Lanes, domain: Domain, rows: Domain) -> None:
    """What the host has to test, and how high a tile may be, for rows of a domain in order."""
    cols, head = _cols(w, rows), tuple(lane for lane in domain if lane not in rows)
    w.widest = max(w.widest, w.captured(lane for lane in domain if lane))
    w.needs.append(Binary(BinOp.LE, cols, Const(LONGEST)))
    if w.form.even and head and w.tail(domain) != rows:
        whole = Binary(BinOp.MOD, cols, Const(_BLOCK))
        w.needs.append(Binary(BinOp.EQ, whole, ZERO))
    # each row takes whole runs of the instruction's scratch
    room = times(w.area(head), Call(ScalarFn.ALIGN_UP, (cols, Const(SORT_STEP))))
    w.needs.append(Binary(BinOp.LE, room, TILE))
    if 0 in domain:
        w.limits.append(quotient(TILE, largest(room, ONE)))


def order(w: Lanes, path: Path, value: Value) -> None:
    """Where the elements of each row stand in the row, in their order; where a row ends, 0."""
    (operand,) = value.args
    cols = _cols(w, value.parts)
    pitch = w.pitch(value.parts) if w.tail(w.now) == value.parts else cols
    source = w.vector(path, operand, True)
    result = w.stored.pop(value, None) or w.like(value, hint="order")
    with w.whole_tile():
        spare = tile_buffer(w, DType.FLOAT32)
    w.temps[spare] = replace(w.temps[spare], times=_SCRATCH)
    rows = quotient(w.count(path, True), largest(pitch, ONE))
    views = result, source, spare
    path[-1].items.append(op("argsort_rows", views, (largest(cols, ONE),), rows, value.mode))
    path[-1].buffers[value] = result


# ---------------------------------------------------------------------------------------- rows


def has_order(meaning: Meaning, values: Iterable[Value]) -> bool:
    """Whether some of these values come from rows that are put in order."""
    held = [element.value for element in meaning.reader.elements]
    return any(value.op == "order" for value in dependencies(list(values), held))


def whole_rows(w: Lanes, tile: int) -> tuple[Expr, ...]:
    """The sizes at which a tile has room for whole rows.

    Raises plan-ub where it has none for so many as it should.
    """
    known = {**w.sizes.defined, TILE.id: Const(tile)}
    tests = [_inlined(test, known) for test in w.whole_rows]
    if not all(captured(w, Choice(test, ONE, ZERO), tile // w.form.rows) for test in w.whole_rows):
        raise PlanError("plan-ub", "rows do not fit on chip to be sorted")
    found = dict.fromkeys(part for test in tests for part in parts_of(test))
    return tuple(part for part in found if any(isinstance(e, Dim) for e in subexpressions(part)))


def _inlined(expr: Expr, known: Mapping[str, Expr]) -> Expr:
    """With what names of the host stand for, down to sizes of inputs."""
    while any(name in known for name in names(expr)):
        expr = replaced(expr, known.get)
    return expr


def _cols(w: Lanes, rows: Domain) -> Expr:
    return product(w.size(lane) for lane in rows)
