"""Lines cut into chunks that cores do at once: for scans and reductions of few long rows.

A piece is one chunk of one line. A phase computes, of every piece, what the chunk comes to under
each reduction or scan whose operands are known, and leaves it in workspace; then all cores wait for
each other. The next phase joins these parts in the order of the chunks: all of a line for a
reduction, those before its own for a scan, which goes on from there. Nothing depends on which core
comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    Const,
    Expr,
    For,
    Load,
    Name,
    Note,
    ScalarFn,
    Span,
    Stage,
    StageKind,
    Stmt,
    Store,
    SyncCores,
    View,
)
from npusmith.ir.nodes import Value as Read
from npusmith.plan.block import Block, Part, Path
from npusmith.plan.chunks import Cut, first_piece, pieces
from npusmith.plan.dag import Value
from npusmith.plan.host import TILE
from npusmith.plan.loops import close
from npusmith.plan.passes import reduce
from npusmith.plan.scalars import ONE, ZERO, least, minus, plus, product, times
from npusmith.plan.sinks import IDENTITY
from npusmith.plan.writer import Writer, op

_SLOT = Const(8)  # elements: one number of a piece stands in a block of 32 bytes of its own
_JOIN: dict[str, Callable[[Expr, Expr], Expr]] = {
    "sum": lambda a, b: Binary(BinOp.ADD, a, b),
    "prod": lambda a, b: Binary(BinOp.MUL, a, b),
    "max": lambda a, b: Call(ScalarFn.MAX, (a, b)),
    "min": lambda a, b: Call(ScalarFn.MIN, (a, b)),
}
FOLDS = frozenset(_JOIN)
_WORDS = {
    "sum": "add up", "prod": "multiply", "max": "the largest of", "min": "the smallest of",
}  # fmt: skip


@dataclass(slots=True)
class SplitPhases:
    """A pass whose lines are cut: what is folded along them, and where its parts are kept."""

    w: Writer
    cut: Cut
    inner: Sequence[Value]
    slots: dict[Value, str] = field(default_factory=dict)  # workspace tensors

    def run(self, root: Path, roots: Sequence[Value], body: Callable[[Path], None]) -> None:
        """Phase after phase, then `body` at every piece."""
        levels = levels_of(self.w, self.inner)
        for level in sorted(set(levels.values())):
            batch = [value for value in self.inner if levels[value] == level]
            self._phase(root, batch)
        turn = pieces(self.w, root, self.cut)
        path = (*root, turn.block)
        self._join(path, self._needed(roots))
        body(path)
        close(root, turn)

    def _phase(self, root: Path, batch: Sequence[Value]) -> None:
        w = self.w
        turn = pieces(w, root, self.cut)
        path = (*root, turn.block)
        # values of their own: a number of the whole line may be the same expression
        parts = {value: Value("reduce", value.args, 0, value.text, value.axes) for value in batch}
        self._join(path, self._needed(arg for value in batch for arg in value.args))
        for same in _alike(w, list(parts.values())):
            reduce(w, path, same)
        for value, part in parts.items():
            self._leave(path, value, part)
        close(root, turn)
        root[-1].items.append(SyncCores())

    def _needed(self, roots: Iterable[Value]) -> list[Value]:
        """What is folded along the lines and known by now, on which these depend."""
        found: dict[Value, None] = {}
        seen: set[Value] = set()
        left = [*roots][::-1]
        while left:
            value = left.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self.slots:
                found[value] = None
            if value.op != "reduce":  # one that has no slot is a number of the whole tensor
                left += reversed(value.args)
        return list(found)

    # ------------------------------------------------------------------------------ what is passed

    def _leave(self, path: Path, value: Value, part: Value) -> None:
        """Store what this chunk comes to."""
        w, block = self.w, path[-1]
        wide = w.space.wide(part)
        out = w.temp(DType.FLOAT32, wide, Part.STORED, hint="part")
        if wide:
            count = w.count(path, True)
            block.items.append(op("muls", (out, w.held(path, part)), (Const(1.0),), count))
        else:
            count = _SLOT
            number = Name(w.fresh("v_"))
            block.items.append(Assign(number.id, Read(View(w.held(path, part)))))
            block.items.append(op("duplicate", (out,), (number,), count))
        length = self._size(wide)
        self.slots[value] = w.sizes.workspace(product((Name(self.cut.deal.units), length)))
        place = Span(self.slots[value], times(Name("piece"), length))
        block.items.append(Store(place, View(out), count))

    def _size(self, wide: bool) -> Expr:
        """Elements between what two pieces leave."""
        return Name(self.cut.deal.tile) if wide else _SLOT

    def _join(self, path: Path, values: Sequence[Value]) -> None:
        """Bring what earlier phases left to the piece that is open."""
        if values:
            path[-1].items.append(first_piece(self.cut))
        for value in values:
            if value.op == "reduce":
                self._have(path[-1], value, self._joined(path, value, ZERO, Name(self.cut.chunks)))
            elif value.mode == "reverse":
                behind = plus(Name("chunk"), ONE)
                path[-1].starts[value] = self._joined(path, value, behind, Name(self.cut.chunks))
            else:
                path[-1].starts[value] = self._joined(path, value, ZERO, Name("chunk"))

    def _joined(self, path: Path, value: Value, first: Expr, stop: Expr) -> Expr | str:
        """What the chunks of a range come to: a scalar, or a buffer where it is a row."""
        wide = self.w.space.last in self.w.space.axes(value) and self.cut.group != self.w.space.last
        if wide:
            return self._rows(path, value, first, stop)
        return self._numbers(path, value, first, stop)

    def _numbers(self, path: Path, value: Value, first: Expr, stop: Expr) -> Expr:
        """One by one: as many as fit are loaded at a time."""
        w, tiles = self.w, Name(self.cut.deal.tiles) if self.cut.deal.tiled else ONE
        total, room = Name(w.fresh("total_")), Binary(BinOp.FLOORDIV, TILE, _SLOT)
        path[-1].items.append(Assign(total.id, Const(IDENTITY[value.text])))
        slots = w.temp(DType.FLOAT32, True, Part.LOADED, hint="parts")
        place = plus(Name("base"), times(Name("part_from"), tiles))
        load = Load(
            View(slots), Span(self.slots[value], times(place, _SLOT)), ONE, Name("m"),
            times(tiles, _SLOT),
        )  # fmt: skip
        note = Note(f"{_WORDS[value.text]} chunks, one after another")
        part = Read(View(slots, times(Name("i"), _SLOT)))
        join = Assign(total.id, _JOIN[value.text](total, part))
        body: tuple[Stmt, ...] = (
            Assign("m", least(room, minus(stop, Name("part_from")))),
            Stage(StageKind.COPY_IN, (load,)),
            Stage(StageKind.COMPUTE, (note, For("i", ZERO, Name("m"), ONE, (join,)))),
        )
        path[-1].items.append(For("part_from", first, stop, room, body))
        return total

    def _rows(self, path: Path, value: Value, first: Expr, stop: Expr) -> str:
        """Rows: each is accumulated into what the rows before it came to."""
        w, deal = self.w, self.cut.deal
        count = w.count(path, True)
        total = w.temp(DType.FLOAT32, True, hint="total")
        neutral = Const(IDENTITY[value.text])
        path[-1].items.append(op("duplicate", (total,), (neutral,), count))
        row = w.temp(DType.FLOAT32, True, Part.LOADED, hint="parts")
        place = plus(Name("base"), times(Name("i"), Name(deal.tiles)))
        span = Span(self.slots[value], times(place, Name(deal.tile)))
        note = Note(f"{_WORDS[value.text]} chunks, one after another")
        join = op(f"accumulate_{value.text}", (total, row), (), count)
        body: tuple[Stmt, ...] = (
            Stage(StageKind.COPY_IN, (Load(View(row), span, count),)),
            Stage(StageKind.COMPUTE, (note, join)),
        )
        path[-1].items.append(For("i", first, stop, ONE, body))
        return total

    def _have(self, block: Block, value: Value, found: Expr | str) -> None:
        """A number of the line stands in a buffer as well: operations on numbers take it there."""
        if isinstance(found, str):
            block.buffers[value] = found
            return
        buffer = self.w.temp(DType.FLOAT32, False, hint=value.text)
        block.items.append(op("duplicate", (buffer,), (found,), ONE))
        block.buffers[value], block.scalars[value] = buffer, found


def levels_of(w: Writer, inner: Sequence[Value]) -> dict[Value, int]:
    """How many of these values stand on top of each other, up to each."""
    levels: dict[Value, int] = {}
    for value in inner:  # arguments come first
        levels[value] = 1 + max(_level(w, arg, levels) for arg in value.args)
    return levels


def _level(w: Writer, root: Value, levels: Mapping[Value, int]) -> int:
    """The highest level under a value."""
    highest, seen, left = 0, set[Value](), [root]
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in levels:
            highest = max(highest, levels[value])
        elif value.op != "reduce" or w.space.axes(value):
            left += value.args
    return highest


def _alike(w: Writer, parts: Sequence[Value]) -> Iterable[Sequence[Value]]:
    """Those that one loop can compute."""
    kinds: dict[tuple[frozenset[int], frozenset[int]], list[Value]] = {}
    for part in parts:
        kinds.setdefault((frozenset(part.axes), w.space.axes(part.args[0])), []).append(part)
    return kinds.values()
