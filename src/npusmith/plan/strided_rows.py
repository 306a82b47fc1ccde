"""Long rows that lie apart in memory (a half of each row): one strided copy brings just these.

In the tile they stand side by side where a row is a multiple of 32 bytes, which the host tests:
nothing is gathered, and what lies between rows is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.ir.nodes import Binary, BinOp, Const, Expr, Load, Name, StageKind, View
from npusmith.ir.walk import names
from npusmith.plan.block import Part, Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.emit import buffer_dtype, widening
from npusmith.plan.index import is_positive, poly
from npusmith.plan.index_vectors import tile_buffer
from npusmith.plan.lane_reads import affine, captured, shares_copy, span_of
from npusmith.plan.lane_space import Lanes
from npusmith.plan.scalars import ONE, ZERO, minus, plus, product, times
from npusmith.plan.widening import Copied, Row, each_row, onto_of, widened
from npusmith.target.costs import values

_REPEAT = 64  # elements that a vector instruction takes in a repeat


@dataclass(frozen=True, slots=True)
class Rows:
    """The first address, elements of a row, and the step along each axis outside of it."""

    base: Expr
    cols: Expr
    block: int  # elements that a row is a multiple of
    steps: tuple[Expr, ...]


def rows_of(w: Lanes, value: Value) -> Rows | None:
    """The rows that a read takes; None where one copy is no quicker than a gather.

    What is computed has to run along the axes of the value.
    """
    if value.op != "fetch" or not w.space.wide(value) or value.kind is Kind.LONG or w.tail(w.now):
        return None
    found = affine(w, value.index[0])
    if found is None:
        return None
    base, by = found
    at = len(w.now)
    while at and (w.size(w.now[at - 1]) == ONE or by[at - 1] == poly(w.depth(w.now[at - 1]))):
        at -= 1
    steps = tuple(step.expr() for step in by[:at])
    if not 0 < at < len(w.now) or any(set(names(step)) - set(w.sizes.defined) for step in steps):
        return None
    assert value.dtype is not None
    types = [buffer_dtype(value.dtype), *(dtype for dtype, _ in widening(value))]
    block = 32 // min(dtype.bytes for dtype in types)
    rows = Rows(base, product(w.size(lane) for lane in w.now[at:]), block, steps)
    worth = w.handed is not None or _is_worth(w, value, rows, at)
    return rows if worth and not shares_copy(w, value) else None


def _is_worth(w: Lanes, value: Value, rows: Rows, at: int) -> bool:
    """Whether a row, as captured, costs less than what lies between rows and a gather."""
    assert value.dtype is not None
    cols, step = w.captured(w.now[at:]), captured(w, rows.steps[-1])
    if cols % rows.block or step < cols:
        return False
    costs = values(w.chip)
    between = (step - cols) * value.dtype.bytes / costs["path.gm_ub.miss"]
    gathered = cols / _REPEAT * costs["vector.gather"]
    copy = costs["path.gm_ub.issue"] / w.captured(w.now[at - 1 : at]) if at > 1 else 0.0
    return between + gathered > costs["path.gm_ub.row"] + copy


def needs_of(rows: Rows) -> list[Expr]:
    """What sizes have to be like, where that does not follow from what they are."""
    tests: list[Expr] = []
    if not isinstance(rows.cols, Const) or rows.cols.value % rows.block:
        rest = Binary(BinOp.MOD, rows.cols, Const(rows.block))
        tests += [Binary(BinOp.GT, rows.cols, ZERO), Binary(BinOp.EQ, rest, ZERO)]
    if not is_positive(minus(rows.steps[-1], rows.cols)):
        tests.append(Binary(BinOp.LE, rows.cols, rows.steps[-1]))
    return tests


def load_apart(w: Lanes, path: Path, value: Value, rows: Rows) -> None:
    """Bring the rows on chip, side by side."""
    assert value.dtype is not None
    w.needs += needs_of(rows)
    tensor = w.tensors[value.text]
    extents: Sequence[Expr] = w.extents(path)[: len(rows.steps)]
    loops: list[Row] = []
    address, held = rows.base, times(extents[-1], rows.cols)
    for i in reversed(range(len(extents) - 1)):
        loops.insert(0, Row(f"copy{i}", extents[i], held, held))
        address = plus(address, times(Name(f"copy{i}"), rows.steps[i]))
        held = times(held, extents[i])
    raw = tile_buffer(w, buffer_dtype(value.dtype), Part.LOADED, hint=tensor)
    load = Load(
        View(raw, onto_of(loops, False)), span_of(w, path, value, address), rows.cols,
        extents[-1], rows.steps[-1],
    )  # fmt: skip
    path[-1].items.append(each_row(loops, load, StageKind.COPY_IN))
    path[-1].buffers[value] = widened(w, path, value, Copied(raw, w.count(path, True)), True)
