"""Programs for axes that are short as captured, and the host's test that they are.

Two forms: many rows in a tile, and tiles of many small matrices (interleaved_tiles.py).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from npusmith.errors import PlanError
from npusmith.ir.nodes import Binary, BinOp, Choice, Const, Dim, Expr, Name
from npusmith.ir.walk import names, subexpressions
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.block import Block, Path
from npusmith.plan.dag import Value, reachable
from npusmith.plan.host import TILE
from npusmith.plan.interleaved_tiles import Interleaved, begin, broadcast, fetch, fold, store
from npusmith.plan.lane_program import program_of
from npusmith.plan.lane_reads import captured
from npusmith.plan.lane_space import LANE, OUTSIDE, Axis, Lanes, Tiling
from npusmith.plan.lanes import INNER, packed_of, prepare, write_tiles
from npusmith.plan.node_kinds import SHORT
from npusmith.plan.pack import Packed
from npusmith.plan.read import Meaning
from npusmith.plan.repeats import rolled
from npusmith.plan.resident_rows import STEP, TILES, rows_of, tiles_of, write_rows
from npusmith.plan.scalars import ONE, ZERO, all_of
from npusmith.plan.scalars import same as equal
from npusmith.plan.shared_loops import loops_of, numbers_of
from npusmith.plan.stores import Target
from npusmith.plan.tile_folds import LONGEST, longest
from npusmith.plan.tile_loops import Along, cut, offset_of, over_tiles
from npusmith.plan.tile_numbers import write_numbers
from npusmith.plan.versions import FITS, SHORT_AXES, Version, guarded
from npusmith.target.chips import Chip

_LEAST = 2  # rows that a tile has room for
_LANES = 64  # ... and matrices
_AREA = 256  # elements of a matrix
_MANY = "rows are short as captured: many in a tile"


def write_short(many: Sequence[Expr], meaning: Meaning, name: str, chip: Chip) -> Version | None:
    """The version for rows that are short, and `many`: fewer keep no core busy for long.

    Outputs that run along the same axes are made in one loop, where a tile has room for them all.
    None where it has room for few rows. Raises PlanError for what it cannot hold.
    """
    together = None
    if len(meaning.outputs) > 1:
        with contextlib.suppress(PlanError):
            together = _short(many, meaning, name, chip, True)
    return together or _short(many, meaning, name, chip, False)


def _short(
    many: Sequence[Expr], meaning: Meaning, name: str, chip: Chip, together: bool
) -> Version | None:
    w, targets = prepare(meaning, chip, Lanes)
    long = longest([target.output.value for target in targets]) > INNER[0]
    w.most, w.alone = LONGEST if long else INNER[0], True
    root = Block()
    fits = write_numbers(w, root, [target.output.value for target in targets])

    def outer_axes(same: list[Target]) -> int:
        return -len(w.rows[targets.index(same[0])])

    loops = sorted(loops_of(w, targets, together), key=outer_axes)  # numbers of rows come last
    for number, same in enumerate(loops):
        mark, row = f"_{number}", w.rows[targets.index(same[0])]
        most = w.most // longest([target.output.value for target in same], row)
        tiling = cut(w, row, most)
        numbers = numbers_of(w, targets, loops, same, len(tiling.outer) + 1) if together else []
        write_tiles(w, root, same, row, tiling, mark, [item for part in numbers for item in part])
        for part in numbers:
            loops.remove(part)
        fits += [Binary(BinOp.LE, Name(f"inner{mark}"), Const(w.most)), *w.needs]
    packed = packed_of(w, root, targets)
    if not captured(w, Choice(all_of(fits), ONE, ZERO), packed.tile // _LEAST):
        return None
    fit = Choice(all_of([*fits, *many]), ONE, ZERO)
    program = program_of(w, name, targets, packed)
    return guarded(program, [FITS], {**w.sizes.defined, FITS: fit}, _MANY)


# --------------------------------------------------------------------------------- small matrices


def write_interleaved(meaning: Meaning, name: str, chip: Chip) -> Version | None:
    """The version for small matrices of the captured sizes; for all, where the model fixes these.

    None for graphs of another kind. Raises PlanError for what such tiles cannot hold.
    """
    reader, roots = meaning.reader, [out.value for out in meaning.outputs]
    values = reachable(roots)
    reduced = {leaf for item in values if item.op == "reduce" for leaf in leaves(item.axes)}
    if not reduced or reader.elements or reader.windows or reader.combined:
        return None
    w, targets = prepare(meaning, chip, Interleaved)
    w.rules = {"fetch": fetch, "fold": fold, "broadcast": broadcast}
    w.alone = True
    found = [_inner(row, reduced) for row in w.rows]
    short = {leaf for inner in found for leaf in inner} | reduced
    if any(leaf.size > SHORT for leaf in short) or not any(leaf.model for leaf in short):
        return None
    tests = _as_captured(w, short)
    root = Block()
    for number, target in enumerate(targets):
        row = w.rows[number]
        _write_matrices(w, root, target, row, len(found[number]), f"_{number}")
        tests += _room(w, _LANES)
    packed = packed_of(w, root, targets)
    return _tested(w, name, targets, replace(packed, body=rolled(packed.body)), tests)


def write_resident(meaning: Meaning, name: str, chip: Chip) -> Version | None:
    """The same for long rows that stay on chip while short axes go over them."""
    reader = meaning.reader
    if reader.elements or reader.windows or reader.combined:
        return None
    w, targets = prepare(meaning, chip, Interleaved)
    w.rules = {"fold": fold, "broadcast": broadcast}
    w.alone, w.tiles = True, TILES
    rows = rows_of(w, targets)
    if rows is None:
        return None
    tests = _as_captured(w, {*rows.short, *rows.single})
    root = Block()
    most = write_rows(w, root, targets, rows)
    tests += _room(w, STEP)
    w.tiles = tiles_of(w, rows, most, packed_of(w, root, targets).tile)
    return _tested(w, name, targets, packed_of(w, root, targets), tests)


def _as_captured(w: Interleaved, short: Collection[Atom]) -> list[Expr]:
    """Sizes of short axes are numbers from here on: what the host has to test."""
    tests: list[Expr] = []
    for leaf in sorted(short, key=lambda leaf: str(w.known[leaf])):
        if not isinstance(w.shapes[leaf], Const):
            tests.append(equal(w.shapes[leaf], Const(leaf.size)))
        w.known[leaf] = Const(leaf.size)
    return tests


def _tested(
    w: Interleaved, name: str, targets: Sequence[Target], packed: Packed, tests: Sequence[Expr]
) -> Version | None:
    """The program with its test; None where that does not hold at the captured sizes."""
    certain = [test for test in tests if not set(names(test)) - {TILE.id} and not _dims(test)]
    if not all(captured(w, Choice(test, ONE, ZERO), packed.tile) for test in certain):
        return None
    tests = [test for test in tests if test not in certain]
    program = program_of(w, name, targets, packed)
    if not tests:
        return Version(program, note=SHORT_AXES)
    fit = Choice(all_of(tests), ONE, ZERO)
    if not captured(w, fit, packed.tile):
        return None
    return guarded(program, [FITS], {**w.sizes.defined, FITS: fit}, SHORT_AXES)


def _room(w: Interleaved, least: int) -> list[Expr]:
    """What the last loop needs, and that a tile has room for so many elements of the cut axis."""
    room = Const(least)
    return [*w.needs, *(Binary(BinOp.GE, limit, room) for limit in dict.fromkeys(w.limits))]


def _dims(test: Expr) -> bool:
    return any(isinstance(item, Dim) for item in subexpressions(test))


def _inner(row: Sequence[Atom], reduced: Collection[Atom]) -> Sequence[Atom]:
    """The axes of a small matrix among those of an output: the longest axis before them is cut."""
    best = len(row)
    for at in range(len(row) - 1, -1, -1):
        inner = row[at + 1 :]
        if any(leaf.size > SHORT for leaf in inner) or math.prod(i.size for i in inner) > _AREA:
            break
        if any(leaf in reduced for leaf in row[: at + 1]):
            continue
        if best == len(row) or row[at].size > row[best].size:
            best = at
    return row[best + 1 :]


def _write_matrices(
    w: Interleaved, root: Block, target: Target, row: Sequence[Atom], inner: int, mark: str
) -> None:
    axes = [Axis(w.known[leaf], leaf.size, "") for leaf in row] or [Axis(ONE, 1, "")]
    at = len(axes) - 1 - inner
    named = [
        replace(axis, name=f"{OUTSIDE}{i}" if i < at else f"{LANE}{i - at}")
        for i, axis in enumerate(axes)
    ]
    tiling = Tiling(tuple(named[:at]), named[at], tuple(named[at + 1 :]))

    def body(path: Path, values: Sequence[Value]) -> None:
        begin(w, values)
        (value,) = values
        done = replace(target, output=replace(target.output, value=value, groups=(0,)))
        store(w, path, done, offset_of(tiling))

    over_tiles(w, root, Along([target.output.value], row), tiling, mark, body)
