"""Put what one vector instruction reads, and what it writes, into different banks of UB.

A repeat takes 8 of 16 bank groups. Two sources that start equally far into 512 B meet in all of
them, and a result meets the next repeat's sources where both are in one bank (docs/timing.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from npusmith.ir.branches import branches
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Buffer, For, Op, Program, View
from npusmith.ir.walk import Block, bodies
from npusmith.lower.double_buffer import MOST_BUFFERS, buffer_bytes, room_for_buffers
from npusmith.lower.rows import in_rows
from npusmith.lower.usage import read
from npusmith.target.chips import Chip
from npusmith.target.costs import values
from npusmith.target.intrinsics import INTRINSICS, Form, Operand

_ALL_GROUPS = 512  # doc: avoid bank conflicts (dav-2201): 16 groups with rows of 32 B
_BANK = 64 * 1024  # bytes
_TURNS = 8  # guess: how often a loop runs
_ROUNDS = 4  # of the search: it ends earlier where nothing more is gained

Buffers = tuple[Buffer, ...]
Sides = Mapping[str, int]  # of a buffer: 0 or 1, which half of the bank groups its start is in


@dataclass(frozen=True, slots=True)
class Meeting:
    """What is read and written at the same time, and the cycles of a repeat that meets."""

    dst: str
    sources: tuple[str, ...]
    bytes: int  # of the destination
    read_read: float
    write_read: float


def spread_banks(program: Program, chip: Chip) -> Program:
    """Order buffers, with a gap between them, by which of them instructions read together.

    before: `xt`, `yt`, `zt` of 16 KB, and `add(zt, xt, yt, n)`: both sources in one half
    after:  `xt`, `zt`, a gap of 256 B, `yt`: a repeat reads from all 16 groups at once

    Buffers stay as they are where nothing is gained, and where UB has no room for the gap.
    """
    kernel = program.kernel
    if kernel.is_cube:
        return program
    placed = {
        item.name: item
        for body, buffers in branches(program).versions()
        for item in _spread(body, buffers, chip)
    }
    return replace(program, kernels=(replace(kernel, buffers=tuple(placed.values())),))


def _spread(body: Block, buffers: Buffers, chip: Chip) -> Buffers:
    """The buffers of one version."""
    meetings = _meetings(body, buffers, chip)
    room = room_for_buffers(body, chip)
    best, least = buffers, _cost(buffers, meetings, chip)
    sides = _first_sides(meetings)
    for _ in range(_ROUNDS):
        before = least
        for tried in (sides, *(sides | {name: 1 - side} for name, side in sides.items())):
            ordered = _ordered(buffers, tried, chip)
            size = sum(item.gap + buffer_bytes(item, chip) * item.depth for item in ordered)
            if (
                size <= room
                and sum(item.depth + (item.gap > 0) for item in ordered) <= MOST_BUFFERS
            ):
                cost = _cost(ordered, meetings, chip)
                if cost < least:
                    best, least, sides = ordered, cost, dict(tried)
        if least == before:
            break
    return best


# ---------------------------------------------------------------------------------- instructions


def _meetings(body: Block, buffers: Sequence[Buffer], chip: Chip) -> dict[Meeting, float]:
    """With how many repeats, where all views begin equally far into their buffers.

    Rows of one length are taken to be whole 512 B, as those that are many instructions' operands.
    """
    known = {item.name: item for item in buffers}
    costs = values(chip)
    found: dict[Meeting, float] = {}
    for op, depth in _ops(body, 0):
        row = INTRINSICS[op.name]
        if row.library or row.form not in (Form.MAP, Form.ROWS):
            continue
        if len({view.offset for view in op.views}) > 1 and not in_rows(op):
            continue
        dst = known[_views(op, Operand.DST)[0].buffer]
        size = buffer_bytes(dst, chip)
        if size < _ALL_GROUPS:  # a single repeat
            continue
        masks = {view.buffer for view in _views(op, Operand.MASK)}
        sources = dict.fromkeys(view.buffer for view in read(op) if view.buffer not in masks)
        meeting = Meeting(dst.name, tuple(sources), size, *_cycles(costs, op.name, dst.dtype))
        found[meeting] = found.get(meeting, 0.0) + size / chip.repeat_bytes * _TURNS**depth
    return found


def _ops(block: Block, depth: int) -> Iterator[tuple[Op, int]]:
    for stmt in block:
        if isinstance(stmt, Op):
            yield stmt, depth
        for body in bodies(stmt):
            yield from _ops(body, depth + isinstance(stmt, For))


def _views(op: Op, kind: Operand) -> list[View]:
    kinds = INTRINSICS[op.name].views
    return [view for mine, view in zip(kinds, op.views, strict=True) if mine is kind]


def _cycles(costs: Mapping[str, float], name: str, dtype: DType) -> tuple[float, float]:
    """Of a repeat whose sources meet, and of one whose sources meet the result before."""

    def cost(kind: str) -> float:
        wide = f"{kind}.{name}.{32 if dtype.bytes > 2 else 16}"
        return costs.get(wide, costs.get(f"{kind}.{name}", costs[f"{kind}.other"]))

    return cost("conflict"), costs["bank.read_write"] if cost("vector") < 2 else 0.0


# ---------------------------------------------------------------------------------------- layouts


def _first_sides(meetings: Mapping[Meeting, float]) -> dict[str, int]:
    """Buffer by buffer, those of most instructions first: where less is that each is read with."""
    together: Counter[tuple[str, str]] = Counter()
    for meeting, weight in meetings.items():
        for one, two in combinations(meeting.sources, 2):
            together[one, two] += int(weight * meeting.read_read)
            together[two, one] += int(weight * meeting.read_read)
    total: Counter[str] = Counter()
    for (name, _), weight in together.items():
        total[name] += weight
    sides: dict[str, int] = {}
    for name, _ in total.most_common():
        met = [sum(together[name, other] for other in sides if sides[other] == s) for s in (0, 1)]
        sides[name] = int(met[0] > met[1])
    return sides


def _ordered(buffers: Sequence[Buffer], sides: Sides, chip: Chip) -> tuple[Buffer, ...]:
    """Both sides, and between them, for they should be far apart, what meets nothing."""
    order = sorted(buffers, key=lambda item: 2 * sides.get(item.name, 0.5))
    found: list[Buffer] = []
    at = 0
    for item in order:
        side = sides.get(item.name)
        gap = 0 if side is None else (side * _ALL_GROUPS // 2 - at) % _ALL_GROUPS
        found.append(replace(item, gap=gap))
        at += gap + buffer_bytes(item, chip) * item.depth
    return tuple(found)


def _cost(buffers: Sequence[Buffer], meetings: Mapping[Meeting, float], chip: Chip) -> float:
    """Cycles that are lost, as the timing model counts them (twin/timer/bank.cpp)."""
    starts: dict[str, tuple[int, int]] = {}
    at = 0
    for item in buffers:
        size = buffer_bytes(item, chip)
        at += item.gap
        starts[item.name] = (at, at + size * (item.depth - 1))
        at += size * item.depth
    return sum(
        weight * sum(_lost(meeting, {name: start[copy] for name, start in starts.items()})
                     for copy in (0, 1)) / 2
        for meeting, weight in meetings.items()
    )  # fmt: skip


def _lost(meeting: Meeting, starts: Mapping[str, int]) -> float:
    """Cycles of a repeat, on the average."""
    sources = [starts[name] for name in meeting.sources]
    pairs = sum(not _apart(one, two) for one, two in combinations(sources, 2))
    if pairs:
        return pairs * meeting.read_read
    into = starts[meeting.dst]
    met = [source for source in sources if not _apart(source + _ALL_GROUPS // 2, into)]
    places = (0, meeting.bytes // 2, meeting.bytes)
    banks = sum(
        any((source + at) // _BANK == (into + at) // _BANK for source in met) for at in places
    )
    return meeting.write_read * banks / len(places)


def _apart(one: int, two: int) -> bool:
    """Whether repeats that start there take different halves of the bank groups."""
    return (one - two) % _ALL_GROUPS == _ALL_GROUPS // 2
