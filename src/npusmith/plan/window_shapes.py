"""What windows in a tile take in: the axes that they move along, and room for it on chip."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Call,
    Const,
    Expr,
    ScalarFn,
)
from npusmith.plan.dag import Value
from npusmith.plan.host import TILE
from npusmith.plan.index import simple
from npusmith.plan.lane_space import Domain, Lanes
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    largest,
    least,
    minus,
    plus,
    product,
    quotient,
    times,
)

_BLOCK = Const(8)  # elements of 32 bytes
_WIDE = Const(16)  # ... of a narrow type


def clamped(start: Expr) -> Expr:
    """A place, or the first in the input."""
    if isinstance(start, Const):
        return Const(max(int(start.value), 0))
    return largest(start, ZERO)


@dataclass(frozen=True, slots=True)
class Along:
    """One axis of a tile, and the windows along it: of one element where it has none."""

    lane: int  # of the result
    held: int  # of what is pooled
    extent: Expr  # elements of the input along it
    start: Expr = ZERO  # where the first window starts
    size: int = 1
    stride: int = 1
    dilation: int = 1
    reaches: bool = False  # windows may reach out of the input
    rows: str = ""  # the scalar with as many places as the tile needs, where not all are held

    @property
    def span(self) -> int:
        return (self.size - 1) * self.dilation + 1

    def reach(self, count: Expr) -> Expr:
        """Places from the first to the last of so many windows."""
        if self.size == self.stride == 1:
            return count
        return plus(times(minus(count, ONE), Const(self.stride)), Const(self.span))

    @property
    def low(self) -> Expr:
        """The first place that is held."""
        if not self.rows:
            return ZERO
        return clamped(self.start) if self.reaches else self.start

    def stop(self, count: Expr) -> Expr:
        """Behind the last place that so many windows take in."""
        return least(simple(plus(self.start, self.reach(count))), self.extent)


@dataclass(frozen=True, slots=True)
class Outside:
    """A window along an axis outside of the tile: a loop."""

    group: int
    start: Expr
    extent: Expr
    size: int
    dilation: int
    reaches: bool

    @property
    def span(self) -> int:
        return (self.size - 1) * self.dilation + 1


class Rows(Enum):
    """How windows of rows are folded before those along a row."""

    NONE = "not: taps are gathered"
    EACH = "row by row"
    WHOLE = "all at once: every row starts a window"


@dataclass(frozen=True, slots=True)
class Shape:
    """The windows of one reduction."""

    along: tuple[Along, ...]  # all axes of the tile that it runs along
    outside: tuple[Outside, ...]
    rows: Rows = Rows.NONE

    @property
    def held(self) -> Domain:
        return tuple(item.held for item in self.along)

    @property
    def lanes(self) -> Domain:
        return tuple(item.lane for item in self.along)

    @property
    def reaches(self) -> bool:
        return any(item.reaches for item in self.along)


def made(w: Lanes, shape: Shape, text: str, operand: Value) -> Value:
    """The value of a reduction over windows."""
    inner = {item.group for item in shape.outside}
    axes = {0, *(w.space.axes(operand) - inner)}
    starts = (*(item.start for item in shape.along), *(item.start for item in shape.outside))
    for start in starts:
        axes |= w.groups(start)
    sizes = [n for item in shape.along for n in (item.held, item.size, item.stride, item.dilation)]
    sizes += [n for item in shape.outside for n in (item.size, item.dilation)]
    found = w.space.dag.make(
        "window", operand, text=text, axes=tuple(sorted(axes)), index=starts,
        parts=(*shape.lanes, *sizes),
    )  # fmt: skip
    w.windows[found] = shape
    return found


def reserve(w: Lanes, shape: Shape) -> None:
    """What the host has to test, and how high a tile may be."""
    first, rest, before = shape.along[0], shape.along[1:], len(w.needs)
    reaches = [item.reach(w.size(item.lane)) for item in rest]
    held = [w.size(item.held) for item in rest]
    for sizes, spare in ((held, ZERO), (reaches, Const(7))):
        if sizes:
            sizes[-1] = Call(ScalarFn.ALIGN_UP, (plus(sizes[-1], spare), _WIDE))
        each = product(sizes)
        room = quotient(TILE, largest(each, ONE))
        if not rest:
            room = minus(TILE, Const(16))
        if first.rows:
            more = quotient(minus(room, Const(first.span)), Const(first.stride))
            w.limits.append(plus(more, ONE))
            w.needs.append(Binary(BinOp.LE, Const(first.span), room))
        elif first.lane == 0:
            w.limits.append(room)
            w.needs.append(Binary(BinOp.LE, ONE, room))
        else:
            w.needs.append(Binary(BinOp.LE, first.reach(w.size(first.lane)), room))
            w.needs.append(Binary(BinOp.LE, w.size(first.held), room))
    inner = w.captured(item.held for item in rest)
    if not w.tiling.inner:  # any tile has room for a window
        del w.needs[before:]
    w.widest = max(w.widest, inner * (first.stride if first.lane == 0 else 1))
    last = shape.along[-1]
    if rest:
        w.needs.append(Binary(BinOp.LE, w.area(w.frame), TILE))
    if rest and needs_rows(shape) and (last.held,) not in w.padded:
        w.needs.append(Binary(BinOp.EQ, Binary(BinOp.MOD, w.size(last.held), _BLOCK), ZERO))


def needs_rows(shape: Shape) -> bool:
    """Whether rows have to begin at multiples of 32 bytes."""
    planes = any(item.size > 1 for item in shape.along[:-2])
    return len(shape.along) > 1 and (shape.rows is not Rows.NONE or shape.reaches or planes)
