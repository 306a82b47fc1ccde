"""Expressions over index maps -> a kernel of one pass: every output, tile by tile.

A tile is a stretch of the output in memory: some indices of one axis with all of the axes inside
it. Its elements are the lanes of the vector unit. Each input is read where its index map says:
- the same stretch in memory: one copy;
- a fixed step along each axis: one copy of what lies between, or of rows, and a gather by a table
  of offsets that is made once;
- places that depend on the tile: the same with offsets worked out for each tile;
- places that depend on values, or lie too far apart: element by element.
Reductions over few elements are loops inside a tile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from npusmith.errors import PlanError
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Choice,
    Const,
    Name,
    Note,
    Program,
)
from npusmith.ir.spec import OpSpec
from npusmith.plan.axes import Atom, extent, leaves
from npusmith.plan.axis_sizes import leaf_sizes, legal_sizes
from npusmith.plan.block import Block, Path, choice, staged
from npusmith.plan.dag import Dag, Value
from npusmith.plan.decisions import Decisions
from npusmith.plan.element_stores import free_axes, store_elements
from npusmith.plan.host import TILE, Sizes
from npusmith.plan.index_maps import Resolver
from npusmith.plan.index_sets import AxisRange, parts_of, restricted
from npusmith.plan.index_vectors import place, take
from npusmith.plan.lane_program import program_of, tensors_of
from npusmith.plan.lane_reads import captured
from npusmith.plan.lane_space import (
    WHOLE,
    Lanes,
    LaneSpace,
    RowForm,
    Split,
    Splits,
    Tiling,
    dependencies,
)
from npusmith.plan.names import tensor_name
from npusmith.plan.pack import Packed, Tiles, pack
from npusmith.plan.read import Meaning, check_readable
from npusmith.plan.reader import Combined
from npusmith.plan.row_reads import row_of
from npusmith.plan.scalars import ONE, ZERO, all_of, product
from npusmith.plan.shared_loops import loops_of
from npusmith.plan.sorts import LONGEST
from npusmith.plan.space import Group, Input, Output
from npusmith.plan.stores import Target, ports
from npusmith.plan.strided_rows import Rows, rows_of
from npusmith.plan.tile_broadcasts import broadcast
from npusmith.plan.tile_folds import fold
from npusmith.plan.tile_loops import Along, cut, index_tensors, offset_of, over_tiles, resolved
from npusmith.plan.tile_sorts import has_order, order, whole_rows
from npusmith.plan.tile_stores import store_tile
from npusmith.plan.tile_windows import window
from npusmith.plan.transposed_tiles import Transposed, transposed, write_transposed
from npusmith.plan.used_inputs import inputs_of
from npusmith.plan.value_reads import fetch, together
from npusmith.plan.views import atoms_of
from npusmith.target.chips import Chip

_LEAST = 2  # of them that a tile has room for
_SHORTER = 2  # times, at most, that tiles get where outputs share a loop
_ROWS = 1 << 16  # lanes of a tile whose rows are copied one after another
INNER = (1024, 256, 1)  # most elements of the axes inside the one that is cut
WINDOWS = (1024, 256, 64, 16, 1)  # ... where each takes in a window of many
ROWS = (LONGEST,)  # ... where rows are put in order


Written = tuple[Program, OpSpec, tuple[str, ...]]


def write_with(
    meaning: Meaning, name: str, chip: Chip, decisions: Decisions, splits: Splits,
    form: RowForm = WHOLE,
) -> Written:  # fmt: skip
    """The program of a graph without large reductions. Raises PlanError for others.

    `form`: of rows that are put in order.
    """
    ever = False
    sizes = (
        WINDOWS if meaning.reader.windows else ROWS if has_order(meaning, meaning.roots) else INNER
    )
    for most in decisions.inners(sizes):
        splits.tried.add(most)
        found = _with_shared_loops(meaning, chip, decisions, most, splits, form)
        w, targets, root, inside = (
            found[0] if found else _tiled(meaning, chip, decisions, most, False, splits, form)
        )
        ever = ever or inside
        try:
            packed = found[1] if found else packed_of(w, root, targets, least=most if inside else 1)
        except PlanError as error:
            if error.code == "plan-schedule" or most == sizes[-1] or not inside:
                raise
            continue  # a tile that is a part of one row takes fewer buffers
        if w.in_order or (packed.tile >= most and _fits(w, packed)) or not inside:
            break
    legal = (*w.space.legal, *whole_rows(w, packed.tile))
    if inside and most > packed.tile and not w.in_order:
        message = f"`inner` cannot be {most}: a tile has room for {packed.tile} elements"
        raise PlanError("plan-schedule", message, legal=f"at most {packed.tile}")
    if (ever and not w.in_order) or decisions.asked.inner is not None:
        decisions.inner(most, [item for item in sizes if item < most])
    program = program_of(w, name, targets, packed)
    spec = OpSpec(name, *ports(w.space, targets), legal=legal)
    return program, spec, (*w.space.notes, f"a tile is {packed.tile} elements at most")


W = TypeVar("W", bound=Lanes)
Tiled = tuple[Lanes, list[Target], Block, bool]  # whether there are axes inside the cut one


def _tiled(
    meaning: Meaning,
    chip: Chip,
    decisions: Decisions,
    most: int,
    shared: bool,
    splits: Splits,
    form: RowForm,
) -> Tiled:
    """Loops over the tiles of all outputs, with at most so many elements inside the cut axis."""
    w, targets = prepare(meaning, chip, Lanes)
    w.most, w.decisions, w.splits = most, decisions, splits
    w.in_order, w.form = has_order(meaning, meaning.roots), form
    w.tiles = Tiles(doubled=form.doubled)
    root = Block()
    alone = [
        target for target, row in zip(targets, w.rows, strict=True)
        if shared and _has_own_loop(w, target, row)
    ]  # fmt: skip
    inside = [
        _write_any(w, root, same, targets.index(same[0]))
        for same in loops_of(w, targets, shared, alone)
    ]
    return w, targets, root, any(inside)


def _with_shared_loops(
    meaning: Meaning, chip: Chip, decisions: Decisions, most: int, splits: Splits, form: RowForm
) -> tuple[Tiled, Packed] | None:
    """The same with one loop for outputs that read the same; None where tiles get too short."""
    rows = [atoms_of(out.dims) for out in meaning.outputs]
    if len(set(rows)) == len(rows):
        return None
    with contextlib.suppress(PlanError):
        tiled = _tiled(meaning, chip, decisions, most, True, splits, form)
        w, targets, root, inside = tiled
        packed = packed_of(w, root, targets, least=most if inside else 1)
        tile = packed.tile
        long = tile >= INNER[0] or tile >= _own_tile(meaning, chip, most, form) // _SHORTER
        if long and _fits(w, packed):
            return tiled, packed
    return None


def _own_tile(meaning: Meaning, chip: Chip, most: int, form: RowForm) -> int:
    """Elements of a tile where every output has a loop of its own, whatever a schedule says."""
    w, targets, root, _ = _tiled(meaning, chip, Decisions(), most, False, Splits(), form)
    return packed_of(w, root, targets).tile


def _fits(w: Lanes, packed: Packed) -> bool:
    """Whether windows, as captured, have room in a tile."""
    tests = [Choice(test, ONE, ZERO) for test in w.fits] if w.windows else []
    return all(captured(w, test, packed.tile) for test in tests)


def packed_of(w: Lanes, root: Block, targets: Sequence[Target], least: int = 1) -> Packed:
    taken = {item.name for item in tensors_of(w, targets)} | set(w.sizes.defined) | set(w.names)
    decisions = None if w.alone else w.decisions
    tiles = replace(w.tiles, least=least)
    return pack(staged(root.items), w.temps, taken, w.chip, decisions=decisions, tiles=tiles)


def prepare(meaning: Meaning, chip: Chip, writer: type[W]) -> tuple[W, list[Target]]:
    """A writer for the outputs of a graph, and what they are called."""
    held = [element.value for element in meaning.reader.elements]
    values = dependencies([out.value for out in meaning.outputs], held)
    for value in values:
        for dim in meaning.reader.fixed.get(value, ()):
            for atom in dim:
                atom.fix()
    used = inputs_of(meaning, {value.text for value in values if value.op == "load"})
    for item, _ in used:
        check_readable(item)
    for item, dims in used:
        if len(set(atoms_of(dims))) != len(atoms_of(dims)):
            raise PlanError("plan-repeated-axis", f"input {item.name} runs along one loop twice")
    taken: set[str] = set()
    called = {item.name: tensor_name(item.name, taken) for item, _ in used}
    wanted = [leaf for _, dims in used for leaf in atoms_of(dims)]
    wanted += [leaf for out in meaning.outputs for leaf in atoms_of(out.dims)]
    wanted += [leaf for value in values for leaf in leaves(value.axes)]
    wanted += [leaf for atom in meaning.reader.atoms for leaf in leaves((atom,))]
    wanted += [leaf for out in meaning.outputs for leaf in _placed_along(meaning, out.value)]
    known = leaf_sizes(meaning, used, called, wanted)
    inputs = tuple(Input(item, called[item.name], ()) for item, _ in used)
    groups = (Group(0, "lanes", ONE), Group(1, "turns", ONE))
    space = LaneSpace(groups, inputs, (), 0, Dag(), meaning.reader.graph)
    space.legal = tuple(legal_sizes(meaning, used, called, known))
    space.notes = ()
    w = writer(space, Sizes(space), chip)
    w.meaning, w.shapes, w.layouts = meaning, known, {item.name: dims for item, dims in used}
    w.values = len(values)
    w.known = {leaf: w.sizes.named(expr) for leaf, expr in known.items()}
    w.rules = {"fetch": fetch, "place": place, "broadcast": broadcast, "taken": take, "fold": fold}
    w.rules |= {"window": window, "order": order}
    for given in inputs:
        w.tensors[given.item.name] = given.name
    outputs = meaning.outputs
    targets = []
    for i, out in enumerate(outputs):
        measures = tuple(product(known[leaf] for leaf in leaves(dim)) for dim in out.dims)
        shape = tuple(extent(dim) for dim in out.dims)
        called_ = tensor_name("y" if len(outputs) == 1 else f"y{i}", taken)
        made = Output(out.value, (), measures, shape, out.dtype, meaning.node(i))
        targets.append(Target(made, called_))
    w.rows = [atoms_of(out.dims) for out in outputs]
    return w, targets


def _placed_along(meaning: Meaning, value: Value) -> list[Atom]:
    """The axes of what an output is made of, where a place says where its elements go."""
    found = meaning.reader.combined.get(value)
    return [] if found is None else free_axes(found)


# ---------------------------------------------------------------------------------------- outputs


def _write_any(w: Lanes, root: Block, targets: Sequence[Target], number: int) -> bool:
    """The same of `_write_outputs`, for an output whose elements may be placed by an index."""
    found = _placed(w, targets[0], w.rows[number])
    if found is None:
        return _write_outputs(w, root, targets, number)

    def write(operand: Target, row: tuple[Atom, ...]) -> bool:
        w.rows.append(row)
        return _write_outputs(w, root, [operand], len(w.rows) - 1)

    return store_elements(w, root, targets[0], found, str(number) if number else "", write)


def _placed(w: Lanes, target: Target, row: tuple[Atom, ...]) -> Combined | None:
    """What an output consists of whose elements are placed by an index."""
    found = w.meaning.reader.combined.get(target.output.value)
    return found if found is not None and atoms_of(found.x.dims) == row else None


def _has_own_loop(w: Lanes, target: Target, row: tuple[Atom, ...]) -> bool:
    """Whether an output has a loop of its own: elements are placed, rows copied, or axes turned."""
    if _placed(w, target, row) is not None or transposed(w, target, row) is not None:
        return True
    return _rows_apart(w, [target], row) is not None


def _rows_apart(w: Lanes, targets: Sequence[Target], row: tuple[Atom, ...]) -> Tiling | None:
    """Tiles of rows that are copied one after another; None where they are not."""
    apart = _free(w, targets)
    tiling = cut(w, row, _ROWS)
    return tiling if apart and _in_rows(w, targets[0], row, tiling) else None


def _free(w: Lanes, targets: Sequence[Target]) -> frozenset[Atom]:
    """The axes of index tensors that the places of what outputs read depend on."""
    resolver = Resolver(w)
    elements = index_tensors(w, [target.output.value for target in targets])
    return frozenset[Atom]().union(*(resolver.free(value) for value in elements))


def _write_outputs(w: Lanes, root: Block, targets: Sequence[Target], number: int) -> bool:
    """All tiles of outputs along the same axes; returns whether some are inside the cut one."""
    row = w.rows[number]
    if len(set(row)) != len(row):
        raise PlanError("plan-repeated-axis", f"output {number} runs along one loop twice")
    mark = str(number) if number else ""
    if len(targets) == 1 and (found := transposed(w, targets[0], row)) is not None:
        _write_blocks(w, root, targets[0], row, found, mark)
        return False
    apart = _free(w, targets)
    rows = _rows_apart(w, targets, row) if len(targets) == 1 else None
    if rows is None and (parts := _parts(w, targets, row, apart)):
        inside = [_write_part(w, root, targets, row, apart, part) for part in parts]
        return any(inside)
    return _write_part(w, root, targets, row, apart, (), rows, mark)


def _parts(
    w: Lanes, targets: Sequence[Target], row: Sequence[Atom], apart: frozenset[Atom]
) -> list[tuple[AxisRange, ...]]:
    """What the loop over outputs is split into; nothing where it stays whole."""
    if w.splits.where is Split.NOWHERE:
        return []
    tiling = cut(w, row, w.most, apart)
    stored = [target.output.value for target in targets]
    parts = parts_of(w, row, tiling, lambda tiles: resolved(w, stored, row, tiles))
    if len(parts) < 2:
        return []
    w.splits.made = True
    return parts


def _write_part(
    w: Lanes, root: Block, targets: Sequence[Target], row: tuple[Atom, ...],
    apart: frozenset[Atom], parts: tuple[AxisRange, ...], rows: Tiling | None = None,
    mark: str = "",
) -> bool:  # fmt: skip
    """All tiles of outputs along the same axes, or of these parts of their axes."""
    if parts:
        w.rows.append(row)
        mark = str(len(w.rows) - 1)
    ordered = has_order(w.meaning, [target.output.value for target in targets])
    tiling, most, w.room = rows, _ROWS, Const(_ROWS)
    if tiling is None:
        most, w.room = w.most if ordered or not w.in_order else INNER[1], TILE
        tiling = restricted(cut(w, row, most, apart), parts)
    short, long = Block(), Block()
    bursts = _rows_read(w, targets, row, tiling) if tiling.inner and rows is None else []
    w.apart = bool(bursts) and all(isinstance(item.cols, Const) for item in bursts)
    always = w.apart
    write_tiles(w, short, targets, row, tiling, mark)
    w.room, w.apart = TILE, False
    if not tiling.inner and not w.needs:
        root.items += short.items
        return False
    room = TILE if ordered else Const(most)
    fits = all_of([Binary(BinOp.LE, Name(f"inner{mark}"), room), *w.needs])
    if ordered:
        root.items += short.items
        w.whole_rows.append(fits)
        return True
    if bursts and not always:
        short = _with_bursts(w, targets, row, tiling, mark, short)
    short.items.insert(0, Note("rows inside of a tile are short"))
    long.items.append(Note("a tile is a part of one row"))
    w.part = True
    write_tiles(w, long, targets, row, restricted(cut(w, row, 0, apart), parts), f"{mark}x")
    w.part = False
    root.items.append(choice(fits, short, long))
    w.fits.append(fits)
    return True


def _rows_read(
    w: Lanes, targets: Sequence[Target], row: Sequence[Atom], tiling: Tiling
) -> list[Rows]:
    """Rows that lie apart in memory and are worth copies of just these, as captured."""
    values = resolved(w, [target.output.value for target in targets], row, tiling)
    together(w, values)
    found: list[Rows | None] = []
    for value in dependencies(values, w.elements):
        with w.along(value):
            found.append(rows_of(w, value))
    return [rows for rows in found if rows is not None]


def _with_bursts(
    w: Lanes,
    targets: Sequence[Target],
    row: Sequence[Atom],
    tiling: Tiling,
    mark: str,
    other: Block,
) -> Block:
    """The same tiles with rows copied by themselves, where sizes allow that; others as they are."""
    short, both = Block(), Block()
    w.apart = True
    write_tiles(w, short, targets, row, tiling, f"{mark}r")
    w.apart = False
    short.items.insert(0, Note("rows are whole blocks"))
    both.items.append(choice(all_of(w.needs), short, other))
    return both


def _write_blocks(
    w: Lanes, root: Block, target: Target, row: tuple[Atom, ...], found: Transposed, mark: str
) -> None:
    """All blocks of two axes; parts of rows where the host finds that they do not fit."""
    short, long = Block(), Block()
    if not (needs := write_transposed(w, short, target, row, found, mark)):
        root.items += short.items
        return
    w.part = True
    write_tiles(w, long, [target], row, cut(w, row, 0), f"{mark}x")
    w.part = False
    root.items.append(choice(all_of(needs), short, long))


def _in_rows(w: Lanes, target: Target, row: Sequence[Atom], tiling: Tiling) -> bool:
    """Whether an output is nothing but rows that values name, several of which are in a tile."""
    if not tiling.inner:
        return False
    value = resolved(w, [target.output.value], row, tiling)[0]
    return value.dtype is target.output.dtype and row_of(w, value) is not None


def write_tiles(
    w: Lanes, root: Block, targets: Sequence[Target], row: Sequence[Atom], tiling: Tiling,
    mark: str, numbers: Sequence[Target] = (),
) -> None:  # fmt: skip
    """Outputs along the same axes, tile by tile, and those that are numbers of their rows."""
    outputs = (*targets, *numbers)

    def store(path: Path, values: Sequence[Value]) -> None:
        for at, (target, value) in enumerate(zip(outputs, values, strict=True)):
            done = replace(target, output=replace(target.output, value=value, groups=(0,)))
            if at < len(targets):
                store_tile(w, path, done, offset_of(tiling), len(outputs) == 1)
                continue
            with w.among((0,)):
                store_tile(w, path, done, offset_of(replace(tiling, inner=())), False)

    values = [target.output.value for target in outputs]
    over_tiles(w, root, Along(values, row, numbers=len(numbers)), tiling, mark, store)
