"""How cores share the lines of a pass: dealt whole, cut into chunks, or all cores on one line.

Fewer lines than cores are worth being cut into chunks by an estimate, which the host makes for the
sizes that are run: a program has both ways where sizes near the captured ones differ in the better
one.

Cutting costs a wait of all cores for each phase, a scan reads its operand once more, and what the
chunks come to has to be joined. The sizes decide the schedule only: the program is right for all of
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as product_of

from npusmith.ir.nodes import Binary, BinOp, ChipFact, Choice, Const, Expr
from npusmith.lang.extents import holds
from npusmith.plan.chunks import LEAST_ROWS, Cut, cut_lines
from npusmith.plan.cooperative_rows import are_long, can_be_together, far_apart
from npusmith.plan.dag import Kind, Value
from npusmith.plan.dependent_reductions import Form, find_dependent
from npusmith.plan.host import LEAST_TILE
from npusmith.plan.passes import Work
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    largest,
    least,
    plus,
    product,
    quotient,
    shares,
    times,
)
from npusmith.plan.schedule import Lines
from npusmith.plan.split_phases import FOLDS, levels_of
from npusmith.plan.writer import Writer
from npusmith.target.chips import Chip

_TILE = Const(8192)  # elements of the longest tile
_ELEMENT = 4  # bytes
# Nanoseconds of one core, from times of the timing model for lines of 4K to 1M elements, as so many
# parts of a nanosecond: the host has whole numbers.
_PARTS = 1_000_000
_COPY = Const(70 * _PARTS)  # a turn of a loop that loads one row or tile
_PASS = Const(35 * _PARTS // 1000)  # an element of a pass
_SCAN = Const(140 * _PARTS // 1000)  # ... that is scanned along the last axis
_RISING = 1  # passes that exponentials take longer in the pass that finds their maximum
_WAIT = Const(1300 * _PARTS)  # all cores for each other
_NUMBER = Const(14 * _PARTS)  # what a chunk comes to, when it is joined
_PUSHED = 3, 2  # longer, where results push lines out of L2
_LESS = Const(4), Const(5)  # of the time, at most, is worth another schedule
_NEAR = 64  # times as large, or small: sizes that a program has to be quick at
_MOST = 1 << 36  # elements: more than any chip has memory for
_CORES = ChipFact("vector_cores")


@dataclass(frozen=True, slots=True)
class Job:
    """Lines, and what is done with each; sizes are of the host."""

    lines: Expr
    length: Expr  # along the group that is folded
    copies: Expr  # of a tile, or of a row of one
    elements: Expr  # of a line
    passes: int
    scans: int = 0  # passes that scan along the last axis

    def time(self, chip: Chip) -> Expr:
        """With the lines dealt to cores."""
        each = plus(times(self.copies, _COPY), times(self.elements, _PASS))
        line = times(Const(self.passes), each)
        if self.scans:
            line = plus(line, times(Const(self.scans), times(self.elements, _SCAN)))
        return largest(times(shares(self.lines, _CORES), line), self._floor(chip))

    def _floor(self, chip: Chip) -> Expr:
        """What HBM takes: lines that do not stay in L2 are read again for every pass."""
        elements = times(self.lines, self.elements)
        once = times(elements, Const(round(_PARTS * _ELEMENT / chip.hbm_gbps)))
        more, less = _PUSHED
        again = quotient(times(once, Const((self.passes + 1) * more)), Const(less))
        stays = Binary(BinOp.LE, elements, Const(chip.l2_bytes // (2 * _ELEMENT)))
        return Choice(stays, once, again)


@dataclass(frozen=True, slots=True)
class Shared:
    """How cores share lines: how these are cut, if they may be, and the test for it."""

    lines: Lines
    cut: Cut | None = None
    test: Expr | None = None


def share_lines(w: Writer, work: Work, inner: Sequence[Value], stored: frozenset[int]) -> Shared:
    """How cores share the lines of a pass. `stored`: groups that outputs run along."""
    legal, worth, own = [Lines.DEALT], [Lines.DEALT], Lines.DEALT
    group = _common(w, work, inner)
    test = None if group is None else _test(w, work, group, inner, stored)
    if test is not None:
        found = _near(w, test, frozenset(axis for value in inner for axis in value.axes))
        own = Lines.CHUNKED if found == {True} else Lines.DEALT
        if True in found:
            legal.append(Lines.CHUNKED)
            worth.append(Lines.CHUNKED)
        if len(found) == 2:
            legal.append(Lines.BY_SIZES)
            own = Lines.BY_SIZES
    if can_be_together(w, work, inner):
        legal.append(Lines.TOGETHER)
        worth += [Lines.TOGETHER] * are_long(w, inner)
        if far_apart(w, work, inner):
            own = Lines.TOGETHER
    lines = w.decisions.lines(own, legal, worth)
    if lines not in (Lines.CHUNKED, Lines.BY_SIZES) or group is None:
        return Shared(lines)
    cut = cut_lines(w.sizes, work.dealt, group)
    if lines is Lines.CHUNKED or test is None:
        return Shared(lines, cut)
    chunked = w.sizes.new("chunked", Choice(test, ONE, ZERO))
    return Shared(lines, cut, Binary(BinOp.EQ, chunked, ONE))


def _near(w: Writer, test: Expr, folded: frozenset[int]) -> set[bool]:
    """What the test comes to at the captured sizes, and at others near them.

    Lines may be more or fewer, and longer or shorter.
    """
    found: set[bool] = set()
    for many, long in product_of((1, _NEAR, 1 / _NEAR), repeat=2):
        sizes: dict[str, int] = {}
        for group in w.space.groups:
            size = w.extent(frozenset({group.id}))
            scale = long if group.id in folded else many
            some = max(int(size * scale), min(size, 1))
            sizes[group.name] = size if isinstance(group.size, Const) else some
        if math.prod(sizes.values()) > _MOST and (many, long) != (1, 1):
            continue
        found.add(holds(test, sizes, w.sizes.defined, w.chip.vector_cores))
    return found


def _test(
    w: Writer, work: Work, group: int, inner: Sequence[Value], stored: frozenset[int]
) -> Expr | None:
    """Whether lines in chunks take less time than whole ones."""
    levels = levels_of(w, inner)
    phases, scans = max(levels.values()), sum(value.op == "running" for value in inner)
    whole = _job(w, work, group, phases + (group in stored), scans, _TILE)
    passes = _folds(w, levels) + (group in stored) or 1
    dealt = _job(w, work, group, passes, scans, _tile(w, work, group))
    parts = sum(phases + 1 - level for level in levels.values())
    chunks = w.sizes.new("most_chunks", _chunks(w, group, whole))
    join = times(Const(parts), _NUMBER if group == w.space.last else _COPY)
    some = largest(chunks, ONE)
    chunk = Job(
        w.sizes.new("most_pieces", times(whole.lines, some)), shares(whole.length, some),
        shares(whole.copies, some),
        w.sizes.new("piece_elements", shares(whole.elements, some)), whole.passes, scans,
    )  # fmt: skip
    waits = times(Const(phases), _WAIT)
    cut = plus(plus(chunk.time(w.chip), waits), times(chunks, join))
    less, of = _LESS
    now = w.sizes.new("dealt_time", times(dealt.time(w.chip), less))
    pays = Binary(BinOp.LE, w.sizes.new("chunked_time", times(cut, of)), now)
    return Binary(BinOp.AND, Binary(BinOp.GT, chunks, ONE), pays)


def _folds(w: Writer, levels: Mapping[Value, int]) -> int:
    """Passes that fold where lines are dealt: some come in the pass of those that they need."""
    late = {value: find_dependent(w.space, value) for value in levels if value.op == "reduce"}
    rising = any(found is not None and found.form is Form.RAISED for found in late.values())
    own = {levels[value] for value, found in late.items() if found is None}
    return len(own) + rising * _RISING


def _common(w: Writer, work: Work, inner: Sequence[Value]) -> int | None:
    """The group that everything here is folded along: the last, else the longest.

    A scan starts anew in every dealt line, and nowhere else.
    """
    if not inner or any(value.kind is not Kind.FLOAT for value in inner):
        return None
    groups = frozenset[int].intersection(*(frozenset(value.axes) for value in inner))
    last = w.space.last
    if not groups or (last not in groups and any(last in value.axes for value in inner)):
        return None
    scans = [value for value in inner if value.op == "running"]
    if any(value.text not in FOLDS for value in scans):
        return None
    if any(w.space.axes(value) - set(value.axes) - work.dealt for value in scans):
        return None
    return last if last in groups else max(groups, key=lambda item: w.extent(frozenset({item})))


def _tile(w: Writer, work: Work, group: int) -> Expr:
    """Elements of a tile where lines are dealt as they are (host.Sizes.deal)."""
    last = w.space.last
    if group == last or last not in work.dealt:
        return _TILE
    fair = largest(shares(_lines(w, work.dealt), _CORES), LEAST_TILE)
    return w.sizes.new("fair_tile", shares(fair, shares(fair, _TILE)))


def _lines(w: Writer, groups: Iterable[int]) -> Expr:
    return product(w.sizes.size(group) for group in sorted(groups))


def _job(w: Writer, work: Work, group: int, passes: int, scans: int, tile: Expr) -> Job:
    last, length = w.space.last, w.sizes.size(group)
    if group == last:
        return Job(_lines(w, work.dealt), length, shares(length, tile), length, passes, scans)
    cols: Expr = w.sizes.size(last) if last in work.dealt else ONE
    tiles = shares(cols, tile)
    lines = w.sizes.new("line_tiles", times(_lines(w, work.dealt - {last}), tiles))
    elements = w.sizes.new("tile_elements", times(length, shares(cols, largest(tiles, ONE))))
    return Job(lines, length, length, elements, passes)


def _chunks(w: Writer, group: int, job: Job) -> Expr:
    """As many as cut_lines will make of a line."""
    few = LEAST_TILE if group == w.space.last else LEAST_ROWS
    return least(quotient(_CORES, largest(job.lines, ONE)), shares(job.length, few))
