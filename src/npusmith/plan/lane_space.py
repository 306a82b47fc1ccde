"""What is known while a kernel over index maps is being written: tiles, and where values are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Call, Const, Expr, Name, ScalarFn
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom, Dims
from npusmith.plan.block import Part, Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.host import TILE
from npusmith.plan.index import replaced
from npusmith.plan.passes import ensure
from npusmith.plan.read import Meaning
from npusmith.plan.reader import ELEMENT
from npusmith.plan.scalars import ONE, floating, largest, product, quotient
from npusmith.plan.space import Space, axes_of
from npusmith.plan.writer import Writer

OUTSIDE = "o_"  # first letters of names: index along an axis outside of the tile
BLOCK, TURN = -2, 1  # groups: where along the cut axis a tile stands, and the tile
LANE, LOOP = "~", "%"  # first letters of names: index along an axis of the tile, or of a loop


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of an output: its size, and what stands for the index along it."""

    size: Expr
    captured: int
    name: str


@dataclass(frozen=True, slots=True)
class Tiling:
    """How one output is cut: axes outside of the tile, the one that is cut, axes inside.

    `kept`: axes of values that are held on chip and read at other places; no output has them.
    """

    outer: tuple[Axis, ...]
    cut: Axis
    inner: tuple[Axis, ...]
    kept: tuple[Axis, ...] = ()

    @property
    def lanes(self) -> tuple[Axis, ...]:
        return (self.cut, *self.inner, *self.kept)


Domain = tuple[int, ...]  # the axes of a tile that a value runs along, by their places in it
_MOST_SHARE = 4  # of a tile: a quarter of it is whole repeats of a comparison


class LaneSpace(Space):
    """Groups: 0 are the lanes of a tile, 1 is the tile itself, the rest are loops inside it."""

    def rule(self, value: Value) -> frozenset[int]:
        if value.op in ("fetch", "place"):
            return frozenset(value.axes)
        if value.op in ("fill", "broadcast"):
            return self.axes(value.args[0]) | {0}
        if value.op == "taken":
            return self.axes(value.args[0]) | frozenset(value.axes)
        return axes_of(self, value)


@dataclass(slots=True)
class Lanes(Writer):
    """A writer whose wide buffers hold the elements of a tile, along all of its axes or some."""

    meaning: Meaning = None  # type: ignore[assignment]
    known: dict[Atom, Expr] = field(default_factory=dict)
    layouts: dict[str, Dims] = field(default_factory=dict)
    rows: list[tuple[Atom, ...]] = field(default_factory=list)  # axes of each output
    tiling: Tiling = None  # type: ignore[assignment]
    loops: dict[Atom, int] = field(default_factory=dict)  # groups of axes that are reduced
    done: dict[tuple[Value, frozenset[tuple[int, Expr]]], Value] = field(default_factory=dict)
    free: dict[Value, frozenset[Atom]] = field(default_factory=dict)
    elements: list[Value] = field(default_factory=list)  # of index tensors, resolved
    tables: dict[object, str] = field(default_factory=dict)
    block: int = TURN  # where the range of the cut axis is known
    most: int = 1  # elements of the axes inside the one that is cut
    height: Expr = ONE  # most indices of the cut axis in a tile
    room: Expr = TILE  # most lanes
    limits: list[Expr] = field(default_factory=list)  # ... has to be at most these
    needs: list[Expr] = field(default_factory=list)  # conditions of the host for such a tile
    types: dict[str, DType] = field(default_factory=dict)  # of workspace tensors
    shapes: dict[Atom, Expr] = field(default_factory=dict)  # sizes over input shapes
    domains: dict[Value, Domain] = field(default_factory=dict)
    kept: dict[Atom, int] = field(default_factory=dict)  # axes of kept values: their lanes
    together: dict[Any, list[Value]] = field(default_factory=dict)  # reads that share a copy
    now: Domain = ()  # what is being computed runs along these

    # ---- axes of a tile

    @property
    def frame(self) -> Domain:
        """All axes of the tile."""
        return tuple(range(1 + len(self.tiling.inner)))

    @contextmanager
    def among(self, domain: Domain) -> Iterator[None]:
        """Counts, offsets and buffers are those of this domain."""
        before, self.now = self.now, domain
        try:
            yield
        finally:
            self.now = before

    def along(self, value: Value) -> AbstractContextManager[None]:
        return self.among(self.domain(value) or self.frame)

    def domain(self, value: Value) -> Domain:
        """The axes of the tile that a value runs along."""
        if value not in self.domains:
            self.domains[value] = tuple(sorted(self._domain(value)))
        return self.domains[value]

    def _domain(self, value: Value) -> set[int]:
        if value.op in ("broadcast", "fill"):
            return set(value.parts)
        if value.op == "reduce":
            return set(self.frame) if self.space.wide(value) else set()
        found: set[int] = set().union(*(self.spread(expr) for expr in value.index))
        if value.op != "taken":
            found |= {lane for arg in value.args for lane in self.domain(arg)}
        return found

    def spread(self, expr: Expr) -> set[int]:
        """The axes of the tile that an index expression differs along."""
        found: set[int] = set()
        for name in names(expr):
            if name.startswith(LANE):
                found.add(int(name[1:]))
            if name.startswith(ELEMENT):
                found |= set(self.domain(self.elements[int(name[1:])]))
        return found

    def groups(self, expr: Expr) -> frozenset[int]:
        """Where an index expression has to be worked out."""
        found: set[int] = set()
        for name in names(expr):
            if name.startswith(LANE):
                found.add(0)
            elif name.startswith(LOOP):
                found.add(int(name[1:]))
            elif name.startswith(ELEMENT):
                found |= self.space.axes(self.elements[int(name[1:])])
            elif name.startswith(OUTSIDE):
                found.add(TURN)
            elif name == "b_from":
                found.add(self.block)
        return frozenset(found)

    def size(self, lane: int) -> Expr:
        return self.tiling.lanes[lane].size

    def extents(self, path: Path) -> list[Expr]:
        """Indices along each axis that is computed along."""
        tile = any(self.block in block.opened for block in path)
        cut: Expr = Name("m") if tile else self.height
        return [cut if lane == 0 else self.size(lane) for lane in self.now]

    def depth(self, lane: int, domain: Domain | None = None) -> Expr:
        """Elements from one index of an axis to the next."""
        own = self.now if domain is None else domain
        return product(self.size(other) for other in own if other > lane)

    def captured(self, lanes: Iterable[int]) -> int:
        return math.prod(self.tiling.lanes[lane].captured for lane in lanes)

    def count(self, path: Path, wide: bool) -> Expr:
        if not wide:
            return ONE
        if self.now == self.frame and any(self.block in block.opened for block in path):
            return Name("n")
        return product(self.extents(path))

    def temp(
        self, dtype: DType, wide: bool, part: Part = Part.SCRATCH, hint: str = "",
        mask: bool = False, lanes: int = 0,
    ) -> str:  # fmt: skip
        name = Writer.temp(self, dtype, wide, part, hint, mask, lanes)
        if wide and self.now != self.frame and not mask:
            self.temps[name] = replace(self.temps[name], share=self._share())
        return name

    def _share(self) -> int:
        """Which part of a tile is enough for what runs along some of its axes."""
        inner = [lane for lane in self.now if lane]
        ratio = self.captured(self.frame[1:]) // max(self.captured(inner), 1)
        share = min(1 << max(ratio.bit_length() - 1, 0), _MOST_SHARE)
        if share > 1:
            room = quotient(TILE, Const(share))
            own = product(self.size(lane) for lane in inner)
            if 0 in self.now:
                self.limits.append(quotient(room, largest(own, ONE)))
            if inner:
                self.needs.append(Binary(BinOp.LE, own, room))
        return share

    # ---- operands

    def is_number(self, value: Value, wide: bool) -> bool:
        if value.op == "place" and not self.space.wide(value):
            return True
        return Writer.is_number(self, value, wide)

    def vector(self, path: Path, value: Value, wide: bool) -> str:
        with self.among(self.frame):  # a number fills a whole tile
            return Writer.vector(self, path, value, wide)

    def number(self, path: Path, value: Value) -> Expr:
        if value.op == "place":
            self.ready(path, value.index[0])
            return floating(self.scalar(path, value.index[0]))
        return Writer.number(self, path, value)

    def element(self, value: Value) -> Expr:
        """The name of an index tensor's element in index expressions."""
        if value not in self.elements:
            self.elements.append(value)
        return Name(f"{ELEMENT}{self.elements.index(value)}")

    def ready(self, path: Path, expr: Expr) -> None:
        """Make the elements of index tensors available that an expression reads."""
        found = [self.elements[int(n[1:])] for n in names(expr) if n.startswith(ELEMENT)]
        if found:
            with self.among(self.frame):
                ensure(self, path, list(dict.fromkeys(found)))

    def scalar(self, path: Path, expr: Expr) -> Expr:
        """An index expression that is the same for all lanes."""

        def new(name: str) -> Expr | None:
            if name.startswith(LOOP):
                return self.index(path, int(name[1:]))
            if name.startswith(ELEMENT):
                value = self.elements[int(name[1:])]
                found = self.number(path, value)
                return Call(ScalarFn.INT, (found,)) if value.kind is Kind.FLOAT else found
            return None

        return replaced(expr, new)
