"""How cores share the lines of a pass: dealt whole, cut into chunks, or all cores on one line.

Fewer lines than cores are worth being cut into chunks by an estimate at captured sizes.

Cutting costs a wait of all cores for each phase, a scan reads its operand once more, and what the
chunks come to has to be joined. The sizes decide the schedule only: the program is right for all of
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npusmith.plan.chunks import LEAST_ROWS, Cut, cut_lines
from npusmith.plan.cooperative_rows import are_long, can_be_together, far_apart
from npusmith.plan.dag import Kind, Value
from npusmith.plan.dependent_reductions import Form, find_dependent
from npusmith.plan.host import LEAST_TILE
from npusmith.plan.passes import Work
from npusmith.plan.schedule import Lines
from npusmith.plan.split_phases import FOLDS, levels_of
from npusmith.plan.writer import Writer
from npusmith.target.chips import Chip

_TILE = 8192  # elements of the longest tile
_ELEMENT = 4  # bytes
# Microseconds of one core, from times of the timing model for lines of 4K to 1M elements.
_COPY = 0.07  # a turn of a loop that loads one row or tile
_PASS = 35e-6  # an element of a pass
_SCAN = 140e-6  # ... that is scanned along the last axis
_RISING = 1  # passes that exponentials take longer in the pass that finds their maximum
WAIT = 1.3  # all cores for each other
_NUMBER = 0.014  # what a chunk comes to, when it is joined
_PUSHED = 1.5  # times longer, where results push lines out of L2
_LESS = 0.8  # of the time, at most, is worth another schedule


@dataclass(frozen=True, slots=True)
class Job:
    """Lines of the captured sizes, and what is done with each."""

    lines: int
    length: int  # along the group that is folded
    copies: int  # of a tile, or of a row of one
    elements: int  # of a line
    passes: int
    scans: int = 0  # passes that scan along the last axis

    def us(self, cores: int) -> float:
        """With the lines dealt to cores."""
        each = self.copies * _COPY + self.elements * _PASS
        line = self.passes * each + self.scans * self.elements * _SCAN
        return -(-self.lines // cores) * line

    def stays(self, chip: Chip) -> bool:
        """Whether L2 holds the lines, all of them, and results as long."""
        return 2 * self.lines * self.elements * _ELEMENT <= chip.l2_bytes

    def floor(self, chip: Chip) -> float:
        """What HBM takes: lines that do not stay in L2 are read again for every pass."""
        us = self.lines * self.elements * _ELEMENT / (1e3 * chip.hbm_gbps)
        return us if self.stays(chip) else (self.passes + 1) * us * _PUSHED


def share_lines(
    w: Writer, work: Work, inner: Sequence[Value], stored: frozenset[int]
) -> tuple[Lines, Cut | None]:
    """How cores share the lines of a pass, and how these are cut, where they are.

    `stored`: groups that outputs run along.
    """
    group = _common(w, work, inner)
    levels = levels_of(w, inner) if group is not None else {}
    job = None if group is None else _whole(w, work, group, inner, levels, stored)
    chunks = 0 if group is None or job is None else _chunks(w, group, job)
    legal, worth, own = [Lines.DEALT], [Lines.DEALT], Lines.DEALT
    if group is not None and job is not None and chunks > 1:
        legal.append(Lines.CHUNKED)
        worth.append(Lines.CHUNKED)
        if _pays(w, work, group, job, chunks, levels, stored):
            own = Lines.CHUNKED
    if can_be_together(w, work, inner):
        legal.append(Lines.TOGETHER)
        worth += [Lines.TOGETHER] * are_long(w, inner)
        if far_apart(w, work, inner):
            own = Lines.TOGETHER
    lines = w.decisions.lines(own, legal, worth)
    if lines is not Lines.CHUNKED or group is None:
        return lines, None
    return lines, cut_lines(w.sizes, work.dealt, group)


def _whole(
    w: Writer,
    work: Work,
    group: int,
    inner: Sequence[Value],
    levels: Mapping[Value, int],
    stored: frozenset[int],
) -> Job:
    """The lines as they are."""
    scans = sum(value.op == "running" for value in inner)
    return _job(w, work, group, max(levels.values()) + (group in stored), scans, _TILE)


def _pays(
    w: Writer,
    work: Work,
    group: int,
    whole: Job,
    chunks: int,
    levels: Mapping[Value, int],
    stored: frozenset[int],
) -> bool:
    """Whether lines in chunks take less time than whole ones."""
    phases, scans = max(levels.values()), whole.scans
    passes = _folds(w, levels) + (group in stored) or 1
    dealt = _job(w, work, group, passes, scans, _tile(w, work, group))
    parts = sum(phases + 1 - level for level in levels.values())
    joins = parts * chunks * (_NUMBER if group == w.space.last else _COPY)
    chunk = Job(
        whole.lines * chunks, -(-whole.length // chunks), -(-whole.copies // chunks),
        -(-whole.elements // chunks), whole.passes, scans,
    )  # fmt: skip
    now = max(dealt.us(w.chip.vector_cores), dealt.floor(w.chip))
    cut = max(chunk.us(w.chip.vector_cores), chunk.floor(w.chip)) + phases * WAIT + joins
    return cut <= _LESS * now


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


def _tile(w: Writer, work: Work, group: int) -> int:
    """Elements of a tile where lines are dealt as they are (host.Sizes.deal)."""
    last = w.space.last
    if group == last or last not in work.dealt:
        return _TILE
    if not w.extent(work.dealt):
        return _TILE
    fair = max(-(-w.extent(work.dealt) // w.chip.vector_cores), int(LEAST_TILE.value))
    return -(-fair // -(-fair // _TILE))


def _job(w: Writer, work: Work, group: int, passes: int, scans: int, tile: int) -> Job:
    last, length = w.space.last, w.extent(frozenset({group}))
    if group == last:
        lines = w.extent(work.dealt)
        return Job(lines, length, -(-length // tile), length, passes, scans)
    cols = w.extent(frozenset({last})) if last in work.dealt else 1
    tiles = -(-cols // tile)
    lines = w.extent(work.dealt - {last}) * tiles
    return Job(lines, length, length, length * -(-cols // max(tiles, 1)), passes)


def _chunks(w: Writer, group: int, job: Job) -> int:
    """As many as cut_lines will make of a line."""
    least = LEAST_TILE if group == w.space.last else LEAST_ROWS
    if not job.elements or not job.lines:
        return 0
    return min(w.chip.vector_cores // job.lines, -(-job.length // int(least.value)))
