"""Numbers of all elements: passes over tiles, before the outputs that need them.

A tile's elements, or the numbers of its rows, are added to those of the tiles before it, place by
place; then the places of a core become one number, and the numbers of all cores another.
"""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Combine, Const, Expr, Name, View
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.block import Block, Path
from npusmith.plan.dag import Value, reachable
from npusmith.plan.host import TILE
from npusmith.plan.index_maps import Resolver
from npusmith.plan.index_vectors import tile_buffer
from npusmith.plan.lane_space import Domain, Lanes
from npusmith.plan.loops import Serial
from npusmith.plan.passes import ensure
from npusmith.plan.scalars import ONE, quotient, times
from npusmith.plan.sinks import neutral
from npusmith.plan.tile_folds import FOLDS, longest, reserve
from npusmith.plan.tile_loops import Along, cut, over_tiles
from npusmith.plan.writer import op


def write_numbers(w: Lanes, root: Block, outputs: Sequence[Value]) -> list[Expr]:
    """A pass for those that go along the same axes and need nothing of each other.

    Returns what the host has to test for their tiles.
    """
    tests: list[Expr] = []
    waiting = _lone(w, outputs)
    while waiting:
        row = _row(w, waiting[0])
        batch = [value for value in waiting if _row(w, value) == row and not _needs(value, waiting)]
        tests += _pass(w, root, batch, row, f"_all{len(w.numbers)}")
        waiting = [value for value in waiting if value not in batch]
    return tests


def _lone(w: Lanes, outputs: Sequence[Value]) -> list[Value]:
    """Reductions of everything, those first that others depend on."""
    resolver = Resolver(w)
    return [
        value
        for value in reachable(outputs)
        if value.op == "reduce" and not resolver.free(value) and resolver.free(value.args[0])
    ]


def _needs(value: Value, waiting: Sequence[Value]) -> bool:
    return any(item in waiting for item in reachable(value.args))


def _row(w: Lanes, value: Value) -> tuple[Atom, ...]:
    """The axes that a number is made along."""
    free = Resolver(w).free(value.args[0])
    row = tuple(leaf for leaf in leaves(value.axes) if leaf in free)
    if value.text not in FOLDS or len(row) < len(leaves(value.axes)):
        raise PlanError("plan-data-movement", "no sum, largest or smallest of different elements")
    return row


def _pass(
    w: Lanes, root: Block, batch: Sequence[Value], row: Sequence[Atom], mark: str
) -> list[Expr]:
    """Several numbers; returns what the host has to test for their tiles."""
    under = [value.args[0] for value in batch]
    sinks: list[tuple[str, Expr]] = []

    def body(path: Path, operands: Sequence[Value]) -> Serial:
        frames: list[Serial] = []
        for value, operand in zip(batch, operands, strict=True):
            sinks.append(_sink(w, operand))
            frames.append(_accumulated(w, path, operand, value.text, sinks[-1]))
        before = tuple(stmt for frame in frames for stmt in frame.before)
        return Serial(before, tuple(stmt for frame in frames for stmt in frame.after))

    tiling = cut(w, row, w.most // longest(under, row))
    over_tiles(w, root, Along(under, row, whole=False), tiling, mark, body)
    for value, sink in zip(batch, sinks, strict=True):
        known = w.space.dag.make("lone", text=f"{value.text}{len(w.numbers)}")
        root.buffers[known] = _combined(w, root, value.text, *sink)
        w.numbers[value] = known
    return [Binary(BinOp.LE, Name(f"inner{mark}"), Const(w.most)), *w.needs]


def _sink(w: Lanes, operand: Value) -> tuple[str, Expr]:
    """A buffer for what a core's tiles come to, and its length."""
    with w.among(_places(w, operand)):
        buffer = w.temp(DType.FLOAT32, True, hint="acc")
    return buffer, quotient(TILE, Const(w.temps[buffer].share))


def _places(w: Lanes, operand: Value) -> Domain:
    """The axes of the tile that are left when padded rows are folded."""
    own = w.domain(operand)
    if not own:
        raise PlanError("plan-data-movement", "one number for each tile")
    return own[: len(own) - len(w.tail(own))]


def _accumulated(w: Lanes, path: Path, operand: Value, text: str, sink: tuple[str, Expr]) -> Serial:
    """Take in a tile; what frames some turns of the loop over tiles."""
    dag, own, (total, length) = w.space.dag, w.domain(operand), sink
    if rows := w.tail(own):
        reserve(w, own, rows)
        axes = tuple(sorted(w.space.axes(operand)))
        operand = dag.make("fold", operand, text=text, parts=rows, axes=axes)
    ensure(w, path, [operand])
    with w.along(operand):
        part = w.temp(DType.FLOAT32, True, hint="acc")
        views = (part, w.held(path, operand))
        path[-1].items.append(op(f"accumulate_{text}", views, (), w.count(path, True)))
    path[0].items.append(neutral(text, total, length))
    return Serial(
        (neutral(text, part, length),), (op(f"accumulate_{text}", (total, part), (), length),)
    )


def _combined(w: Lanes, root: Block, text: str, total: str, length: Expr) -> str:
    """One number of the places, and of all cores."""
    own, result = (w.temp(DType.FLOAT32, False, hint=text) for _ in range(2))
    with w.whole_tile():
        spare = tile_buffer(w, DType.FLOAT32)
    root.items.append(op(f"reduce_{text}", (own, total, spare), (), length))
    scratch = w.sizes.workspace(times(Name("cores"), Const(8)))
    w.types[scratch] = DType.FLOAT32
    root.items.append(Combine(text, View(result), View(own), scratch, ONE))
    return result
