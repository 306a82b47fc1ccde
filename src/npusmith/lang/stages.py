"""Stage discipline, and that all cores come by where they wait for each other."""

from __future__ import annotations

from npusmith.ir.nodes import (
    Assign,
    Combine,
    CoreId,
    Expr,
    For,
    If,
    Load,
    Mmad,
    Name,
    Op,
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
    _check_uniform(program.kernel.body, False, _divergent(program), log)
    return log


def _what(stmt: Stmt) -> str:
    match stmt:
        case Op(name):
            return name
        case Combine(op):
            return f"combine_{op}"
        case SyncCores():
            return "sync_cores"
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
    elif isinstance(stmt, Combine | SyncCores) and stage is not None:
        log.add("lang-stage", f"{_what(stmt)} stands {here}", stmt, hint="put it after the stage")
    if stage not in (StageKind.COMPUTE, None) and any(values(stmt)):
        hint = "assign it to a variable in a compute stage"
        log.add("lang-stage", f"value() is read {here}", stmt, hint=hint)


# ------------------------------------------------------------------------------------ uniformity


def _varies(expr: Expr, divergent: set[str]) -> bool:
    """May the expression have different values on different cores?"""
    return any(
        isinstance(item, CoreId | Value) or (isinstance(item, Name) and item.id in divergent)
        for item in subexpressions(expr)
    )


def _divergent(program: Program) -> set[str]:
    """Variables that may differ from core to core (grown until nothing changes)."""
    found: set[str] = set()
    while True:
        before = len(found)
        _spread(program.kernel.body, False, found)
        if len(found) == before:
            return found


def _spread(block: Block, varying: bool, found: set[str]) -> None:
    for stmt in block:
        inner = varying or _steers(stmt, found)
        if isinstance(stmt, Assign) and (varying or _varies(stmt.value, found)):
            found.add(stmt.target)
        if isinstance(stmt, For) and inner:
            found.add(stmt.var)
        for body in bodies(stmt):
            _spread(body, inner, found)


def _steers(stmt: Stmt, divergent: set[str]) -> bool:
    """Does the statement send cores different ways?"""
    match stmt:
        case For(_, start, stop, step):
            return any(_varies(part, divergent) for part in (start, stop, step))
        case If(cond):
            return _varies(cond, divergent)
        case _:
            return False


def _check_uniform(block: Block, varying: bool, divergent: set[str], log: Log) -> None:
    for stmt in block:
        if varying and isinstance(stmt, Combine | SyncCores):
            message = f"{_what(stmt)} stands in a loop or branch that differs from core to core"
            log.add("lang-divergent", message, stmt)
        if isinstance(stmt, Combine) and _varies(stmt.count, divergent):
            message = "the count of a combine differs from core to core"
            log.add("lang-divergent", message, stmt)
        for body in bodies(stmt):
            _check_uniform(body, varying or _steers(stmt, divergent), divergent, log)
