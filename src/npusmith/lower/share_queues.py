"""Put tensors that are loaded together into one queue, where there are too many for two buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from npusmith.ir.branches import branches
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Buffer,
    Const,
    Expr,
    Load,
    Op,
    Program,
    Role,
    Stage,
    Stmt,
    Value,
    View,
)
from npusmith.ir.rebuild import map_children, map_operands, map_statements
from npusmith.ir.walk import Block, statements, values
from npusmith.lower.double_buffer import MOST_PER_POSITION, buffer_bytes, loop_depths
from npusmith.lower.usage import read
from npusmith.target.chips import Chip

Buffers = tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Where a buffer has gone: into another one, so many elements from its start."""

    buffer: str
    at: int


def share_queues(program: Program, chip: Chip) -> Program:
    """Let loaded buffers be parts of one where a queue position has no events for two of each.

    before: five buffers of 8 KB loaded in one stage of a loop: three have a second buffer, two not
    after:  two of them are one buffer of 16 KB, and four buffers are loaded in turns

    Those that no instruction reads together are put together: others want different banks.
    """
    kernel = program.kernel
    pieces: dict[str, Piece] = {}
    for body, buffers in branches(program).versions():
        pieces |= _shared(body, buffers, chip)
    if not pieces:
        return program
    lengths = Counter[str]()
    for item in kernel.buffers:
        piece = pieces.get(item.name, Piece(item.name, 0))
        lengths[piece.buffer] = max(lengths[piece.buffer], piece.at + _elements(item, chip))
    buffers = tuple(
        replace(item, length=Const(lengths[item.name]), named=None)
        if lengths[item.name] != _elements(item, chip)
        else item
        for item in kernel.buffers
        if item.name not in pieces
    )
    body = map_statements(kernel.body, lambda stmt: _moved(stmt, pieces))
    return replace(program, kernels=(replace(kernel, buffers=buffers, body=body),))


def _shared(body: Block, buffers: Buffers, chip: Chip) -> dict[str, Piece]:
    """What becomes a part of another buffer in one version of the kernel."""
    depths = loop_depths(body)
    loaded = [item for item in buffers if item.role is Role.VECIN]
    turns = [item for item in loaded if depths.get(item.name, 0) and not item.copies]
    most = MOST_PER_POSITION - sum(max(item.copies, 1) for item in loaded if item not in turns)
    groups = [[item] for item in turns]
    stages, met = _stages(body), _read_together(body)

    def apart(one: Sequence[Buffer], two: Sequence[Buffer]) -> int:
        return sum(met[a.name, b.name] for a in one for b in two)

    while 2 * len(groups) > most:
        pairs = [
            (one, two)
            for one, two in combinations(groups, 2)
            if one[0].dtype is two[0].dtype and stages[one[0].name] == stages[two[0].name]
        ]
        if not pairs:
            break
        one, two = min(pairs, key=lambda pair: (len(pair[0]) + len(pair[1]), apart(*pair)))
        groups = [group for group in groups if group is not two]
        one += two
    return dict(piece for group in groups for piece in _pieces(group, chip))


def _pieces(group: Sequence[Buffer], chip: Chip) -> Iterator[tuple[str, Piece]]:
    at = 0
    for item in group:
        if at:
            yield item.name, Piece(group[0].name, at)
        at += _elements(item, chip)


def _elements(item: Buffer, chip: Chip) -> int:
    """Whole blocks of 32 bytes: what stands behind begins with one."""
    return buffer_bytes(item, chip) // item.dtype.bytes


def _stages(body: Block) -> dict[str, set[int]]:
    """The stages that fill each buffer."""
    found: dict[str, set[int]] = {}
    for at, stmt in enumerate(statements(body)):
        if isinstance(stmt, Stage):
            for item in statements((stmt,)):
                if isinstance(item, Load):
                    found.setdefault(item.dst.buffer, set()).add(at)
    return found


def _read_together(body: Block) -> Counter[tuple[str, str]]:
    """How many instructions read two buffers."""
    found = Counter[tuple[str, str]]()
    for stmt in statements(body):
        if isinstance(stmt, Op):
            sources = {view.buffer for view in read(stmt)}
            found.update((a, b) for a in sources for b in sources if a != b)
    return found


def _moved(stmt: Stmt, pieces: dict[str, Piece]) -> Stmt:
    def view(old: View) -> View:
        piece = pieces.get(old.buffer)
        if piece is None:
            return old
        at: Expr = Const(piece.at)
        return View(piece.buffer, at if old.offset == Const(0) else _plus(at, old.offset))

    def expr(old: Expr) -> Expr:
        inner = map_children(old, expr)
        return Value(view(inner.source)) if isinstance(inner, Value) else inner

    if any(item.buffer in pieces for item in values(stmt)):
        stmt = map_operands(stmt, expr)
    match stmt:
        case Load():
            return replace(stmt, dst=view(stmt.dst))
        case Op():
            return replace(stmt, views=tuple(view(item) for item in stmt.views))
        case _:
            return stmt


def _plus(at: Expr, offset: Expr) -> Expr:
    if isinstance(at, Const) and isinstance(offset, Const):
        return Const(at.value + offset.value)
    return Binary(BinOp.ADD, at, offset)
