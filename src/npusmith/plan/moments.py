"""Mean and squared distances from it in one pass: sums around a number near the mean.

The number is the mean of the first tile. With it, s = sum(x - near) and q = sum((x - near)^2), and
for any centre c, d = c - near: sum(x - c) = s - n d, sum((x - c)^2) = q - d (s + sum(x - c)).
What is lost to cancellation is d^2 over the variance. Where that is more than 4, or no number (the
first tile is unlike the rest, or sums overflow), the core goes through its elements again, around
the mean that it knows by then. Cores add around numbers of their own; their sums are moved to the
common centre before they are added, in the order of the cores (Chan, Golub and LeVeque 1983).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    Choice,
    Const,
    Expr,
    If,
    Name,
    Note,
    ScalarFn,
    View,
)
from npusmith.ir.nodes import Value as Read
from npusmith.plan.all_gather import lanes_of_all, most, over_all
from npusmith.plan.block import Block, Path, staged
from npusmith.plan.dag import Value
from npusmith.plan.dependent_reductions import Dependent, Form, only_distances
from npusmith.plan.loops import Serial
from npusmith.plan.scalars import ONE, floating, largest
from npusmith.plan.sinks import Pass, fold_lanes, named, neutral
from npusmith.plan.writer import Writer, negated, op

_FAR = Const(4.0)  # squared distance of `near` from the mean over the variance
_CLOSE = Const(2.0**-20)  # of `near` itself: 8 units in its last place
_HUGE = Const(math.inf)


@dataclass(slots=True)
class Moments:
    """sum(x) with the late sums around it."""

    lead: Value
    late: tuple[Dependent, ...]
    near: Name = field(default_factory=lambda: Name(""))
    lanes: tuple[str, str] = ("", "")  # sums of distances and of their squares, lane by lane
    sums: tuple[str, str] = ("", "")  # the same as numbers
    total: str = ""  # sum(x)
    plain: str = (
        ""  # its lanes, where it is wanted for itself: near * n + s has the error of near * n
    )

    def label(self, w: Writer) -> str:
        return f"{named(w, self.lead)}, with {len(self.late)} sums of distances from it"

    def operand(self) -> Value:
        return self.lead.args[0]

    def open(self, at: Pass) -> None:
        guess = at.number("near")
        at.add(Note("a number near the mean: that of the first tile"), neutral("sum", guess, ONE))

        def first(path: Path) -> None:
            source, count = self._source(at, path), at.w.count(path, True)
            fold_lanes(at.w, path[-1], "sum", source, count, guess, kept=True)
            inverse = Binary(BinOp.DIV, Const(1.0), floating(largest(count, ONE)))
            path[-1].items.append(op("muls", (guess, guess), (inverse,), ONE))

        at.first_tile(at.path, first)
        self.near = at.read(guess, "near_")
        self.lanes = (_lanes(at), _lanes(at))
        if not only_distances(at.w.space, self.lead):
            self.plain = _lanes(at)
        at.add(*(neutral("sum", lanes, at.width) for lanes in (*self.lanes, self.plain) if lanes))

    def _source(self, at: Pass, path: Path) -> str:
        return at.w.vector(path, self.operand(), True)

    def step(self, at: Pass, path: Path) -> None:
        if self.plain:
            self._add_plain(at, path, self.plain)
        self._add_distances(at, path)

    def _add_plain(self, at: Pass, path: Path, lanes: str) -> None:
        source, count = self._source(at, path), at.w.count(path, True)
        path[-1].items.append(op("accumulate_sum", (lanes, source), (), count))

    def _add_distances(self, at: Pass, path: Path) -> None:
        count = at.w.count(path, True)
        away = at.w.temp(DType.FLOAT32, True)
        source = self._source(at, path)
        path[-1].items += [
            op("adds", (away, source), (negated(self.near),), count),
            op("accumulate_sum", (self.lanes[0], away), (), count),
            op("mul", (away, away, away), (), count),
            op("accumulate_sum", (self.lanes[1], away), (), count),
        ]

    def frame(self, at: Pass) -> Serial:
        return Serial((), ())

    def fold(self, at: Pass) -> None:
        self.sums = (at.number("away"), at.number("squares"))
        self._fold_lanes(at, at.block)
        away = at.read(self.sums[0], "away_")
        slip = at.read(self.sums[0], "slip_", lambda sum: _divided(sum, at.elements))
        lost = Binary(BinOp.MUL, away, slip)
        spread = at.read(self.sums[1], "spread_", lambda sum: Binary(BinOp.SUB, sum, lost))
        self.total = at.number("sum")
        if self.plain:
            fold_lanes(at.w, at.block, "sum", self.plain, at.width, self.total)
        else:
            whole = Binary(BinOp.ADD, Binary(BinOp.MUL, self.near, at.elements), away)
            at.add(op("duplicate", (self.total,), (whole,), ONE))
        again = self._again(at)
        at.add(If(_far(self.near, slip, lost, spread), staged(again.items)))

    def _fold_lanes(self, at: Pass, block: Block) -> None:
        for lanes, number in zip(self.lanes, self.sums, strict=True):
            fold_lanes(at.w, block, "sum", lanes, at.width, number)

    def _again(self, at: Pass) -> Block:
        """The mean, if it is not known to its last digits, then the pass once more around it."""
        again = Block(at.block.opened)
        path = (*at.path, again)
        again.items.append(Note("the first tile is unlike the rest: once more, around the mean"))
        if not self.plain:
            lanes = self.lanes[0]
            again.items.append(neutral("sum", lanes, at.width))
            at.loops(path, lambda path: self._add_plain(at, path, lanes))
            fold_lanes(at.w, again, "sum", lanes, at.width, self.total)
        mean = _divided(Read(View(self.total)), at.elements)
        again.items.append(Assign(self.near.id, mean))
        again.items += [neutral("sum", buffer, at.width) for buffer in self.lanes]
        at.loops(path, lambda path: self._add_distances(at, path))
        self._fold_lanes(at, again)
        return again

    def parts(self, at: Pass) -> list[Expr]:
        own = [at.read(buffer, "own_") for buffer in (*self.sums, self.total)]
        return [self.near, *own, at.elements]

    def close(self, at: Pass, lanes: Sequence[View]) -> None:
        """Sums around the centres that are wanted, from sums around `near`."""
        near: str | View
        away: str | View
        squares: str | View
        elements: str | View
        if lanes:
            near, away, squares, totals, elements = lanes
            self.total = at.number("sum")
            over_all(at.w, at.block, "sum", totals, self.total)
        else:
            (away, squares), near, elements = self.sums, at.number("near"), at.number("n")
            at.add(op("duplicate", (near,), (self.near,), ONE))
            at.add(op("duplicate", (elements,), (at.elements,), ONE))
        at.block.buffers[self.lead] = self.total
        around = _Around(at, near, away, squares, elements, bool(lanes))
        for centre in dict.fromkeys(late.centre for late in self.late):
            around.move(centre, [late for late in self.late if late.centre is centre])


@dataclass(frozen=True, slots=True)
class _Around:
    """Sums around `near`, of one core or of all in lanes."""

    at: Pass
    near: str | View
    away: str | View
    squares: str | View
    elements: str | View
    all: bool

    def move(self, centre: Value, wanted: Sequence[Dependent]) -> None:
        at, w = self.at, self.at.w
        at.ensure(centre)
        middle = w.number(at.path, centre)
        step, rest, left = (self._like(hint) for hint in ("step", "rest", "left"))
        self._add("muls", (step, self.near), (Const(-1.0),))
        self._add("adds", (step, step), (middle,))  # centre - near
        self._add("mul", (rest, self.elements, step))
        self._add("sub", (rest, self.away, rest))  # sum of x - centre
        self._add("add", (left, self.away, rest))
        self._add("mul", (left, left, step))
        self._add("sub", (left, self.squares, left))  # sum of (x - centre)^2
        for late in wanted:
            source = rest if late.form is Form.DISTANCE else left
            at.block.buffers[late.fold] = self._whole(source)

    def _like(self, hint: str) -> str:
        lanes = most(self.at.w) if self.all else 0
        return self.at.w.temp(DType.FLOAT32, False, hint=hint, lanes=lanes)

    def _add(
        self, name: str, views: tuple[str | View, ...], scalars: tuple[Expr, ...] = ()
    ) -> None:
        self.at.add(op(name, views, scalars, lanes_of_all() if self.all else ONE))

    def _whole(self, source: str) -> str:
        if not self.all:
            return source
        result = self.at.number("sum")
        over_all(self.at.w, self.at.block, "sum", source, result)
        return result


def _lanes(at: Pass) -> str:
    return at.w.temp(DType.FLOAT32, True, hint="acc")


def _divided(sum: Expr, elements: Expr) -> Expr:
    return Binary(BinOp.DIV, sum, largest(elements, Const(1.0)))


def _far(near: Expr, slip: Expr, lost: Expr, spread: Expr) -> Expr:
    """Whether too much is lost to cancellation. NaN is far, a row of one value is not."""
    small = Binary(BinOp.LE, _size(slip), Binary(BinOp.MUL, _size(near), _CLOSE))
    fits = Binary(BinOp.LE, lost, Binary(BinOp.MUL, _FAR, spread))
    fine = Binary(BinOp.AND, fits, Binary(BinOp.LT, spread, _HUGE))
    found = Choice(Binary(BinOp.OR, small, fine), Const(0), Const(1))
    return Binary(BinOp.EQ, found, Const(1))


def _size(number: Expr) -> Expr:
    return Call(ScalarFn.MAX, (number, negated(number)))
