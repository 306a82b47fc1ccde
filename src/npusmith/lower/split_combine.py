"""Spell out reductions across cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
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
    Value,
    View,
)
from npusmith.ir.rebuild import map_blocks
from npusmith.ir.walk import Block, bodies, statements
from npusmith.lower.flow import assigned
from npusmith.lower.fold import fold
from npusmith.lower.kinds import Kind
from npusmith.target.chips import Chip
from npusmith.target.intrinsics import COMBINES


def split_combine(program: Program, chip: Chip) -> Program:
    """Turn combine_* into a store of this core's part, a wait, and a sum in core order.

    of one number: `combine_sum(acc, part, ws, 1)`
            all parts are loaded at once, and the scalar unit adds them: 48 copies of 32 bytes
            one after another would take as long as a tile

    before: `combine_sum(acc, part, ws, n)`
    after:  `with compute: muls(combine_out, part, 1, n)`
            `with copy_out: store(ws[core_id() * align_up(n, 8)], combine_out, n)`
            `sync_cores()`
            `for core in range(core_count()):` load the part of `core`, then `acc = acc + part`
            `sync_cores()` where the workspace is written again before another wait

    Every core adds in the same order, so the answer does not depend on timing. A multiplication by
    one is the copy that keeps every bit (adding zero would lose the sign of -0).
    """
    combines = [item for item in statements(program.kernel.body) if isinstance(item, Combine)]
    if not combines:
        return program
    pairs = _Pairs(program, chip)
    again = _written_again(program.kernel.body, combines)
    body = map_blocks(program.kernel.body, lambda block: _split(block, pairs, again))
    buffers = (*program.kernel.buffers, *pairs.made)
    return replace(program, kernels=(replace(program.kernel, body=body, buffers=buffers),))


class _Pairs:
    """The buffers that carry parts out and in: one pair per dtype, as long as the longest part."""

    def __init__(self, program: Program, chip: Chip) -> None:
        self.program = program
        kernel = program.kernel
        self.taken = assigned(kernel.body) | {name for name, _ in program.consts}
        self.taken |= {item.name for item in kernel.buffers}
        self.taken |= {item.name for item in kernel.tensors}
        self.taken |= {item.name for item in kernel.scalars}
        self.variable = self._fresh("core")
        self.total = self._fresh("whole")
        lengths: dict[DType, Expr] = {}
        everybody: dict[DType, Expr] = {}  # room for the parts of all cores
        for item in statements(program.kernel.body):
            if isinstance(item, Combine):
                source = program.kernel.buffer(item.src.buffer)
                longest = lengths.get(source.dtype, Const(0))
                lengths[source.dtype] = max(longest, source.length, key=_length)
                if _lone(item, source.dtype):
                    everybody[source.dtype] = Const(chip.vector_cores * source.dtype.per_block)
        self.names = {
            dtype: self._names(f"_{dtype.value}" if len(lengths) > 1 else "") for dtype in lengths
        }
        self.made = tuple(
            Buffer(name, dtype, length)
            for dtype, out in lengths.items()
            for name, length in zip(
                self.names[dtype],
                (out, max(out, everybody.get(dtype, out), key=_length)),
                strict=True,
            )
        )

    def _names(self, suffix: str) -> tuple[str, str]:
        return self._fresh(f"part_out{suffix}"), self._fresh(f"part_in{suffix}")

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _lone(stmt: Combine, dtype: DType) -> bool:
    """Whether a single float32 is combined."""
    return stmt.count == Const(1) and dtype is DType.FLOAT32


def _length(expr: Expr) -> int:
    assert isinstance(expr, Const)  # normalize has run
    return int(expr.value)


def _written_again(body: Block, combines: Sequence[Combine]) -> frozenset[str]:
    """Workspaces that are written again before the cores have waited for each other once more.

    In a loop that is so where a turn has one combine only: with two, the wait of the other one
    lies between.
    """
    uses = Counter(item.scratch for item in combines)
    often = {name for name, times in uses.items() if times > 1}
    loops = [stmt for stmt in statements(body) if isinstance(stmt, For)]
    for inside in [loop.body for loop in loops] + [
        part for loop in loops for stmt in statements(loop.body) for part in _branches(stmt)
    ]:
        own = [stmt for stmt in inside if isinstance(stmt, Combine)]
        often |= {own[0].scratch} if len(own) == 1 else set()
    return frozenset(often)


def _branches(stmt: Stmt) -> tuple[Block, ...]:
    return () if isinstance(stmt, For) else bodies(stmt)


def _split(block: Block, pairs: _Pairs, again: frozenset[str]) -> Block:
    result: list[Stmt] = []
    for stmt in block:
        result += _steps(stmt, pairs, again) if isinstance(stmt, Combine) else [stmt]
    return tuple(result)


def _steps(stmt: Combine, pairs: _Pairs, again: frozenset[str]) -> list[Stmt]:
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

    def in_turn() -> list[Stmt]:
        add = Op(COMBINES[stmt.op], (stmt.dst, View(back)), (), "", stmt.count, stmt.line)
        rest = tuple(fetch(core, add))
        first = fetch(Const(0), copy(stmt.dst, View(back)))
        return [*first, For(core.id, Const(1), CoreCount(), Const(1), rest, stmt.line)]

    def at_once() -> list[Stmt]:
        total, block = Name(pairs.total), Const(dtype.per_block)
        load = Load(View(back), Span(stmt.scratch), stmt.count, CoreCount(), block, line=stmt.line)
        part = Value(View(back, Binary(BinOp.MUL, core, block)))
        joined = Assign(total.id, _joined(stmt.op, total, part), stmt.line)
        compute = (
            Assign(total.id, Value(View(back)), stmt.line),
            For(core.id, Const(1), CoreCount(), Const(1), (joined,), stmt.line),
            Op("duplicate", (stmt.dst,), (total,), "", stmt.count, stmt.line),
        )
        return [Stage(StageKind.COPY_IN, (load,)), Stage(StageKind.COMPUTE, compute)]

    store = Store(slot(CoreId()), View(out), stmt.count, line=stmt.line)
    steps: list[Stmt] = [
        Note(f"{stmt.op} over cores: every core leaves its part in the workspace"),
        Stage(StageKind.COMPUTE, (copy(View(out), stmt.src),)),
        Stage(StageKind.COPY_OUT, (store,)),
        SyncCores(stmt.line),
        Note("then takes up all parts in the order of the cores"),
        *(at_once() if _lone(stmt, dtype) else in_turn()),
    ]
    return [*steps, SyncCores(stmt.line)] if stmt.scratch in again else steps


_SIGNS = {"sum": BinOp.ADD, "prod": BinOp.MUL}


def _joined(op: str, total: Expr, part: Expr) -> Expr:
    """As the vector unit joins two elements: min and max give NaN when a side is NaN."""
    if op in _SIGNS:
        return Binary(_SIGNS[op], total, part)
    return Call(ScalarFn.MAX if op == "max" else ScalarFn.MIN, (total, part))
