"""The schedule of a launch as nested boxes: loops, what each stage copies and computes, waits.

Shows the version of the kernel that runs at the task's shapes, with the numbers of its first core
and first turn; what depends on data has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from npusmith.ir.nodes import (
    Assign,
    Await,
    Combine,
    Expr,
    For,
    If,
    Load,
    Mmad,
    Op,
    Post,
    Program,
    Split,
    Stage,
    StageKind,
    Stmt,
    Store,
    SyncCores,
)
from npusmith.ir.text import show_expr
from npusmith.ir.walk import Block, statements
from npusmith.lang.interp import Launched
from npusmith.report.static_values import StaticValues, runs

_LONG = 56  # characters of an expression
_OPS = 10  # operations of a stage that are named
_STAGES = {
    StageKind.COPY_IN: "in", StageKind.SPLIT: "in", StageKind.COMPUTE: "calc",
    StageKind.COPY_OUT: "out",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Box:
    """A loop, a stage, a test or a wait. `kind`: loop, cores, in, calc, out, test or wait."""

    kind: str
    head: str
    lines: tuple[str, ...] = ()
    inside: tuple[Box, ...] = ()


def boxes(program: Program, launched: Launched) -> tuple[Box, ...]:
    """The boxes of a program of one kernel, as this launch runs it."""
    return tuple(_boxes(runs(program, launched), StaticValues(program, launched)))


def _boxes(block: Block, known: StaticValues) -> Iterator[Box]:
    for stmt in block:
        match stmt:
            case Assign():
                known.assign(stmt)
            case For():
                yield _loop(stmt, known)
            case If():
                yield from _test(stmt, known)
            case Stage(kind, body):
                yield Box(_STAGES[kind], kind.value.replace("_", " "), tuple(_work(body, known)))
            case SyncCores():
                yield Box("wait", "every core waits for all others")
            case Post(flag):
                yield Box("wait", f"tells the other side of its block: {flag}")
            case Await(flag):
                yield Box("wait", f"waits for the other side of its block: {flag}")
            case Combine(op, dst):
                yield Box("wait", f"{op} of {dst.buffer} over all cores")


def _loop(stmt: For, known: StaticValues) -> Box:
    shared = known.is_dealt(stmt)
    turns = known.turns(stmt)
    count = "" if turns is None else f"{len(turns):,} turn{'' if len(turns) == 1 else 's'}"
    if shared:
        head = f"for {stmt.var}, dealt to the cores" + (f": {count} on the first" if count else "")
    else:
        head = f"for {stmt.var}" + (f": {count}" if count else f" up to {_short(stmt.stop)}")
        if turns is not None and turns.step > 1:
            head += f", {turns.step:,} at a time"
    known.enter(stmt)
    inside = tuple(_boxes(stmt.body, known))
    return Box("cores" if shared else "loop", head, (), inside)


def _test(stmt: If, known: StaticValues) -> Iterator[Box]:
    side = known.taken(stmt)
    if side is not None:
        yield from _boxes(side, known)
        return
    for head, body in ((f"if {_short(stmt.cond)}", stmt.then), ("else", stmt.orelse)):
        inside = tuple(_boxes(body, known))
        if inside:
            yield Box("test", head, (), inside)


def _work(body: Block, known: StaticValues) -> Iterator[str]:
    """What a stage does: a line for each copy, one for all that it computes."""
    ops = [item.name for item in statements(body) if isinstance(item, Op)]
    for stmt in statements(body):
        if isinstance(stmt, Assign):
            known.assign(stmt)
        text = _copy(stmt, known)
        if text:
            yield text
    if ops:
        yield listed(ops)


def _copy(stmt: Stmt, known: StaticValues) -> str:
    match stmt:
        case Load(dst, src):
            return f"{src.tensor} → {dst.buffer}{_size(stmt, known)}"
        case Store(dst, src):
            return f"{src.buffer} → {dst.tensor}{_size(stmt, known)}"
        case Split(dst, src, rows, cols):
            return f"{src.buffer} → {dst.buffer}{_shape((rows, cols), known)}"
        case Mmad(dst, left, right, m, n, k):
            shape = _shape((m, n, k), known)
            return f"{dst.buffer} = {left.buffer} @ {right.buffer}{shape}"
        case _:
            return ""


def _size(stmt: Load | Store, known: StaticValues) -> str:
    return _shape((stmt.count,) if stmt.rows is None else (stmt.rows, stmt.count), known)


def _shape(sides: Iterable[Expr], known: StaticValues) -> str:
    numbers = [known.value(side) for side in sides]
    if any(number is None for number in numbers):
        return ""
    return ", " + " x ".join(f"{number:,}" for number in numbers)


def listed(names: Iterable[str], most: int = _OPS) -> str:
    """Names in their order, neighbours that are equal once."""
    found: list[str] = []
    for name in names:
        if not found or found[-1] != name:
            found.append(name)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def _short(expr: Expr) -> str:
    text = show_expr(expr)
    return text if len(text) <= _LONG else f"{text[:_LONG]} ..."
