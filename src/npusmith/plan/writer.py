"""What is known while a kernel is being written: buffers, and where values are."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from npusmith.errors import PlanError
from npusmith.ir import nodes as ir
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Assign, Const, Expr, Name, Negate, Op, View
from npusmith.lang.extents import extent
from npusmith.plan.block import Block, Part, Path, Temp
from npusmith.plan.dag import Kind, Value
from npusmith.plan.decisions import Decisions
from npusmith.plan.host import TILE, Sizes
from npusmith.plan.scalars import ONE, ZERO, floating, largest, minus, plus, product, times
from npusmith.plan.space import Space
from npusmith.target.chips import Chip

_INF = Const(math.inf)

# Loop variables by the name of the group's size.
_SINGULAR = {"rows": "row", "cols": "col", "size": "i", "batch": "b"}


Rule = Callable[[Any, Path, Value], None]


@dataclass(slots=True)
class Writer:
    """The kernel under construction."""

    space: Space
    sizes: Sizes
    chip: Chip
    temps: dict[str, Temp] = field(default_factory=dict)
    stored: dict[Value, str] = field(default_factory=dict)  # buffers that a value goes straight to
    tensors: dict[str, str] = field(default_factory=dict)  # graph names -> kernel names
    names: list[str] = field(default_factory=list)  # scalars read from buffers
    rules: dict[str, Rule] = field(default_factory=dict)  # of its own
    decisions: Decisions = field(default_factory=Decisions)
    estimates: dict[str, Expr] = field(default_factory=dict)  # host variables that compare versions

    def extent(self, groups: frozenset[int]) -> int:
        """Elements along these groups at the captured sizes."""
        shapes = {item.name: item.item.shape for item in self.space.inputs}
        return math.prod(extent(self.space.groups[group].size, shapes) for group in groups)

    @property
    def row_size(self) -> int:
        """Elements of a row at the captured sizes; 1 where all values are single numbers."""
        return self.extent(frozenset({self.space.last} - {-1}))

    def along(self, value: Value) -> AbstractContextManager[None]:
        """Where `value` is computed: what `count` and new buffers are for until it ends."""
        return nullcontext()

    def apply(self, rule: Rule, path: Path, value: Value) -> None:
        """Write what a rule makes of a value."""
        rule(self, path, value)

    # --------------------------------------------------------------------------------- new things

    def temp(
        self,
        dtype: DType,
        wide: bool,
        part: Part = Part.SCRATCH,
        hint: str = "",
        mask: bool = False,
        lanes: int = 0,
    ) -> str:
        name = f"%{len(self.temps)}"
        self.temps[name] = Temp(name, dtype, part, wide, mask, hint, lanes)
        return name

    def like(self, value: Value, hint: str = "") -> str:
        """A scratch buffer for a value."""
        wide = self.space.wide(value)
        return self.temp(dtype_of(value), wide, hint=hint, mask=value.kind is Kind.MASK)

    def fresh(self, stem: str) -> str:
        """A scalar name that was not used before."""
        number = sum(name.startswith(stem) for name in self.names)
        self.names.append(f"{stem}{number}")
        return self.names[-1]

    def var(self, group: int) -> str:
        """The loop variable of a group."""
        size = self.space.groups[group].name
        return _SINGULAR.get(size, f"{size}_at")

    # ----------------------------------------------------------------------------------- locating

    def level(self, path: Path, axes: frozenset[int]) -> int:
        """The outermost list of the path in which all these groups have an index."""
        for i, block in enumerate(path):
            if axes <= block.opened:
                return i
        why = "a value goes along axes that have no index where it is needed"
        raise PlanError("plan-data-movement", why)  # another structure may have them

    def home(self, path: Path, value: Value) -> int:
        return self.level(path, self.space.axes(value))

    def find(self, path: Path, value: Value) -> str | None:
        """The buffer of a value that is at hand."""
        for block in reversed(path):
            if value in block.buffers:
                return block.buffers[value]
        return None

    def held(self, path: Path, value: Value) -> str:
        found = self.find(path, value)
        assert found is not None, value.op
        return found

    def count(self, path: Path, wide: bool) -> Expr:
        """How many elements an operation touches."""
        if not wide:
            return ONE
        for block in reversed(path):
            if block.count is not None:
                return block.count
        raise AssertionError("no tile is open")

    def index(self, path: Path, group: int) -> Expr:
        """Where along a group we are; writes down a decoded index when it is first asked for."""
        for block in reversed(path):
            if group in block.decode:
                name = self.var(group)
                block.items.insert(block.head, Assign(name, block.decode.pop(group)))
                block.head += 1
                block.index[group] = Name(name)
            if group in block.index:
                return block.index[group]
        raise AssertionError(f"group {group} has no index here")

    def bounds(self, path: Path, group: int) -> tuple[Expr, Expr]:
        """The range of a loop over a group: all of it, or the chunk that is open."""
        for block in reversed(path):
            if group in block.bounds:
                return block.bounds[group]
        return ZERO, self.sizes.size(group)

    def start(self, path: Path, value: Value) -> Expr | str | None:
        """What a scan goes on from, where not from nothing: a scalar, or a buffer with a row."""
        for block in path:
            if value in block.starts:
                return block.starts[value]
        return None

    def width(self, path: Path) -> Expr:
        """Lanes of a tile that a loop over the last group touches, at least one."""
        for block in reversed(path):
            if block.width is not None:
                return block.width
        return self.sizes.width()

    def offset(self, path: Path, groups: tuple[int, ...]) -> Expr:
        """Where in a tensor of these groups we are, in elements."""
        result: Expr = ZERO
        at = 0
        while at < len(groups):
            run = self._run(path, groups[at:])
            part = groups[at : at + max(len(run[0]), 1)]
            size = product(self.sizes.size(group) for group in part)
            step = Name(run[1]) if run[0] else self.index(path, groups[at])
            result = plus(times(result, size), step) if result != ZERO else step
            at += len(part)
        return result

    def address(self, path: Path, groups: tuple[int, ...], access: tuple[Expr, ...]) -> Expr:
        """The same in a slice: its start, and the step along each group. Empty: all of a tensor."""
        if not access:
            return self.offset(path, groups)
        start, *steps = (self.sizes.named(expr) for expr in access)
        result: Expr = ZERO
        for group, step in zip(groups, steps, strict=True):
            result = plus(result, times(self.index(path, group), step))
        return plus(result, start)

    def _run(self, path: Path, groups: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
        """The groups at the front that one variable runs along, and its name."""
        for block in path:
            if block.joined is not None and groups[: len(block.joined[0])] == block.joined[0]:
                return block.joined
        return (), ""

    # ----------------------------------------------------------------------------------- operands

    def number(self, path: Path, value: Value) -> Expr:
        """A value that is the same along the tile, as a scalar expression."""
        if value.op == "const":
            return literal(value)
        if value.op == "count":
            total: Expr = product(self.sizes.size(group) for group in value.axes)
            if value.number:
                total = largest(minus(total, Const(int(value.number))), ZERO)
            return floating(total)
        if value.op == "index":
            return floating(self.index(path, value.axes[0]))
        block = path[self.home(path, value)]
        if value not in block.scalars:
            name = self.fresh(_stem(value))
            block.items.append(Assign(name, ir.Value(View(self.held(path, value)))))
            block.scalars[value] = Name(name)
        return block.scalars[value]

    def is_number(self, value: Value, wide: bool) -> bool:
        """Whether an operand enters a vector operation as a scalar."""
        if value.op in ("const", "count"):
            return True
        if value.op == "index" and not self.space.wide(value):
            return True
        return wide and not self.space.wide(value)

    def vector(self, path: Path, value: Value, wide: bool) -> str:
        """An operand as a buffer; scalars are spread over one that outlives the loops inside."""
        if not self.is_number(value, wide):
            return self.held(path, value)
        block = self._spread_in(path, value, wide)
        if (value, wide) not in block.spread:
            number = self.number(path, value)
            buffer = self.temp(dtype_of(value), wide)
            block.items.append(op("duplicate", (buffer,), (number,), TILE if wide else ONE))
            block.spread[value, wide] = buffer
        return block.spread[value, wide]

    def is_spread(self, path: Path, value: Value, wide: bool) -> bool:
        """Whether a number is in a buffer already, for what needs it there."""
        return (value, wide) in self._spread_in(path, value, wide).spread

    def _spread_in(self, path: Path, value: Value, wide: bool) -> Block:
        """Where a number is spread: where it is needed, wide ones once where it is known."""
        return path[-1] if not wide or value.op == "index" else path[self.home(path, value)]


_HELD = {
    Kind.FLOAT: DType.FLOAT32,
    Kind.INT: DType.INT32,
    Kind.LONG: DType.INT64,
    Kind.MASK: DType.UINT8,
}


def dtype_of(value: Value) -> DType:
    """The element type of the buffer that a value is computed in."""
    return _HELD[value.kind]


def _stem(value: Value) -> str:
    return {"sum": "sum_", "max": "top_", "min": "low_"}.get(value.text, "v_")


def literal(value: Value) -> Expr:
    if value.kind in (Kind.INT, Kind.LONG):
        return Const(int(value.number))
    number = float(value.number)
    # the language has no literal for NaN
    return ir.Binary(ir.BinOp.SUB, _INF, _INF) if math.isnan(number) else Const(number)


def negated(expr: Expr) -> Expr:
    if isinstance(expr, Const):
        return Const(-expr.value)
    return expr.value if isinstance(expr, Negate) else Negate(expr)


def op(
    name: str,
    views: tuple[str | View, ...],
    scalars: tuple[Expr, ...],
    count: Expr,
    mode: str = "",
) -> Op:
    places = tuple(view if isinstance(view, View) else View(view) for view in views)
    return Op(name, places, scalars, mode, count)
