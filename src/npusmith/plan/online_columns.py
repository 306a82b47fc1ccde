"""Largest element and sum of exponentials below it in one pass: the sum is scaled as it rises.

For rows that are accumulated (online_rows.py: for those that run along the tile). Every column
holds the largest element so far and the sum of exp(x - largest). The largest starts at the lowest
finite number, so that minus infinity leaves the sum as it is; what is left for rows of nothing but
minus infinity, and for plus infinity, is put right at the end: sum(exp(x - c)) is the sum times
exp(largest - c), whatever c is, NaN included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Choice, Const, Expr, View
from npusmith.plan.all_gather import lanes_of_all, most, over_all
from npusmith.plan.block import Path
from npusmith.plan.dag import Value
from npusmith.plan.dependent_reductions import Dependent
from npusmith.plan.loops import Serial
from npusmith.plan.scalars import ONE
from npusmith.plan.sinks import Pass, named, neutral
from npusmith.plan.writer import Writer, negated, op

LOWEST = Const(-float.fromhex("0x1.fffffep+127"))  # of float32
_INF = Const(math.inf)
_ONE = Const(1.0)


@dataclass(slots=True)
class OnlineColumns:
    """max(x) with sums of exp(x - c)."""

    lead: Value
    late: tuple[Dependent, ...]
    top: str = ""
    sum: str = ""
    held: tuple[str, str] = ("", "")  # what the stretches are added to, and its largest

    def label(self, w: Writer) -> str:
        return f"{named(w, self.lead)}, with the sum of exponentials below it"

    def operand(self) -> Value:
        return self.lead.args[0]

    def open(self, at: Pass) -> None:
        self.top, self.sum = (at.w.temp(DType.FLOAT32, True, hint=hint) for hint in ("top", "acc"))
        at.add(op("duplicate", (self.top,), (LOWEST,), at.width))
        self.held = (at.w.temp(DType.FLOAT32, True, hint="acc"), at.w.temp(DType.FLOAT32, True))
        at.add(op("duplicate", (self.held[1],), (LOWEST,), at.width))
        at.add(neutral("sum", self.held[0], at.width))

    def step(self, at: Pass, path: Path) -> None:
        count = at.w.count(path, True)
        source = at.w.vector(path, self.operand(), True)
        higher, raised = (at.w.temp(DType.FLOAT32, True) for _ in range(2))
        path[-1].items += [
            op("max", (higher, self.top, source), (), count),
            op("sub", (self.top, self.top, higher), (), count),
            op("exp", (self.top, self.top), (), count),
            op("mul", (self.sum, self.sum, self.top), (), count),
            op("sub", (raised, source, higher), (), count),
            op("exp", (raised, raised), (), count),
            op("accumulate_sum", (self.sum, raised), (), count),
            op("muls", (self.top, higher), (_ONE,), count),
        ]

    def frame(self, at: Pass) -> Serial:
        whole, below = self.held
        return Serial(
            (neutral("sum", self.sum, at.width),),
            (
                op("sub", (below, below, self.top), (), at.width),
                op("exp", (below, below), (), at.width),
                op("mul", (whole, whole, below), (), at.width),
                op("accumulate_sum", (whole, self.sum), (), at.width),
                op("muls", (below, self.top), (_ONE,), at.width),
            ),
        )

    def fold(self, at: Pass) -> None:
        self.sum = self.held[0]

    def parts(self, at: Pass) -> list[Expr]:
        return [at.read(self.top, "own_"), at.read(self.sum, "own_")]

    def close(self, at: Pass, lanes: Sequence[View]) -> None:
        if lanes:
            self._join(at, lanes)
        settle = self._settle_numbers if at.lanes else self._settle_rows
        settle(at)
        at.block.buffers[self.lead] = self.top
        for late in self.late:
            at.block.buffers[late.fold] = self._around(at, late.centre)

    def _join(self, at: Pass, lanes: Sequence[View]) -> None:
        top, total = at.number("max"), at.number("sum")
        scaled = at.w.temp(DType.FLOAT32, False, hint="own", lanes=most(at.w))
        count = lanes_of_all()
        over_all(at.w, at.block, "max", lanes[0], top)
        at.add(
            op("adds", (scaled, lanes[0]), (negated(at.read(top, "top_")),), count),
            op("exp", (scaled, scaled), (), count),
            op("mul", (scaled, scaled, lanes[1]), (), count),
        )
        over_all(at.w, at.block, "sum", scaled, total)
        self.top, self.sum = top, total

    def _settle_numbers(self, at: Pass) -> None:
        """A sum that is a number under plus infinity; minus infinity where nothing was above."""
        top, total = at.read(self.top, "top_"), at.read(self.sum, "sum_")
        sound = Choice(Binary(BinOp.LT, top, _INF), total, _ONE)
        some = Binary(BinOp.GT, sound, Const(0.0))
        self.top, self.sum = at.number("max"), at.number("sum")
        at.add(op("duplicate", (self.sum,), (sound,), ONE))
        at.add(op("duplicate", (self.top,), (Choice(some, top, Const(-math.inf)),), ONE))

    def _settle_rows(self, at: Pass) -> None:
        w = at.w
        mask = w.temp(DType.UINT8, True, mask=True)
        top, total = (w.temp(DType.FLOAT32, True, hint=hint) for hint in ("top", "acc"))
        at.add(
            op("compares", (mask, self.top), (_INF,), at.width, "lt"),
            op("selects", (total, mask, self.sum), (_ONE,), at.width),
            op("compares", (mask, total), (Const(0.0),), at.width, "gt"),
            op("selects", (top, mask, self.top), (Const(-math.inf),), at.width),
        )
        self.top, self.sum = top, total

    def _around(self, at: Pass, centre: Value) -> str:
        """sum(exp(x - centre))."""
        w, wide = at.w, not at.lanes
        at.ensure(centre)
        result = w.temp(DType.FLOAT32, wide, hint="acc" if wide else "sum")
        other = w.vector(at.path, centre, wide)
        at.add(
            op("sub", (result, self.top, other), (), at.width if wide else ONE),
            op("exp", (result, result), (), at.width if wide else ONE),
            op("mul", (result, result, self.sum), (), at.width if wide else ONE),
        )
        return result
