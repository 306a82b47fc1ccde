"""Elements that are stored, or combined with what is there, where a place says: scatters.

A core owns stretches of the result. It brings one on chip, goes through all values that may belong
there, in their order, and stores the stretch once. So the last of several values for a place is
left, and sums are added in one order, on any number of cores. An element costs the scalar unit some
50 cycles; one stored by a copy of its own took 250. Sums of rows, of which all columns have one
place, are vector additions.

Axes behind those that a place runs along are columns: a stretch has some of them, of all places
where they fit. Without columns it has several rows, where these are short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    ChipFact,
    Choice,
    Const,
    CoreId,
    Expr,
    For,
    If,
    Load,
    Name,
    Op,
    ScalarFn,
    Span,
    Stage,
    StageKind,
    Stmt,
    Store,
    SyncCores,
    View,
)
from npusmith.ir.nodes import Value as Read
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.block import Block, Part
from npusmith.plan.dag import Kind, held
from npusmith.plan.emit import buffer_dtype
from npusmith.plan.host import TILE, Deal
from npusmith.plan.index_maps import Resolver
from npusmith.plan.lane_space import Lanes
from npusmith.plan.reader import Combined, Tensor
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    largest,
    least,
    minus,
    plus,
    product,
    quotient,
    remainder,
    shares,
    times,
)
from npusmith.plan.space import Output
from npusmith.plan.stores import Target
from npusmith.plan.views import atoms_of
from npusmith.plan.writer import literal, op

_TILES, _PARTS = 4, 8  # tiles that a stretch has; a tile has so many parts, as they are copied in
_ROOM: Expr = Binary(BinOp.MUL, TILE, Const(_TILES))
_PART: Expr = Binary(BinOp.FLOORDIV, TILE, Const(_PARTS))
_BLOCK = 32  # bytes
_CORES = ChipFact("vector_cores")
_VECTORS = (DType.FLOAT32, DType.INT32)  # that one instruction copies from buffer to buffer

Write = Callable[[Target, tuple[Atom, ...]], bool]  # an operand, to workspace


@dataclass(frozen=True, slots=True)
class _Source:
    """An operand: a tensor of the kernel, or one number everywhere."""

    tensor: str
    dtype: DType
    number: Expr | None = None


def store_elements(
    w: Lanes, root: Block, target: Target, found: Combined, mark: str, write: Write
) -> bool:
    """The passes for one output: operands that are no inputs, then the elements.

    Returns whether one of the former has axes inside of the one that is cut.
    """
    before, row = atoms_of(found.x.dims[: found.at]), atoms_of(found.row)
    along = atoms_of(found.x.dims[found.at : found.at + found.count])
    columns = atoms_of(found.x.dims[found.at + found.count :])
    inside: list[bool] = []
    made = len(w.sizes.scratch)

    def source(item: Tensor, dtype: DType, axes: tuple[Atom, ...]) -> _Source:
        value = item.value
        if value.op == "const":
            number = literal(value) if dtype.is_float else Const(int(value.number))
            return _Source("", dtype, number)
        if value.op == "load" and value.dtype is dtype and atoms_of(w.layouts[value.text]) == axes:
            return _Source(w.tensors[value.text], dtype)
        name = w.sizes.workspace(product(w.known[leaf] for leaf in axes))
        w.types[name] = dtype
        shape = tuple(leaf.size for leaf in axes)
        output = Output(value, (), (), shape, dtype, target.output.node)
        inside.append(write(Target(output, name), axes))
        return _Source(name, dtype)

    dtype = target.output.dtype
    x = source(found.x, dtype, (*before, *along, *columns))
    lines = _adds_lines(w, found, dtype, columns)
    spots = (*before, *row) if lines else (*before, *row, *columns)
    place = _place(w, found.place, spots)
    ids = source(place, place.dtype, spots)
    values = source(found.values, dtype, (*before, *row, *columns))
    if len(w.sizes.scratch) > made:
        root.items.append(SyncCores())

    def size(stem: str, axes: tuple[Atom, ...]) -> Expr:
        return w.sizes.define(f"{stem}{mark}", product(w.known[leaf] for leaf in axes))

    pass_ = _Pass(
        w, found, target.name, dtype, x, ids, values, mark,
        size("around", before), size("places", along), size("count", row),
        size("columns", columns) if columns else ONE, lines,
    )  # fmt: skip
    root.items += pass_.write()
    return any(inside)


def _adds_lines(w: Lanes, found: Combined, dtype: DType, columns: Sequence[Atom]) -> bool:
    """Whether all columns of a value have one place, and are added at once."""
    if not columns or not dtype.is_float or found.word != "add" or not found.own:
        return False
    alike = not Resolver(w).free(found.place.value) & frozenset(columns)
    return alike and found.values.value.op != "const"


def _place(w: Lanes, place: Tensor, axes: tuple[Atom, ...]) -> Tensor:
    """An index tensor as it is, where it stands as the values do; other places as int32."""
    value = place.value
    read = value.op == "load" and value.dtype in (DType.INT64, DType.INT32)
    if read and value.dtype is not None and atoms_of(w.layouts[value.text]) == axes:
        return replace(place, dtype=value.dtype)
    return Tensor(held(w.meaning.reader.dag, value, Kind.FLOAT), place.dims, DType.INT32)


def free_axes(found: Combined) -> list[Atom]:
    """The axes of what is combined."""
    return [leaf for dim in (*found.x.dims, *found.row) for leaf in leaves(dim)]


@dataclass(slots=True)
class _Pass:
    """The statements that fill the stretches."""

    w: Lanes
    found: Combined
    name: str
    dtype: DType
    x: _Source
    ids: _Source
    values: _Source
    mark: str
    around: Expr
    places: Expr
    count: Expr
    columns: Expr  # ONE: there are none
    lines: bool = False  # whether all columns of a value have one place
    stretch: str = ""  # the buffer of the result's elements, as they are combined
    sent: str = ""  # ... and as they are stored
    hits: str = ""  # how many values came for each, a float

    def write(self) -> tuple[Stmt, ...]:
        wide = self._wide
        self.sent = self._buffer(self.dtype, Part.STORED, self.name, times=_TILES)
        self.stretch = self.sent
        if wide is not self._own:
            self.stretch = self._buffer(wide, Part.SCRATCH, "stretch", times=_TILES)
        if not self.found.own or self.found.word == "mean":
            self.hits = self._buffer(DType.FLOAT32, Part.SCRATCH, "hits", times=_TILES)
        head = self._strips() if self.columns != ONE else self._rows()
        per_core = Name(f"stretches{self.mark}_per_core")
        first = times(CoreId(), per_core)
        stop = least(plus(Name("first"), per_core), Name(f"stretches{self.mark}"))
        body = (*head, *self._begin(), *self._take_in(), *self._end())
        return (Assign("first", first), For("piece", Name("first"), stop, ONE, body))

    @property
    def _own(self) -> DType:
        return buffer_dtype(self.dtype)

    @property
    def _wide(self) -> DType:
        """What elements are combined in."""
        return DType.FLOAT32 if self.dtype.is_float else self._own

    def _buffer(self, dtype: DType, part: Part, hint: str, times: int = 1) -> str:
        w = self.w
        with w.whole_tile():
            name = w.temp(buffer_dtype(dtype), True, part, hint=hint)
        share = 1 if times > 1 else _PARTS
        w.temps[name] = replace(w.temps[name], times=times, share=share)
        return name

    # --------------------------------------------------------------------------- who has what

    def _define(self, name: str, value: Expr) -> Name:
        return self.w.sizes.define(f"{name}{self.mark}", value)

    def _deal(self, pieces: Expr) -> None:
        sizes = self.w.sizes
        units = self._define("stretches", pieces)
        each = sizes.define(f"{units.id}_per_core", shares(units, Name("cores")))
        sizes.deals[(len(sizes.deals),)] = Deal((), False, units.id, each.id)

    def _rows(self) -> list[Stmt]:
        """Stretches of rows of places, or some whole rows."""
        parts = self._define("parts", largest(quotient(_CORES, largest(self.around, ONE)), ONE))
        each = Call(ScalarFn.ALIGN_UP, (shares(self.places, parts), Const(64)))
        span = self._define("span", largest(least(_ROOM, each), ONE))
        spans = self._define("spans", shares(self.places, span))
        fit = least(
            quotient(_ROOM, largest(self.places, ONE)), quotient(_PART, largest(self.count, ONE))
        )
        rows = largest(least(fit, shares(self.around, _CORES)), ONE)
        together = self._define("together", Choice(Binary(BinOp.GT, spans, ONE), ONE, rows))
        self._deal(times(shares(self.around, together), spans))
        return [
            Assign("line", times(quotient(Name("piece"), spans), together)),
            Assign("whole_rows", least(together, minus(self.around, Name("line")))),
            Assign("low", times(remainder(Name("piece"), spans), span)),
            Assign("high", least(span, minus(self.places, Name("low")))),
            Assign("n", times(Name("whole_rows"), Name("high"))),
        ]

    def _strips(self) -> list[Stmt]:
        """Some columns of the places of one row, or of some of these.

        Columns are shared out first: then no core goes through values that others have as well.
        """
        block = Const(_BLOCK // min(self._own.bytes, self.ids.dtype.bytes))  # whole ones of both
        fair = shares(times(self.columns, self.around), _CORES)
        whole = quotient(quotient(_ROOM, largest(self.places, ONE)), block)
        most = least(least(_PART, largest(times(whole, block), block)), fair)
        even = Call(ScalarFn.ALIGN_UP, (largest(least(most, self.columns), ONE), block))
        strip = self._define("strip", even)
        strips = self._define("strips", shares(self.columns, strip))
        lines = largest(times(self.around, strips), ONE)
        parts = self._define("parts", largest(quotient(_CORES, lines), ONE))
        each = least(quotient(_ROOM, strip), shares(self.places, parts))
        span = self._define("span", largest(each, ONE))
        spans = self._define("spans", shares(self.places, span))
        self._define("copied", largest(quotient(_PART, strip), ONE))
        self._deal(product((self.around, strips, spans)))
        line = quotient(Name("piece"), spans)
        return [
            Assign("low", times(remainder(Name("piece"), spans), span)),
            Assign("high", least(span, minus(self.places, Name("low")))),
            Assign("line", quotient(line, strips)),
            Assign("left", times(remainder(line, strips), strip)),
            Assign("wide", least(strip, minus(self.columns, Name("left")))),
        ]

    # --------------------------------------------------------------------------------- copies

    def _pitch(self, dtype: DType) -> Expr:
        """Elements from one row of columns to the next, as they are copied."""
        block = Const(_BLOCK // buffer_dtype(dtype).bytes)
        return Call(ScalarFn.ALIGN_UP, (Name("wide"), block))

    def _load(
        self, buffer: str, source: _Source, rows: Expr, start: Expr, count: Expr,
        single: bool = False,
    ) -> Load:  # fmt: skip
        """Rows from `start` on, in a tensor that has so many for each index around.

        `single`: rows of one element.
        """
        first = plus(times(Name("line"), rows), start)
        if self.columns == ONE or single:
            return Load(View(buffer), Span(source.tensor, first), count)
        first = plus(times(first, self.columns), Name("left"))
        return Load(View(buffer), Span(source.tensor, first), Name("wide"), count, self.columns)

    def _each(self, count: Expr, name: str, views: Sequence[tuple[str, Expr]], mode: str) -> Stmt:
        """One operation on as many rows, or elements, of buffers: each from a first one on."""
        scalars: tuple[Expr, ...] = ()
        if name == "muls":
            scalars = (Const(1.0) if self._wide.is_float else ONE,)
        if self.columns == ONE:
            return op(name, tuple(View(*view) for view in views), scalars, count, mode)
        pitch, row = self._pitch(self.dtype), Name("row")
        rows = tuple(View(buffer, times(plus(at, row), pitch)) for buffer, at in views)
        return For("row", ZERO, count, ONE, (op(name, rows, scalars, Name("wide"), mode),))

    def _scalars(self, count: Expr, at: Expr, value: Callable[[Expr], Expr]) -> Stmt:
        """Elements of the stretch, one after another."""
        one = Name("one")

        def put(place: Expr, source: Expr) -> Stmt:
            return Op("set", (View(self.stretch, place),), (value(source),), "", ONE)

        if self.columns == ONE:
            return For("one", ZERO, count, ONE, (put(plus(at, one), one),))
        pitch, row = self._pitch(self.dtype), Name("row")
        to, source = plus(times(plus(at, row), pitch), one), plus(times(row, pitch), one)
        inner = For("one", ZERO, Name("wide"), ONE, (put(to, source),))
        return For("row", ZERO, count, ONE, (inner,))

    @property
    def _length(self) -> Expr:
        """Rows of the stretch, or its elements."""
        return Name("n") if self.columns == ONE else Name("high")

    def _all(self) -> Expr:
        """Elements of the stretch and between its rows."""
        return Name("n") if self.columns == ONE else times(Name("high"), self._pitch(self.dtype))

    def _begin(self) -> list[Stmt]:
        """What is there before."""
        zero = (op("duplicate", (self.hits,), (Const(0.0),), self._all()),) if self.hits else ()
        if self.x.number is not None:
            number, whole = self.x.number, self._length
            if self._wide in _VECTORS:
                fill: Stmt = op("duplicate", (self.stretch,), (number,), self._all())
            else:
                fill = self._scalars(whole, ZERO, lambda _: number)
            return [Stage(StageKind.COMPUTE, (*zero, fill))]
        loaded = self._buffer(self.dtype, Part.LOADED, self.x.tensor)
        at, some = Name("at"), Name("some")
        step: Expr = _PART if self.columns == ONE else Name(f"copied{self.mark}")
        if self._wide is not self._own:
            move = self._each(some, "cast", ((self.stretch, at), (loaded, ZERO)), "none")
        elif self._own in _VECTORS:
            move = self._each(some, "muls", ((self.stretch, at), (loaded, ZERO)), "")
        else:
            move = self._scalars(some, at, lambda place: Read(View(loaded, place)))
        copied = For(
            "at", ZERO, self._length, step,
            (
                Assign("some", least(step, minus(self._length, at))),
                Stage(
                    StageKind.COPY_IN,
                    (self._load(loaded, self.x, self.places, plus(Name("low"), at), some),),
                ),
                Stage(StageKind.COMPUTE, (move,)),
            ),
        )  # fmt: skip
        return [*([Stage(StageKind.COMPUTE, zero)] if zero else []), copied]

    def _take_in(self) -> list[Stmt]:
        """All values that may belong here."""
        start, some = Name("begin"), Name("some")
        step: Expr = _PART if self.columns == ONE else Name(f"copied{self.mark}")
        many = times(Name("whole_rows"), some) if self.columns == ONE else some
        loads: list[Stmt] = []
        ops: list[Stmt] = []
        ids = values = ""
        if self.ids.number is None:
            ids = self._buffer(self.ids.dtype, Part.LOADED, self.ids.tensor)
            loads.append(self._load(ids, self.ids, self.count, start, many, self.lines))
        if self.values.number is None:
            values = self._buffer(self.dtype, Part.LOADED, self.values.tensor)
            loads.append(self._load(values, self.values, self.count, start, many))
            if self._wide is not self._own:
                loaded, values = values, self._buffer(self._wide, Part.SCRATCH, "values")
                ops.append(self._each(many, "cast", ((values, ZERO), (loaded, ZERO)), "none"))
        body = (
            Assign("some", least(step, minus(self.count, start))),
            *((Stage(StageKind.COPY_IN, tuple(loads)),) if loads else ()),
            Stage(StageKind.COMPUTE, (*ops, self._scan(ids, values))),
        )
        return [For("begin", ZERO, self.count, step, body)]

    def _scan(self, ids: str, values: str) -> Stmt:
        """The elements of what has been copied, one after another."""
        row, one, spot = Name("row"), Name("one"), Name("spot")
        if self.lines:
            return For("row", ZERO, Name("some"), ONE, self._add_line(ids, values, row))
        if self.columns == ONE:
            place_at: Expr = plus(times(row, Name("some")), one)
            value_at, outer, inner = place_at, Name("whole_rows"), Name("some")
            to = plus(times(row, Name("high")), spot)
        else:
            place_at = plus(times(row, self._pitch(self.ids.dtype)), one)
            value_at = plus(times(row, self._pitch(self.dtype)), one)
            outer, inner = Name("some"), Name("wide")
            to = plus(times(spot, self._pitch(self.dtype)), one)
        new = self.values.number
        taken = self._taken(to, Read(View(values, value_at)) if new is None else new)
        body = self._where(ids, place_at, taken)
        return For("row", ZERO, outer, ONE, (For("one", ZERO, inner, ONE, body),))

    def _add_line(self, ids: str, values: str, row: Expr) -> tuple[Stmt, ...]:
        """All columns of one value."""
        pitch = self._pitch(self.dtype)
        there = View(self.stretch, times(Name("spot"), pitch))
        added = op("add", (there, there, View(values, times(row, pitch))), (), Name("wide"))
        return self._where(ids, row, (added,))

    def _where(self, ids: str, at: Expr, then: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """What is done with a value whose place lies in the stretch, as `spot`."""
        spot = Name("spot")
        known = self.ids.number
        spots: list[Stmt] = [Assign(spot.id, Read(View(ids, at)) if known is None else known)]
        if self.found.wraps:
            wrapped = Choice(Binary(BinOp.LT, spot, ZERO), plus(spot, self.places), spot)
            spots.append(Assign(spot.id, wrapped))
        spots.append(Assign(spot.id, minus(spot, Name("low"))))
        here = Binary(BinOp.AND, Binary(BinOp.GE, spot, ZERO), Binary(BinOp.LT, spot, Name("high")))
        return (*spots, If(here, then))

    def _taken(self, to: Expr, new: Expr) -> tuple[Stmt, ...]:
        """One value at its place."""
        spot, word = Name("there"), self.found.word
        result = new
        if word != "store":
            result = self._joined(word, Read(View(self.stretch, spot)), new)
        statements: list[Stmt] = [Assign("there", to)]
        if self.hits:
            seen = Read(View(self.hits, spot))
            statements.append(Assign("seen", seen))
            if not self.found.own and word != "store":
                first = Binary(BinOp.EQ, Name("seen"), Const(0.0))
                result = Choice(first, new, result)
        statements.append(Op("set", (View(self.stretch, spot),), (result,), "", ONE))
        if self.hits:
            more = plus(Name("seen"), Const(1.0))
            statements.append(Op("set", (View(self.hits, spot),), (more,), "", ONE))
        return tuple(statements)

    def _joined(self, word: str, a: Expr, b: Expr) -> Expr:
        if word in ("max", "min"):
            return Call(ScalarFn.MAX if word == "max" else ScalarFn.MIN, (a, b))
        if self.dtype.is_float:
            return Binary(BinOp.MUL if word == "mul" else BinOp.ADD, a, b)
        if self.dtype is DType.BOOL:
            return Call(ScalarFn.MIN if word == "mul" else ScalarFn.MAX, (a, b))
        return Call(ScalarFn.WRAP_MUL if word == "mul" else ScalarFn.WRAP_ADD, (a, b))

    def _end(self) -> list[Stmt]:
        """The stretch, as it is stored."""
        ops: list[Stmt] = []
        if self.found.word == "mean":
            how = "adds" if self.found.own else "maxs"  # its own element is one of them
            ops.append(op(how, (self.hits, self.hits), (Const(1.0),), self._all()))
            views = ((self.stretch, ZERO), (self.stretch, ZERO), (self.hits, ZERO))
            ops.append(self._each(self._length, "div", views, ""))
        if self.sent != self.stretch:
            views_ = ((self.sent, ZERO), (self.stretch, ZERO))
            ops.append(self._each(self._length, "cast", views_, "rint"))
        stage = [Stage(StageKind.COMPUTE, tuple(ops))] if ops else []
        first = plus(times(Name("line"), self.places), Name("low"))
        if self.columns == ONE:
            store = Store(Span(self.name, first), View(self.sent), Name("n"))
        else:
            first = plus(times(first, self.columns), Name("left"))
            store = Store(
                Span(self.name, first), View(self.sent), Name("wide"), Name("high"), self.columns
            )
        return [*stage, Stage(StageKind.COPY_OUT, (store,))]
