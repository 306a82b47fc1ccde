"""What part each buffer plays, and that it is used within its lifetime (docs/language.md)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from npusmith.ir.nodes import (
    Combine,
    For,
    If,
    Load,
    Mmad,
    Op,
    Program,
    Split,
    Stage,
    StageKind,
    Stmt,
    Store,
)
from npusmith.ir.walk import Block, bodies, statements, values
from npusmith.lang.log import Log
from npusmith.lang.operands import read, written

FILLING = (StageKind.COPY_IN, StageKind.SPLIT)


class Part(str, Enum):
    LOADED = "loaded"
    STORED = "stored"
    THROUGH = "loaded and stored again"
    SCRATCH = "scratch"


def fills(stmt: Stmt) -> Iterator[str]:
    """Buffers that loads in `stmt` fill."""
    return (item.dst.buffer for item in statements((stmt,)) if isinstance(item, Load | Split))


def drains(stmt: Stmt) -> Iterator[str]:
    """Buffers that stores in `stmt` send."""
    return (item.src.buffer for item in statements((stmt,)) if isinstance(item, Store))


def own_writes(stmt: Stmt) -> list[str]:
    """Buffers that the statement itself writes with the vector or cube unit."""
    if isinstance(stmt, Mmad):
        return [stmt.dst.buffer]
    if isinstance(stmt, Op):
        return [view.buffer for view in written(stmt)]
    return [stmt.dst.buffer] if isinstance(stmt, Combine) else []


def own_reads(stmt: Stmt) -> list[str]:
    """Buffers that the statement itself reads, stores left out."""
    found = [view.buffer for view in values(stmt)]
    if isinstance(stmt, Split):
        return [*found, stmt.src.buffer]
    if isinstance(stmt, Mmad):
        return [*found, *(view.buffer for view in stmt.sources)]
    if isinstance(stmt, Op):
        found += [view.buffer for view in read(stmt)]
    return [*found, stmt.src.buffer] if isinstance(stmt, Combine) else found


def find_parts(program: Program) -> dict[str, Part]:
    """The part of every buffer, from how it is used."""
    body = program.kernel.body
    loaded = {name for stmt in body for name in fills(stmt)}
    stored = {name for stmt in body for name in drains(stmt)}
    parts: dict[str, Part] = {}
    for item in program.kernel.buffers:
        if item.name in loaded:
            parts[item.name] = Part.THROUGH if item.name in stored else Part.LOADED
        else:
            parts[item.name] = Part.STORED if item.name in stored else Part.SCRATCH
    return parts


def check_lifetimes(program: Program, file: str) -> Log:
    """Parts first; lifetimes where the parts are clear."""
    log = Log(file, program.kernel.name)
    parts = find_parts(program)
    _check_parts(program, parts, log)
    if not log.errors:
        _Loads(parts, log).block(program.kernel.body, set())
        _Stores(parts, log).run(program.kernel.body)
    return log


def _check_parts(program: Program, parts: dict[str, Part], log: Log) -> None:
    for stmt in statements(program.kernel.body):
        if isinstance(stmt, Combine):
            for name in (stmt.dst.buffer, stmt.src.buffer):
                if parts[name] is not Part.SCRATCH:
                    log.add("lang-combine", f"{name!r} is {parts[name].value}", stmt)
            continue
        for name in own_writes(stmt):
            if parts[name] in (Part.LOADED, Part.THROUGH):
                message = f"{name!r} is loaded, and written by an operation"
                log.add("lang-buffer-role", message, stmt, hint="write into another buffer")
        for name in own_reads(stmt):
            if parts[name] is Part.THROUGH:
                message = f"{name!r} is loaded, stored again, and read by a vector operation"
                hint = "copy it into a buffer of its own for the store: muls(yt, xt, 1.0, n)"
                log.add("lang-buffer-role", message, stmt, hint=hint)


class _Loads:
    """Follows which loaded buffers hold something at each point."""

    def __init__(self, parts: dict[str, Part], log: Log) -> None:
        self.parts, self.log = parts, log

    def block(self, block: Block, live: set[str]) -> None:
        """`live`: buffers loaded in lists around this one."""
        live, here = set(live), set[str]()
        for stmt in block:
            self._reads(stmt, live)
            filled = set(fills(stmt))
            if isinstance(stmt, Stage) and stmt.kind in FILLING:
                live |= filled
                here |= filled
            elif isinstance(stmt, Stage) and stmt.kind is StageKind.COPY_OUT:
                sent = {name for name in drains(stmt) if self.parts[name] is Part.THROUGH}
                self._sent(stmt, sent - (live & here))
                live -= sent
            else:
                before = live - filled if isinstance(stmt, For) else live
                for body in bodies(stmt):
                    self.block(body, before)
                live -= filled  # what was loaded inside ends there, and ended what was before

    def _reads(self, stmt: Stmt, live: set[str]) -> None:
        for name in own_reads(stmt):
            if self.parts[name] is Part.LOADED and name not in live:
                self.log.add("lang-lifetime", f"{name!r} is read where no load reaches", stmt)

    def _sent(self, stage: Stage, names: set[str]) -> None:
        for item in statements(stage.body):
            if isinstance(item, Store) and item.src.buffer in names:
                message = f"{item.src.buffer!r} is stored without a load in the same statement list"
                self.log.add("lang-lifetime", message, item)


class _Stores:
    """Follows which stored buffers hold results that are not stored yet."""

    def __init__(self, parts: dict[str, Part], log: Log) -> None:
        self.stored = {name for name, part in parts.items() if part is Part.STORED}
        self.log = log
        self.last: dict[str, Stmt] = {}  # the latest write of each buffer
        self.blamed: set[str] = set()  # their stores have been reported already

    def run(self, body: Block) -> None:
        left, _ = self.block(body, set())
        for name in sorted(left - self.blamed):
            message = f"{name!r} is written here, and no store in this list sends it"
            hint = "store in the list that writes, or accumulate in a scratch buffer"
            self.log.add("lang-lifetime", message, self.last[name], hint=hint)

    def block(self, block: Block, outer: set[str]) -> tuple[set[str], set[str]]:
        """Buffers written and not stored in this list, and buffers stored in it or deeper."""
        mine, stored = set[str](), set[str]()
        for stmt in block:
            self._own(stmt, outer, mine)
            if isinstance(stmt, Stage) and stmt.kind is StageKind.COPY_OUT:
                self._drain(stmt, outer, mine)
                sent = set(drains(stmt)) & self.stored
                stored |= sent
                mine -= sent
                continue
            inner = [self.block(body, outer | mine) for body in bodies(stmt)]
            written = set().union(*(item[0] for item in inner)) if inner else set[str]()
            deeper = set().union(*(item[1] for item in inner)) if inner else set[str]()
            if isinstance(stmt, For | If):
                self._both(stmt, written & deeper)
            mine |= written
            stored |= deeper
        return mine, stored

    def _own(self, stmt: Stmt, outer: set[str], mine: set[str]) -> None:
        for name in own_reads(stmt):
            updates = isinstance(stmt, Op) and name in own_writes(stmt)
            if name in self.stored and name not in outer | mine:
                what = "updated" if updates else "read"
                message = f"{name!r} is {what} where nothing has been written since its last store"
                self.log.add("lang-lifetime", message, stmt)
        for name in own_writes(stmt):
            if name in self.stored:
                mine.add(name)
                self.last[name] = stmt

    def _drain(self, stage: Stage, outer: set[str], mine: set[str]) -> None:
        for item in statements(stage.body):
            if not isinstance(item, Store) or item.src.buffer not in self.stored:
                continue
            name = item.src.buffer
            if name in outer:
                self.blamed.add(name)
                message = f"{name!r} is written in an outer list of statements and stored here"
                hint = "store after the loop or branch, or write inside of it"
                self.log.add("lang-lifetime", message, item, hint=hint)
            elif name not in mine:
                message = f"{name!r} is stored where nothing has been written since its last store"
                hint = "put all stores of one result into one copy_out stage"
                self.log.add("lang-lifetime", message, item, hint=hint)

    def _both(self, stmt: Stmt, names: set[str]) -> None:
        for name in sorted(names):
            message = f"{name!r} is stored in here, and written again without a store"
            self.log.add("lang-lifetime", message, self.last[name])
