"""Values that are held on chip along axes of their own, and what of them is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from npusmith.errors import PlanError
from npusmith.ir.nodes import Binary, BinOp, Expr, Name
from npusmith.plan.axes import Atom
from npusmith.plan.dag import Value
from npusmith.plan.host import TILE
from npusmith.plan.lane_space import LANE, SHARED, Axis, Lanes, dependencies
from npusmith.plan.refusals import refusal
from npusmith.plan.scalars import ONE, largest, quotient

Env = Mapping[Atom, Expr]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the resolver of index maps knows (index_maps.py)."""

    w: Lanes
    value: Callable[[Value, Env], Value]  # a value in an environment
    index: Callable[[Atom, Env], Expr]  # along an axis
    expr: Callable[[Expr, Env], Expr]  # an index expression in an environment


def refused(w: Lanes, value: Value, why: str) -> PlanError:
    """The error that names the operation of a value."""
    reader = w.meaning.reader
    return refusal(reader.graph, reader.origin.get(value), "plan-data-movement", why)


def is_inside(w: Lanes, leaf: Atom, index: Expr | None) -> bool:
    """Whether a tile holds everything along an axis; `index`: what stands for it."""
    held = w.tiling.lanes[1:]
    return any(index == Name(axis.name) and axis.size == w.known[leaf] for axis in held)


def kept_lane(w: Lanes, use: object, leaf: Atom) -> int:
    """The axis of the tile that values run along which are held on chip, and no output."""
    key = (use, leaf)
    if key not in w.kept:
        w.kept[key] = len(w.tiling.lanes)
        axis = Axis(w.known[leaf], leaf.size, f"{LANE}{w.kept[key]}")
        w.tiling = replace(w.tiling, kept=(*w.tiling.kept, axis))
    return w.kept[key]


def loops_of_kept(w: Lanes, operand: Value) -> bool:
    """Whether a loop reduces what runs along more axes than an output: it leaves these only."""
    values = dependencies([operand], w.elements)
    reduced = [item.args[0] for item in values if item.op == "reduce"]
    return any(not set(w.domain(item)) <= set(w.frame) for item in reduced)


def read_held(w: Lanes, operand: Value, at: Expr) -> Value:
    """Elements of a value that is held on chip; the host tests that it has room."""
    domain = w.domain(operand)
    room = w.area(domain)
    if 0 in domain:
        w.limits.append(quotient(TILE, largest(room, ONE)))
    w.needs.append(Binary(BinOp.LE, room, TILE))
    groups = w.groups(at)
    if 0 not in groups:  # one element: known in front of all tiles, where lanes are
        groups |= {SHARED}
    return w.space.dag.make(
        "taken", operand, kind=operand.kind, index=(at,), axes=tuple(sorted(groups))
    )
