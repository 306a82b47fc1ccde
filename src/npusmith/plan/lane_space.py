"""What is known while a kernel over index maps is being written: tiles, and where values are."""

from __future__ import annotations

from dataclasses import dataclass, field

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Call,
    Expr,
    ScalarFn,
)
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom, Dims
from npusmith.plan.block import Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.index import (
    replaced,
)
from npusmith.plan.passes import ensure
from npusmith.plan.read import Meaning
from npusmith.plan.reader import ELEMENT
from npusmith.plan.scalars import (
    floating,
    product,
)
from npusmith.plan.space import Space
from npusmith.plan.writer import Writer

OUTSIDE = ("o_", "b_from")  # names of indices that a tile has
LANE, LOOP = "~", "%"  # first letters of names: index along an axis of the tile, or of a loop


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of an output: its size, and what stands for the index along it."""

    size: Expr
    captured: int
    name: str


@dataclass(frozen=True, slots=True)
class Tiling:
    """How one output is cut: axes outside of the tile, the one that is cut, axes inside."""

    outer: tuple[Axis, ...]
    cut: Axis
    inner: tuple[Axis, ...]

    @property
    def lanes(self) -> tuple[Axis, ...]:
        return (self.cut, *self.inner)

    def depth(self, number: int) -> Expr:
        """Elements of the tile from one index of a lane axis to the next."""
        return product(axis.size for axis in self.lanes[number + 1 :])


class LaneSpace(Space):
    """Groups: 0 are the lanes of a tile, 1 is the tile itself, the rest are loops inside it."""

    def axes(self, value: Value) -> frozenset[int]:
        if value not in self.cache:
            self.cache[value] = self._axes(value)
        return self.cache[value]

    def _axes(self, value: Value) -> frozenset[int]:
        if value.op in ("fetch", "place"):
            return frozenset(value.axes)
        if value.op in ("const", "count"):
            return frozenset()
        union: frozenset[int] = frozenset().union(*(self.axes(arg) for arg in value.args))
        if value.op == "fill":
            return union | {0}
        return union - frozenset(value.axes) if value.op == "reduce" else union


@dataclass(slots=True)
class Lanes(Writer):
    """A writer whose wide buffers hold the elements of a tile."""

    meaning: Meaning = None  # type: ignore[assignment]
    known: dict[Atom, Expr] = field(default_factory=dict)
    layouts: dict[str, Dims] = field(default_factory=dict)
    rows: list[tuple[Atom, ...]] = field(default_factory=list)
    tiling: Tiling = None  # type: ignore[assignment]
    loops: dict[Atom, int] = field(default_factory=dict)  # groups of axes that are reduced
    done: dict[tuple[Value, frozenset[tuple[int, Expr]]], Value] = field(default_factory=dict)
    free: dict[Value, frozenset[Atom]] = field(default_factory=dict)
    elements: list[Value] = field(default_factory=list)  # of index tensors, resolved
    tables: dict[object, str] = field(default_factory=dict)
    vectors: dict[tuple[int, Expr], str] = field(default_factory=dict)
    most: int = 1  # elements of the axes inside the one that is cut
    limits: list[Expr] = field(default_factory=list)  # most indices of the cut axis in a tile
    types: dict[str, DType] = field(default_factory=dict)  # of workspace tensors
    shapes: dict[Atom, Expr] = field(default_factory=dict)  # sizes over input shapes

    def is_number(self, value: Value, wide: bool) -> bool:
        if value.op in ("const", "count"):
            return True
        if value.op == "place" and not self.space.wide(value):
            return True
        return wide and not self.space.wide(value)

    def number(self, path: Path, value: Value) -> Expr:
        if value.op == "place":
            self.ready(path, value.index[0])
            return floating(self.scalar(path, value.index[0]))
        return Writer.number(self, path, value)

    def ready(self, path: Path, expr: Expr) -> None:
        """Make the elements of index tensors available that an expression reads."""
        found = [self.elements[int(n[1:])] for n in names(expr) if n.startswith(ELEMENT)]
        if found:
            ensure(self, path, list(dict.fromkeys(found)))

    def scalar(self, path: Path, expr: Expr) -> Expr:
        """An index expression that is the same for all lanes."""

        def new(name: str) -> Expr | None:
            if name.startswith(LOOP):
                return self.index(path, int(name[1:]))
            if name.startswith(ELEMENT):
                value = self.elements[int(name[1:])]
                found = self.number(path, value)
                return found if value.kind is Kind.INT else Call(ScalarFn.INT, (found,))
            return None

        return replaced(expr, new)
