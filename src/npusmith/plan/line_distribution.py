"""How cores share the lines of a pass: dealt whole, cut into chunks, or all cores on one line.

Fewer lines than cores are worth being cut into chunks by an estimate, which the host makes for the
sizes that are run: where sizes decide, the kernel has a version for each (versions.py).

Cutting costs a wait of all cores for each phase, a scan reads its operand once more, and what the
chunks come to has to be joined. The sizes decide the schedule only: the program is right for all of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from npusmith.errors import LangError
from npusmith.ir.nodes import Binary, BinOp, ChipFact, Choice, Const, Expr, Name
from npusmith.lang.extents import evaluate
from npusmith.plan.chunks import LEAST_ROWS, Cut, cut_lines
from npusmith.plan.cooperative_rows import are_long, can_be_together, far_apart
from npusmith.plan.dag import Kind, Value
from npusmith.plan.dependent_reductions import Form, find_dependent
from npusmith.plan.estimate import WAIT
from npusmith.plan.host import LEAST_TILE, Sizes
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
_NUMBER = Const(14 * _PARTS)  # what a chunk comes to, when it is joined
_PUSHED = 3, 2  # longer, where results push lines out of L2
_LESS = Const(4), Const(5)  # of the time, at most, is worth another schedule
_LONG = 1 << 24  # elements of lines that are worth being cut where they are few, and lines enough
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


def share_lines(
    w: Writer, work: Work, inner: Sequence[Value], stored: frozenset[int]
) -> tuple[Lines, Cut | None]:
    """How cores share the lines of a pass, and how these are cut, where they are.

    `stored`: groups that outputs run along.
    """
    legal, worth, own = [Lines.DEALT], [Lines.DEALT], Lines.DEALT
    group = _common(w, work, inner)
    pays = None if group is None else _pays(w, work, group, inner, stored)
    if pays is not None:
        legal += [Lines.CHUNKED] + [Lines.BY_SIZES] * pays.varies
        worth += [Lines.CHUNKED] * (pays.chunks > 1)
        own = Lines.CHUNKED if pays.captured else Lines.DEALT
        own = Lines.BY_SIZES if pays.varies else own
    if can_be_together(w, work, inner):
        legal.append(Lines.TOGETHER)
        worth += [Lines.TOGETHER] * are_long(w, inner)
        if far_apart(w, work, inner):
            own = Lines.TOGETHER
    lines = w.decisions.lines(own, legal, worth)
    if lines is Lines.BY_SIZES and pays is not None:
        lines = Lines.CHUNKED if pays.captured else Lines.DEALT
        w.decisions.by_sizes(lines, pays.test)
    if lines is not Lines.CHUNKED or group is None:
        return lines, None
    return lines, cut_lines(w.sizes, work.dealt, group)


# ---------------------------------------------------------------------------------- the estimate


@dataclass(frozen=True, slots=True)
class Pays:
    """Whether lines are worth being cut: a host variable that is 1 where they are."""

    test: Name
    captured: bool  # at the captured sizes
    chunks: int  # of a line there, at most
    varies: bool  # there are other sizes at which it is the other way


def _pays(
    w: Writer, work: Work, group: int, inner: Sequence[Value], stored: frozenset[int]
) -> Pays | None:
    """None where lines are worth being cut at no sizes."""
    sizes = replace(w.sizes, defined=w.estimates)  # names of its own: the kernel has none of them
    chunks, test = _test(w, sizes, work, group, inner, stored)
    now = {item.name: w.extent(frozenset({item.id})) for item in w.space.groups}
    few = {**dict.fromkeys(now, 1), w.space.groups[group].name: _LONG}
    outer = [item for item in sorted(work.dealt) if item not in inner[0].axes]
    many = dict.fromkeys(now, 1) | {w.space.groups[item].name: _LONG for item in outer[:1]}
    fixed = {item.name: now[item.name] for item in w.space.groups if isinstance(item.size, Const)}

    def value(expr: Expr, given: Mapping[str, int]) -> int:
        return int(evaluate(expr, {**given, **fixed}, w.estimates, w.chip))

    try:
        found = [bool(value(test, given)) for given in (now, few, many)]
    except LangError:  # times that the host cannot count in 64 bits
        return None
    if not any(found):
        return None
    name = sizes.new("chunked", Choice(test, ONE, ZERO))
    assert isinstance(name, Name)
    return Pays(name, found[0], value(chunks, now), len(set(found)) > 1)


def _test(
    w: Writer, sizes: Sizes, work: Work, group: int, inner: Sequence[Value], stored: frozenset[int]
) -> tuple[Expr, Expr]:
    """Chunks of a line, and whether lines in chunks take less time than whole ones."""
    levels = levels_of(w, inner)
    phases, scans = max(levels.values()), sum(value.op == "running" for value in inner)
    last = w.space.last
    whole = _job(last, sizes, work, group, phases + (group in stored), scans, _TILE)
    passes = _folds(w, levels) + (group in stored) or 1
    dealt = _job(last, sizes, work, group, passes, scans, _tile(last, sizes, work, group))
    parts = sum(phases + 1 - level for level in levels.values())
    chunks = sizes.new("most_chunks", _chunks(last, group, whole))
    join = times(Const(parts), _NUMBER if group == last else _COPY)
    some = largest(chunks, ONE)
    chunk = Job(
        sizes.new("most_pieces", times(whole.lines, some)), shares(whole.length, some),
        shares(whole.copies, some),
        sizes.new("piece_elements", shares(whole.elements, some)), whole.passes, scans,
    )  # fmt: skip
    waits = times(Const(phases), Const(round(WAIT * 1000) * _PARTS))
    cut = plus(plus(chunk.time(w.chip), waits), times(chunks, join))
    less, of = _LESS
    now = sizes.new("dealt_time", times(dealt.time(w.chip), less))
    pays = Binary(BinOp.LE, sizes.new("chunked_time", times(cut, of)), now)
    return chunks, Binary(BinOp.AND, Binary(BinOp.GT, chunks, ONE), pays)


def _folds(w: Writer, levels: Mapping[Value, int]) -> int:
    """Passes that fold where lines are dealt: some come in the pass of those that they need."""
    late = {value: find_dependent(w.space, value) for value in levels if value.op == "reduce"}
    rising = any(found is not None and found.form is Form.RAISED for found in late.values())
    own = {levels[value] for value, found in late.items() if found is None}
    return len(own) + rising * _RISING


def _common(w: Writer, work: Work, inner: Sequence[Value]) -> int | None:
    """The group that everything here is folded along: the last, else the longest.

    What a line comes to is one number, or a row of the last group; a scan starts anew there alone.
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
    if any(w.space.axes(value) - set(value.axes) - work.dealt for value in inner):
        return None
    return last if last in groups else max(groups, key=lambda item: w.extent(frozenset({item})))


def _tile(last: int, sizes: Sizes, work: Work, group: int) -> Expr:
    """Elements of a tile where lines are dealt as they are (host.Sizes.deal)."""
    if group == last or last not in work.dealt:
        return _TILE
    fair = largest(shares(_lines(sizes, work.dealt), _CORES), LEAST_TILE)
    return sizes.new("fair_tile", shares(fair, shares(fair, _TILE)))


def _lines(sizes: Sizes, groups: Iterable[int]) -> Expr:
    return product(sizes.size(group) for group in sorted(groups))


def _job(
    last: int, sizes: Sizes, work: Work, group: int, passes: int, scans: int, tile: Expr
) -> Job:
    length = sizes.size(group)
    if group == last:
        return Job(_lines(sizes, work.dealt), length, shares(length, tile), length, passes, scans)
    cols: Expr = sizes.size(last) if last in work.dealt else ONE
    tiles = shares(cols, tile)
    lines = sizes.new("line_tiles", times(_lines(sizes, work.dealt - {last}), tiles))
    elements = sizes.new("tile_elements", times(length, shares(cols, largest(tiles, ONE))))
    return Job(lines, length, length, elements, passes)


def _chunks(last: int, group: int, job: Job) -> Expr:
    """As many as cut_lines will make of a line."""
    few = LEAST_TILE if group == last else LEAST_ROWS
    return least(quotient(_CORES, largest(job.lines, ONE)), shares(job.length, few))
