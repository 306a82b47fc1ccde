"""Statements of a cube core as C++: calls of the helpers in templates/matrices.j2."""

from __future__ import annotations

from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Buffer,
    Const,
    Expr,
    Load,
    Memory,
    Mmad,
    Split,
    Store,
    View,
)
from npusmith.lower.fold import fold
from npusmith.lower.spell import Spelling
from npusmith.target.cube import OUTFLOWS, Path, split_path

_ROWS = 16  # of a fractal
_SQUARE = 32  # rows and columns of two fractals of 8-bit types

Statement = Load | Store | Split | Mmad


def matrix_lines(stmt: Statement, spell: Spelling) -> list[str]:
    """The statement without what frames an atomic store."""
    match stmt:
        case Load():
            return [_load(stmt, spell)]
        case Split():
            return [_split(stmt, spell)]
        case Mmad():
            return _mmad(stmt, spell)
        case Store():
            return [_store(stmt, spell)]


def _buffer(view: View, spell: Spelling) -> Buffer:
    return spell.program.kernel.buffer(view.buffer)


def _height(item: Buffer) -> int:
    assert isinstance(item.length, Const)  # normalize has run
    return int(item.length.value)


def _sum(left: Expr, right: Expr) -> Expr:
    return left if right == Const(0) else Binary(BinOp.ADD, left, right)


def _times(expr: Expr, number: int) -> Expr:
    return expr if expr == Const(0) else Binary(BinOp.MUL, expr, Const(number))


def _l1(view: View, spell: Spelling, *, rows: bool = True) -> str:
    """A view of L1, whose columns of fractals lie one behind the other."""
    item = _buffer(view, spell)
    col, row = view.col or Const(0), view.offset if rows else Const(0)
    offset = _sum(_times(col, _height(item)), _times(row, item.dtype.per_block))
    return spell.view(View(view.buffer, fold(offset, spell.kind)))


def _load(stmt: Load, spell: Spelling) -> str:
    rows, pitch = stmt.rows or Const(1), stmt.pitch or stmt.count
    sizes = ", ".join(spell.show(part) for part in (rows, stmt.count, pitch))
    height = _height(_buffer(stmt.dst, spell))
    return f"LoadMatrix({_l1(stmt.dst, spell)}, {spell.span(stmt.src)}, {sizes}, {height});"


def _split(stmt: Split, spell: Spelling) -> str:
    src, dst = _buffer(stmt.src, spell), _buffer(stmt.dst, spell)
    if dst.memory is Memory.BIAS_TABLE:
        source = _l1(stmt.src, spell)
        return f"LoadBias({spell.local(stmt.dst.buffer)}, {source}, {spell.show(stmt.cols)});"
    path = split_path(dst.memory, dst.dtype, stmt.transposed)
    left = dst.memory is Memory.L0A
    to = spell.local(stmt.dst.buffer)
    if path is Path.IMAGE:
        deep, wide = (stmt.cols, stmt.rows) if left else (stmt.rows, stmt.cols)
        sizes = ", ".join(spell.show(part) for part in (stmt.src.offset, deep, wide))
        source = _l1(stmt.src, spell, rows=False)
        return f"LoadImage<{_flag(left)}>({to}, {source}, {_height(src)}, {sizes});"
    if path is Path.SQUARES:
        deep, wide = (stmt.cols, stmt.rows) if left else (stmt.rows, stmt.cols)
        sizes = ", ".join(spell.blocks(size, _SQUARE) for size in (deep, wide))
        across = _height(src) // _SQUARE
        return f"LoadSquares<{_flag(left)}>({to}, {_l1(stmt.src, spell)}, {sizes}, {across});"
    units = (_ROWS, dst.dtype.per_block) if left else (dst.dtype.per_block, _ROWS)
    counts = (spell.blocks(stmt.rows, units[0]), spell.blocks(stmt.cols, units[1]))
    across = _height(src) // _ROWS  # fractals from a column of L1 to the next
    strides = (across, 1) if stmt.transposed else (1, across)
    numbers = ", ".join([*counts, *map(str, strides)])
    turned = _flag(path is Path.TRANSPOSED)
    return f"LoadFractals<{turned}>({to}, {_l1(stmt.src, spell)}, {numbers});"


def _mmad(stmt: Mmad, spell: Spelling) -> list[str]:
    views = ", ".join(spell.local(view.buffer) for view in (stmt.dst, stmt.left, stmt.right))
    sizes = ", ".join(spell.show(part) for part in (stmt.m, stmt.n, stmt.k, stmt.accumulate))
    align = _flag(spell.paths.get(stmt.left.buffer) is Path.IMAGE)
    even = _flag(spell.paths.get(stmt.right.buffer) is Path.SQUARES)
    if stmt.bias is not None:
        sizes += f", {spell.local(stmt.bias.buffer)}"
    return [
        f"{spell.height(stmt.dst.buffer)} = {spell.rounded(stmt.m, _ROWS)};",
        f"Multiply<{align}, {even}>({views}, {sizes});",
    ]


def _store(stmt: Store, spell: Spelling) -> str:
    item = _buffer(stmt.src, spell)
    mode = OUTFLOWS[item.dtype, spell.program.kernel.tensor(stmt.dst.tensor).dtype]
    rows, pitch = stmt.rows or Const(1), stmt.pitch or stmt.count
    sizes = ", ".join(spell.show(part) for part in (rows, stmt.count, pitch))
    flags = f"QuantMode_t::{mode}, {_flag(stmt.relu)}"
    height = spell.height(stmt.src.buffer)
    source = spell.local(stmt.src.buffer) + _l0c(stmt.src, height, spell)
    return f"StoreMatrix<{flags}>({spell.span(stmt.dst)}, {source}, {sizes}, {height});"


def _l0c(view: View, height: str, spell: Spelling) -> str:
    """Where a view of L0C begins; a column of fractals has as many rows as the product."""
    row = spell.show(fold(_times(view.offset, _ROWS), spell.kind))
    if view.col in (None, Const(0)):
        return "" if view.offset == Const(0) else f"[{row}]"
    column = f"{spell.factor(view.col)} * {height}"
    return f"[{column}]" if view.offset == Const(0) else f"[{column} + {row}]"


def _flag(value: bool) -> str:
    return "true" if value else "false"
