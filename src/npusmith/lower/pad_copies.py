"""Choose between the two copy instructions."""

from __future__ import annotations

from dataclasses import replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Call,
    Const,
    Expr,
    For,
    Load,
    Name,
    Program,
    ScalarFn,
    Span,
    Stmt,
    Store,
    View,
)
from npusmith.ir.rebuild import map_blocks, with_body
from npusmith.ir.walk import Block
from npusmith.lower.facts import Facts, kernel_facts, prove
from npusmith.lower.flow import assigned
from npusmith.target.chips import Chip

_MOST_ROWS = 4095  # DataCopyExtParams.blockCount (doc: DataCopyPad)


def pad_copies(program: Program, chip: Chip) -> Program:
    """Use DataCopy where its length is provably whole 32-byte blocks, DataCopyPad elsewhere.

    before: `load(xt, x[i], TILE)`      `load(xt, x[i], n)`
    after:  the first DataCopy, the second DataCopyPad (n may be anything)

    Copies of rows are always padded ones, at most 4095 rows at a time: where a buffer has room for
    more, a loop takes them in turns. Copies of matrices have instructions of their own.
    """
    if program.kernel.is_cube:
        return program
    facts = kernel_facts(program)
    fresh = _fresh_names(program)

    def decide(block: Block) -> Block:
        result: list[Stmt] = []
        for stmt in block:
            if not isinstance(stmt, Load | Store):
                result.append(stmt)
                continue
            view = stmt.dst if isinstance(stmt, Load) else stmt.src
            buffer = program.kernel.buffer(view.buffer)
            padded = replace(stmt, padded=_needs_padding(stmt, buffer.dtype, facts))
            room = _room(buffer.length, buffer.dtype)
            result.append(padded if room <= _MOST_ROWS else _in_turns(padded, buffer.dtype, fresh))
        return tuple(result)

    return with_body(program, map_blocks(program.kernel.body, decide))


def _needs_padding(stmt: Load | Store, dtype: DType, facts: Facts) -> bool:
    return stmt.rows is not None or prove(stmt.count, facts).step % dtype.per_block != 0


def _room(length: Expr, dtype: DType) -> int:
    """How many rows a buffer can hold at most: each takes one block at least."""
    assert isinstance(length, Const)  # normalize has run
    return int(length.value) // dtype.per_block


def _fresh_names(program: Program) -> tuple[str, str]:
    taken = assigned(program.kernel.body) | {item.name for item in program.kernel.scalars}
    taken |= {name for name, _ in program.consts}
    first, many = "first_row", "row_count"
    while first in taken or many in taken:
        first, many = first + "_", many + "_"
    return first, many


def _in_turns(stmt: Load | Store, dtype: DType, fresh: tuple[str, str]) -> Stmt:
    """A loop over at most 4095 rows each."""
    if stmt.rows is None or stmt.pitch is None:
        return stmt
    if isinstance(stmt.rows, Const) and stmt.rows.value <= _MOST_ROWS:
        return stmt
    first, step = Name(fresh[0]), Const(_MOST_ROWS)
    row = Call(ScalarFn.ALIGN_UP, (stmt.count, Const(dtype.per_block)))
    rows = Call(ScalarFn.MIN, (step, Binary(BinOp.SUB, stmt.rows, first)))

    def view(item: View) -> View:
        return View(item.buffer, _plus(item.offset, Binary(BinOp.MUL, first, row)))

    def span(item: Span, pitch: Expr) -> Span:
        return Span(item.tensor, _plus(item.offset, Binary(BinOp.MUL, first, pitch)))

    piece: Stmt
    if isinstance(stmt, Load):
        piece = replace(stmt, dst=view(stmt.dst), src=span(stmt.src, stmt.pitch), rows=rows)
    else:
        piece = replace(stmt, src=view(stmt.src), dst=span(stmt.dst, stmt.pitch), rows=rows)
    return For(first.id, Const(0), stmt.rows, step, (piece,), stmt.line)


def _plus(left: Expr, right: Expr) -> Expr:
    return right if left == Const(0) else Binary(BinOp.ADD, left, right)
