"""Decide where each buffer sits in the pipeline."""

from __future__ import annotations

from dataclasses import replace

from npusmith.errors import LowerError, Place
from npusmith.ir.nodes import Buffer, Memory, Op, Program, Role, Split, Stmt
from npusmith.ir.walk import Block, statements, values
from npusmith.lower.usage import loads, stores, writes
from npusmith.target.chips import Chip


def place_buffers(program: Program, chip: Chip) -> Program:
    """Give every buffer its role from how it is used.

    before: `xt = ub(4096, float32)` loaded and read, `yt` written and stored, `et` neither
    after:  xt VECIN, yt VECOUT, et VECCALC; a buffer loaded and stored unchanged is THROUGH

    Matrices are where they were declared: L1 is A1, or B1 or C1 by where its contents go.
    """
    kernel = program.kernel
    goes = {
        item.src.buffer: _SOURCES[kernel.buffer(item.dst.buffer).memory]
        for item in statements(kernel.body)
        if isinstance(item, Split)
    }
    placed = tuple(
        replace(
            item,
            role=goes.get(item.name) or _PLACES.get(item.memory) or _role(item, kernel.body),
        )
        for item in kernel.buffers
    )
    return replace(program, kernels=(replace(kernel, buffers=placed),))


_PLACES = {
    Memory.L1: Role.A1,
    Memory.L0A: Role.A2,
    Memory.L0B: Role.B2,
    Memory.L0C: Role.CO1,
    Memory.BIAS_TABLE: Role.C2,
}
_SOURCES = {Memory.L0A: Role.A1, Memory.L0B: Role.B1, Memory.BIAS_TABLE: Role.C1}


def _role(buffer: Buffer, body: Block) -> Role:
    loaded = any(loads(stmt, buffer.name) for stmt in body)
    stored = any(stores(stmt, buffer.name) for stmt in body)
    written = any(writes(stmt, buffer.name) for stmt in body)
    if loaded and written:
        raise _mixed(buffer, "is loaded, and written by a vector operation")
    if loaded and stored:
        if any(_computes(stmt, buffer.name) for stmt in statements(body)):
            raise _mixed(buffer, "is loaded and stored, and read by a vector operation")
        return Role.THROUGH
    if loaded:
        return Role.VECIN
    if stored:
        return Role.VECOUT
    return Role.VECCALC


def _computes(stmt: Stmt, buffer: str) -> bool:
    used = isinstance(stmt, Op) and any(view.buffer == buffer for view in stmt.views)
    return used or any(view.buffer == buffer for view in values(stmt))


def _mixed(buffer: Buffer, what: str) -> LowerError:
    return LowerError(
        "lower-buffer-role", f"buffer {buffer.name!r} {what}", Place(line=buffer.line)
    )
