"""Long rows that several outputs need, or several terms of a sum: each is loaded once.

Takes expressions in which some short axes are not those of every tensor: rows of n streams that
small matrices mix, products of all pairs of rows. Gives one loop over strips of the long axis for
all outputs. A tile has all indices along the short axes of one strip, the strip innermost
(interleaved_tiles.py); what lacks the long axis are numbers, and enters as scalars
(contractions.py). Sums along the long axis are added up over the strips of a line (row_sums.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    ChipFact,
    Const,
    CoreId,
    Expr,
    For,
    Name,
    ScalarFn,
)
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.block import Block, Path, staged
from npusmith.plan.contractions import Contraction, axpy, contract, read_all
from npusmith.plan.dag import Kind, Value, reachable
from npusmith.plan.host import TILE, Deal
from npusmith.plan.interleaved_tiles import Interleaved, begin
from npusmith.plan.lane_reads import captured
from npusmith.plan.lane_space import (
    BLOCK,
    LANE,
    OUTSIDE,
    SHARED,
    TURN,
    Axis,
    Domain,
    Tiling,
)
from npusmith.plan.node_kinds import SHORT
from npusmith.plan.pack import Tiles
from npusmith.plan.resident_copies import fetch, load, store_rows
from npusmith.plan.row_sums import Sums
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
from npusmith.plan.stores import Target
from npusmith.plan.tile_broadcasts import Broadcaster
from npusmith.plan.tile_loops import resolved, stand

_SHORTEST = 256  # elements: a strip is not cut below, even where cores are left without work
STEP = 128  # elements of a strip: 512 B, so that all rows start in the same bank group
_TILE_STEP = 1024  # elements
# Strips are long, so that few instructions make them: rows are converted and given back early
TILES = Tiles(largest=32768, doubled=False)


@dataclass(frozen=True, slots=True)
class Rows:
    """What is known of such a graph."""

    outer: tuple[Atom, ...]  # axes of every tensor
    short: tuple[Atom, ...]
    cut: Atom
    single: tuple[Atom, ...]  # of size 1, and not of every tensor
    summed: frozenset[Value]  # outputs that are sums along the long axis


def rows_of(w: Interleaved, targets: Sequence[Target]) -> Rows | None:
    """The axes of a graph of this kind; None for others."""
    tensors = [tuple(leaf for dim in dims for leaf in leaves(dim)) for dims in w.layouts.values()]
    tensors += [leaves(row) for row in w.rows]
    inputs = tensors[: len(w.layouts)]
    ends = {row[-1] for row in inputs if row and row[-1].size > SHORT}
    roots = [target.output.value for target in targets]
    if len(ends) != 1 or not all(tensors):
        return None
    (cut,) = ends
    common = set.intersection(*(set(row) for row in tensors)) - {cut}
    single = {leaf for row in tensors for leaf in row if leaf.size == 1} - common
    tensors = [tuple(leaf for leaf in row if leaf not in single) for row in tensors]
    summed = frozenset(
        root for root, row in zip(roots, w.rows, strict=True)
        if cut not in leaves(row) and root.op == "reduce" and leaves(root.axes) == (cut,)
        and root.text == "sum" and root.kind is Kind.FLOAT
    )  # fmt: skip
    outputs = tensors[len(w.layouts) :]
    order = max(outputs, key=lambda row: len(set(row) - {cut}))
    reduced: dict[Atom, None] = {}
    for value in reachable([root.args[0] if root in summed else root for root in roots]):
        if value.op == "reduce":
            reduced |= dict.fromkeys(leaves(value.axes))
    every = dict.fromkeys([*order, *(leaf for row in tensors for leaf in row), *reduced])
    short = tuple(leaf for leaf in every if leaf not in {*common, *single, cut})
    outer = tuple(leaf for leaf in order if leaf in common)
    legal = (
        short and outer and cut not in reduced and not set(reduced) & {*common, *single}
        and all(leaf.size <= SHORT for leaf in short)
        and all(row[: len(outer)] == outer for row in tensors)
        and all(
            cut in leaves(row) or root in summed
            for root, row in zip(roots, w.rows, strict=True)
        )
    )  # fmt: skip
    wide = [set(row) for row in inputs if cut in row]
    again = any(set(short) & set(leaves(row)) - one for one in wide for row in w.rows)
    numbers = any(cut not in row and set(short) & set(row) for row in inputs)
    mixed = bool(reduced or summed or numbers)  # else each row is one operand of one output
    found = Rows(outer, short, cut, tuple(single), summed)
    return found if legal and again and mixed else None


def write_rows(w: Interleaved, root: Block, targets: Sequence[Target], rows: Rows) -> Expr:
    """The loop over strips that stores all outputs; returns the elements of the longest strip."""
    w.rules |= {"fetch": fetch, "contract": contract, "axpy": axpy}
    made = _values(w, targets, rows)
    before = Block(frozenset({0, SHARED}), {0: ZERO})
    line = Block(frozenset({0, SHARED, TURN}), {0: ZERO})
    strip = Block(frozenset({0, SHARED, TURN, w.block}), {0: ZERO})
    path = (root, before, line, strip) if rows.summed else (root, before, strip)
    _stand(w, path, rows)
    sums = _store_all(w, path, targets, made, rows)
    most = _share(w, rows)
    if rows.summed:
        line.items.append(For("b_from", ZERO, Name("cut"), Name("height"), staged(strip.items)))
        for item in sums:
            item.store()
    stop = least(plus(Name("first"), Name("pieces_per_core")), Name("pieces"))
    root.items += [
        Assign("first", Binary(BinOp.MUL, CoreId(), Name("pieces_per_core"))),
        For("piece", Name("first"), stop, ONE, staged(path[2].items)),
    ]
    return most


def _values(w: Interleaved, targets: Sequence[Target], rows: Rows) -> list[Value]:
    """What a strip is for each output, over the axes of a tile."""
    outer = tuple(
        Axis(w.known[leaf], leaf.size, f"{OUTSIDE}{i}") for i, leaf in enumerate(rows.outer)
    )
    inner = tuple(
        Axis(w.known[leaf], leaf.size, f"{LANE}{i}") for i, leaf in enumerate(rows.short, 1)
    )
    cut = Axis(w.known[rows.cut], rows.cut.size, f"{LANE}0")
    indices = (
        *(Name(axis.name) for axis in (*outer, *inner)),
        plus(Name("b_from"), Name(cut.name)),
        *(ZERO for _ in rows.single),
    )
    w.limits, w.needs, w.tables, w.widest = [], [], {}, 1
    w.height, w.block = Name("height"), BLOCK if rows.summed else TURN
    row = (*rows.outer, *rows.short, rows.cut, *rows.single)
    roots = [target.output.value for target in targets]
    given = [value.args[0] if value in rows.summed else value for value in roots]
    broadcaster = Broadcaster(w)
    tiling = Tiling(outer, cut, inner, indices=indices)
    made = [broadcaster.value(value) for value in resolved(w, given, row, tiling)]
    made = Contraction(w, made).values()
    # of a sum of products only the factors are computed as they are
    parts = [
        value.args if root in rows.summed and value.op == "mul" else (value,)
        for root, value in zip(roots, made, strict=True)
    ]
    begin(w, [item for part in parts for item in part])
    return made


def _stand(w: Interleaved, path: Path, rows: Rows) -> None:
    """Where a strip is: which line, from where on, and how long."""
    body, strip = path[2], path[-1]
    if rows.summed:
        body.items.append(Assign("line", Name("piece")))
    else:
        at = times(remainder(Name("piece"), Name("strips")), Name("height"))
        body.items.append(Assign("line", quotient(Name("piece"), Name("strips"))))
        body.items.append(Assign("b_from", at))
    stand(body, w.tiling)
    size = w.sizes.define("cut", w.tiling.cut.size)
    strip.items.append(Assign("m", least(Name("height"), minus(size, Name("b_from")))))


def _store_all(
    w: Interleaved, path: Path, targets: Sequence[Target], made: Sequence[Value], rows: Rows
) -> list[Sums]:
    """All outputs of a strip: rows are stored, sums added to those of the strips before."""
    lanes = {leaf: at for at, leaf in enumerate(rows.short, 1)} | {rows.cut: 0}
    own: list[Domain] = [
        tuple(lanes[leaf] for leaf in leaves(row) if leaf in lanes) for row in w.rows
    ]
    whole = [at for at, target in enumerate(targets) if target.output.value not in rows.summed]
    rest = [at for at in range(len(targets)) if at not in whole]
    sums = [Sums(w, path, targets[at], made[at], own[at]) for at in rest]
    _load_all(w, path, [made[at] for at in (*whole, *rest)])
    for at in whole:
        store_rows(w, path, targets[at], made[at], own[at])
    for item in sums:
        item.add()
    return sums


def _load_all(w: Interleaved, path: Path, roots: Sequence[Value]) -> None:
    """Everything that is read, before anything is computed.

    Numbers of a whole line are read as scalars when its rows have been asked for, those of a strip
    before: their copy would wait for that of the rows.
    """
    reads = [item for item in reachable(roots) if item.op == "fetch"]
    numbers = [item for item in reads if 0 not in w.domain(item)]
    for item in numbers:
        load(w, path, item)
    given = [item for item in numbers if item in w.strides]
    if len(path) == 3:
        read_all(w, path, given)
    for item in reads:
        if item not in numbers:
            load(w, path, item)
    if len(path) > 3:
        read_all(w, path, given)


def tiles_of(w: Interleaved, rows: Rows, most: Expr, tile: int) -> Tiles:
    """The shortest tile with as few strips of a row, as captured, as the longest one that fits."""

    def strips(tile: int) -> int:
        return -(-rows.cut.size // max(captured(w, most, tile), 1))

    fewest = strips(tile)
    enough = (item for item in range(_TILE_STEP, tile, _TILE_STEP) if strips(item) == fewest)
    return replace(TILES, largest=next(enough, tile))


def _share(w: Interleaved, rows: Rows) -> Expr:
    """Host variables: strips of about one length, and those of a core; returns the longest."""
    sizes, size = w.sizes, largest(Name("cut"), ONE)
    most: Expr = TILE
    for limit in dict.fromkeys(w.limits):
        most = least(most, limit)
    step = Const(STEP)
    most = times(largest(quotient(most, step), ONE), step)  # a test of the room comes after this
    lines = sizes.define("lines", product(axis.size for axis in w.tiling.outer))
    fewest: Expr = shares(size, most)
    if not rows.summed:
        fair = shares(ChipFact("vector_cores"), largest(lines, ONE))
        fewest = largest(fewest, least(fair, shares(size, Const(_SHORTEST))))
    even = shares(size, sizes.define("fewest", fewest))
    sizes.define("height", Call(ScalarFn.ALIGN_UP, (even, step)))
    strips = sizes.define("strips", shares(Name("cut"), Name("height")))
    sizes.define("pieces", lines if rows.summed else times(lines, strips))
    sizes.define("pieces_per_core", shares(Name("pieces"), Name("cores")))
    sizes.deals[(len(sizes.deals),)] = Deal((), False, "pieces", "pieces_per_core")
    return most
