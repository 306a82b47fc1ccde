"""What was copied on chip as what is computed with: casts of a tile, or of its rows one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.ir.nodes import Const, Expr, For, Name, Stage, StageKind, Stmt, View
from npusmith.plan.block import Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.emit import widening
from npusmith.plan.index_vectors import tile_buffer
from npusmith.plan.lane_space import Lanes
from npusmith.plan.scalar_unit import copy
from npusmith.plan.scalars import ONE, ZERO, plus, times
from npusmith.plan.writer import op


@dataclass(frozen=True, slots=True)
class Row:
    """Of what is copied in several: the variable of a loop over copies, and its turns."""

    name: str
    turns: Expr
    copied: Expr  # elements from one copy to the next, as they come
    widened: Expr  # ... in buffers of other types


@dataclass(frozen=True, slots=True)
class Copied:
    """What was loaded into a buffer: so many elements, or rows of so many."""

    raw: str
    count: Expr
    rows: Sequence[Row] = ()


def widened(
    w: Lanes, path: Path, value: Value, copied: Copied, wide: bool, tiles: int = 0, into: str = ""
) -> str:
    """What is computed with; `into`: the buffer that it has to end in."""
    raw, count, rows = copied.raw, copied.count, copied.rows
    found = widening(value)
    here = onto_of(rows, False)
    for i, (dtype, mode) in enumerate(found):
        last = i == len(found) - 1
        if last and into:
            wider = into
        elif wide:
            wider = tile_buffer(w, dtype, tiles=tiles)
        else:
            wider = w.temp(dtype, False)
        onto = onto_of(rows, True)
        cast: Stmt = op("cast", (View(wider, onto), View(raw, here)), (), count, mode)
        path[-1].items.append(each_row(rows, cast, StageKind.COMPUTE))
        raw, here = wider, onto
    if into and not found and value.kind is Kind.LONG:
        copy(w, path, into, raw, count)
        return into
    if into and not found:
        one: Expr = Const(1) if value.kind is Kind.INT else Const(1.0)
        path[-1].items.append(op("muls", (into, raw), (one,), count))
        return into
    return raw


def onto_of(rows: Sequence[Row], widened: bool) -> Expr:
    """Where on chip the row stands that the loops over rows are at."""
    onto: Expr = ZERO
    for row in rows:
        onto = plus(onto, times(Name(row.name), row.widened if widened else row.copied))
    return onto


def each_row(rows: Sequence[Row], stmt: Stmt, kind: StageKind) -> Stmt:
    """A statement for every row of what is copied in several."""
    for row in reversed(rows):
        stmt = For(row.name, ZERO, row.turns, ONE, (stmt,))
    return Stage(kind, (stmt,)) if rows else stmt
