"""Rows in order among the index maps of a tile: it holds whole rows, each in one piece.

An order runs along the rows themselves, or along an axis that is kept for them; elements are taken
of what is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.ir.nodes import Expr, Name
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.dag import Kind, Value
from npusmith.plan.held_values import (
    Env,
    Reading,
    is_inside,
    kept_lane,
    loops_of_kept,
    read_held,
    refused,
)
from npusmith.plan.index import floor_div, modulo, simple
from npusmith.plan.lane_space import LANE, OUTSIDE, Domain, Lanes
from npusmith.plan.scalars import ZERO, plus, product, times
from npusmith.plan.tile_folds import even, stand

_TURNS = 4  # rows that are put in order along one axis, between those along others


def order(r: Reading, value: Value, env: Env) -> Value:
    """Where the elements of whole rows stand, in their order."""
    w, row = r.w, leaves(value.axes)
    held = _held(r, value, row, env)
    operand = held.operand
    if operand.kind is Kind.MASK:
        operand = w.space.dag.truth(operand)
    groups = tuple(sorted(w.space.axes(operand) | {0}))
    made = w.space.dag.make(
        "order", operand, mode=value.mode, parts=held.rows, kind=Kind.INT, axes=groups
    )
    if held.env is env:
        return made
    place: Expr = ZERO
    for leaf in row:
        place = plus(times(place, w.known[leaf]), r.index(leaf, env))
    return _along_row(w, made, held.rows, place)


def ordered(r: Reading, value: Value, env: Env) -> Value:
    """Elements of whole rows, where an order says."""
    held = _held(r, value, leaves(value.axes), env)
    if not set(held.rows) & set(r.w.domain(held.operand)):
        return held.operand
    return _along_row(r.w, held.operand, held.rows, r.expr(value.index[0], env))


@dataclass(frozen=True, slots=True)
class _Held:
    """Whole rows on chip: along which axes of the tile, in which environment, and what is there."""

    env: Env
    rows: Domain
    operand: Value


def _held(r: Reading, value: Value, row: Sequence[Atom], env: Env) -> _Held:
    """What is put in order, where a tile holds whole rows, each in one piece."""
    w = r.w
    if all(is_inside(w, leaf, env.get(leaf)) for leaf in row):
        found = _along(r, value, row, env)
        if found is not None:
            return found
    outside = {name for leaf in row for name in names(r.index(leaf, env))}
    pieces = any(name.startswith(OUTSIDE) for name in outside)
    if w.part or pieces or ("b_from" in outside and w.tiling.outer):
        raise refused(w, value, "rows in order are read in pieces")
    for turn in range(_TURNS):
        kept = _kept(w, row, turn)
        lanes = {leaf: Name(f"{LANE}{lane}") for leaf, lane in zip(row, kept, strict=True)}
        found = _along(r, value, row, {**env, **lanes})
        if found is not None:
            return found
    raise refused(w, value, "rows in order lie across each other")


def _kept(w: Lanes, row: Sequence[Atom], turn: int) -> Domain:
    """Axes of the tile for these rows alone."""
    kept = tuple(kept_lane(w, ("ordered", turn, *row), leaf) for leaf in row)
    if kept not in w.padded and not even(w, kept):
        w.padded.append(kept)
    return kept


def _along(r: Reading, value: Value, row: Sequence[Atom], env: Env) -> _Held | None:
    """Rows along axes of the tile; None where others stand between their elements."""
    w, rows = r.w, _lanes(r, row, env)
    operand = r.value(value.args[0], env)
    if loops_of_kept(w, operand):  # a loop leaves nothing along axes that are kept
        raise refused(w, value, "what is put in order is reduced by a loop")
    domain = w.ordered({*w.domain(operand), *rows})
    stands = list(rows) == sorted(rows) and stand(w, domain, rows)
    return _Held(env, rows, operand) if stands else None


def _lanes(r: Reading, row: Sequence[Atom], env: Env) -> Domain:
    """The axes of the tile that whole rows run along."""
    found: list[int] = []
    for leaf in row:
        place = r.index(leaf, env)
        assert isinstance(place, Name) and place.id.startswith(LANE), place
        found.append(int(place.id[1:]))
    return tuple(found)


def _along_row(w: Lanes, operand: Value, rows: Domain, place: Expr) -> Value:
    """The elements at a place of the rows of what is held on chip."""
    domain = w.domain(operand)
    inside = [lane for lane in rows if lane in domain]
    at: Expr = place if len(inside) == len(rows) else ZERO
    if len(inside) < len(rows):  # the same along the others
        for number, lane in enumerate(rows):
            index = floor_div(place, product(w.size(other) for other in rows[number + 1 :]))
            if lane in inside:
                at = plus(at, times(modulo(index, w.size(lane)), w.depth(lane, domain)))
    for lane in domain:
        if lane not in rows:
            at = plus(at, times(Name(f"{LANE}{lane}"), w.depth(lane, domain)))
    return read_held(w, operand, simple(at))
