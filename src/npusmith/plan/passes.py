"""The order of a kernel: which reductions need a pass of their own, over which loops.

A value is computed in the outermost list where all its groups are open, once. A reduction is a
pass: loops over the reduced groups that accumulate, elementwise along a tile wherever possible, so
that one reduction in registers (or none) is left at the end. A reduction that leaves nothing but a
number is shared by all cores and combined across them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    Combine,
    Const,
    Expr,
    For,
    Name,
    Note,
    Op,
    ScalarFn,
    Stage,
    StageKind,
    Stmt,
    View,
)
from npusmith.ir.nodes import Value as Read
from npusmith.plan.block import Block, Path, choice
from npusmith.plan.dag import Value
from npusmith.plan.emit import emit
from npusmith.plan.formula import formula
from npusmith.plan.host import FOLDS, TILE
from npusmith.plan.loops import Body, Serial, mixed, nest, share
from npusmith.plan.scalars import ONE, ZERO, product
from npusmith.plan.space import Space
from npusmith.plan.writer import Writer, op

IDENTITY = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_LEAST_SCRATCH = Const(8)  # elements that one core takes in a combine: a block of 32 bytes


# ----------------------------------------------------------------------------------------- ensure


def ensure(w: Writer, path: Path, roots: Sequence[Value]) -> None:
    """Make values available where their groups are open: reductions first, then the rest."""
    ensure_reductions(w, path, roots)
    for value in _missing(w, path, roots):
        emit(w, path[: w.home(path, value) + 1], value)


def ensure_reductions(w: Writer, path: Path, roots: Sequence[Value]) -> None:
    """The reductions that the roots need, those first on which others depend."""
    while True:
        todo = _missing(w, path, roots)
        reductions = [value for value in todo if value.op == "reduce"]
        if not reductions:
            return
        depth = {value: _depth(value) for value in reductions}
        first = min(reductions, key=lambda value: depth[value])
        batch = [
            value
            for value in reductions
            if depth[value] == depth[first] and _same_pass(w.space, value, first)
        ]
        reduce(w, path[: w.home(path, first) + 1], batch)


def _missing(w: Writer, path: Path, roots: Sequence[Value]) -> list[Value]:
    """Values to be computed, arguments first; what is under a reduction is not looked at."""
    order: dict[Value, None] = {}

    def visit(value: Value) -> None:
        if value in order or value.op in ("const", "count") or w.find(path, value):
            return
        if value.op == "index" and not w.space.wide(value):
            return
        if value.op != "reduce":
            for arg in value.args:
                visit(arg)
        order[value] = None

    for root in roots:
        visit(root)
    return list(order)


def _depth(value: Value, cache: dict[Value, int] | None = None) -> int:
    """How many reductions stand on top of each other."""
    known = {} if cache is None else cache
    if value not in known:
        below = max((_depth(arg, known) for arg in value.args), default=0)
        known[value] = below + (value.op == "reduce")
    return known[value]


def _same_pass(space: Space, one: Value, two: Value) -> bool:
    return set(one.axes) == set(two.axes) and space.axes(one.args[0]) == space.axes(two.args[0])


# ----------------------------------------------------------------------------------------- planning


def inner_reductions(w: Writer, path: Path, roots: Sequence[Value]) -> list[Value]:
    """Reductions and scans that computing the roots takes, nested ones too; no lone numbers."""
    found: dict[Value, None] = {}
    seen: set[Value] = set()

    def visit(value: Value) -> None:
        if value in seen or w.find(path, value):
            return
        seen.add(value)
        for arg in value.args:
            visit(arg)
        if value.op in ("reduce", "running") and w.space.axes(value):
            found[value] = None

    for root in roots:
        visit(root)
    return list(found)


def ordered(w: Writer, groups: frozenset[int], inner: Sequence[Value]) -> list[int]:
    """Loops, outermost first: an inner reduction's own groups come before those that it reduces.

    A scan's other groups come before the one that it runs along.
    """
    before: dict[int, set[int]] = {group: set() for group in groups}
    for value in inner:
        kept = (w.space.axes(value) - set(value.axes)) & groups
        if not kept:
            continue
        for group in set(value.axes) & groups:
            before[group] |= kept
    result: list[int] = []
    while len(result) < len(groups):
        ready = [g for g in sorted(groups) if g not in result and before[g] <= set(result)]
        if not ready:
            mixed(w, inner[0])
        result.append(ready[0])
    return result


@dataclass(frozen=True, slots=True)
class Work:
    """How the work of a pass at the top is divided."""

    dealt: frozenset[int]  # groups dealt to cores
    rest: list[int]  # loops on each core
    resident: bool  # worth keeping a whole row on chip when it fits in one tile


def divide(w: Writer, path: Path, domain: frozenset[int], roots: Sequence[Value]) -> Work:
    """Deal out what no inner reduction reduces and no scan runs along."""
    inner = inner_reductions(w, path, roots)
    reduced = frozenset(axis for value in inner for axis in value.axes)
    dealt = domain - reduced
    rest = ordered(w, domain - dealt, inner)
    last = w.space.last
    again = any(value.op == "reduce" for value in inner)  # rows are read more than once
    resident = again and last not in dealt and reduced == {last} and set(rest) <= {last}
    return Work(dealt, rest, resident)


def run(w: Writer, path: Path, work: Work, body: Body, serial: Serial | None = None) -> None:
    """A pass at the top: in two forms where rows may fit in one tile."""
    if not work.resident:
        share(w, path, work.dealt, work.rest, body, serial)
        return
    last = w.space.last
    cols = w.sizes.size(last)
    whole = Block(frozenset({last}), {last: ZERO}, cols, resident=True)
    parts = Block(frozenset())
    whole.items.append(Note("a row fits in one tile: load it once"))
    share(w, (*path, whole), work.dealt, [], body, serial)
    parts.items.append(Note("longer rows are loaded again for every pass"))
    share(w, (*path, parts), work.dealt, work.rest, body, serial)
    fits = Binary(BinOp.LE, cols, TILE)
    some = Binary(BinOp.GT, cols, ZERO)  # a row of no elements takes the other form
    path[-1].items.append(choice(Binary(BinOp.AND, some, fits), whole, parts))


# --------------------------------------------------------------------------------------- reductions


@dataclass(frozen=True, slots=True)
class Sink:
    """Where one reduction accumulates."""

    value: Value
    buffer: str  # what is accumulated into, loop by loop
    total: str  # for long sums: what `buffer` is added to now and then; else the same


def reduce(w: Writer, path: Path, batch: Sequence[Value]) -> None:
    """One pass for reductions over the same groups; the results land in the last list of `path`."""
    block = path[-1]
    reduced = frozenset(batch[0].axes)
    last = w.space.last
    if any(item.resident for item in path) and reduced == {last}:
        ensure(w, path, [value.args[0] for value in batch])
        for value in batch:
            path[-1].items.append(Note(_label(w, value)))
            _directly(w, path, value)
        return
    if reduced & block.opened:
        mixed(w, batch[0])
    _pass(w, path, batch, reduced)


def _directly(w: Writer, path: Path, value: Value) -> None:
    """The whole row is on chip."""
    row = w.vector(path, value.args[0], True)
    if value.text == "prod":
        sink = _open(w, path, value, TILE, lanes=True, serial=False)
        path[-1].items.append(_accumulate(w, path, sink.buffer, value))
        row = sink.buffer
    path[-1].buffers[value] = _fold(w, path, value, row, w.count(path, True), kept=True)


def _pass(w: Writer, path: Path, batch: Sequence[Value], reduced: frozenset[int]) -> None:
    space, top = w.space, path[-1].together
    operands = [value.args[0] for value in batch]
    wide = space.wide(operands[0])
    lanes = wide and space.last in reduced
    work = divide(w, path, reduced, operands) if top else None
    # long sums that are not spread over the lanes of a tile are added up in stretches
    serial = not lanes and any(value.text == "sum" for value in batch)
    width = _width(w, path, work, wide, lanes)
    block = path[-1]
    block.items.append(Note(", ".join(_label(w, value) for value in batch)))
    sinks = [_open(w, path, value, width, lanes, serial) for value in batch]

    def body(inner: Path) -> None:
        ensure(w, inner, operands)
        inner[-1].items += [_accumulate(w, inner, s.buffer, s.value) for s in sinks]

    frame = _frame(sinks, width) if serial else None
    if work is None:
        nest(w, path, ordered(w, reduced, inner_reductions(w, path, operands)), body, frame)
    else:
        run(w, path, work, body, frame)
    for sink in sinks:
        result = _fold(w, path, sink.value, sink.total, width) if lanes else sink.total
        block.buffers[sink.value] = _combined(w, block, sink.value, result) if top else result


def _label(w: Writer, value: Value) -> str:
    names = " and ".join(w.space.groups[axis].name for axis in value.axes)
    word = {"sum": "sum", "max": "largest", "min": "smallest", "prod": "product"}[value.text]
    return f"{word} over {names} of {formula(w.space, value.args[0])}"


def _width(w: Writer, path: Path, work: Work | None, wide: bool, lanes: bool) -> Expr:
    """Elements of an accumulator that are in use."""
    if not wide:
        return ONE
    if not lanes:
        return w.count(path, True)
    if work is not None and w.space.last in work.dealt:
        return Name(w.sizes.deal(work.dealt).tile)
    return w.sizes.width()


def _open(w: Writer, path: Path, value: Value, width: Expr, lanes: bool, serial: bool) -> Sink:
    """Accumulators, holding the operation's neutral element."""
    wide = w.space.wide(value.args[0])
    # a product is folded in halves of the whole tile
    filled = TILE if lanes and value.text == "prod" else width
    buffer = w.temp(DType.FLOAT32, wide, hint="acc")
    total = w.temp(DType.FLOAT32, wide, hint="acc") if serial and value.text == "sum" else buffer
    path[-1].items.append(_neutral(value, total, filled))
    return Sink(value, buffer, total)


def _neutral(value: Value, buffer: str, count: Expr) -> Stmt:
    return op("duplicate", (buffer,), (Const(IDENTITY[value.text]),), count)


def _frame(sinks: Sequence[Sink], width: Expr) -> Serial:
    long = [sink for sink in sinks if sink.total != sink.buffer]
    return Serial(
        tuple(_neutral(sink.value, sink.buffer, width) for sink in long),
        tuple(op("accumulate_sum", (sink.total, sink.buffer), (), width) for sink in long),
    )


def _accumulate(w: Writer, path: Path, buffer: str, value: Value) -> Stmt:
    operand = value.args[0]
    wide = w.space.wide(operand)
    source = w.vector(path, operand, wide)
    return op(f"accumulate_{value.text}", (buffer, source), (), w.count(path, wide))


def _fold(w: Writer, path: Path, value: Value, lanes: str, width: Expr, kept: bool = False) -> str:
    """The lanes of a tile as one number. `kept`: the lanes are read again afterwards."""
    block = path[-1]
    result = w.temp(DType.FLOAT32, False, hint=value.text)
    if value.text == "prod":
        _multiply_lanes(w, block, lanes, result)
        return result
    spare = w.temp(DType.FLOAT32, True, hint="spare")
    if value.text == "sum":
        scratch = w.temp(DType.FLOAT32, True, hint="spare") if kept else lanes
        # sums of 8 first, at a cycle for 64 elements, where a reduction takes 8 (target/costs.py)
        block.items.append(op("sum_blocks", (spare, lanes), (), width))
        eighth = Call(ScalarFn.CEIL_DIV, (width, Const(8)))
        block.items.append(op("reduce_sum", (result, spare, scratch), (), eighth))
    else:
        block.items.append(op(f"reduce_{value.text}", (result, lanes, spare), (), width))
    return result


def _multiply_lanes(w: Writer, block: Block, lanes: str, result: str) -> None:
    """No product in registers: halves of the tile are multiplied until 8 lanes are left."""
    half = Name("lanes")
    halve = Op("mul", (View(lanes), View(lanes), View(lanes, half)), (), "", half)
    again = For(
        "turn", ZERO, FOLDS, ONE, (halve, Assign("lanes", Binary(BinOp.FLOORDIV, half, Const(2))))
    )
    product_of = product(Read(View(lanes, Const(i))) for i in range(8))
    name = w.fresh("product_")
    body = (
        Note("multiply the halves of the tile until 8 lanes are left"),
        Assign("lanes", Binary(BinOp.FLOORDIV, TILE, Const(2))),
        again,
        Assign(name, product_of),
        op("duplicate", (result,), (Name(name),), ONE),
    )
    block.items.append(Stage(StageKind.COMPUTE, body))


def _combined(w: Writer, block: Block, value: Value, partial: str) -> str:
    """The same number on every core."""
    scratch = w.sizes.workspace(Binary(BinOp.MUL, Name("cores"), _LEAST_SCRATCH))
    result = w.temp(DType.FLOAT32, False, hint=value.text)
    block.items.append(Combine(value.text, View(result), View(partial), scratch, ONE))
    return result
