"""Space -> program for short rows: a tile is many of them, copied and computed together.

A row of 64 elements does not earn a copy and ten instructions of its own. Here a tile is a stack of
rows one under the other, loaded by one copy. What differs along rows and columns fills the tile,
each row from a multiple of 32 bytes on; what is one number for each row is a vector of as many
numbers (`sum_rows` makes them, `spread_rows` lays them along the rows again); what is the same for
all rows is laid out under itself once. Rows that are no multiple of 32 bytes are brought to their
places, and back, by a gather where they are very short, else by copies of single rows.

The rows' length is any at run time that the host finds to fit; for others the general program is
there (quicker.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    ChipFact,
    Choice,
    Combine,
    Const,
    CoreId,
    Expr,
    For,
    Kernel,
    Load,
    Name,
    Op,
    Program,
    Scalar,
    ScalarFn,
    Span,
    Stage,
    StageKind,
    Stmt,
    Store,
    Tensor,
    TensorRole,
    View,
)
from npusmith.ir.walk import names_read
from npusmith.plan.block import Block, Part, Path, choice, staged
from npusmith.plan.dag import Kind, Value
from npusmith.plan.emit import buffer_dtype, emit, widening
from npusmith.plan.host import Deal, Sizes
from npusmith.plan.loops import Run, Serial, turn
from npusmith.plan.pack import Lengths, pack
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    floating,
    largest,
    least,
    minus,
    plus,
    product,
    quotient,
    shares,
    times,
)
from npusmith.plan.sinks import IDENTITY
from npusmith.plan.space import Space
from npusmith.plan.stores import Target, is_copy, reserve, store_one
from npusmith.plan.writer import Writer, op
from npusmith.target.chips import Chip

# Elements of a captured row. Longer ones hardly gain, and their sums of 64 elements, added up one
# after another, are less exact than the general program's.
MOST = 512
_COPIED = 96  # elements of an uneven row from which on it earns a burst of its own
_LEAST = 8  # rows of a tile: one instruction makes 8 numbers of theirs
_ROUNDS = 8  # rows of every core at least, as captured
_BLOCK = Const(8)  # elements of 32 bytes
_STACK, _LINES = Name("STACK"), Name("LINES")
_HALVES = 16  # elements of 32 bytes of the narrowest type that rows are copied of
_WIDENED = {DType.FLOAT32, DType.INT32, DType.FLOAT16, DType.BFLOAT16}  # no cast or one
_FOLDS = ("sum", "max", "min")
FITS = "brief"  # the host variable that is 1 where rows are short


def write_tall(
    space: Space, outputs: Sequence[str], name: str, chip: Chip, taken: Iterable[str]
) -> tuple[Program, str] | None:
    """The program and the host variable that is 1 where it is right; None: not such a graph.

    Raises PlanError where an element type cannot be stored.
    """
    w = Tall(space, Sizes(space), chip)
    if not _suits(w):
        return None
    for item in space.inputs:
        w.tensors[item.item.name] = item.name
    targets = [Target(out, called) for out, called in zip(space.outputs, outputs, strict=True)]
    _define(w)
    root = Block()
    _write(w, root, targets)
    tensors = _tensors(w, targets)
    used = set(taken) | {item.name for item in tensors} | set(w.sizes.defined) | set(w.names)
    pitch = -(-w.columns // 8) * 8
    lengths = Lengths(_STACK, _LINES, lambda tile: -(-max(tile // pitch, 8) // 64) * 64)
    packed = pack(staged(root.items), w.temps, used, chip, lengths)
    if pitch + (_HALVES if w.copied else 0) > packed.tile // _LEAST:
        return None
    read = names_read(packed.body)
    given = [item for item in (*w.sizes.defined, "cores") if item in read]
    host = w.sizes.write(
        name, tuple(t.name for t in tensors if t.role is not TensorRole.SCRATCH), [*given, FITS], ""
    )
    scalars = tuple(Scalar(item) for item in (*given, FITS))
    kernel = Kernel(name, tensors, scalars, packed.buffers, packed.body)
    consts = (("STACK", packed.tile), ("LINES", lengths.small_of(packed.tile)))
    return Program(consts, host, (kernel,), ""), FITS


# ------------------------------------------------------------------------------------ recognition


def _suits(w: Tall) -> bool:
    space = w.space
    if space.last < 1 or len(space.groups) != space.last + 1:
        return False
    rows = w.extent(w.rows)
    if not 0 < w.columns <= MOST or rows < _ROUNDS * w.chip.vector_cores:
        return False
    through = [out for out in space.outputs if out.value.op == "load" and w.copied]
    # what is the same for all rows would be stored with every stack of them
    once = [out for out in space.outputs if out.groups and not w.rows <= set(out.groups)]
    return not through and not once and all(_plain(w, value) for value in _values(space))


def _values(space: Space) -> list[Value]:
    seen: dict[Value, None] = {}
    stack = [out.value for out in space.outputs]
    while stack:
        value = stack.pop()
        if value not in seen:
            seen[value] = None
            stack += value.args
    return list(seen)


def _plain(w: Tall, value: Value) -> bool:
    """Whether it is one of: a number, one for each row, one for each column, one for both."""
    axes = w.space.axes(value)
    if axes not in (frozenset(), w.rows, w.last, w.rows | w.last) or value.op == "running":
        return False
    if value.kind is Kind.LONG or value.op == "scalar":
        return False
    if value.op == "index":
        return frozenset(value.axes) == w.last
    if value.op != "reduce":
        return True
    under, along = w.space.axes(value.args[0]), frozenset(value.axes)
    whole = w.rows | w.last
    kinds = ((whole, w.last), (whole, whole), (w.rows, w.rows))
    return value.text in _FOLDS and (under, along) in kinds


# ----------------------------------------------------------------------------------------- writer


@dataclass(slots=True)
class Tall(Writer):
    """A writer whose wide buffers hold a stack of rows, and whose others a number for each row."""

    current: Value | None = None
    flat: bool = False  # rows stand in the buffer as in the tensor, without gaps
    tables: dict[str, str] = field(default_factory=dict)  # offsets for gathers

    @property
    def last(self) -> frozenset[int]:
        return frozenset({self.space.last})

    @property
    def rows(self) -> frozenset[int]:
        return frozenset(range(self.space.last))

    @property
    def columns(self) -> int:
        """Elements of a row, as captured."""
        return self.extent(self.last)

    @property
    def even(self) -> bool:
        """Whether rows are whole blocks, so that they need not be moved apart."""
        return self.columns % 8 == 0

    @property
    def copied(self) -> bool:
        """Whether rows are moved apart by the copies: of types that one cast widens."""
        last = self.space.last
        types = {item.item.dtype for item in self.space.inputs if last in item.groups}
        types |= {out.dtype for out in self.space.outputs if last in out.groups}
        return not self.even and self.columns >= _COPIED and types <= _WIDENED

    @property
    def gathers(self) -> bool:
        return not self.even and not self.copied

    def count(self, path: Path, wide: bool) -> Expr:
        if not wide:
            return Name("m") if self.rows <= path[-1].opened else ONE
        if self.flat and self.gathers:
            return Name("flat")
        return next(block.count for block in reversed(path) if block.count is not None)

    def offset(self, path: Path, groups: tuple[int, ...]) -> Expr:
        line: Expr = Name("line") if self.rows <= set(groups) else ZERO
        return times(line, self.sizes.size(self.space.last)) if self.last <= set(groups) else line

    def is_number(self, value: Value, wide: bool) -> bool:
        """Lone numbers are scalars for everything that has more than one."""
        if value.op in ("const", "count"):
            return True
        several = wide or (self.current is not None and bool(self.space.axes(self.current)))
        return several and not self.space.axes(value)

    def vector(self, path: Path, value: Value, wide: bool) -> str:
        if not self.is_number(value, wide):
            alone = wide and not self.space.wide(value)
            return self._along(path, value) if alone else self.held(path, value)
        block = path[self.home(path, value)]
        if (value, wide) not in block.spread:
            number = self.number(path, value)
            buffer = self.temp(DType.INT32 if value.kind is Kind.INT else DType.FLOAT32, wide)
            length = _STACK if wide else _LINES
            block.items.append(op("duplicate", (buffer,), (number,), length))
            block.spread[value, wide] = buffer
        return block.spread[value, wide]

    def row(
        self, dtype: DType, wide: bool, single: bool, part: Part = Part.SCRATCH, hint: str = ""
    ) -> str:
        """A buffer for a stack of rows, or for a single one."""
        name = self.temp(dtype, wide, part, hint)
        if single:
            self.temps[name] = replace(self.temps[name], share=_LEAST)
        return name

    def _along(self, path: Path, value: Value) -> str:
        """Every row's number along its row."""
        block = path[self.home(path, value)]
        if (value, True) not in block.spread:
            buffer, spare = self.temp(DType.FLOAT32, True), self.temp(DType.FLOAT32, True)
            cols = self.sizes.size(self.space.last)
            views = (buffer, self.held(path, value), spare)
            block.items.append(op("spread_rows", views, (cols,), Name("m")))
            block.spread[value, True] = buffer
        return block.spread[value, True]


def _define(w: Tall) -> None:
    """Host variables: how many rows are in a tile, and which tiles a core has."""
    sizes, cols = w.sizes, w.sizes.size(w.space.last)
    lines = sizes.define("lines", product(sizes.size(group) for group in sorted(w.rows)))
    pitch: Expr = cols if w.even else _up(cols, _BLOCK)
    pitch = sizes.define("pitch", largest(pitch, _BLOCK))
    room = quotient(_STACK, Const(_LEAST))
    widest = largest(_up(cols, Const(_HALVES)), _BLOCK) if w.copied else pitch
    fits = _both(Binary(BinOp.GT, cols, ZERO), Binary(BinOp.LE, widest, room))
    if w.even:
        fits = _both(fits, Binary(BinOp.EQ, Binary(BinOp.MOD, cols, _BLOCK), ZERO))
    sizes.define(FITS, Choice(fits, ONE, ZERO))
    fair = sizes.define("fair_lines", largest(shares(lines, ChipFact("vector_cores")), ONE))
    deepest = least(_LINES, times(quotient(quotient(_STACK, widest), Const(8)), Const(8)))
    most = sizes.define("most_lines", largest(deepest, _BLOCK))
    height = sizes.define("height", _up(shares(fair, shares(fair, most)), _BLOCK))
    stacks = sizes.define("stacks", shares(lines, height))
    sizes.define("stacks_per_core", shares(stacks, Name("cores")))
    sizes.define("whole", times(height, pitch))
    sizes.deals[()] = Deal((), False, "stacks", "stacks_per_core")


def _up(value: Expr, unit: Expr) -> Expr:
    return Call(ScalarFn.ALIGN_UP, (value, unit))


def _both(one: Expr, two: Expr) -> Expr:
    return Binary(BinOp.AND, one, two)


def _tensors(w: Tall, targets: Sequence[Target]) -> tuple[Tensor, ...]:
    inputs = (Tensor(item.name, item.item.dtype, TensorRole.INPUT) for item in w.space.inputs)
    outputs = (Tensor(t.name, t.output.dtype, TensorRole.OUTPUT) for t in targets)
    work = (Tensor(name, DType.FLOAT32, TensorRole.SCRATCH) for name in w.sizes.scratch)
    return (*inputs, *outputs, *work)


# ----------------------------------------------------------------------------------------- passes


def _write(w: Tall, root: Block, targets: Sequence[Target]) -> None:
    """A pass for every level of lone numbers, then one for what is stored by rows."""
    numbers = [v for v in _values(w.space) if v.op == "reduce" and not w.space.axes(v)]
    depth: dict[Value, int] = {}
    for level in sorted({_depth(w, value, depth) for value in numbers}):
        _number_pass(w, root, [value for value in numbers if depth[value] == level])
    by_row = [target for target in targets if target.groups]
    if by_row:
        path = _open(w, root)
        _store_rows(w, path, by_row)
        _close(root, path, None)
    for target in targets:
        if not target.groups:
            _store_alone(w, root, target)


def _depth(w: Tall, value: Value, known: dict[Value, int]) -> int:
    """How many lone numbers stand on top of each other."""
    if value not in known:
        below = max((_depth(w, arg, known) for arg in value.args), default=0)
        known[value] = below + (value.op == "reduce" and not w.space.axes(value))
    return known[value]


def _open(w: Tall, root: Block) -> Path:
    """The lists of a pass: before its loop, and in it."""
    last = w.space.last
    before = Block(w.last, {last: ZERO}, Name("whole"))
    inside = Block(w.rows | w.last, {last: ZERO}, Name("n"))
    inside.items += [
        Assign("line", times(Name("stack"), Name("height"))),
        Assign("m", least(Name("height"), minus(Name("lines"), Name("line")))),
        Assign("n", times(Name("m"), Name("pitch"))),
    ]
    if w.gathers:
        inside.items.append(Assign("flat", times(Name("m"), w.sizes.size(last))))
    return (root, before, inside)


def _close(root: Block, path: Path, serial: Serial | None) -> None:
    """Put a pass into the list around it."""
    before, inside = path[1], path[-1]
    share = Name("stacks_per_core")
    before.items.append(Assign("first", Binary(BinOp.MUL, CoreId(), share)))
    stop = least(plus(Name("first"), share), Name("stacks"))
    turn(path[:2], Run("stack", Name("first"), stop, ONE, inside), lambda _: None, serial)
    root.items += before.items


def _number_pass(w: Tall, root: Block, batch: Sequence[Value]) -> None:
    """Rows to numbers, numbers of one place in their stacks to one, those to one on every core."""
    path = _open(w, root)
    sinks = [(value, _sink(w, root, value), _sink(w, root, value)) for value in batch]
    for value, part, _ in sinks:
        each = _of_rows(w, value)
        _ensure(w, path, [each])
        name = f"accumulate_{value.text}"
        path[-1].items.append(op(name, (part, w.held(path, each)), (), Name("m")))
    before = [_neutral(value, part) for value, part, _ in sinks]
    after = [
        op(f"accumulate_{value.text}", (total, part), (), _LINES) for value, part, total in sinks
    ]
    _close(root, path, Serial(tuple(before), tuple(after)))
    for value, part, total in sinks:
        root.buffers[value] = _combined(w, root, value, total, part)


def _sink(w: Tall, root: Block, value: Value) -> str:
    buffer = w.temp(DType.FLOAT32, False, hint="acc")
    root.items.append(_neutral(value, buffer))
    return buffer


def _neutral(value: Value, buffer: str) -> Stmt:
    return op("duplicate", (buffer,), (Const(IDENTITY[value.text]),), _LINES)


def _of_rows(w: Tall, value: Value) -> Value:
    """What a lone number is folded of: a number for each row."""
    under = value.args[0]
    if not w.space.wide(under):
        return under
    return w.space.dag.reduce(value.text, under, (w.space.last,))


def _combined(w: Tall, root: Block, value: Value, lines: str, spare: str) -> str:
    own = w.temp(DType.FLOAT32, False, hint=value.text)
    result = w.temp(DType.FLOAT32, False, hint=value.text)
    root.items.append(op(f"reduce_{value.text}", (own, lines, spare), (), _LINES))
    scratch = f"lone{len(w.sizes.scratch)}"
    w.sizes.scratch[scratch] = times(Name("cores"), _BLOCK)
    root.items.append(Combine(value.text, View(result), View(own), scratch, ONE))
    return result


# ----------------------------------------------------------------------------------------- values


def _ensure(w: Tall, path: Path, roots: Sequence[Value]) -> None:
    """Compute what is not at hand, arguments first, each where all its groups are open."""
    order: dict[Value, None] = {}

    def visit(value: Value) -> None:
        if value in order or value.op in ("const", "count") or w.find(path, value):
            return
        for arg in value.args:
            visit(arg)
        order[value] = None

    for root in roots:
        visit(root)
    for value in order:
        w.current = value
        _RULES.get(value.op, emit)(w, path[: w.home(path, value) + 1], value)
    w.current = None


def _load(w: Tall, path: Path, value: Value) -> None:
    """One copy; then float32 or int32; then rows apart, or one row laid out under itself."""
    assert value.dtype is not None
    wide, axes = w.space.wide(value), w.space.axes(value)
    if wide and axes != w.last and w.copied:
        _load_rows(w, path, value)
        return
    count = w.sizes.size(w.space.last) if axes == w.last else _loaded(w, path, wide)
    name = w.tensors[value.text]
    single = axes == w.last
    buffer = w.row(buffer_dtype(value.dtype), wide, single, Part.LOADED, name)
    span = Span(name, w.offset(path, tuple(value.axes)))
    path[-1].items.append(Load(View(buffer), span, count))
    for dtype, mode in widening(value):
        wider = w.row(dtype, wide, single)
        path[-1].items.append(op("cast", (wider, buffer), (), count, mode))
        buffer = wider
    if single:
        buffer = _laid(w, path, buffer, value.kind)
    elif wide and w.gathers:
        buffer = _gathered(w, path, buffer, w.like(value), "apart", Name("n"))
    path[-1].buffers[value] = buffer


def _loaded(w: Tall, path: Path, wide: bool) -> Expr:
    return Name("flat") if wide and w.gathers else w.count(path, wide)


def _load_rows(w: Tall, path: Path, value: Value) -> None:
    """One copy of m rows, each to whole blocks; then a row at a time to where padding is defined.

    That buffer is zeroed once, and nothing else is ever in it: what lies between rows is computed
    with, and thrown away.
    """
    assert value.dtype is not None
    name, cols = w.tensors[value.text], w.sizes.size(w.space.last)
    loaded = w.temp(value.dtype, True, Part.LOADED, hint=name)
    span = Span(name, w.offset(path, tuple(value.axes)))
    path[-1].items.append(Load(View(loaded), span, cols, Name("m"), cols))
    own = w.temp(DType.INT32 if value.kind is Kind.INT else DType.FLOAT32, True, hint=name)
    zero = Const(0) if value.kind is Kind.INT else Const(0.0)
    path[0].items.append(op("duplicate", (own,), (zero,), _STACK))
    _each_row(w, path, own, loaded, value.dtype, widening(value))
    path[-1].buffers[value] = own


def _each_row(
    w: Tall, path: Path, to: str, source: str, dtype: DType, steps: Sequence[tuple[DType, str]]
) -> None:
    """Rows from one buffer to another, cast where there is a step; `dtype`: the narrower one's."""
    cols, line = w.sizes.size(w.space.last), Name("row")
    narrow = times(line, _up(cols, Const(32 // dtype.bytes)))
    wide = times(line, Name("pitch"))
    places = (wide, narrow) if w.temps[source].dtype is dtype else (narrow, wide)
    views = (View(to, places[0]), View(source, places[1]))
    if steps:
        move = Op("cast", views, (), steps[0][1], cols)
    else:
        one = Const(1) if dtype is DType.INT32 else Const(1.0)
        move = Op("muls", views, (one,), "", cols)
    turns = For("row", ZERO, Name("m"), ONE, (move,))
    path[-1].items.append(Stage(StageKind.COMPUTE, (turns,)))


def _gathered(w: Tall, path: Path, source: str, target: str, table: str, count: Expr) -> str:
    offsets = _table(w, path[0], table)
    path[-1].items.append(op("gather", (target, source, offsets), (ZERO,), count))
    return target


def _table(w: Tall, root: Block, name: str) -> str:
    """Byte offsets that bring rows `apart` to whole blocks, or `together` again.

    Element e of rows of p is in row e // p, in float32: exact, and it can floor. What fills rows up
    to a block is their last element.
    """
    if name in w.tables:
        return w.tables[name]
    cols, pitch = w.sizes.size(w.space.last), Name("pitch")
    inner, outer = (pitch, cols) if name == "apart" else (cols, pitch)
    count: Expr = Name("whole") if name == "apart" else times(Name("height"), cols)
    place, row = (w.temp(DType.FLOAT32, True) for _ in range(2))
    offsets = w.temp(DType.INT32, True, hint=name)
    one = Const(1.0)
    steps: list[tuple[str, tuple[str, ...], tuple[Expr, ...], str]] = [
        ("create_index", (place,), (Const(0.0),), ""),
        ("adds", (row, place), (Const(0.5),), ""),
        ("muls", (row, row), (Binary(BinOp.DIV, one, floating(inner)),), ""),
        ("cast", (row, row), (), "floor"),
        ("axpy", (place, row), (Binary(BinOp.SUB, Const(0.0), floating(inner)),), ""),
        ("mins", (place, place), (floating(minus(cols, ONE)),), ""),
        ("axpy", (place, row), (floating(outer),), ""),
        ("muls", (place, place), (Const(4.0),), ""),
        ("cast", (offsets, place), (), "rint"),
    ]
    root.items += [op(step, views, scalars, count, mode) for step, views, scalars, mode in steps]
    w.tables[name] = offsets
    return offsets


def _laid(w: Tall, path: Path, source: str, kind: Kind) -> str:
    """One row under itself as often as the tile has rows: every copy doubles what is there."""
    dtype = DType.INT32 if kind is Kind.INT else DType.FLOAT32
    one = Const(1) if kind is Kind.INT else Const(1.0)
    laid, pitch, whole = w.temp(dtype, True), Name("pitch"), Name("whole")
    rows = [Binary(BinOp.LT, Const(1 << i), Name("height")) for i in range(13)]
    doublings = _sum(Choice(test, ONE, ZERO) for test in rows)
    w.sizes.define("doublings", doublings)
    have = Name("have")
    rest = least(have, minus(whole, have))
    double = Op("muls", (View(laid, have), View(laid)), (one,), "", rest)
    body: list[Stmt] = [] if w.even else [op("duplicate", (laid,), (one,), pitch)]
    body += [
        op("muls", (laid, source), (one,), w.sizes.size(w.space.last)),
        Assign("have", pitch),
        For("turn", ZERO, Name("doublings"), ONE, (double, Assign("have", times(have, Const(2))))),
    ]
    path[-1].items.append(Stage(StageKind.COMPUTE, tuple(body)))
    return laid


def _sum(items: Iterable[Expr]) -> Expr:
    result: Expr = ZERO
    for item in items:
        result = plus(result, item)
    return result


def _index(w: Tall, path: Path, value: Value) -> None:
    row = w.row(DType.FLOAT32, True, True)
    first = (Const(0.0),)
    path[-1].items.append(op("create_index", (row,), first, w.sizes.size(w.space.last)))
    path[-1].buffers[value] = _laid(w, path, row, value.kind)


def _reduce(w: Tall, path: Path, value: Value) -> None:
    """Every row to a number."""
    result, spare = w.like(value, hint=value.text), w.temp(DType.FLOAT32, True)
    views = (result, w.vector(path, value.args[0], True), spare)
    cols = w.sizes.size(w.space.last)
    path[-1].items.append(op(f"{value.text}_rows", views, (cols,), Name("m")))
    path[-1].buffers[value] = result


def _fill(w: Tall, path: Path, value: Value) -> None:
    under = value.args[0]
    if w.is_number(under, True):
        emit(w, path, value)
    else:
        path[-1].buffers[value] = w.vector(path, under, True)


_RULES = {"load": _load, "reduce": _reduce, "index": _index, "fill": _fill}


# ---------------------------------------------------------------------------------------- outputs


def _store_rows(w: Tall, path: Path, targets: Sequence[Target]) -> None:
    direct = [target for target in targets if w.even or w.space.last not in target.groups]
    for target in targets if w.copied else direct:
        reserve(w, path, target)
    _ensure(w, path, [t.output.value for t in targets if not is_copy(w, t)])
    held = dict(path[-1].buffers)
    for target in targets:
        path[-1].buffers.update(held)
        if target in direct or (is_copy(w, target) and not w.copied):
            _store(w, path, target)
        elif w.copied:
            _store_each(w, path, target)
        else:
            _store(w, path, _together(w, path, target))


def _store(w: Tall, path: Path, target: Target) -> None:
    w.current, w.flat = target.output.value, True
    store_one(w, path, target)
    w.current, w.flat = None, False


def _store_each(w: Tall, path: Path, target: Target) -> None:
    """Rows one by one to the blocks that they are copied from."""
    output, cols = target.output, w.sizes.size(w.space.last)
    if output.dtype in (DType.FLOAT32, DType.INT32):
        _store(w, path, target)
        whole = path[-1].items.pop()
        assert isinstance(whole, Store)
        path[-1].items.append(replace(whole, count=cols, rows=Name("m"), pitch=cols))
        return
    w.current = output.value
    buffer = w.temp(output.dtype, True, Part.STORED, hint=target.name)
    source = w.vector(path, output.value, True)
    w.current = None
    _each_row(w, path, buffer, source, output.dtype, ((output.dtype, "rint"),))
    span = Span(target.name, w.offset(path, output.groups))
    path[-1].items.append(Store(span, View(buffer), cols, Name("m"), cols))


def _together(w: Tall, path: Path, target: Target) -> Target:
    """The output with its rows as they stand in the tensor."""
    value, output = target.output.value, target.output
    # of all columns, also where it is one number for each row
    moved = w.space.dag.make("fill", value, text="together", kind=value.kind)
    plain = output.dtype in (DType.FLOAT32, DType.INT32)
    w.current = value
    source = w.vector(path, value, True)
    part = Part.STORED if plain else Part.SCRATCH
    dtype = DType.INT32 if value.kind is Kind.INT else DType.FLOAT32
    buffer = w.temp(dtype, True, part, hint=target.name)
    path[-1].buffers[moved] = _gathered(w, path, source, buffer, "together", Name("flat"))
    return replace(target, output=replace(output, value=moved))


def _store_alone(w: Tall, root: Block, target: Target) -> None:
    _ensure(w, (root,), [target.output.value])
    only = Block()
    store_one(w, (root, only), target)
    root.items.append(choice(Binary(BinOp.EQ, CoreId(), ZERO), only))
