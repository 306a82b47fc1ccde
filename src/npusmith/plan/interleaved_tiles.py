"""Tiles whose innermost axis on chip is the one that is cut: for operators of many small matrices.

No axis inside of the cut one is long enough for a vector there. So an element of a matrix is a row
of as many lanes as a tile has matrices (the layout of batched linear algebra on vector units).
Reductions along short axes are additions of whole rows; an operand that lacks some short axes is
read where it stands, in a loop over the others. Gathers bring elements together when they are
loaded, and apart when they are stored.

The sizes of the short axes are numbers here: the program is for the captured ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Const,
    Expr,
    For,
    If,
    Load,
    Name,
    Op,
    Span,
    Stage,
    StageKind,
    Stmt,
    Store,
    View,
)
from npusmith.ir.nodes import Value as Read
from npusmith.plan.block import Block, Part, Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.emit import buffer_dtype
from npusmith.plan.host import STEP, TILE
from npusmith.plan.index import poly
from npusmith.plan.index_vectors import int_buffer, tile_buffer
from npusmith.plan.lane_reads import affine, captured, span_of
from npusmith.plan.lane_reads import fetch as fetch_alike
from npusmith.plan.lane_space import MOST_SHARE, Domain, Lanes, dependencies
from npusmith.plan.passes import ensure
from npusmith.plan.scalars import ONE, ZERO, floating, least, minus, plus, product, quotient, times
from npusmith.plan.stores import Target, stored
from npusmith.plan.widening import Copied, widened
from npusmith.plan.writer import Rule, dtype_of, op

_LANES = int(STEP.value)  # of the shortest tile
_SPARSE = 4  # times as many elements are read as are used, at most
_JOIN = {"sum": "add", "max": "max", "min": "min"}
_NEUTRAL = {"sum": 0.0, "max": -float("inf"), "min": float("inf")}
_IN_PLACE = ("add", "sub", "mul", "div", "max", "min")
_ONCE = ("fetch", "fold", "broadcast", "const", "count", "contract", "axpy")  # rules of their own

Slot = tuple[tuple[int, int], ...]  # an index along each short axis of a number


@dataclass(slots=True)
class Interleaved(Lanes):
    """A writer of such tiles."""

    interleaved: bool = True
    users: dict[Value, set[Value]] = field(default_factory=dict)
    roots: tuple[Value, ...] = ()  # what is stored
    raws: dict[Value, str] = field(default_factory=dict)  # buffers of what was loaded before
    slots: dict[Value, Expr] = field(default_factory=dict)  # numbers of a slice: where each stands
    strides: dict[Value, dict[int, Expr]] = field(default_factory=dict)  # of numbers as loaded
    scalars: dict[Value, dict[Slot, Expr]] = field(default_factory=dict)  # numbers by their indices

    @property
    def pitch_of_cut(self) -> Expr:
        """Elements from one index of the other axes to the next."""
        assert isinstance(self.height, Name)
        if self.tiling.indices:
            return self.height  # strips are as long as that
        return Name(self.height.id.replace("height", "pitch"))

    def ordered(self, lanes: Iterable[int]) -> Domain:
        return tuple(sorted(lanes, key=lambda lane: (lane == 0, lane)))

    def depth(self, lane: int, domain: Domain | None = None) -> Expr:
        if self.flat:
            own = sorted(self.now if domain is None else domain)
            return product(self.size(other) for other in own if other > lane)
        own_ = self.now if domain is None else domain
        below = own_[own_.index(lane) + 1 :]
        return product(self.size(other) if other else self.pitch_of_cut for other in below)

    def area(self, domain: Domain) -> Expr:
        return product(self.size(lane) for lane in domain if lane)

    def count(self, path: Path, wide: bool) -> Expr:
        if not wide:
            return ONE
        if self.flat:
            return times(Name("m") if 0 in self.now else ONE, self.area(self.now))
        return times(self.area(self.now), self.pitch_of_cut if 0 in self.now else ONE)

    def _share(self) -> int:
        """Which part of a tile is enough; `widest`: elements of the largest matrix."""
        own = self.captured(lane for lane in self.now if lane)
        ratio = self.widest // own if 0 in self.now else MOST_SHARE
        share = min(1 << max(ratio.bit_length() - 1, 0), MOST_SHARE)
        room = quotient(TILE, Const(share))
        if 0 in self.now:
            self.limits.append(quotient(room, Const(own)))
        else:
            self.needs.append(Binary(BinOp.LE, Const(own), room))
        return share

    def is_number(self, value: Value, wide: bool) -> bool:
        return value in self.slots or Lanes.is_number(self, value, wide)

    def number(self, path: Path, value: Value) -> Expr:
        if value in self.slots:
            return Read(View(self.held(path, value), self.slots[value]))
        return Lanes.number(self, path, value)

    def vector(self, path: Path, value: Value, wide: bool) -> str:
        if not wide or value not in self.slots:
            return Lanes.vector(self, path, value, wide)
        spread = path[-1].spread
        key = value, self.now
        if key not in spread:
            spread[key] = self.temp(dtype_of(value), True)
            count, number = self.count(path, True), self.number(path, value)
            path[-1].items.append(op("duplicate", (spread[key],), (number,), count))
        return spread[key]

    # ---- what is computed

    def apply(self, rule: Rule, path: Path, value: Value) -> None:
        """A value, whole or slice by slice where operands lack some of its axes."""
        if value.kind is Kind.LONG or value.op in ("place", "taken", "window", "scalar", "reduce"):
            raise PlanError("plan-data-movement", f"{value.op} has no form in such tiles")
        if value.op in _ONCE or not self.space.wide(value):
            rule(self, path, value)
            return
        own = self.now
        args = [arg for arg in dict.fromkeys(value.args) if self.domain(arg)]
        if all(self.domain(arg) == own for arg in args):
            if any(arg in self.strides for arg in args):
                raise PlanError("plan-data-movement", "numbers stand in another order on chip")
            rule(self, path, value)
            return
        if 0 not in own:
            raise PlanError("plan-data-movement", "numbers along different short axes meet")
        self._in_slices(rule, path, value, args)

    def _ends(self, path: Path, value: Value, arg: Value) -> bool:
        """Whether a value may be computed in the buffer of an operand that nobody needs later."""
        alike = self.domain(arg) == self.now and arg.kind is value.kind
        if value.op not in _IN_PLACE or not alike or arg in self.roots:
            return False
        held = self.find(path[-1:], arg)
        later = [user for user in self.users[arg] if user != value and not self.find(path, user)]
        return held is not None and self.temps[held].part is Part.SCRATCH and not later

    def slot(self, value: Value) -> Expr:
        """Where the number of the short axes stands that the loops are at."""
        strides = self.strides.get(value)
        if strides is None:
            return place(self, self.domain(value))
        at: Expr = ZERO
        for lane, step in strides.items():
            at = plus(at, times(Name(f"along{lane}"), step))
        return at

    def _in_slices(self, rule: Rule, path: Path, value: Value, args: Sequence[Value]) -> None:
        wide = [self.domain(arg) for arg in args if 0 in self.domain(arg)]
        numbers = [arg for arg in args if 0 not in self.domain(arg)]
        inner = suffix(self.now, *wide)
        while any(set(self.domain(arg)) & set(inner) for arg in numbers):
            inner = inner[1:]
        held = {self.held(path, arg): self.domain(arg) for arg in args}
        free = next((arg for arg in args if self._ends(path, value, arg)), None)
        result = self.stored.pop(value, None)
        result = result or (self.held(path, free) if free is not None else self.like(value))
        held[result] = own = self.now
        inside = Block(path[-1].opened)
        self.stored[value] = result
        self.slots = {arg: self.slot(arg) for arg in numbers}
        with self.among(inner):
            rule(self, (*path, inside), value)
        self.slots = {}
        places = {name: place(self, domain, inner) for name, domain in held.items() if 0 in domain}
        items = [_moved(item, places) for item in inside.items]
        outer = [lane for lane in own if lane not in inner]
        path[-1].items.append(stage(loops(self, outer, items)))
        path[-1].buffers[value] = result


def suffix(*domains: Domain) -> Domain:
    """The last axes that all of them end with: one instruction goes over these."""
    found: Domain = ()
    while all(len(domain) > len(found) for domain in domains):
        longer = {domain[-1 - len(found) :] for domain in domains}
        if len(longer) > 1:
            break
        found = longer.pop()
    return found


def place(
    w: Lanes, domain: Domain, inner: Domain = (), known: dict[int, Expr] | None = None
) -> Expr:
    """Where the slice along `inner` begins that the loops around it are at."""
    at: Expr = ZERO
    for lane in domain[: len(domain) - len(inner)]:
        index = (known or {}).get(lane, Name(f"along{lane}"))
        at = plus(at, times(index, w.depth(lane, domain)))
    return at


def loops(w: Lanes, lanes: Sequence[int], body: Sequence[Stmt], first: int = 0) -> tuple[Stmt, ...]:
    """Loops over short axes, the first one outermost; `first`: where that one begins."""
    made = tuple(body)
    for lane in reversed(lanes):
        start = Const(first if lane == lanes[0] else 0)
        made = (For(f"along{lane}", start, w.size(lane), ONE, made),)
    return made


def stage(body: tuple[Stmt, ...]) -> Stage:
    """Statements that compute."""
    return Stage(StageKind.COMPUTE, body)


def _moved(item: Stmt, places: dict[str, Expr]) -> Op:
    assert isinstance(item, Op), item
    views = tuple(
        replace(view, offset=places[view.buffer]) if view.buffer in places else view
        for view in item.views
    )
    return replace(item, views=views)


# ---------------------------------------------------------------------------------------- reduced


def fold(w: Interleaved, path: Path, value: Value) -> None:
    """Rows of lanes added up (or joined otherwise), one reduced axis after the other outermost."""
    (operand,) = value.args
    own, kept = w.domain(operand), w.domain(value)
    if 0 not in kept:
        raise PlanError("plan-data-movement", "a reduction goes along no vector of such a tile")
    inner = suffix(own, kept)
    reduced = [lane for lane in own if lane not in kept]
    outer = [lane for lane in kept if lane not in inner]
    result, source = w.like(value, hint=f"row_{value.text}"), w.held(path, operand)
    to = View(result, place(w, kept, inner))
    with w.among(inner):
        count = w.count(path, True)
    first = 0
    if len(reduced) == 1 and w.captured(reduced) > 1:
        two = [View(source, place(w, own, inner, {reduced[0]: Const(at)})) for at in range(2)]
        both = op(_JOIN[value.text], (to, *two), (), count)
        path[-1].items.append(stage(loops(w, outer, [both])))
        first = 2
    else:
        with w.among(kept):
            whole = w.count(path, True)
        path[-1].items.append(op("duplicate", (result,), (Const(_NEUTRAL[value.text]),), whole))
    turn = op(f"accumulate_{value.text}", (to, View(source, place(w, own, inner))), (), count)
    if first < w.captured(reduced):
        path[-1].items.append(stage(loops(w, [*reduced, *outer], [turn], first)))
    path[-1].buffers[value] = result


def broadcast(w: Interleaved, path: Path, value: Value) -> None:
    """Lay a value out along short axes that it does not differ along."""
    (operand,) = value.args
    one = Const(1) if value.kind is Kind.INT else Const(1.0)

    def copy(w: Interleaved, path: Path, value: Value) -> None:
        result = w.stored.pop(value)
        if w.is_number(operand, True):
            number = w.number(path, operand)
            path[-1].items.append(op("duplicate", (result,), (number,), w.count(path, True)))
            return
        source = w.held(path, operand)
        path[-1].items.append(op("muls", (result, source), (one,), w.count(path, True)))

    w._in_slices(copy, path, value, [operand])


# ----------------------------------------------------------------------------------- memory


def fetch(w: Interleaved, path: Path, value: Value) -> None:
    """Bring elements on chip by rows of lanes: one copy of what lies between, and gathers."""
    if not w.space.wide(value):
        fetch_alike(w, path, value)
        return
    found = affine(w, value.index[0])
    if found is None or value.kind is Kind.LONG:
        raise PlanError("plan-data-movement", f"{value.text} is read where values say")
    by = dict(zip(w.now, found[1], strict=True))
    if 0 not in w.now:
        fetch_alike(w, path, value)
        return
    assert value.dtype is not None
    w.ready(path, value.index[0])
    steps = {lane: step.expr() for lane, step in by.items()}
    rest: Expr = ONE  # elements for one index of the cut axis
    for lane in w.now[:-1]:
        if any(number < 0 for _, number in by[lane].terms):
            raise PlanError("plan-data-movement", f"{value.text} is read backwards")
        rest = plus(rest, times(minus(w.size(lane), ONE), steps[lane]))
    step, rest = steps[0], poly(rest).expr()
    if not by[0].terms or captured(w, step) > _SPARSE * w.captured(w.now[:-1]) + 64:
        raise PlanError("plan-data-movement", f"{value.text} is read far apart")
    if poly(rest) != by[0]:
        w.needs.append(Binary(BinOp.LE, rest, step))
    with w.whole_tile():
        raw = tile_buffer(w, buffer_dtype(value.dtype), Part.LOADED, hint=w.tensors[value.text])
    w.limits.append(quotient(TILE, step))
    reach = poly(plus(times(minus(Name("m"), ONE), step), rest)).expr()
    path[-1].items.append(Load(View(raw), span_of(w, path, value, found[0]), reach))
    with w.whole_tile():
        source = widened(w, path, value, Copied(raw, reach), True)
    result = w.like(value)
    one: Expr = Const(1) if value.kind is Kind.INT else Const(1.0)
    fill = op("duplicate", (result,), (one,), w.count(path, True))
    partial = Binary(BinOp.LT, Name("m"), w.pitch_of_cut)
    shift: Expr = ZERO
    for lane in w.now[:-1]:
        shift = plus(shift, times(Name(f"along{lane}"), times(steps[lane], Const(4))))
    to = View(result, place(w, w.now, (0,)))
    table = _spread(w, path, step)
    one_row = op("gather", (to, View(source), View(table)), (shift,), Name("m"))
    path[-1].items.append(stage((If(partial, (fill,), ()), *loops(w, w.now[:-1], [one_row]))))
    path[-1].buffers[value] = result


def _spread(w: Interleaved, path: Path, step: Expr) -> str:
    """Byte offsets of elements so far apart, one for each lane; made once."""
    key = ("spread", step)
    if key not in w.tables:
        with w.among((0,)):
            table = int_buffer(w)
            count = w.count(path, True)
        path[0].items.append(op("create_index", (table,), (ZERO,), count))
        path[0].items.append(op("muls", (table, table), (times(step, Const(4)),), count))
        w.tables[key] = table
    return w.tables[key]


def store(w: Interleaved, path: Path, target: Target, start: Expr) -> None:
    """Store an output as its tensor has it: 64 matrices at a time."""
    value, output = target.output.value, target.output
    ensure(w, path, [value])
    inner = int(w.captured(w.frame[:-1]))
    if inner > 1:
        plain = output.dtype is dtype_of(value)
        part, hint = (Part.STORED, target.name) if plain else (Part.SCRATCH, "")
        moved = w.space.dag.make("packed", value, kind=value.kind)
        buffer = w.temp(dtype_of(value), True, part, hint=hint)
        at = Name("matrix")
        rows = least(STEP, minus(Name("m"), at))
        views = (
            View(buffer, times(at, Const(inner))),
            View(w.held(path, value)),
            View(_order(w, path, inner)),
        )
        turn = op("gather", views, (times(at, Const(4)),), times(rows, Const(inner)))
        path[-1].items.append(stage((For(at.id, ZERO, Name("m"), STEP, (turn,)),)))
        path[-1].buffers[moved] = buffer
        target = replace(target, output=replace(output, value=moved))
    with w.unpadded():
        buffer = stored(w, path, target, True)
        path[-1].items.append(Store(Span(target.name, start), View(buffer), w.count(path, True)))


def _order(w: Interleaved, path: Path, inner: int) -> str:
    """Byte offsets of the elements of 64 matrices, one matrix after the other; made once.

    Element e is in row e % inner, lane e // inner: in float32, which is exact and can floor.
    """
    key = ("order", inner)
    if key not in w.tables:
        lanes = _LANES * inner
        e, t = (w.temp(DType.FLOAT32, False, lanes=lanes) for _ in range(2))
        table, count = w.temp(DType.INT32, False, lanes=lanes), Const(lanes)
        path[0].items += [
            op("create_index", (e,), (Const(0.0),), count),
            op("adds", (t, e), (Const(0.5),), count),
            op("muls", (t, t), (Const(1.0 / inner),), count),
            op("cast", (t, t), (), count, "floor"),
            op("axpy", (e, t), (Const(-float(inner)),), count),
            op("muls", (e, e), (floating(w.pitch_of_cut),), count),
            op("add", (e, e, t), (), count),
            op("muls", (e, e), (Const(4.0),), count),
            op("cast", (table, e), (), count, "rint"),
        ]
        w.tables[key] = table
    return w.tables[key]


def begin(w: Interleaved, roots: Sequence[Value]) -> None:
    """Note who uses what, and how large matrices are."""
    w.users, w.roots, w.widest = {}, tuple(roots), 1
    for value in dependencies(roots, w.elements):
        if 0 in w.domain(value):
            w.widest = max(w.widest, w.captured(lane for lane in w.domain(value) if lane))
        for arg in value.args:
            w.users.setdefault(arg, set()).add(value)
