"""Index maps substituted: reads of inputs at expressions over the indices of a tile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from npusmith.errors import PlanError
from npusmith.ir.nodes import Binary, BinOp, Const, Expr, Name
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom, Dims, leaves
from npusmith.plan.dag import Kind, Value, quotient_of, reachable
from npusmith.plan.held_values import (
    Reading,
    is_inside,
    kept_lane,
    loops_of_kept,
    read_held,
    refused,
)
from npusmith.plan.index import (
    floor_div,
    modulo,
    replaced,
    simple,
)
from npusmith.plan.index_sets import decided, folded
from npusmith.plan.lane_space import (
    LANE,
    LOOP,
    SHARED,
    SHORTEST,
    Lanes,
)
from npusmith.plan.reader import ELEMENT, INDEX, SIZE
from npusmith.plan.scalars import ZERO, largest, minus, plus, product, times
from npusmith.plan.sort_maps import order, ordered
from npusmith.plan.sorts import ORDERED
from npusmith.plan.space import Group, product_of
from npusmith.plan.tile_folds import even, foldable
from npusmith.plan.views import atoms_of
from npusmith.plan.window_maps import windowed

_LONGEST = 1024  # elements of a row that is held on chip, as captured
_MOST, _TIMES = 1000, 4  # values of a program, and more for each of the graph: every resize of a
# resize has eight or sixteen times as many
_FEW = 128  # elements that a reduction inside a tile takes, as captured


Env = Mapping[Atom, Expr]


def _canonical(atom: Atom) -> Atom:
    while atom.same is not None:
        atom = atom.same
    return atom


def _under(expr: Expr) -> list[Expr]:
    """What an expression is a remainder of, innermost last."""
    found: list[Expr] = []
    while isinstance(expr, Binary) and expr.op is BinOp.MOD:
        expr = expr.left
        found.append(expr)
    return found


@dataclass(slots=True)
class Resolver:
    """Substitutes index maps: what is left are reads of inputs at expressions over loop indices."""

    w: Lanes

    def free(self, value: Value) -> frozenset[Atom]:
        """Axes that a value differs along."""
        known = self.w.free
        if value not in known:
            known[value] = self._free(value)
        return known[value]

    def _free(self, value: Value) -> frozenset[Atom]:
        if value.op == "load":
            return frozenset(atoms_of(self.w.layouts[value.text]))
        if value.op == "index":
            return frozenset(leaves(value.axes))
        if value.op in ("const", "count"):
            return frozenset()
        union: frozenset[Atom] = frozenset().union(*(self.free(arg) for arg in value.args))
        if value.op == "reduce":
            return union - set(leaves(value.axes))
        if value.op == "at":
            union -= set(leaves(value.axes))
            return union.union(*(self.named(expr) for expr in value.index))
        return union

    def named(self, expr: Expr) -> frozenset[Atom]:
        """Axes that an index expression differs along."""
        reader = self.w.meaning.reader
        found: set[Atom] = set()
        for name in names(expr):
            if name.startswith(INDEX):
                found |= set(leaves((reader.atoms[int(name[1:])],)))
            if name.startswith(ELEMENT):
                found |= self.free(reader.elements[int(name[1:])].value)
        return frozenset(found)

    # ---- sizes and indices

    def size(self, row: Sequence[Atom]) -> Expr:
        return product(self.w.known[leaf] for leaf in leaves(row))

    def index(self, atom: Atom, env: Env) -> Expr:
        atom = _canonical(atom)
        if atom in env:
            return env[atom]
        if atom.pieces is not None:
            outer, inner = atom.pieces
            return plus(times(self.index(outer, env), self.size((inner,))), self.index(inner, env))
        if atom.pinned or atom.size == 1:
            return ZERO
        raise PlanError("plan-data-movement", f"an axis of {atom.size} has no loop")

    def expr(self, expr: Expr, env: Env) -> Expr:
        reader = self.w.meaning.reader

        def new(name: str) -> Expr | None:
            if name.startswith(INDEX):
                return self.index(reader.atoms[int(name[1:])], env)
            if name.startswith(SIZE):
                return self.size((reader.atoms[int(name[1:])],))
            if name.startswith(ELEMENT):
                tensor = reader.elements[int(name[1:])]
                return self.w.element(self.value(tensor.value, env))
            return None

        return folded(self.w, simple(replaced(expr, new)))

    def bound(self, env: Env, row: Sequence[Atom], expr: Expr) -> dict[Atom, Expr]:
        """The environment in which the row-major index of these axes is `expr`."""
        result = dict(env)
        rest: list[Atom] = [_canonical(atom) for atom in row]
        for at, atom in enumerate(rest):
            inner = self.size(rest[at + 1 :])
            own = (
                floor_div(expr, inner)
                if at == 0
                else modulo(floor_div(expr, inner), self.size((atom,)))
            )
            self._bind(result, atom, own)
        return result

    def _bind(self, env: dict[Atom, Expr], atom: Atom, expr: Expr) -> None:
        atom = _canonical(atom)
        env[atom] = expr
        if atom.pieces is not None:
            outer, inner = atom.pieces
            size = self.size((inner,))
            self._bind(env, outer, floor_div(expr, size))
            self._bind(env, inner, modulo(expr, size))

    def _reading(self) -> Reading:
        return Reading(self.w, self.value, self.index, self.expr)

    # ---- values

    def value(self, value: Value, env: Env) -> Value:
        """The same in a world of lanes and loops."""
        relevant = self.free(value)
        key = (value, frozenset((id(atom), self.index(atom, env)) for atom in relevant))
        if key not in self.w.done:
            most = _MOST + _TIMES * self.w.values
            if len(self.w.done) > most:
                message = f"what is read of one another comes to more than {most} values"
                raise PlanError("plan-depth", message)
            self.w.done[key] = self._value(value, env)
        return self.w.done[key]

    def _value(self, value: Value, env: Env) -> Value:
        dag = self.w.space.dag
        match value.op:
            case "load":
                return self._load(value, env)
            case "const":
                return dag.const(value.number, value.kind)
            case "count":
                return self._count(value)
            case "index":
                at: Expr = ZERO
                for atom in leaves(value.axes):
                    at = plus(times(at, self.size((atom,))), self.index(atom, env))
                return self._place(simple(at))
            case "at":
                return self._at(value, env)
            case "reduce":
                return self._reduce(value, env)
            case "order":
                return order(self._reading(), value, env)
            case "put":
                raise self._refusal(value, "rows are stored by an index")
            case "running":
                raise self._refusal(value, "a scan stands between operations that move elements")
        args = tuple(self.value(arg, env) for arg in value.args)
        known = decided(self.w, value.op, args)
        if known is not None:
            return dag.const(known, Kind.MASK)
        if value.op in ("floordiv", "mod"):
            return quotient_of(dag, value.op, *args)
        if value.op == "mul":
            return product_of(self.w.space, args[0], args[1], value, self._alike)
        return dag.keep(replace(value, args=tuple(args), axes=(), index=(), parts=()))

    def _alike(self, one: Value, two: Value) -> bool:
        return self.w.domain(one) == self.w.domain(two)

    def _refusal(self, value: Value, why: str) -> PlanError:
        return refused(self.w, value, why)

    def _groups(self, expr: Expr) -> tuple[int, ...]:
        return tuple(sorted(self.w.groups(expr)))

    def _place(self, expr: Expr) -> Value:
        dag = self.w.space.dag
        if isinstance(expr, Const):
            return dag.const(float(expr.value))
        return dag.make("place", index=(expr,), axes=self._groups(expr))

    def _load(self, value: Value, env: Env) -> Value:
        assert value.dtype is not None
        dims = self.w.layouts[value.text]
        handed = self.w.handed
        if handed is not None and handed.tensor == value.text:
            address = handed.address({leaf: self.index(leaf, env) for leaf in atoms_of(dims)})
        else:
            address = self._line(dims, env) or self._address(dims, env)
        return self.w.space.dag.keep(
            Value(
                "fetch",
                text=value.text,
                dtype=value.dtype,
                kind=value.kind,
                index=(address,),
                axes=self._groups(address),
            )
        )

    def _line(self, dims: Dims, env: Env) -> Expr | None:
        """The place that all indices were worked out from, where they are those of one place."""
        parts = tuple(leaf for dim in dims for leaf in leaves(dim))
        whole = tuple(atom for dim in dims for atom in dim)
        indices = [self.index(atom, env) for atom in parts]
        for place in _under(indices[-1] if indices else ZERO):
            if _under(indices[0]) and any(name.startswith(ELEMENT) for name in names(place)):
                continue  # a remainder of all elements: what is named may lie beyond them
            for row in (parts, whole):
                expected = self.bound({}, row, place)
                if all(expected.get(a) == i for a, i in zip(parts, indices, strict=True)):
                    return place
        return None

    def _address(self, dims: Dims, env: Env) -> Expr:
        address: Expr = ZERO
        for dim in dims:
            row: Expr = ZERO
            for atom in leaves(dim):
                row = plus(times(row, self.size((atom,))), self.index(atom, env))
            address = plus(times(address, self.size(leaves(dim))), row)
        return simple(address)

    def _count(self, value: Value) -> Value:
        total = self.size(value.axes)
        if value.number:
            total = largest(minus(total, Const(int(value.number))), ZERO)
        return self._place(total)

    def _at(self, value: Value, env: Env) -> Value:
        if value.mode == ORDERED:
            return ordered(self._reading(), value, env)
        index = [self.expr(expr, env) for expr in value.index]
        if value.mode == "kept" and len(index) == 1 and self._keeps(value, index[0]):
            return self._taken(value, env, index[0])
        inner: dict[Atom, Expr] = dict(env)
        start = 0
        for count, expr in zip(value.parts, index, strict=True):
            row = value.axes[start : start + count]
            start += count
            inner = self.bound(inner, row, expr)
        return self.value(value.args[0], inner)

    # ---- values that are held on chip and read at other places

    def _keeps(self, value: Value, expr: Expr) -> bool:
        """Whether holding a whole row on chip is less work than computing what is read of it.

        Where it is read is the same in all tiles, and the row is not much longer than what is.
        """
        operand = value.args[0]
        while operand.op == "at":
            operand = operand.args[0]
        along = self.w.spread(expr)
        if operand.op == "load" or self._reduces(operand):
            return False
        if not along or 0 in along or self.w.groups(expr) != {0}:
            return False
        row = math.prod(leaf.size for leaf in leaves(value.axes))
        return row <= 2 * self.w.captured(sorted(along)) and row <= _LONGEST

    def _reduces(self, value: Value) -> bool:
        return any(item.op in ("reduce", "running", "order") for item in reachable([value]))

    def _taken(self, value: Value, env: Env, expr: Expr) -> Value:
        """The operand along a new axis of the tile, and the elements that are wanted of it."""
        w, inner = self.w, dict(env)
        row = leaves(value.axes)
        for leaf in row:
            self._bind(inner, leaf, Name(f"{LANE}{kept_lane(w, 'read', leaf)}"))
        operand = self.value(value.args[0], inner)
        domain = w.domain(operand)
        own = self.bound({}, row, expr)
        at: Expr = ZERO
        for lane in domain:
            kept = [own[leaf] for leaf in row if w.kept["read", leaf] == lane]
            index = kept[0] if kept else Name(f"{LANE}{lane}")
            at = plus(at, times(index, w.depth(lane, domain)))
        return read_held(w, operand, simple(at))

    # ---- reductions

    def _reduce(self, value: Value, env: Env) -> Value:
        if value in self.w.numbers:
            return self.w.numbers[value]
        found = self._windowed(value, env) or self._folded(value, env)
        return self._looped(value, env) if found is None else found

    def _windowed(self, value: Value, env: Env) -> Value | None:
        """Over windows: what they take in is held on chip once."""
        given = self.w.meaning.reader.windows.get(value)
        if given is None or self._reduces(given.value):
            return None
        return windowed(self._reading(), value, given, env)

    def _folded(self, value: Value, env: Env) -> Value | None:
        """Along axes of the tile, where what is reduced is on chip, or comes with one copy."""
        w, dag, under = self.w, self.w.space.dag, value.args[0]
        free = self.free(under)
        row = [leaf for leaf in leaves(value.axes) if leaf in free]
        if w.part or not row or not foldable(value, row):
            return None
        inner = dict(env)
        if not all(is_inside(w, leaf, env.get(leaf)) for leaf in row):
            if any(leaf in env for leaf in row) or self._moves(under, frozenset(row)):
                return None
            kept = tuple(kept_lane(w, "reduced", leaf) for leaf in row)
            for leaf, lane in zip(row, kept, strict=True):
                self._bind(inner, leaf, Name(f"{LANE}{lane}"))
            if kept not in w.padded and not even(w, kept) and not w.interleaved:
                w.padded.append(kept)
        lanes = [self.index(leaf, inner) for leaf in row]
        if {lane.id for lane in lanes if isinstance(lane, Name)} & self._picked(value, inner):
            return None
        operand = self.value(under, inner)
        rows = tuple(sorted(int(lane.id[1:]) for lane in lanes if isinstance(lane, Name)))
        if operand.kind is Kind.MASK:
            operand = dag.truth(operand)
        if not w.domain(operand) or loops_of_kept(w, operand) or self._too_long(operand):
            return None
        groups = w.space.axes(operand)
        if set(w.domain(operand)) <= set(rows):
            groups = groups - {0} | {SHARED}  # one number, which a tile has to be open for
        axes = tuple(sorted(groups))
        found = dag.make("fold", operand, text=value.text, parts=rows, axes=axes)
        absent = [leaf for leaf in leaves(value.axes) if leaf not in free]
        return self._repeated(value, found, absent)

    def _too_long(self, operand: Value) -> bool:
        """Whether rows of sizes that are numbers have no room in the shortest tile."""
        w = self.w
        inner = [lane for lane in w.domain(operand) if lane]
        numbers = all(isinstance(w.size(lane), Const) for lane in inner)
        with w.among(w.domain(operand)):
            return numbers and not w.alone and w.held_captured() > SHORTEST

    def _picked(self, value: Value, env: Env) -> set[str]:
        """Lanes and loops that say at which of its other axes a reduction is read.

        One of them cannot stand for the axis that it goes along, too.
        """
        w = self.w
        rest = self.free(value.args[0]) - {*leaves(value.axes)}
        exprs = [env[atom] for atom in map(_canonical, rest) if atom in env]
        lanes = {f"{LANE}{lane}" for expr in exprs for lane in w.spread(expr)}
        return lanes | {f"{LOOP}{group}" for expr in exprs for group in w.groups(expr)}

    def _moves(self, value: Value, row: frozenset[Atom]) -> bool:
        """Whether elements stand at places that follow from these axes, as in a window."""
        return any(
            item.op == "at"
            and item.mode != ORDERED
            and any(self.named(expr) & row for expr in item.index)
            for item in reachable([value])
        )

    def _looped(self, value: Value, env: Env) -> Value:
        """By a loop inside the tile over the elements that are reduced."""
        dag = self.w.space.dag
        inner = dict(env)
        groups: list[int] = []
        absent: list[Atom] = []
        free = self.free(value.args[0])
        captured = 1
        for leaf in leaves(value.axes):
            if leaf not in free:
                absent.append(leaf)
                continue
            captured *= leaf.size
            if leaf not in self.w.loops:
                number = len(self.w.space.groups)
                self.w.loops[leaf] = number
                group = Group(number, f"inside{number}", self.w.known[leaf])
                self.w.space.groups = (*self.w.space.groups, group)
            groups.append(self.w.loops[leaf])
            self._bind(inner, leaf, Name(f"{LOOP}{self.w.loops[leaf]}"))
        if {f"{LOOP}{group}" for group in groups} & self._picked(value, env):
            raise self._refusal(value, "it is picked by values along the axis that it goes along")
        if captured > _FEW and value.mode != "loop" and not self.w.part:
            raise self._refusal(value, f"it reduces {captured} elements that have moved")
        operand = self.value(value.args[0], inner)
        present = tuple(g for g in groups if g in self.w.space.axes(operand))
        absent += [
            leaf
            for leaf in leaves(value.axes)
            if self.w.loops.get(leaf) in set(groups) - set(present)
        ]
        return self._repeated(value, dag.reduce(value.text, operand, present), absent)

    def _repeated(self, value: Value, reduced: Value, absent: Sequence[Atom]) -> Value:
        """With every element as often as there are indices along axes that it is the same along."""
        dag = self.w.space.dag
        if not absent or value.text in ("max", "min"):
            return reduced
        times_ = self._place(self.size(absent))
        if value.text == "prod":
            return dag.make("power", reduced, times_)
        return dag.mul(reduced, times_)
