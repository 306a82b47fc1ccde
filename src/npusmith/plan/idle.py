"""Whether fewer lines than cores are worth being cut into chunks: an estimate at captured sizes.

Cutting costs a wait of all cores for each phase, a scan reads its operand once more, and what the
chunks come to has to be joined. The sizes decide the schedule only: the program is right for all of
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npusmith.plan.cuts import LEAST_ROWS, Cut, cut_lines
from npusmith.plan.dag import Kind, Value
from npusmith.plan.host import LEAST_TILE
from npusmith.plan.late import Form, find_late
from npusmith.plan.passes import Work
from npusmith.plan.relay import FOLDS, levels_of
from npusmith.plan.together import far_apart
from npusmith.plan.writer import Writer
from npusmith.target.chips import Chip

_TILE = 8192  # elements of the longest tile
_ELEMENT = 4  # bytes
# Microseconds of one core, from times of the timing model for lines of 4K to 1M elements.
_COPY = 0.07  # a turn of a loop that loads one row or tile
_PASS = 35e-6  # an element of a pass
_SCAN = 140e-6  # ... that is scanned along the last axis
_RISING = 1  # passes that exponentials take longer in the pass that finds their maximum
_WAIT = 1.3  # all cores for each other
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


def idle(w: Writer, work: Work, inner: Sequence[Value], stored: frozenset[int]) -> Cut | None:
    """How to cut lines, or None where they keep cores busy. `stored`: what outputs run along."""
    group = _common(w, work, inner)
    if group is None:
        return None
    levels = levels_of(w, inner)
    phases = max(levels.values())
    along = int(group in stored)
    scans = sum(value.op == "running" for value in inner)
    dealt = _job(w, work, group, _folds(w, levels) + along or 1, scans, _tile(w, work, group))
    whole = _job(w, work, group, phases + along, scans, _TILE)
    chunks = _chunks(w, group, whole)
    if chunks < 2 or far_apart(w, work, inner):
        return None
    parts = sum(phases + 1 - level for level in levels.values())
    joins = parts * chunks * (_NUMBER if group == w.space.last else _COPY)
    chunk = Job(
        whole.lines * chunks, -(-whole.length // chunks), -(-whole.copies // chunks),
        -(-whole.elements // chunks), whole.passes, scans,
    )  # fmt: skip
    now = max(dealt.us(w.chip.vector_cores), dealt.floor(w.chip))
    cut = max(chunk.us(w.chip.vector_cores), chunk.floor(w.chip)) + phases * _WAIT + joins
    return cut_lines(w.sizes, work.dealt, group) if cut <= _LESS * now else None


def _folds(w: Writer, levels: Mapping[Value, int]) -> int:
    """Passes that fold where lines are dealt: some come in the pass of those that they need."""
    late = {value: find_late(w.space, value) for value in levels if value.op == "reduce"}
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
