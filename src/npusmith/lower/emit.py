"""Statements of a lowered kernel as lines of C++."""

from __future__ import annotations

from collections.abc import Iterator

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Alloc,
    Assign,
    Atomic,
    Await,
    Barrier,
    Binary,
    BinOp,
    Const,
    Deque,
    Enque,
    Event,
    Expr,
    For,
    Free,
    If,
    Load,
    Mmad,
    Name,
    Note,
    Op,
    Post,
    Split,
    Stage,
    Stmt,
    Store,
    SyncCores,
)
from npusmith.ir.walk import Block, bodies
from npusmith.lang.operands import on_chip
from npusmith.lower.flow import StageCall, assigned, place_variables
from npusmith.lower.lines import STEP, code, comment
from npusmith.lower.masks import Run, framed, masked_form, runs, shared_count
from npusmith.lower.matrices import matrix_lines
from npusmith.lower.spell import Spelling
from npusmith.target.intrinsics import INTRINSICS, ROW_FORMS, Form, Intrinsic, Operand

MARK = "\0"  # between a line of C++ and the line of the tile program that it was made of
_ATOMIC = {Atomic.ADD: "SetAtomicAdd", Atomic.MAX: "SetAtomicMax", Atomic.MIN: "SetAtomicMin"}


class Printer:
    """Prints one C++ function; `calls` are the stages that it may call.

    `marks`: each line ends with MARK and the line that its statement has in the tile program.
    """

    def __init__(
        self, spelling: Spelling, calls: dict[int, StageCall], marks: bool = False
    ) -> None:
        self.spell = spelling
        self.calls = calls
        self.marks = marks
        self.copies = 0
        self.heads: dict[int, list[str]] = {}  # lines before statement lists, by identity
        self.masked = False  # the count of instructions is in the mask register

    def block(self, block: Block, indent: int, wanted: frozenset[str]) -> list[str]:
        """`wanted`: variables to be declared in this list or below it."""
        places = place_variables(block, wanted, self.calls)
        lines = list(self.heads.get(id(block), ()))
        masked = {} if self.masked else {run.first: run for run in runs(block, self.spell.program)}
        ends: dict[int, tuple[Run, int]] = {}
        for at, stmt in enumerate(block):
            if at in masked:
                ends[masked[at].stop - 1] = masked[at], len(lines)
                self.masked, indent = True, indent + 1
            fresh = places.here.get(at, [])
            for name in fresh:
                if not (isinstance(stmt, Assign) and stmt.target == name):
                    lines += self._declare(name, indent)
            below = tuple(places.below.get((at, body), frozenset()) for body in (0, 1))
            made = self._statement(block, at, indent, below, fresh)
            lines += marked(made, _origin(stmt)) if self.marks else made
            if at in ends:
                run, start = ends[at]
                self.masked, indent = False, indent - 1
                lines[start:] = framed(lines[start:], self.spell.show(run.count), indent)
        return lines

    def _declare(self, name: str, indent: int) -> list[str]:
        kind = self.spell.kinds[name].value
        zero = {"int64_t": "0", "float": "0.0f", "bool": "false"}[kind]
        return code(f"{kind} {self.spell.name(name)} = {zero};", indent)

    def _statement(
        self,
        block: Block,
        at: int,
        indent: int,
        below: tuple[frozenset[str], ...],
        fresh: list[str],
    ) -> list[str]:
        stmt = block[at]
        match stmt:
            case Note(text):
                return comment(text, indent)
            case Assign():
                once = stmt.target in fresh and self._settled(stmt.target, block[at:])
                return code(self._assign(stmt, stmt.target in fresh, once), indent)
            case For():
                return self._for(stmt, indent, below[0])
            case If():
                return self._if(stmt, indent, below)
            case Stage():
                return code(self._call(self.calls[id(stmt)]), indent)
            case Split() | Mmad():
                made = matrix_lines(stmt, self.spell)
                return [line for text in made for line in code(text, indent)]
            case Load() | Store():
                return [line for text in self._copy(stmt) for line in code(text, indent)]
            case Op():
                return code(self._op(stmt), indent)
            case Alloc(buffer) | Deque(buffer):
                again = any(
                    isinstance(item, Alloc | Deque) and item.buffer == buffer for item in block[:at]
                )
                return code(self._take(stmt, declared=again), indent)
            case _:
                return code(self._pipe(stmt), indent)

    def _take(self, stmt: Alloc | Deque, declared: bool) -> str:
        """`declared`: a tensor of an earlier turn of the same list has the name."""
        spell, buffer = self.spell, stmt.buffer
        take = "AllocTensor" if isinstance(stmt, Alloc) else "DeQue"
        element = spell.type(buffer)
        left = spell.local(buffer) if declared else f"LocalTensor<{element}> {spell.local(buffer)}"
        return f"{left} = {spell.queue(buffer)}.{take}<{element}>();"

    def _settled(self, name: str, rest: Block) -> bool:
        """Is the variable assigned only once, by the first statement of `rest`?"""
        own = list(_own_statements(rest))
        assigns = sum(isinstance(item, Assign) and item.target == name for item in own)
        given = any(name in self.calls[id(item)].gives for item in own if id(item) in self.calls)
        return assigns == 1 and not given

    def _assign(self, stmt: Assign, fresh: bool, once: bool) -> str:
        kind = self.spell.kinds[stmt.target]
        text = f"{self.spell.name(stmt.target)} = {self.spell.show_as(stmt.value, kind)};"
        if not fresh:
            return text
        return f"{'const ' if once else ''}{kind.value} {text}"

    def _for(self, stmt: For, indent: int, below: frozenset[str]) -> list[str]:
        spell, changed = self.spell, assigned(stmt.body)
        var = spell.name(stmt.var)
        start, stop, step = spell.show(stmt.start), spell.show(stmt.stop), spell.show(stmt.step)
        head = f"int64_t {var} = {start}"
        if not _steady(stmt.stop, changed):  # Python works the bound out once
            head, stop = f"{head}, {spell.end(stmt.var)} = {stop}", spell.end(stmt.var)
        if not _steady(stmt.step, changed):
            head, step = f"{head}, {spell.step(stmt.var)} = {step}", spell.step(stmt.var)
        advance = f"++{var}" if stmt.step == Const(1) else f"{var} += {step}"
        count = shared_count(stmt, spell.program)
        self.masked, inner = count is not None, indent + (count is not None)
        lines = [
            *code(f"for ({head}; {var} < {stop}; {advance}) {{", inner),
            *self.block(stmt.body, inner + 1, below),
            STEP * inner + "}",
        ]
        self.masked = False
        return lines if count is None else framed(lines, spell.show(count), indent)

    def _if(self, stmt: If, indent: int, below: tuple[frozenset[str], ...]) -> list[str]:
        lines = code(f"if ({self.spell.show(stmt.cond)}) {{", indent)
        lines += self.block(stmt.then, indent + 1, below[0])
        if stmt.orelse:
            lines += [STEP * indent + "} else {"]
            lines += self.block(stmt.orelse, indent + 1, below[1])
        return [*lines, STEP * indent + "}"]

    def _call(self, call: StageCall) -> str:
        tensors = [self.spell.local(name) for name in call.tensors]
        scalars = [self.spell.name(name) for name in (*call.takes, *call.gives)]
        return f"{call.name}({', '.join([*tensors, *scalars])});"

    # ------------------------------------------------------------------------------------ copies

    def _copy(self, stmt: Load | Store) -> list[str]:
        if self.spell.program.kernel.is_cube:
            moved = matrix_lines(stmt, self.spell)
            return moved if isinstance(stmt, Load) else self._framed(stmt, moved)
        if isinstance(stmt, Load):
            dst, src = self.spell.view(stmt.dst), self.spell.span(stmt.src)
            return self._move(
                stmt, dst, src, self.spell.program.kernel.buffer(stmt.dst.buffer).dtype
            )
        dst, src = self.spell.span(stmt.dst), self.spell.view(stmt.src)
        dtype = self.spell.program.kernel.buffer(stmt.src.buffer).dtype
        return self._framed(stmt, self._move(stmt, dst, src, dtype))

    def _framed(self, stmt: Store, moved: list[str]) -> list[str]:
        """With what makes the last line of a store an atomic one."""
        if stmt.atomic is None:
            return moved
        dtype = on_chip(self.spell.program.kernel.tensor(stmt.dst.tensor).dtype)
        atomic = f"{_ATOMIC[stmt.atomic]}<{dtype.cpp}>();"
        return [*moved[:-1], atomic, moved[-1], "SetAtomicNone();"]

    def _move(self, stmt: Load | Store, dst: str, src: str, dtype: DType) -> list[str]:
        if not stmt.padded:
            return [f"DataCopy({dst}, {src}, {self.spell.show(stmt.count)});"]
        number = str(self.copies) if self.copies else ""
        self.copies += 1
        copy, pad = f"copyParams{number}", f"padParams{number}"
        lines = [f"DataCopyExtParams {copy}{{{self._extent(stmt, dtype)}}};"]
        if isinstance(stmt, Store):
            return [*lines, f"DataCopyPad({dst}, {src}, {copy});"]
        zero = "ToBfloat16(0.0f)" if dtype is DType.BFLOAT16 else "0"
        return [
            *lines,
            f"DataCopyPadExtParams<{dtype.cpp}> {pad}{{false, 0, 0, {zero}}};",
            f"DataCopyPad({dst}, {src}, {copy}, {pad});",
        ]

    def _extent(self, stmt: Load | Store, dtype: DType) -> str:
        """blockCount, blockLen in bytes, gap on the source side, on the destination side, 0.

        The gap in global memory is counted in bytes, the one in UB in blocks (doc: DataCopyPad).
        """
        length = self._bytes(stmt.count, dtype)
        if stmt.rows is None or stmt.pitch is None:
            return f"1, {length}, 0, 0, 0"
        rows = f"static_cast<uint16_t>({self.spell.show(stmt.rows)})"
        gap = self._bytes(Binary(BinOp.SUB, stmt.pitch, stmt.count), dtype)
        gaps = f"{gap}, 0" if isinstance(stmt, Load) else f"0, {gap}"
        return f"{rows}, {length}, {gaps}, 0"

    def _bytes(self, count: Expr, dtype: DType) -> str:
        """The bytes of `count` elements as a uint32_t."""
        text = self.spell.factor(count)
        if text == "0":
            return text
        if text.isdecimal():  # a constant does not narrow
            return f"{text} * sizeof({dtype.cpp})" if text != "1" else f"sizeof({dtype.cpp})"
        return f"static_cast<uint32_t>({text} * sizeof({dtype.cpp}))"

    # --------------------------------------------------------------------------- vector and sync

    def _op(self, op: Op) -> str:
        row = INTRINSICS[op.name]
        if row.form is Form.ELEMENT:
            return self._element(row, op)
        parts: dict[Operand, list[str]] = {kind: [] for kind in Operand}
        types: dict[Operand, list[DType]] = {kind: [] for kind in Operand}
        for kind, view in zip(row.views, op.views, strict=True):
            parts[kind].append(self.spell.view(view))
            types[kind].append(self.spell.program.kernel.buffer(view.buffer).dtype)
        element = (types[Operand.SRC] or types[Operand.DST])[0]
        # doc: Gather's base address is a uint32_t of bytes
        scalars = {Form.GATHER: DType.UINT32} | dict.fromkeys(ROW_FORMS, DType.INT32)
        scalar = scalars.get(row.form, element)
        count = self.spell.show(op.count)
        if row.whole_repeats:
            count = self.spell.rounded(op.count, element.per_repeat)
        sources = parts[Operand.SRC]
        text = (masked_form(op.name) if self.masked else row.emit).format(
            ascend=row.ascend,
            dst=_first(parts[Operand.DST]),
            src=_first(sources),
            src0=_first(sources),
            src1=sources[1] if len(sources) > 1 else "",
            tmp=_first(parts[Operand.TMP]),
            mask=_first(parts[Operand.MASK]),
            index=_first(parts[Operand.INDEX]),
            scalar=_first([self.spell.scalar(item, scalar) for item in op.scalars]),
            mode=op.mode.upper(),
            count=count,
        )
        return f"{text};"

    def _element(self, row: Intrinsic, op: Op) -> str:
        view = op.views[0]
        dtype = self.spell.program.kernel.buffer(view.buffer).dtype
        text = row.emit.format(
            dst=self.spell.local(view.buffer),
            offset=self.spell.show(view.offset),
            scalar=self.spell.scalar(op.scalars[0], dtype),
        )
        return f"{text};"

    def _pipe(self, stmt: Stmt) -> str:
        spell = self.spell
        match stmt:
            case Enque(buffer):
                return f"{spell.queue(buffer)}.EnQue({spell.local(buffer)});"
            case Free(buffer):
                return f"{spell.queue(buffer)}.FreeTensor({spell.local(buffer)});"
            case Barrier(pipe):
                return f"PipeBarrier<PIPE_{pipe}>();"
            case Event(first, second):
                return f"Sync<HardEvent::{first}_{second}>();"
            case SyncCores():
                return "SyncCubes();" if spell.program.kernel.is_cube else "SyncAll();"
            case Post(flag):
                pipe = "FIX" if spell.program.kernel.is_cube else "MTE3"
                return f"CrossCoreSetFlag<2, PIPE_{pipe}>({spell.flags[flag]});"
            case Await(flag):
                return f"CrossCoreWaitFlag({spell.flags[flag]});"
            case _:  # split_combine leaves no Combine
                raise TypeError(type(stmt).__name__)


def _origin(stmt: Stmt) -> int:
    """Of comments none: what stands beside one is not made of it."""
    return 0 if isinstance(stmt, Note) else getattr(stmt, "line", 0)


def marked(lines: list[str], line: int) -> list[str]:
    """The lines with that origin, where they have none yet; 0: it has no line."""
    return [text if MARK in text or not line else f"{text}{MARK}{line}" for text in lines]


def _steady(expr: Expr, changed: set[str]) -> bool:
    """Is `expr` so simple that a loop may look at it in every turn?"""
    return isinstance(expr, Const) or (isinstance(expr, Name) and expr.id not in changed)


def _first(items: list[str]) -> str:
    return items[0] if items else ""


def _own_statements(block: Block) -> Iterator[Stmt]:
    """Statements of one function: those inside stages belong to others."""
    for stmt in block:
        yield stmt
        if not isinstance(stmt, Stage):
            for body in bodies(stmt):
                yield from _own_statements(body)
