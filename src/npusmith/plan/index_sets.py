"""Index set splitting: an output in whose loop a position is compared becomes several loops.

What is joined, padded or rolled is, at every element, one of several things by where it stands
(`select` of a comparison). The loop is split along an axis where the comparison changes: within
each part it is a constant, places need no clamps, and one piece is read, not all. Parts of an axis
inside a tile are rows that are stored apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from npusmith.errors import PlanError
from npusmith.ir.nodes import Binary, BinOp, Call, Const, Expr, Name, ScalarFn
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom
from npusmith.plan.dag import COMPARES, Value, reachable
from npusmith.plan.index import Poly, bound, bounds, is_positive, poly, replaced, simple, steps
from npusmith.plan.lane_reads import captured
from npusmith.plan.lane_space import LANE, Axis, Lanes, Split, Tiling, dependencies
from npusmith.plan.reader import ELEMENT
from npusmith.plan.scalars import ONE, ZERO, minus, plus, times

_MOST = 12  # loops that one becomes
_KEPT = 1 << 16  # index expressions: each form of a kernel asks about the same ones
_CUT = "cut"  # stands for the index along the axis that is cut: b_from + ~0
_OF_ELEMENTS = ("load", "reduce", "running", "put")
_ARITHMETIC = {"add": plus, "sub": minus, "mul": times}
_BELOW = {"lt": ZERO, "ge": ZERO, "le": ONE, "gt": ONE}  # a < b changes at b, a <= b behind it


@dataclass(frozen=True, slots=True)
class AxisRange:
    """Indices of one axis of an output, by its place in it: from `first` on, `size` of them."""

    at: int
    first: Expr
    size: Expr
    captured: int


def compares_positions(roots: Sequence[Value]) -> bool:
    """Whether anything depends on where it stands, by a comparison without elements."""
    compared = [value for value in reachable(roots) if value.op in COMPARES]
    return any(
        all(item.op not in _OF_ELEMENTS for item in reachable([value])) for value in compared
    )


Part = tuple[AxisRange, ...]


def parts_of(
    w: Lanes, row: Sequence[Atom], tiling: Tiling, resolve: Callable[[Tiling], list[Value]]
) -> list[Part]:
    """The parts that the loop over an output's tiles is split into; one: it is not split.

    `resolve`: what is stored, over the indices of these tiles. Where one part needs no split along
    a later axis, it has none: the rows above an image that is padded are one part, whole.
    """
    found = _edges(w, resolve(tiling), tiling)
    whole: list[Part] = [()]
    for at, edges in sorted(found.items()):
        finer: list[Part] = []
        for part in whole:
            own = edges
            if part:
                own = _edges(w, resolve(restricted(tiling, part)), tiling).get(at, {})
            ways = _cut(w, row, at, list(own.values())) if own else []
            finer += [(*part, way) for way in ways] if len(ways) > 1 else [part]
        if len(finer) <= _MOST:
            whole = finer
    return whole


def _edges(w: Lanes, values: Sequence[Value], tiling: Tiling) -> dict[int, dict[Poly, Expr]]:
    """By axis, the indices at which what is stored becomes something else."""
    held = w.elements
    found: dict[int, dict[Poly, Expr]] = {}
    for value in dependencies(values, held):
        if value.op in _BELOW:
            at, edge = _edge(w, value, tiling) or (-1, ZERO)
            if at < 0:
                continue
            inside = at > len(tiling.outer)
            (w.splits.inside if inside else w.splits.outside).add(w.most)
            if not inside or w.splits.where is Split.ANYWHERE:
                found.setdefault(at, {})[poly(edge)] = edge
    return found


def _edge(w: Lanes, value: Value, tiling: Tiling) -> tuple[int, Expr] | None:
    """The axis that a comparison changes along, and the first index where it is another."""
    left, right = (_position(arg) for arg in value.args)
    if left is None or right is None:
        return None
    expr = _with_cut(minus(left, right))
    axes = [axis.name for axis in (*tiling.outer, tiling.cut, *tiling.inner)]
    axes[len(tiling.outer)] = _CUT
    found = steps(expr, axes)
    if found is None:
        return None
    base, by = found
    moving = {name: step.number for name, step in by.items() if step.terms}
    if len(moving) != 1 or set(names(base)) - set(w.sizes.defined):
        return None
    name, step = next(iter(moving.items()))
    at = axes.index(name)
    if step == 1:
        return at, simple(plus(minus(ZERO, base), _BELOW[value.op]))
    if step == -1:
        return at, simple(plus(base, minus(ONE, _BELOW[value.op])))
    return None


def _position(value: Value) -> Expr | None:
    """Arithmetic on positions as an index expression."""
    if value.op == "place":
        return value.index[0]
    if value.op == "const" and float(value.number).is_integer():
        return Const(int(value.number))
    if value.op not in _ARITHMETIC:
        return None
    left, right = (_position(arg) for arg in value.args)
    return None if left is None or right is None else _ARITHMETIC[value.op](left, right)


@lru_cache(maxsize=_KEPT)
def _with_cut(expr: Expr) -> Expr:
    """The index along the axis that is cut as one name, where nothing else tells its parts."""
    lane = f"{LANE}0"
    index = minus(Name(_CUT), Name("b_from"))
    return simple(replaced(expr, lambda name: index if name == lane else None))


def _cut(w: Lanes, row: Sequence[Atom], at: int, edges: Sequence[Expr]) -> list[AxisRange]:
    """An axis cut at these indices; those are left out that may lie outside of it."""
    size, have = w.known[row[at]], row[at].size
    ends: list[Expr] = [ZERO]
    for edge in sorted(edges, key=lambda expr: captured(w, expr)):
        inside = 0 < captured(w, edge) < have and captured(w, edge) > captured(w, ends[-1])
        if inside and _holds(w, minus(edge, ends[-1])) and _holds(w, minus(size, edge)):
            ends.append(edge)
    ends.append(size)
    return [
        AxisRange(at, first, _named(w, minus(last, first)), captured(w, minus(last, first)))
        for first, last in pairwise(ends)
    ]


def _named(w: Lanes, size: Expr) -> Expr:
    """A size as it is called: rows of that many elements are then seen to be whole."""
    wanted = poly(_expanded(w, size))
    same = (name for name, given in w.sizes.defined.items() if poly(_expanded(w, given)) == wanted)
    name = next(same, "")
    return Name(name) if name else simple(size)


def _holds(w: Lanes, expr: Expr) -> bool:
    """Whether an expression over sizes is at least 0 at all sizes that the operator serves."""
    expr = _expanded(w, expr)
    if is_positive(expr):
        return True
    wanted, compared, number = bound(expr)
    for test in w.space.legal:
        match test:
            case Binary(op, left, Const(value)) if op is compared and left == wanted:
                if (value >= number) if op is BinOp.GE else (value <= number):
                    return True
    return False


def _expanded(w: Lanes, expr: Expr) -> Expr:
    """Over the shapes of inputs."""
    defined = w.sizes.defined
    found = w.expanded.get(expr, expr)
    while not defined.keys().isdisjoint(names(found)):
        found = replaced(found, defined.get)
    w.expanded[expr] = found
    return found


def restricted(tiling: Tiling, parts: Sequence[AxisRange]) -> Tiling:
    """The tiles of these parts of axes."""
    axes = [*tiling.outer, tiling.cut, *tiling.inner]
    for part in parts:
        axis = axes[part.at]
        axes[part.at] = replace(
            axis, size=part.size, captured=part.captured, first=part.first, whole=axis.size
        )
    at = len(tiling.outer)
    return replace(tiling, outer=tuple(axes[:at]), cut=axes[at], inner=tuple(axes[at + 1 :]))


def row_of_part(tiling: Tiling) -> tuple[Expr, Expr] | None:
    """Elements of a row of a tile, and from one to the next in the output, where they lie apart."""
    cols: Expr = ONE
    pitch: Expr = ONE
    found: tuple[Expr, Expr] | None = None
    for axis in reversed(tiling.inner):
        cols, pitch = times(axis.size, cols), times(axis.whole or axis.size, pitch)
        if axis.whole is not None:
            if found is not None:
                raise PlanError("plan-data-movement", "two axes of a tile are split")
            found = cols, pitch
            cols = pitch  # what is outside of it has rows of the whole
    return found


def lanes_of_part(tiling: Tiling) -> tuple[int, ...]:
    """The axes of such a row, by their places among those of a tile; none where none is split."""
    split = [at for at, axis in enumerate(tiling.inner, 1) if axis.whole is not None]
    return tuple(range(split[0], len(tiling.inner) + 1)) if split else ()


# ----------------------------------------------------------------------------- within a part


Ranges = Mapping[str, tuple[Expr, Expr]]


def folded(w: Lanes, expr: Expr) -> Expr:
    """An index expression without clamps that nothing in these parts of axes needs."""
    if not w.tiling.parts:
        return expr
    if expr not in w.folded:
        w.folded[expr] = _folded(w, expr, _ranges(w.tiling))
    return w.folded[expr]


def _ranges(tiling: Tiling) -> Ranges:
    axes: list[Axis] = [*tiling.outer, *tiling.inner]
    known = {axis.name: (ZERO, minus(axis.size, ONE)) for axis in axes}
    return {**known, _CUT: (ZERO, minus(tiling.cut.size, ONE))}


def _folded(w: Lanes, expr: Expr, ranges: Ranges) -> Expr:
    match expr:
        case Binary(op, left, right):
            return Binary(op, _folded(w, left, ranges), _folded(w, right, ranges))
        case Call(ScalarFn.MAX | ScalarFn.MIN as fn, (left, right)):
            left, right = _folded(w, left, ranges), _folded(w, right, ranges)
            for one, other in ((left, right), (right, left)):
                # min(x, max(a, b)) is x where x <= a; max(x, min(a, b)) is x where x >= a
                match other:
                    case Call(ScalarFn.MAX | ScalarFn.MIN as inner, tried) if inner is not fn:
                        pass
                    case _:
                        tried = (other,)
                for edge in tried:
                    more = minus(one, edge) if fn is ScalarFn.MAX else minus(edge, one)
                    if _is_least(w, more, ranges):
                        return one
            return Call(fn, (left, right))
        case _:
            return expr


def _is_least(w: Lanes, expr: Expr, ranges: Ranges) -> bool:
    """Whether an index expression is nowhere below 0; elements of index tensors may be."""
    if expr not in w.least:
        found = None
        if not any(name.startswith(ELEMENT) for name in names(expr)):
            found = bounds(_with_cut(expr), ranges)
        w.least[expr] = found is not None and _holds(w, found[0])
    return w.least[expr]


def decided(w: Lanes, op: str, args: Sequence[Value]) -> bool | None:
    """What a comparison of positions comes to in these parts of axes, where it is one thing."""
    if not w.tiling.parts or op not in _BELOW:
        return None
    left, right = (_position(arg) for arg in args)
    if left is None or right is None:
        return None
    ranges = _ranges(w.tiling)
    apart = minus(left, right) if op in ("ge", "lt") else minus(right, left)
    if _is_least(w, apart, ranges):
        return op in ("ge", "le")
    if _is_least(w, minus(minus(ZERO, apart), ONE), ranges):
        return op in ("lt", "gt")
    return None
