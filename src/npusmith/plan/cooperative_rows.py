"""Rows that all cores do together, one after the other: for few rows, or rows longer than L2.

A row that is read several times (its mean, its variance, its result) is still in L2 when it is read
again if all cores work on that one row. A row for each core would be 48 of them: beyond L2 every
pass then goes to HBM, and 64 rows leave a third of the cores idle in the second turn. The price is
a combine across cores for each reduction of each row.
"""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.plan.block import Path
from npusmith.plan.dag import Value
from npusmith.plan.dependent_reductions import find_dependent
from npusmith.plan.loops import Body, close, over
from npusmith.plan.passes import Work
from npusmith.plan.size_regimes import FAR_APART
from npusmith.plan.writer import Writer

_ELEMENT = 4  # bytes
_IDLE = 1.25  # times longer than with all cores busy


def can_be_together(w: Writer, work: Work, inner: Sequence[Value]) -> bool:
    """Whether all cores can do one row after the other: all reductions go along the same groups."""
    reductions, along = _reduced(inner)
    if not reductions or len(reductions) < len(inner) or not work.dealt:
        return False
    if any(frozenset(value.axes) != along for value in reductions):
        return False
    return w.space.last not in work.dealt and w.space.last in along


def are_long(w: Writer, inner: Sequence[Value]) -> bool:
    """Whether captured rows are long enough that waits of all cores could be worth it."""
    return w.extent(_reduced(inner)[1]) >= FAR_APART // 8


def far_apart(w: Writer, work: Work, inner: Sequence[Value]) -> bool:
    """Whether rows of the captured sizes that can be done together are better done so.

    The sizes decide the schedule only: the program is right for all of them.
    """
    reductions, along = _reduced(inner)
    count, length = w.extent(work.dealt), w.extent(along)
    cores = w.chip.vector_cores
    waits = sum(find_dependent(w.space, value) is None for value in reductions)
    if length < FAR_APART * min(waits, 2) or not count:
        return False
    flight = 2 * min(count, cores) * length * _ELEMENT  # a row in and a row out of each core
    return flight > w.chip.l2_bytes or -(-count // cores) * cores > _IDLE * count


def _reduced(inner: Sequence[Value]) -> tuple[list[Value], frozenset[int]]:
    """Reductions, and the groups that they run along."""
    found = [value for value in inner if value.op == "reduce"]
    return found, frozenset(axis for value in found for axis in value.axes)


def rows(w: Writer, path: Path, groups: Sequence[int], body: Body) -> None:
    """Loops over the groups on every core, with `body` where all of them are open."""
    if not groups:
        body(path)
        return
    run = over(w, path, groups[0])
    run.block.together = True
    rows(w, (*path, run.block), groups[1:], body)
    close(path, run)
