"""What is known while a kernel over index maps is being written: tiles, and where values are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Call, Const, Expr, Name, ScalarFn
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom, Dims
from npusmith.plan.block import Part, Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.host import TILE
from npusmith.plan.index import replaced
from npusmith.plan.pack import Tiles
from npusmith.plan.passes import ensure
from npusmith.plan.product_blocks import ProductBlock
from npusmith.plan.read import Meaning
from npusmith.plan.reader import ELEMENT
from npusmith.plan.scalars import ONE, ZERO, floating, largest, product, quotient, times
from npusmith.plan.space import Space, axes_of
from npusmith.plan.writer import Writer, dtype_of, op

OUTSIDE = "o_"  # first letters of names: index along an axis outside of the tile
# Groups: where along the cut axis a tile stands, what all tiles of an output share, and the tile.
BLOCK, SHARED, TURN = -2, -1, 1
LANE, LOOP = "~", "%"  # first letters of names: index along an axis of the tile, or of a loop


class Split(Enum):
    """Along which axes loops are split where positions are compared."""

    NOWHERE = "nowhere"
    OUTSIDE = "outside of tiles"
    ANYWHERE = "anywhere"


@dataclass(slots=True)
class Splits:
    """Where loops may be split, and what was found: by elements of the axes inside the cut one."""

    where: Split = Split.NOWHERE
    tried: set[int] = field(default_factory=set)
    outside: set[int] = field(default_factory=set)  # places were found outside of tiles
    inside: set[int] = field(default_factory=set)
    made: bool = False  # a loop was split


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of an output: its size, and what stands for the index along it.

    Of a part of an axis (index_sets.py) also where it begins, and the size of the whole.
    """

    size: Expr
    captured: int
    name: str
    part: str = ""  # the scalar with as many indices as a tile holds, where not all
    first: Expr = ZERO
    whole: Expr | None = None


@dataclass(frozen=True, slots=True)
class Tiling:
    """How one output is cut: axes outside of the tile, the one that is cut, axes inside.

    `kept`: axes of values that are held on chip and read at other places; no output has them.
    A block of two axes (transposed_tiles.py) says where all axes of the output stand, where it
    begins in the output, how many elements its rows are apart there, and of how many indices of
    the axis that is cut it should be a multiple.
    """

    outer: tuple[Axis, ...]
    cut: Axis
    inner: tuple[Axis, ...]
    kept: tuple[Axis, ...] = ()
    indices: tuple[Expr, ...] = ()
    start: Expr = ONE
    pitch: Expr = ONE
    unit: int = 1

    @property
    def lanes(self) -> tuple[Axis, ...]:
        return (self.cut, *self.inner, *self.kept)

    @property
    def turned(self) -> bool:
        """Whether it is a block of two axes that stand in another order in an input."""
        return bool(self.indices) and self.pitch != ONE

    @property
    def parts(self) -> bool:
        """Whether it is a part of some axes."""
        return any(axis.whole is not None for axis in (*self.outer, self.cut, *self.inner))


Domain = tuple[int, ...]  # the axes of a tile that a value runs along, by their places in it
_SHORT = 256  # elements of a row of which any tile has room for a few
_FEW = 64  # elements that need no tile
SHORTEST = 256  # elements of the shortest tile
MOST_SHARE = 16  # of a tile


def elements_of(value: Value, elements: Sequence[Value]) -> list[Value]:
    """The elements of index tensors that a value's index expressions name."""
    found = [name for expr in value.index for name in names(expr) if name.startswith(ELEMENT)]
    return [elements[int(name[1:])] for name in found]


def dependencies(roots: Iterable[Value], elements: Sequence[Value]) -> list[Value]:
    """Every value that the roots depend on, elements of index tensors among them."""
    seen: dict[Value, None] = {}
    stack = list(roots)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen[value] = None
            stack += [*value.args, *elements_of(value, elements)]
    return list(seen)


@dataclass(frozen=True, slots=True)
class RowForm:
    """How a tile holds rows that are put in order."""

    even: bool = False  # they are whole blocks of 32 bytes
    doubled: bool = True  # there is room for two of every buffer that is loaded or stored
    rows: int = 1  # as captured, that a tile has room for at least


WHOLE = RowForm()


class LaneSpace(Space):
    """Groups: 0 are the lanes of a tile, 1 is the tile itself, the rest are loops inside it."""

    def rule(self, value: Value) -> frozenset[int]:
        if value.op in ("fetch", "place", "fold", "contract", "window", "order"):
            return frozenset(value.axes)
        if value.op in ("fill", "broadcast"):
            return self.axes(value.args[0]) | {0}
        if value.op == "taken":
            return (self.axes(value.args[0]) - {0}) | frozenset(value.axes)
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
    values: int = 0  # that outputs are made of, before any is read at several places
    free: dict[Value, frozenset[Atom]] = field(default_factory=dict)
    folded: dict[Expr, Expr] = field(default_factory=dict)  # index expressions of this tiling
    least: dict[Expr, bool] = field(default_factory=dict)  # ... and whether they are at least 0
    expanded: dict[Expr, Expr] = field(default_factory=dict)  # sizes over the shapes of inputs
    elements: list[Value] = field(default_factory=list)  # of index tensors, resolved
    tables: dict[object, str] = field(default_factory=dict)
    block: int = TURN  # where the range of the cut axis is known
    alone: bool = False  # another program serves the sizes that this one does not
    part: bool = False  # a tile is a part of a row: for sizes that are unlike the captured ones
    splits: Splits = field(default_factory=Splits)  # of loops: index_sets.py
    most: int = 1  # elements of the axes inside the one that is cut
    height: Expr = ONE  # most indices of the cut axis in a tile
    room: Expr = TILE  # most lanes
    limits: list[Expr] = field(default_factory=list)  # ... has to be at most these
    unit: int = 1  # ... is best a multiple of, where that is what limits it: whole blocks of a row
    needs: list[Expr] = field(default_factory=list)  # conditions of the host for such a tile
    types: dict[str, DType] = field(default_factory=dict)  # of workspace tensors
    shapes: dict[Atom, Expr] = field(default_factory=dict)  # sizes over input shapes
    domains: dict[Value, Domain] = field(default_factory=dict)
    kept: dict[tuple[object, Atom], int] = field(default_factory=dict)  # lanes of kept values' axes
    padded: list[Domain] = field(default_factory=list)  # rows: each begins at multiples of 32 bytes
    whole: bool = False  # buffers are for a tile
    flat: bool = False  # ... but not now: as they stand in the output
    widest: int = 1  # elements along the longest domain for each index of the axis that is cut
    numbers: dict[Value, Value] = field(default_factory=dict)  # of all elements: known by now
    together: dict[Any, list[Value]] = field(default_factory=dict)  # reads that share a copy
    in_order: bool = False  # rows are put in order: some outputs take tiles of whole rows only
    form: RowForm = field(default_factory=RowForm)  # of these rows
    whole_rows: list[Expr] = field(default_factory=list)  # tests that a tile has room for these
    fits: list[Expr] = field(default_factory=list)  # tests of outputs whose inner axes are short
    parts: dict[str, Expr] = field(default_factory=dict)  # indices that a tile holds of some axes
    apart: bool = False  # long rows that lie apart are copied by themselves (strided_rows.py)
    windows: dict[Value, Any] = field(default_factory=dict)  # their shapes (window_shapes.py)
    near: dict[object, set[int]] = field(default_factory=dict)  # places of reads that share one
    tiles: Tiles = field(default_factory=Tiles)  # to choose from
    now: Domain = ()  # what is being computed runs along these
    interleaved: bool = False  # the cut axis is innermost on chip (interleaved_tiles.py)
    handed: ProductBlock | None = None  # the block of a product that tiles are of
    filled: bool = False  # ... whose rows are filled up to multiples of 32 bytes

    # ---- axes of a tile

    @property
    def frame(self) -> Domain:
        """All axes of the tile, in their order on chip."""
        return self.ordered(range(1 + len(self.tiling.inner)))

    def ordered(self, lanes: Iterable[int]) -> Domain:
        """Axes in their order on chip."""
        return tuple(sorted(lanes))

    @contextmanager
    def among(self, domain: Domain) -> Iterator[None]:
        """Counts, offsets and buffers are those of this domain."""
        before, self.now = self.now, domain
        try:
            yield
        finally:
            self.now = before

    @contextmanager
    def whole_tile(self) -> Iterator[None]:
        """Buffers have room for a tile, whatever is computed."""
        before, self.whole = self.whole, True
        try:
            yield
        finally:
            self.whole = before

    def along(self, value: Value) -> AbstractContextManager[None]:
        return self.among(self.domain(value) or self.frame)

    def domain(self, value: Value) -> Domain:
        """The axes of the tile that a value runs along."""
        if value not in self.domains:
            self.domains[value] = self.ordered(self._domain(value))
        return self.domains[value]

    def _domain(self, value: Value) -> set[int]:
        if value.op in ("broadcast", "fill"):
            return set(value.parts)
        if value.op == "reduce":
            return set(self.frame) if self.space.wide(value) else set()
        if value.op in ("fold", "contract"):
            return {lane for arg in value.args for lane in self.domain(arg)} - set(value.parts)
        if value.op == "window":
            return set(self.windows[value].lanes)
        if value.op == "order":
            return {*self.domain(value.args[0]), *value.parts}
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
        parts = [self.tiling.lanes[lane].part if tile else "" for lane in self.now]
        return [
            cut if lane == 0 else Name(part) if part else self.size(lane)
            for lane, part in zip(self.now, parts, strict=True)
        ]

    def tail(self, domain: Domain) -> Domain:
        """The axes of padded rows that a domain ends with."""
        if self.flat:
            return ()
        return next((r for r in self.padded if r == domain[-len(r) :] and len(r) < len(domain)), ())

    def pitch(self, rows: Domain) -> Expr:
        """Elements from one padded row to the next."""
        return Call(ScalarFn.ALIGN_UP, (product(self.size(lane) for lane in rows), Const(8)))

    def depth(self, lane: int, domain: Domain | None = None) -> Expr:
        """Elements from one index of an axis to the next."""
        own = self.now if domain is None else domain
        rows = self.tail(own)
        if lane in rows:
            rows = ()
        below = product(self.size(other) for other in own if other > lane and other not in rows)
        return times(below, self.pitch(rows)) if rows else below

    def packed(self, lane: int) -> Expr:
        """The same where no row is padded."""
        return product(self.size(other) for other in self.now if other > lane)

    @contextmanager
    def unpadded(self) -> Iterator[None]:
        """Elements stand as they do in the output."""
        self.flat = True
        try:
            yield
        finally:
            self.flat = False

    def area(self, domain: Domain) -> Expr:
        """Elements of a domain, for one index of the axis that is cut."""
        first = next((lane for lane in domain if lane), None)
        if first is None:
            return ONE
        if 0 in domain:
            return self.depth(0, domain)
        return times(self.size(first), self.depth(first, domain))

    def captured(self, lanes: Iterable[int]) -> int:
        return math.prod(self.tiling.lanes[lane].captured for lane in lanes)

    def count(self, path: Path, wide: bool) -> Expr:
        if not wide:
            return ONE
        tile = any(self.block in block.opened for block in path)
        if self.now == self.frame and tile and not (self.flat and self.padded):
            return Name("n")
        rows, extents = self.tail(self.now), self.extents(path)
        if not rows:
            return product(extents)
        return times(product(extents[: len(extents) - len(rows)]), self.pitch(rows))

    def temp(
        self, dtype: DType, wide: bool, part: Part = Part.SCRATCH, hint: str = "",
        mask: bool = False, lanes: int = 0,
    ) -> str:  # fmt: skip
        name = Writer.temp(self, dtype, wide, part, hint, mask, lanes)
        if wide and not mask and not self.whole:
            self.temps[name] = replace(self.temps[name], share=self._share())
        return name

    def _share(self) -> int:
        """Which part of a tile is enough for what runs along some of its axes."""
        inner = [lane for lane in self.now if lane]
        held = max(self.captured(inner), 1)
        ratio = max(self.captured(self.frame[1:]), self.widest) // held
        if 0 not in self.now and held <= _SHORT:
            ratio *= 4  # a tile has several indices of the axis that is cut
        if self.tiling.cut.captured * held <= _FEW:
            ratio = MOST_SHARE
        numbers = all(isinstance(self.size(lane), Const) for lane in inner)
        if self.in_order and not numbers:  # there is no other program for longer rows
            return 1
        ratio = min(ratio, (SHORTEST if numbers else _SHORT * 4) // self.held_captured())
        share = min(1 << max(ratio.bit_length() - 1, 0), MOST_SHARE)
        if share > 1:
            room, own = quotient(TILE, Const(share)), self.area(self.now)
            if 0 in self.now:
                self.limits.append(quotient(room, largest(own, ONE)))
            if inner:
                self.needs.append(Binary(BinOp.LE, own, room))
        return share

    def held_captured(self) -> int:
        """Elements for each index of the axis that is cut, as captured, rows as they stand."""
        rows = self.tail(self.now)
        head = [lane for lane in self.now if lane and lane not in rows]
        return max(self.captured(head) * (-(-self.captured(rows) // 8) * 8 if rows else 1), 1)

    # ---- operands

    def is_number(self, value: Value, wide: bool) -> bool:
        if value.op == "place" and not self.space.wide(value):
            return True
        return Writer.is_number(self, value, wide)

    def vector(self, path: Path, value: Value, wide: bool) -> str:
        if not wide or not self.is_number(value, wide):
            return Writer.vector(self, path, value, wide)
        block = path[self.home(path, value)]
        key = value, self.now
        if key not in block.spread:
            number = self.number(path, value)
            buffer = self.temp(dtype_of(value), True)
            whole = quotient(TILE, Const(self.temps[buffer].share))
            block.items.append(op("duplicate", (buffer,), (number,), whole))
            block.spread[key] = buffer
        return block.spread[key]

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
