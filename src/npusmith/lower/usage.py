"""Who touches which on-chip buffer, and whether there are barriers of all cores."""

from __future__ import annotations

from npusmith.ir.nodes import Load, Mmad, Op, Program, Split, Stage, Stmt, Store, SyncCores, View
from npusmith.ir.walk import Block, bodies, statements, values
from npusmith.target.intrinsics import INTRINSICS, Operand


def written(op: Op) -> tuple[View, ...]:
    """The views that a vector operation writes (scratch is clobbered, so it counts)."""
    return tuple(
        view
        for kind, view in zip(INTRINSICS[op.name].views, op.views, strict=True)
        if kind in (Operand.DST, Operand.TMP)
    )


def read(op: Op) -> tuple[View, ...]:
    """The views that a vector operation reads."""
    row = INTRINSICS[op.name]
    return tuple(
        view
        for kind, view in zip(row.views, op.views, strict=True)
        if kind in (Operand.SRC, Operand.MASK, Operand.INDEX)
        or (kind is Operand.DST and row.reads_dst)
    )


def hidden(op: Op) -> frozenset[str]:
    """What an operation clobbers besides its operands; no buffer has such a name."""
    row = INTRINSICS[op.name]
    stack = {"<rest of UB>"} if row.library else set()
    return frozenset(stack | ({"<reserved UB>"} if row.reserve else set()))


def writes(stmt: Stmt, buffer: str) -> bool:
    """Does an operation in `stmt` write the buffer?"""
    return any(
        view.buffer == buffer
        for item in statements((stmt,))
        if isinstance(item, Op | Mmad)
        for view in (written(item) if isinstance(item, Op) else (item.dst,))
    )


def loads(stmt: Stmt, buffer: str) -> bool:
    """Does a load in `stmt` fill the buffer?"""
    return any(
        isinstance(item, Load | Split) and item.dst.buffer == buffer for item in statements((stmt,))
    )


def stores(stmt: Stmt, buffer: str) -> bool:
    """Does a store in `stmt` send the buffer?"""
    return any(
        isinstance(item, Store) and item.src.buffer == buffer for item in statements((stmt,))
    )


def _reads_itself(stmt: Stmt, buffer: str) -> bool:
    sent = isinstance(stmt, Store) and stmt.src.buffer == buffer
    used = any(view.buffer == buffer for view in _reads(stmt))
    return sent or used or any(view.buffer == buffer for view in values(stmt))


def _reads(stmt: Stmt) -> tuple[View, ...]:
    match stmt:
        case Op():
            return read(stmt)
        case Split(_, src):
            return (src,)
        case Mmad():
            return stmt.sources
        case _:
            return ()


def reads_filled(stmt: Stmt, buffer: str) -> bool:
    """Does `stmt` read the buffer before it fills the buffer itself?"""
    if _reads_itself(stmt, buffer):
        return True
    return any(_block_reads(body, buffer) for body in bodies(stmt))


def _block_reads(block: Block, buffer: str) -> bool:
    for stmt in block:
        if reads_filled(stmt, buffer):
            return True
        if isinstance(stmt, Stage) and loads(stmt, buffer):
            return False
    return False


def leaves_written(stmt: Stmt, buffer: str) -> bool:
    """Does `stmt` write or read the buffer without storing it afterwards itself?"""
    used = isinstance(stmt, Op) and any(view.buffer == buffer for view in stmt.views)
    used |= isinstance(stmt, Mmad) and stmt.dst.buffer == buffer
    if used or any(view.buffer == buffer for view in values(stmt)):
        return True
    return any(block_leaves(body, buffer) for body in bodies(stmt))


def block_leaves(block: Block, buffer: str) -> bool:
    """The same of a statement list."""
    for stmt in reversed(block):
        if isinstance(stmt, Stage) and stores(stmt, buffer):
            return False
        if leaves_written(stmt, buffer):
            return True
    return False


def is_shared(program: Program) -> bool:
    """Does its one kernel run several times, or on parts of tensors?"""
    launches = program.host.launches
    return len(launches) > 1 or any(item.loop or item.parts for item in launches)


def is_repeated(program: Program) -> bool:
    """Do kernels run one after another, or one again and again?"""
    launches = program.host.launches
    return len(launches) > 1 or any(item.loop for item in launches)


def waits(program: Program) -> bool:
    """Are there barriers of all cores: between kernels, or inside of one?"""
    return is_repeated(program) or any(
        isinstance(item, SyncCores) for item in statements(program.kernel.body)
    )
