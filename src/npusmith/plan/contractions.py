"""Sums of numbers times rows: a multiplication, and multiply-adds by scalars, row by row.

before: products of numbers of short axes with rows, added up along short axes or one to another
after:  `contract` (a sum along short axes) and `axpy` (one more term), without products in between
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from npusmith.ir.nodes import Assign, Const, Expr, Name, View
from npusmith.ir.nodes import Value as Read
from npusmith.plan.block import Path, staged
from npusmith.plan.dag import Dag, Kind, Value
from npusmith.plan.interleaved_tiles import Interleaved, Slot, begin, place, stage
from npusmith.plan.resident_copies import refuse
from npusmith.plan.scalars import ZERO, plus, times
from npusmith.plan.writer import op

MOST = 1024  # instructions that a sum may be


@dataclass(slots=True)
class Contraction:
    """Sums of numbers times rows, which multiply and add at once, in place of products and sums."""

    w: Interleaved
    roots: Sequence[Value]

    def values(self) -> list[Value]:
        begin(self.w, self.roots)
        done: dict[Value, Value] = {}
        return [self._made(root, done) for root in self.roots]

    def _made(self, value: Value, done: dict[Value, Value]) -> Value:
        if value not in done:
            done[value] = self._value(value, done)
        return done[value]

    def _value(self, value: Value, done: dict[Value, Value]) -> Value:
        dag: Dag = self.w.space.dag
        if not value.args:
            return value
        if value.op == "fold" and value.text == "sum" and (pair := self._pair(value.args[0])):
            number, row = (self._made(item, done) for item in pair)
            return dag.make("contract", number, row, text="sum", parts=value.parts, axes=value.axes)
        if value.op == "add":
            for one, two in (value.args, value.args[::-1]):
                pair = self._pair(two)
                if pair and one.op in ("fold", "axpy", "add") and self._lasts(one, value):
                    number, row = (self._made(item, done) for item in pair)
                    return dag.make("axpy", self._made(one, done), number, row)
        args = [self._made(arg, done) for arg in value.args]
        return dag.keep(replace(value, args=tuple(args)))

    def _lasts(self, value: Value, user: Value) -> bool:
        """Whether a value has one user, along as many axes, so that this one may add to it."""
        alone = self.w.users.get(value, set()) == {user} and value not in self.w.roots
        return alone and self.w.domain(value) == self.w.domain(user)

    def _pair(self, value: Value) -> tuple[Value, Value] | None:
        """The number and the row that a product is of."""
        if value.op != "mul" or value.kind is not Kind.FLOAT or len(self.w.users[value]) > 1:
            return None
        for number, row in (value.args, value.args[::-1]):
            if self._is_number(number) and self.w.space.wide(row) and 0 in self.w.domain(row):
                return number, row
        return None

    def _is_number(self, value: Value) -> bool:
        return value.op == "const" or (bool(self.w.domain(value)) and 0 not in self.w.domain(value))


def scalars_of(w: Interleaved, path: Path, value: Value) -> dict[Slot, Expr]:
    """A number for each index along its short axes, each read once a strip.

    Vector instructions that follow one another then wait for one read, not each for its own.
    """
    if value.op == "const":
        return {(): w.number(path, value)}
    if value not in w.scalars:
        steps = w.strides.get(value)
        lanes = tuple(steps or w.domain(value))
        found: dict[Slot, Expr] = {}
        for indices in itertools.product(*(range(w.captured([lane])) for lane in lanes)):
            at: Expr = ZERO
            for lane, index in zip(lanes, indices, strict=True):
                step = steps[lane] if steps else w.depth(lane, w.domain(value))
                at = plus(at, times(Const(index), step))
            name = w.fresh("v_")
            path[-1].items.append(Assign(name, Read(View(w.held(path, value), at))))
            found[tuple(zip(lanes, indices, strict=True))] = Name(name)
        w.scalars[value] = found
    return w.scalars[value]


def read_all(w: Interleaved, path: Path, numbers: Sequence[Value]) -> None:
    """Numbers as scalars: all at once, while the vector unit is busy with the strip before."""
    items = path[-1].items
    items[:] = staged(items)
    before = len(items)
    for value in numbers:
        scalars_of(w, path, value)
    items[before:] = [stage(tuple(items[before:]))] if numbers else []


def turns(w: Interleaved, lanes: Sequence[int]) -> Iterator[dict[int, int]]:
    """Indices along short axes, the first of them outermost."""
    for indices in itertools.product(*(range(w.captured([lane])) for lane in lanes)):
        yield dict(zip(lanes, indices, strict=True))


def row_at(w: Interleaved, path: Path, value: Value, turn: dict[int, int]) -> View:
    """The row of a value that is meant at these indices."""
    known: dict[int, Expr] = {lane: Const(index) for lane, index in turn.items()}
    return View(w.held(path, value), place(w, w.domain(value), (0,), known))


def _pick(numbers: dict[Slot, Expr], turn: dict[int, int]) -> Expr:
    lanes = [lane for lane, _ in next(iter(numbers))]
    return numbers[tuple((lane, turn[lane]) for lane in lanes)]


def contract(w: Interleaved, path: Path, value: Value) -> None:
    """The sum of numbers times rows along some short axes."""
    number, row = value.args
    kept, reduced = w.now, list(value.parts)
    path[-1].buffers[value] = w.like(value)
    numbers = scalars_of(w, path, number)
    with w.among((0,)):
        count = w.count(path, True)
    every = list(turns(w, [*reduced, *(lane for lane in kept if lane)]))
    if len(every) > MOST:
        raise refuse("more terms than instructions")
    for turn in every:
        first = all(turn[lane] == 0 for lane in reduced)
        views = row_at(w, path, value, turn), row_at(w, path, row, turn)
        name = "muls" if first else "axpy"
        path[-1].items.append(op(name, views, (_pick(numbers, turn),), count))


def axpy(w: Interleaved, path: Path, value: Value) -> None:
    """A number times a row added to what nobody else needs."""
    total, number, row = value.args
    path[-1].buffers[value] = w.held(path, total)
    numbers = scalars_of(w, path, number)
    with w.among((0,)):
        count = w.count(path, True)
    for turn in turns(w, [lane for lane in w.now if lane]):
        views = row_at(w, path, value, turn), row_at(w, path, row, turn)
        path[-1].items.append(op("axpy", views, (_pick(numbers, turn),), count))
