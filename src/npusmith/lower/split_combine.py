"""Spell out reductions across cores."""

from __future__ import annotations

from dataclasses import replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Buffer,
    Call,
    Combine,
    Const,
    CoreCount,
    CoreId,
    Expr,
    For,
    Load,
    Name,
    Note,
    Op,
    Program,
    ScalarFn,
    Span,
    Stage,
    StageKind,
    Stmt,
    Store,
    SyncCores,
    View,
)
from npusmith.ir.walk import Block, bodies, statements
from npusmith.lower.flow import assigned
from npusmith.lower.fold import fold
from npusmith.lower.kinds import Kind
from npusmith.lower.rebuild import map_blocks
from npusmith.target.chips import Chip
from npusmith.target.intrinsics import COMBINES


def split_combine(program: Program, chip: Chip) -> Program:
    """Turn combine_* into a store of this core's part, a wait, and a sum in core order.

    before: `combine_sum(acc, part, ws, n)`
    after:  `with compute: muls(combine_out, part, 1, n)`
            `with copy_out: store(ws[core_id() * align_up(n, 8)], combine_out, n)`
            `sync_cores()`
            `for core in range(core_count()):` load the part of `core`, then `acc = acc + part`
            `sync_cores()` where the workspace is used again

    Every core adds in the same order, so the answer does not depend on timing. A multiplication by
    one is the copy that keeps every bit (adding zero would lose the sign of -0).
    """
    combines = [item for item in statements(program.kernel.body) if isinstance(item, Combine)]
    if not combines:
        return program
    pairs = _Pairs(program)
    again = len(combines) > 1 or _in_loop(program.kernel.body)
    body = map_blocks(program.kernel.body, lambda block: _split(block, pairs, again))
    buffers = (*program.kernel.buffers, *pairs.made)
    return replace(program, kernel=replace(program.kernel, body=body, buffers=buffers))


class _Pairs:
    """The buffers that carry parts out and in: one pair per dtype, as long as the longest part."""

    def __init__(self, program: Program) -> None:
        self.program = program
        kernel = program.kernel
        self.taken = assigned(kernel.body) | {name for name, _ in program.consts}
        self.taken |= {item.name for item in kernel.buffers}
        self.taken |= {item.name for item in kernel.tensors}
        self.taken |= {item.name for item in kernel.scalars}
        self.variable = self._fresh("core")
        lengths: dict[DType, Expr] = {}
        for item in statements(program.kernel.body):
            if isinstance(item, Combine):
                source = program.kernel.buffer(item.src.buffer)
                longest = lengths.get(source.dtype, Const(0))
                lengths[source.dtype] = max(longest, source.length, key=_length)
        self.names = {
            dtype: self._names(f"_{dtype.value}" if len(lengths) > 1 else "") for dtype in lengths
        }
        self.made = tuple(
            Buffer(name, dtype, length)
            for dtype, length in lengths.items()
            for name in self.names[dtype]
        )

    def _names(self, suffix: str) -> tuple[str, str]:
        return self._fresh(f"part_out{suffix}"), self._fresh(f"part_in{suffix}")

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _length(expr: Expr) -> int:
    assert isinstance(expr, Const)  # normalize has run
    return int(expr.value)


def _in_loop(block: Block) -> bool:
    return any(
        isinstance(item, Combine)
        for stmt in statements(block)
        if isinstance(stmt, For)
        for body in bodies(stmt)
        for item in statements(body)
    )


def _split(block: Block, pairs: _Pairs, again: bool) -> Block:
    result: list[Stmt] = []
    for stmt in block:
        result += _steps(stmt, pairs, again) if isinstance(stmt, Combine) else [stmt]
    return tuple(result)


def _steps(stmt: Combine, pairs: _Pairs, again: bool) -> list[Stmt]:
    dtype = pairs.program.kernel.buffer(stmt.src.buffer).dtype
    out, back = pairs.names[dtype]
    one = Const(1.0) if dtype.is_float else Const(1)
    pitch = Call(ScalarFn.ALIGN_UP, (stmt.count, Const(dtype.per_block)))
    core = Name(pairs.variable)

    def copy(dst: View, src: View) -> Op:
        return Op("muls", (dst, src), (one,), "", stmt.count, stmt.line)

    def slot(index: Expr) -> Span:
        return Span(stmt.scratch, fold(Binary(BinOp.MUL, index, pitch), lambda _: Kind.INT))

    def fetch(index: Expr, op: Op) -> list[Stmt]:
        load = Load(View(back), slot(index), stmt.count, line=stmt.line)
        return [Stage(StageKind.COPY_IN, (load,)), Stage(StageKind.COMPUTE, (op,))]

    add = Op(COMBINES[stmt.op], (stmt.dst, View(back)), (), "", stmt.count, stmt.line)
    store = Store(slot(CoreId()), View(out), stmt.count, line=stmt.line)
    rest = tuple(fetch(core, add))
    steps: list[Stmt] = [
        Note(f"{stmt.op} over cores: every core leaves its part in the workspace"),
        Stage(StageKind.COMPUTE, (copy(View(out), stmt.src),)),
        Stage(StageKind.COPY_OUT, (store,)),
        SyncCores(stmt.line),
        Note("then takes up all parts in the order of the cores"),
        *fetch(Const(0), copy(stmt.dst, View(back))),
        For(pairs.variable, Const(1), CoreCount(), Const(1), rest, stmt.line),
    ]
    return [*steps, SyncCores(stmt.line)] if again else steps
