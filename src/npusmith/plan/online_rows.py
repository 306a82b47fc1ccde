"""Largest element and sum of exponentials below it in one pass, for rows that run along the tile.

The sum is that of exp(x - near), where near is the largest of the first tile. Where the row's own
largest is at most 8 above it, nothing overflows and no digits are lost, and a factor makes it the
sum below the largest. Where it is higher, or no number, the core goes through its elements again,
below the largest that it knows by then. An element costs as much as in a pass of its own for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Assign, Binary, BinOp, Choice, Const, Expr, If, Name, Note, View
from npusmith.ir.nodes import Value as Read
from npusmith.plan.block import Block, Path, staged
from npusmith.plan.loops import Serial
from npusmith.plan.online_columns import LOWEST, OnlineColumns
from npusmith.plan.scalars import ONE
from npusmith.plan.sinks import Pass, fold_lanes, neutral
from npusmith.plan.writer import negated, op

_HIGHEST = Const(8.0)  # above `near`: an exponential is then off by 5e-7 of itself at most


@dataclass(slots=True)
class OnlineRows(OnlineColumns):
    """max(x) with sums of exp(x - c), around a number near the maximum."""

    near: Name = field(default_factory=lambda: Name(""))

    def open(self, at: Pass) -> None:
        guess = at.number("near")
        at.add(Note("a number near the largest: the largest of the first tile"))
        at.add(op("duplicate", (guess,), (LOWEST,), ONE))

        def first(path: Path) -> None:
            source = at.w.vector(path, self.operand(), True)
            fold_lanes(at.w, path[-1], "max", source, at.w.count(path, True), guess, kept=True)
            path[-1].items.append(op("maxs", (guess, guess), (LOWEST,), ONE))

        at.first_tile(at.path, first)
        self.near = at.read(guess, "near_")
        self.top, self.sum = (at.w.temp(DType.FLOAT32, True, hint=hint) for hint in ("top", "acc"))
        at.add(op("duplicate", (self.top,), (LOWEST,), at.width))
        at.add(neutral("sum", self.sum, at.width))

    def step(self, at: Pass, path: Path) -> None:
        source, count = at.w.vector(path, self.operand(), True), at.w.count(path, True)
        path[-1].items.append(op("accumulate_max", (self.top, source), (), count))
        self._add_raised(at, path)

    def _add_raised(self, at: Pass, path: Path) -> None:
        source, count = at.w.vector(path, self.operand(), True), at.w.count(path, True)
        raised = at.w.temp(DType.FLOAT32, True)
        path[-1].items += [
            op("adds", (raised, source), (negated(self.near),), count),
            op("exp", (raised, raised), (), count),
            op("accumulate_sum", (self.sum, raised), (), count),
        ]

    def frame(self, at: Pass) -> Serial:
        return Serial((), ())

    def fold(self, at: Pass) -> None:
        top, total = at.number("max"), at.number("sum")
        fold_lanes(at.w, at.block, "max", self.top, at.width, top)
        fold_lanes(at.w, at.block, "sum", self.sum, at.width, total)
        rise = at.read(top, "rise_", lambda largest: Binary(BinOp.SUB, largest, self.near))
        again = self._again(at, top, total)
        at.add(If(_far(rise), staged(again.items)))
        scale = at.number("scale")
        at.add(
            op("duplicate", (scale,), (self.near,), ONE),
            op("sub", (scale, scale, top), (), ONE),
            op("exp", (scale, scale), (), ONE),
            op("mul", (total, total, scale), (), ONE),
        )
        self.top, self.sum = top, total

    def _again(self, at: Pass, top: str, total: str) -> Block:
        again = Block(at.block.opened)
        again.items += [
            Note("later tiles are higher: once more, below the largest"),
            Assign(self.near.id, Read(View(top))),
            neutral("sum", self.sum, at.width),
        ]
        at.loops((*at.path, again), lambda path: self._add_raised(at, path))
        fold_lanes(at.w, again, "sum", self.sum, at.width, total)
        return again


def _far(rise: Expr) -> Expr:
    """Whether the largest is far above `near`; NaN is."""
    found = Choice(Binary(BinOp.LE, rise, _HIGHEST), Const(0), Const(1))
    return Binary(BinOp.EQ, found, Const(1))
