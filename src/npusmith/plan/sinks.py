"""Where a reduction accumulates, from the neutral element to the number that is left.

A pass (passes.py) opens its sinks, lets each take in every tile, folds the lanes of a tile to a
number and, where all cores take part, brings the numbers of the cores together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

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
from npusmith.plan.all_gather import EIGHT, over_all
from npusmith.plan.block import Block, Path
from npusmith.plan.dag import EXACT, Value
from npusmith.plan.formula import formula
from npusmith.plan.host import FOLDS, TILE
from npusmith.plan.loops import Body, Serial
from npusmith.plan.scalars import ONE, ZERO, product
from npusmith.plan.writer import Writer, op

IDENTITY = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@dataclass(frozen=True, slots=True)
class Pass:
    """What the sinks of one pass have in common."""

    w: Writer
    path: Path  # the list that the results land in
    width: Expr  # elements of an accumulator that are in use
    lanes: bool  # a row runs along the tile: lanes are folded at the end
    serial: bool  # sums are added in stretches
    elements: Expr  # that this core takes in, a float
    loops: Callable[[Path, Body], None]  # the pass's loops around a body
    first_tile: Callable[[Path, Body], None]  # the same, but no more than the first tile
    ensure: Callable[[Value], None]  # makes a value available in the last list of `path`

    @property
    def block(self) -> Block:
        return self.path[-1]

    def add(self, *items: Stmt) -> None:
        self.block.items.extend(items)

    def number(self, hint: str = "") -> str:
        """A buffer for one number."""
        return self.w.temp(DType.FLOAT32, False, hint=hint)

    def read(self, buffer: str, stem: str, change: Callable[[Expr], Expr] | None = None) -> Name:
        """A number as a scalar, or what becomes of it."""
        name, value = self.w.fresh(stem), Read(View(buffer))
        self.add(Assign(name, value if change is None else change(value)))
        return Name(name)


class Sink(Protocol):
    """One or several reductions of the same operand."""

    def label(self, w: Writer) -> str: ...

    def operand(self) -> Value: ...

    def open(self, at: Pass) -> None: ...

    def step(self, at: Pass, path: Path) -> None:
        """Take in a tile."""

    def frame(self, at: Pass) -> Serial:
        """What comes before and after a stretch of tiles."""

    def fold(self, at: Pass) -> None:
        """Leave one number, or a row of them where rows are accumulated."""

    def parts(self, at: Pass) -> list[Expr]:
        """What a core tells the others."""

    def close(self, at: Pass, lanes: Sequence[View]) -> None:
        """Hand out the results; `lanes`: the parts of all cores, none where a core is alone."""


@dataclass(slots=True)
class Plain:
    """One reduction that accumulates element by element."""

    value: Value
    buffer: str = ""  # what is accumulated into, loop by loop
    total: str = ""  # for long sums: what `buffer` is added to now and then; else the same

    def label(self, w: Writer) -> str:
        return named(w, self.value)

    def operand(self) -> Value:
        return self.value.args[0]

    def open(self, at: Pass) -> None:
        """Accumulators, holding the operation's neutral element."""
        w, value = at.w, self.value
        wide = w.space.wide(self.operand())
        # a product is folded in halves of the whole tile
        filled = TILE if at.lanes and value.text == "prod" else at.width
        self.buffer = self.total = w.temp(DType.FLOAT32, wide, hint="acc")
        if at.serial and value.text == "sum" and not is_exact(w, value):
            self.total = w.temp(DType.FLOAT32, wide, hint="acc")
        at.add(neutral(value.text, self.total, filled))

    def step(self, at: Pass, path: Path) -> None:
        path[-1].items.append(accumulated(at.w, path, self.buffer, self.value))

    def frame(self, at: Pass) -> Serial:
        if self.total == self.buffer:
            return Serial((), ())
        return Serial(
            (neutral(self.value.text, self.buffer, at.width),),
            (op("accumulate_sum", (self.total, self.buffer), (), at.width),),
        )

    def fold(self, at: Pass) -> None:
        if at.lanes:
            self.total = folded(at.w, at.path, self.value.text, self.total, at.width)

    def parts(self, at: Pass) -> list[Expr]:
        return [at.read(self.total, "own_")]

    def close(self, at: Pass, lanes: Sequence[View]) -> None:
        if lanes:
            self.total = at.number(self.value.text)
            over_all(at.w, at.block, self.value.text, lanes[0], self.total)
        at.block.buffers[self.value] = self.total

    def combine(self, at: Pass) -> None:
        """The same number on every core, where it is the only one."""
        scratch = at.w.sizes.workspace(Binary(BinOp.MUL, Name("cores"), EIGHT))
        result = at.number(self.value.text)
        at.add(Combine(self.value.text, View(result), View(self.total), scratch, ONE))
        at.block.buffers[self.value] = result


# ------------------------------------------------------------------------------------- statements


def named(w: Writer, value: Value) -> str:
    """A reduction in words."""
    names = " and ".join(w.space.groups[axis].name for axis in value.axes)
    word = {"sum": "sum", "max": "largest", "min": "smallest", "prod": "product"}[value.text]
    return f"{word} over {names} of {formula(w.space, value.args[0])}"


def is_exact(w: Writer, value: Value) -> bool:
    """Whether a reduction is of integers that float32 adds up exactly."""
    span = w.space.dag.spans.get(value)
    return span is not None and max(-span[0], span[1]) < EXACT


def neutral(text: str, buffer: str, count: Expr) -> Stmt:
    return op("duplicate", (buffer,), (Const(IDENTITY[text]),), count)


def accumulated(w: Writer, path: Path, buffer: str, value: Value) -> Stmt:
    operand = value.args[0]
    wide = w.space.wide(operand)
    source = w.vector(path, operand, wide)
    return op(f"accumulate_{value.text}", (buffer, source), (), w.count(path, wide))


def folded(w: Writer, path: Path, text: str, lanes: str, width: Expr, kept: bool = False) -> str:
    """The lanes of a tile as one number. `kept`: the lanes are read again afterwards."""
    result = w.temp(DType.FLOAT32, False, hint=text)
    if text == "prod":
        _multiply_lanes(w, path[-1], lanes, result)
    else:
        fold_lanes(w, path[-1], text, lanes, width, result, kept)
    return result


def fold_lanes(
    w: Writer, block: Block, text: str, lanes: str, width: Expr, result: str, kept: bool = False
) -> None:
    """Folds of 8 at a cycle for 64 elements first, where a reduction takes 8 (target/costs.py)."""
    spare = w.temp(DType.FLOAT32, True, hint="spare")
    scratch = w.temp(DType.FLOAT32, True, hint="spare") if kept else lanes
    block.items.append(op(f"{text}_blocks", (spare, lanes), (), width))
    eighth = Call(ScalarFn.CEIL_DIV, (width, EIGHT))
    block.items.append(op(f"reduce_{text}", (result, spare, scratch), (), eighth))


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
