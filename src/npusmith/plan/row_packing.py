"""Loops over rows that copy one row at a time -> loops that copy as many as the buffers hold.

A reduction of columns goes from row to row: each is a copy, a wait for it, and few instructions. A
row shorter than its buffer leaves room for others, which come with the same copy; they are then
computed with in the same order, so that results keep their bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from npusmith.ir.nodes import (
    Assign,
    Buffer,
    Call,
    Const,
    Expr,
    For,
    Load,
    Name,
    Op,
    Program,
    ScalarFn,
    Stage,
    StageKind,
    Stmt,
    Value,
    View,
)
from npusmith.ir.rebuild import map_blocks, map_children, map_operands, map_statements, with_body
from npusmith.ir.walk import Block, names, statements
from npusmith.plan.index import poly, replaced, steps
from npusmith.plan.scalars import ONE, ZERO, largest, least, minus, plus, quotient, shares, times

_BLOCK = 32  # bytes
_WHOLE = {"compare", "compares"}  # instructions that take whole repeats, whatever the count
_TURN, _FIRST, _HERE, _MOST = "packed", "packed_from", "packed_rows", "packed_most"


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a loop copies: `step` elements apart in memory, `pitch` on chip."""

    load: Load
    step: Expr
    pitch: Expr
    room: Expr  # elements of the buffer


def pack_rows(program: Program) -> Program:
    """The same, with rows copied together where a loop only computes with what it copies."""
    buffers = {item.name: item for item in program.kernel.buffers}
    sizes = {stmt.target: stmt.value for stmt in program.host.body if isinstance(stmt, Assign)}

    def packed(block: Block) -> Block:
        return tuple(item for stmt in block for item in _packed(stmt, buffers, sizes))

    return with_body(program, map_blocks(program.kernel.body, packed))


def _packed(
    loop: Stmt, buffers: Mapping[str, Buffer], sizes: Mapping[str, Expr]
) -> tuple[Stmt, ...]:
    match loop:
        case For(var, start, stop, Const(1), (Stage(StageKind.COPY_IN) as copies, *rest)):
            pass
        case _:
            return (loop,)
    if len(rest) != 1 or not isinstance(rest[0], Stage) or rest[0].kind is not StageKind.COMPUTE:
        return (loop,)
    computed = rest[0].body
    rows: dict[str, _Rows] = {}
    for stmt in copies.body:
        found = _rows(stmt, loop, computed, buffers)
        if found is not None and not _follow(found, sizes):
            return (loop,)
        if found is None or found.load.dst.buffer in rows:
            return (loop,)
        rows[found.load.dst.buffer] = found
    room = [quotient(row.room, largest(row.pitch, ONE)) for row in rows.values()]
    most: Expr = room[0]
    for other in room[1:]:
        most = least(most, other)
    first = plus(start, times(Name(_TURN), Name(_MOST)))
    copied = tuple(_together(row, var, Name(_FIRST)) for row in rows.values())
    body = map_statements(computed, lambda stmt: _moved(stmt, rows, minus(Name(var), Name(_FIRST))))
    last = plus(Name(_FIRST), Name(_HERE))
    turn = (
        Assign(_FIRST, first),
        Assign(_HERE, least(Name(_MOST), minus(stop, Name(_FIRST)))),
        replace(copies, body=copied),
        Stage(StageKind.COMPUTE, (For(var, Name(_FIRST), last, ONE, body),)),
    )
    turns = shares(largest(minus(stop, start), ZERO), Name(_MOST))
    return Assign(_MOST, largest(most, ONE)), For(_TURN, ZERO, turns, ONE, turn)


def _rows(stmt: Stmt, loop: For, computed: Block, buffers: Mapping[str, Buffer]) -> _Rows | None:
    """What a load of a loop takes turn by turn; None where that is no row at a fixed distance."""
    if not isinstance(stmt, Load) or stmt.rows is not None or stmt.dst.offset != ZERO:
        return None
    set_here = {item.target for item in statements(loop.body) if isinstance(item, Assign)}
    found = steps(stmt.src.offset, [loop.var])
    if found is None or {loop.var} & set(names(stmt.count)):
        return None
    step = found[1][loop.var].expr()
    if set_here & {*names(stmt.src.offset), *names(stmt.count)} or step == ZERO:
        return None
    buffer = buffers[stmt.dst.buffer]
    used = _operations(buffer.name, computed)
    if used & _WHOLE:  # what lies between rows is undefined
        return None
    block = _BLOCK // buffer.dtype.bytes
    alone = stmt.count == step == ONE and not used
    pitch: Expr = ONE if alone else Const(block)
    if stmt.count != ONE:
        pitch = Call(ScalarFn.ALIGN_UP, (stmt.count, Const(block)))
    return _Rows(stmt, step, pitch, buffer.length)


def _follow(rows: _Rows, sizes: Mapping[str, Expr]) -> bool:
    """Whether each row begins behind the one before it, as the rows of a copy have to.

    Those of a flipped axis begin before it, and windows begin inside of one.
    """
    step = poly(replaced(rows.step, sizes.get))
    if any(number < 0 for _, number in step.terms):
        return False
    count = rows.load.count
    return step.number is None or (isinstance(count, Const) and count.value <= step.number)


def _operations(buffer: str, computed: Block) -> set[str]:
    """The instructions that touch a buffer: each has to begin at a block of 32 bytes."""
    ops = [stmt for stmt in statements(computed) if isinstance(stmt, Op)]
    return {stmt.name for stmt in ops if any(view.buffer == buffer for view in stmt.views)}


def _together(row: _Rows, var: str, first: Expr) -> Load:
    offset = replaced(row.load.src.offset, lambda name: first if name == var else None)
    load = replace(row.load, src=replace(row.load.src, offset=offset))
    if row.pitch == ONE:
        return replace(load, count=Name(_HERE))
    return replace(load, rows=Name(_HERE), pitch=row.step)


def _moved(stmt: Stmt, rows: Mapping[str, _Rows], turn: Expr) -> Stmt:
    """A statement that finds its row where it lies among the others."""

    def view(item: View) -> View:
        row = rows.get(item.buffer)
        return item if row is None else View(item.buffer, plus(times(turn, row.pitch), item.offset))

    def expr(item: Expr) -> Expr:
        if isinstance(item, Value):
            return Value(view(View(item.source.buffer, expr(item.source.offset))))
        return map_children(item, expr)

    stmt = map_operands(stmt, expr)
    return replace(stmt, views=tuple(map(view, stmt.views))) if isinstance(stmt, Op) else stmt
