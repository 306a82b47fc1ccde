"""Stage discipline, and that all cores reach each barrier."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import UnionType

from npusmith.ir.nodes import (
    Assign,
    Await,
    Combine,
    CoreId,
    Expr,
    For,
    If,
    Load,
    Mmad,
    Name,
    Op,
    Post,
    Program,
    Split,
    Stage,
    StageKind,
    Stmt,
    Store,
    SyncCores,
    Value,
)
from npusmith.ir.walk import Block, bodies, subexpressions, values
from npusmith.lang.log import Log

_HOME: dict[type, StageKind] = {
    Load: StageKind.COPY_IN,
    Split: StageKind.SPLIT,
    Mmad: StageKind.COMPUTE,
    Op: StageKind.COMPUTE,
    Store: StageKind.COPY_OUT,
}


def check_stages(program: Program, file: str) -> Log:
    """Loads, operations, stores and waits stand where they belong."""
    log = Log(file, program.kernel.name)
    _check_block(program.kernel.body, None, log)
    body = program.kernel.body
    for which, sources in ((Combine | SyncCores, CoreId | Value), (Post | Await, Value)):
        alike = _Alike(which, sources)
        alike.spread(body)
        _check_uniform(body, False, alike, log)
    return log


def _what(stmt: Stmt) -> str:
    match stmt:
        case Op(name):
            return name
        case Combine(op):
            return f"combine_{op}"
        case SyncCores():
            return "sync_cores"
        case Await():
            return "wait"
        case Split():
            return "load from L1"
        case _:
            return type(stmt).__name__.lower()


def _check_block(block: Block, stage: StageKind | None, log: Log) -> None:
    for stmt in block:
        _check_place(stmt, stage, log)
        inner = stmt.kind if isinstance(stmt, Stage) else stage
        for body in bodies(stmt):
            _check_block(body, inner, log)


def _check_place(stmt: Stmt, stage: StageKind | None, log: Log) -> None:
    here = f"in {stage.value}" if stage else "outside of stages"
    home = _HOME.get(type(stmt))
    if home is not None and home is not stage:
        message = f"{_what(stmt)} stands {here}"
        log.add("lang-stage", message, stmt, hint=f"put it under `with {home.value}:`")
    elif isinstance(stmt, Stage) and stage is not None:
        log.add("lang-stage", f"{stmt.kind.value} opens {here}", stmt)
    elif isinstance(stmt, Combine | SyncCores | Post | Await) and stage is not None:
        log.add("lang-stage", f"{_what(stmt)} stands {here}", stmt, hint="put it after the stage")
    if stage not in (StageKind.COMPUTE, None) and any(values(stmt)):
        hint = "assign it to a variable in a compute stage"
        log.add("lang-stage", f"value() is read {here}", stmt, hint=hint)


# ------------------------------------------------------------------------------------ uniformity


@dataclass(slots=True)
class _Alike:
    """Statements to which all cores come, or all of a block, and what sends cores apart."""

    which: type | UnionType
    sources: type | UnionType
    divergent: set[str] = field(default_factory=set)  # variables that differ from core to core

    def varies(self, expr: Expr) -> bool:
        """May the expression have different values on these cores?"""
        return any(
            isinstance(item, self.sources) or (isinstance(item, Name) and item.id in self.divergent)
            for item in subexpressions(expr)
        )

    def steers(self, stmt: Stmt) -> bool:
        """Does the statement send these cores different ways?"""
        match stmt:
            case For(_, start, stop, step):
                return any(map(self.varies, (start, stop, step)))
            case If(cond):
                return self.varies(cond)
            case _:
                return False

    def spread(self, block: Block) -> None:
        """Find all variables that differ (grown until nothing changes)."""
        before = -1
        while len(self.divergent) != before:
            before = len(self.divergent)
            self._grow(block, False)

    def _grow(self, block: Block, varying: bool) -> None:
        for stmt in block:
            inner = varying or self.steers(stmt)
            if isinstance(stmt, Assign) and (varying or self.varies(stmt.value)):
                self.divergent.add(stmt.target)
            if isinstance(stmt, For) and inner:
                self.divergent.add(stmt.var)
            for body in bodies(stmt):
                self._grow(body, inner)


def _check_uniform(block: Block, varying: bool, alike: _Alike, log: Log) -> None:
    for stmt in block:
        if varying and isinstance(stmt, alike.which):
            message = f"{_what(stmt)} stands in a loop or branch that differs from core to core"
            log.add("lang-divergent", message, stmt)
        if isinstance(stmt, Combine) and isinstance(stmt, alike.which) and alike.varies(stmt.count):
            message = "the count of a combine differs from core to core"
            log.add("lang-divergent", message, stmt)
        for body in bodies(stmt):
            _check_uniform(body, varying or alike.steers(stmt), alike, log)
