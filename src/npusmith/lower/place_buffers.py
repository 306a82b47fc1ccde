"""Decide where each buffer sits in the pipeline."""

from __future__ import annotations

from dataclasses import dataclass, replace

from npusmith.errors import LowerError, Place
from npusmith.ir.nodes import Buffer, Load, Memory, Mmad, Op, Program, Role, Split, Store
from npusmith.ir.walk import Block, statements, values
from npusmith.lower.usage import written
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
    uses = _Uses.of(kernel.body)
    placed = tuple(
        replace(item, role=goes.get(item.name) or _PLACES.get(item.memory) or _role(item, uses))
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


@dataclass(frozen=True, slots=True)
class _Uses:
    """Buffers by what happens to them in a kernel."""

    loaded: frozenset[str]
    stored: frozenset[str]
    written: frozenset[str]  # by operations
    computes: frozenset[str]  # operands, and what a scalar is read from

    @classmethod
    def of(cls, body: Block) -> _Uses:
        inside = tuple(statements(body))
        operations = [item for item in inside if isinstance(item, Op)]
        products = {item.dst.buffer for item in inside if isinstance(item, Mmad)}
        views = [view for item in operations for view in item.views]
        views += [view for item in inside for view in values(item)]
        return cls(
            frozenset(item.dst.buffer for item in inside if isinstance(item, Load | Split)),
            frozenset(item.src.buffer for item in inside if isinstance(item, Store)),
            frozenset(view.buffer for item in operations for view in written(item)) | products,
            frozenset(view.buffer for view in views),
        )


def _role(buffer: Buffer, uses: _Uses) -> Role:
    name = buffer.name
    if name in uses.loaded and name in uses.written:
        raise _mixed(buffer, "is loaded, and written by a vector operation")
    if name in uses.loaded and name in uses.stored:
        if name in uses.computes:
            raise _mixed(buffer, "is loaded and stored, and read by a vector operation")
        return Role.THROUGH
    if name in uses.loaded:
        return Role.VECIN
    return Role.VECOUT if name in uses.stored else Role.VECCALC


def _mixed(buffer: Buffer, what: str) -> LowerError:
    return LowerError(
        "lower-buffer-role", f"buffer {buffer.name!r} {what}", Place(line=buffer.line)
    )
