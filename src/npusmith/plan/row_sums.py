"""Outputs that are sums along the long axis of rows that stay on chip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Expr, Name, Op, Span, Store, View
from npusmith.plan.block import Part, Path
from npusmith.plan.contractions import MOST, row_at, turns
from npusmith.plan.dag import Value
from npusmith.plan.host import TILE
from npusmith.plan.index_vectors import tile_buffer
from npusmith.plan.interleaved_tiles import Interleaved, place
from npusmith.plan.lane_space import MOST_SHARE, Domain
from npusmith.plan.passes import ensure
from npusmith.plan.resident_copies import refuse
from npusmith.plan.scalars import quotient, times
from npusmith.plan.stores import Target
from npusmith.plan.writer import Writer, op

_BLOCK = 8  # elements of float32 that `sum_blocks` adds up
_SCRATCH = 32  # numbers that `sum_rows` has room for beside each row's, and as much again


class Sums:
    """An output that is a sum along the long axis, for all indices along short ones.

    Eight neighbours are added up in a strip, strips lane by lane, and the lanes behind the last.
    """

    def __init__(
        self, w: Interleaved, path: Path, target: Target, value: Value, own: Domain
    ) -> None:
        self.w, self.path, self.target, self.value = w, path, target, value
        if own != w.ordered(own) or {*own, 0} != set(w.domain(value)):
            raise refuse("a sum has its axes in another order")
        if not _zero_beyond(w, value):
            raise refuse("what a strip lacks is not zero")
        self.own, self.rows = own, w.captured(own)
        if self.rows > MOST:
            raise refuse("more sums than instructions")
        self.eighth = quotient(w.pitch_of_cut, Const(_BLOCK))
        self.count = times(Const(self.rows), self.eighth)
        self.total, self.part = self._room(), self._room()
        path[-2].items.append(op("duplicate", (self.total,), (Const(0.0),), self.count))

    def _room(self) -> str:
        """An eighth of a strip for every row."""
        w = self.w
        name = Writer.temp(w, DType.FLOAT32, True)
        ratio = w.widest * _BLOCK // self.rows
        share = min(1 << max(ratio.bit_length() - 1, 0), MOST_SHARE)
        tiles = 1 if ratio else -(-self.rows // (w.widest * _BLOCK))
        w.temps[name] = replace(w.temps[name], share=share, times=tiles)
        room = times(quotient(TILE, Const(share)), Const(tiles))
        w.limits.append(quotient(times(room, Const(_BLOCK)), Const(self.rows)))
        w.needs.append(Binary(BinOp.GE, room, Const(_SCRATCH * -(-self.rows // _BLOCK) * _BLOCK)))
        return name

    def add(self) -> None:
        """What a strip adds."""
        w, path, value = self.w, self.path, self.value
        product_ = value.op == "mul" and not w.users.get(value)
        ensure(w, path, value.args if product_ else (value,))
        inner: Domain = (*self.own[-1:], 0)
        many = w.captured(inner[:-1])
        with w.among(inner):
            made, count = tile_buffer(w, DType.FLOAT32) if product_ else "", w.count(path, True)
        for at, turn in enumerate(turns(w, self.own[:-1])):
            if product_:
                path[-1].items += self._products(made, turn, inner)
                source = View(made)
            else:
                known: dict[int, Expr] = {lane: Const(index) for lane, index in turn.items()}
                source = View(w.held(path, value), place(w, w.domain(value), inner, known))
            to = View(self.part, times(Const(at * many), self.eighth))
            path[-1].items.append(op("sum_blocks", (to, source), (), count))
        path[-1].items.append(op("accumulate_sum", (self.total, self.part), (), self.count))

    def _products(self, made: str, turn: dict[int, int], inner: Domain) -> Iterator[Op]:
        w, path = self.w, self.path
        with w.among((0,)):
            count = w.count(path, True)
        for last in turns(w, inner[:-1]):
            to = View(made, place(w, inner, (0,), {lane: Const(i) for lane, i in last.items()}))
            sources = [row_at(w, path, factor, turn | last) for factor in self.value.args]
            yield op("mul", (to, *sources), (), count)

    def store(self) -> None:
        """Add up what is left, round, and store the numbers of a line."""
        w, path, output = self.w, self.path[:-1], self.target.output
        size = max(-(-self.rows // _BLOCK) * _BLOCK, 64)
        plain = output.dtype is DType.FLOAT32
        raw = w.temp(output.dtype, False, Part.STORED, self.target.name, lanes=size)
        made = raw if plain else w.temp(DType.FLOAT32, False, lanes=size)
        views = View(made), View(self.total), View(self.part)
        count = Const(self.rows)
        path[-1].items.append(op("sum_rows", views, (self.eighth,), count))
        if not plain:
            path[-1].items.append(op("cast", (raw, made), (), count, "rint"))
        span = Span(self.target.name, times(Name("line"), count))
        path[-1].items.append(Store(span, View(raw), count))


_AT_ZERO = ("fetch", "add", "sub", "mul", "neg", "abs", "fold")


def _zero_beyond(w: Interleaved, value: Value) -> bool:
    """Whether a value is zero where the last strip of a row has no elements, as its inputs are.

    No numbers enter: zero times infinity is none.
    """
    sums = value.op != "fold" or value.text == "sum"
    along = value.op in _AT_ZERO and 0 in w.domain(value)
    return sums and along and all(_zero_beyond(w, arg) for arg in value.args)
