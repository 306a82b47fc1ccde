"""The loop over the tiles of an output, and how a tile is cut out of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
    Name,
    ScalarFn,
    Stmt,
)
from npusmith.ir.walk import statements
from npusmith.plan.axes import Atom
from npusmith.plan.block import Block, Path, reads_values, staged
from npusmith.plan.dag import Value, reachable
from npusmith.plan.host import STEP, TILE, Deal
from npusmith.plan.index_maps import Resolver
from npusmith.plan.lane_space import (
    BLOCK,
    LANE,
    SHARED,
    TURN,
    Axis,
    Lanes,
    Tiling,
    dependencies,
    elements_of,
)
from npusmith.plan.loops import Run, Serial, turn
from npusmith.plan.reader import WORTH
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
from npusmith.plan.sorts import ORDERED
from npusmith.plan.tile_broadcasts import Broadcaster
from npusmith.plan.tile_folds import even, padded
from npusmith.plan.value_reads import together

_TURNS, _FEW_ROWS = Const(4), Const(8)  # of tiles of rows for each core, and rows of one
_UNIT = Const(8)  # rows: so many, of whatever length, end with a block of 32 bytes
Body = Callable[[Path, Sequence[Value]], Serial | None]


def _axes(w: Lanes, row: Sequence[Atom]) -> list[Axis]:
    return [Axis(w.known[leaf], leaf.size, "") for leaf in row]


def cut(w: Lanes, row: Sequence[Atom], most: int, apart: frozenset[Atom] = frozenset()) -> Tiling:
    """The innermost axes that are short together go inside; the next one is cut.

    `apart`: axes along which places depend on values: they stay outside, where what is inside of
    them is worth a copy.
    """
    axes = _axes(w, row) or [Axis(ONE, 1, "")]
    free = next((i for i, leaf in enumerate(reversed(row)) if leaf in apart), 0)
    if math.prod(leaf.size for leaf in row[len(row) - free :]) >= WORTH:
        axes, rest = axes[len(row) - free :], axes[: len(row) - free]
    else:
        rest = []
    inner = 0
    size = 1
    while inner < len(axes) - 1:
        size *= max(axes[len(axes) - 1 - inner].captured, 1)  # one of no elements gets some later
        if size > most:
            break
        inner += 1
    axes = [*rest, *axes]
    at = len(axes) - 1 - inner
    named = [
        replace(axis, name=f"o_{i}" if i < at else f"{LANE}{i - at}") for i, axis in enumerate(axes)
    ]
    return Tiling(tuple(named[:at]), named[at], tuple(named[at + 1 :]))


def _by_position(w: Lanes, roots: Sequence[Value]) -> bool:
    """Whether places follow from positions by more than integers, as where a tensor is resized.

    Then tiles that take the same indices of the cut axis come one after another: what follows from
    these is worked out once for them.
    """
    return any(
        all(item.op != "load" for item in reachable([value])) for value in index_tensors(w, roots)
    )


def index_tensors(w: Lanes, roots: Sequence[Value]) -> list[Value]:
    """The index tensors that the places of what these values read depend on.

    Not the orders of rows: what is read by these is on chip.
    """
    held = [element.value for element in w.meaning.reader.elements]
    read = [value for value in dependencies(roots, held) if value.mode != ORDERED]
    return [item for value in read for item in elements_of(value, held)]


def resolved(w: Lanes, roots: Sequence[Value], row: Sequence[Atom], tiling: Tiling) -> list[Value]:
    """Values over the axes of a tile."""
    w.tiling, w.done, w.domains, w.kept, w.together, w.near = tiling, {}, {}, {}, {}, {}
    w.parts, w.folded, w.least = {}, {}, {}
    inside = row[len(row) - len(tiling.inner) :]
    rows = () if w.part or w.interleaved else padded(w, roots, inside)
    if (tiling.turned and not w.interleaved) or (w.filled and tiling.inner):
        rows = (1,)
    w.padded = [rows] if rows and not even(w, rows) else []
    w.now = w.frame
    env: dict[Atom, Expr] = {}
    for leaf, axis in zip(row, (*tiling.outer, *tiling.lanes), strict=False):
        index: Expr = Name(axis.name)
        if axis is tiling.cut:
            index = plus(Name("b_from"), index)
        env[leaf] = plus(axis.first, index)
    if tiling.indices:
        env = dict(zip(row, tiling.indices, strict=True))
    return [Resolver(w).value(root, env) for root in roots]


@dataclass(frozen=True, slots=True)
class Along:
    """Values that run along `row`.

    whole: along all axes of a tile. numbers: so many of the values, the last ones, are numbers of
    rows.
    """

    values: Sequence[Value]
    row: Sequence[Atom]
    whole: bool = True
    numbers: int = 0


def over_tiles(w: Lanes, root: Block, along: Along, tiling: Tiling, mark: str, body_: Body) -> None:
    """The loop over this core's tiles of these values.

    `body_` writes what is done with the values in a tile, and may return what frames some turns of
    the loop.
    """
    values, row, numbers = along.values, along.row, along.numbers
    w.limits, w.needs, w.tables, w.widest, w.unit = [], [], {}, 1, 1
    w.height = Name(f"height{mark}")
    w.block = BLOCK if along.whole and _by_position(w, values) else TURN
    broadcaster = Broadcaster(w)
    made = [broadcaster.value(value) for value in resolved(w, values, row, tiling)]
    if along.whole:
        tiles = len(made) - numbers
        made = [*(broadcaster.along(value, w.frame) for value in made[:tiles]), *made[tiles:]]
    together(w, made)
    if (w.padded or w.alone) and not tiling.indices:
        w.needs.append(Binary(BinOp.LE, w.area(w.frame), TILE))
    inner = w.sizes.define(f"inner{mark}", product(axis.size for axis in tiling.inner))
    body = Block(frozenset({0, SHARED, TURN, w.block}), {0: ZERO})
    before = Block(frozenset({0, SHARED}), {0: ZERO})
    block = Block(frozenset({0, SHARED, w.block}), {0: ZERO})
    around = (root, before) if w.block == TURN else (root, before, block)
    blocks = Name(f"blocks{mark}")
    if w.block == TURN:
        body.items.append(Assign("line", quotient(Name("piece"), blocks)))
        _cut_out(w, body, tiling, mark, remainder(Name("piece"), blocks))
    else:
        _cut_out(w, block, tiling, mark, Name("block"))
    stand(body, tiling)
    known = body if w.block == TURN else block
    known.items += [Assign(name, count) for name, count in w.parts.items()]
    serial = body_((*around, body), made)
    _share(w, mark, tiling, inner, numbers)
    share = Name(f"pieces{mark}_per_core")
    before.items.append(Assign("first", Binary(BinOp.MUL, CoreId(), share)))
    stop = least(plus(Name("first"), share), Name(f"pieces{mark}"))
    if w.block == TURN:
        run = Run("piece", Name("first"), stop, ONE, body)
        turn((root, before), run, lambda _: None, serial)
    else:
        before.items.append(Assign("stop", stop))
        lines = w.sizes.define(f"lines{mark}", product(axis.size for axis in tiling.outer))
        done_before = times(Name("block"), lines)
        start = largest(minus(Name("first"), done_before), ZERO)
        end = least(minus(Name("stop"), done_before), lines)
        block.items.append(For("line", start, end, ONE, staged(body.items)))
        each = largest(lines, ONE)
        before.items.append(
            For(
                "block", quotient(Name("first"), each), shares(Name("stop"), each), ONE,
                staged(block.items),
            )
        )  # fmt: skip
    root.items += _skipped_without_tiles(before.items, Name(f"pieces{mark}"))


def _skipped_without_tiles(items: list[Stmt], pieces: Expr) -> list[Stmt]:
    """A loop over tiles and what stands before it, skipped without tiles where it reads values."""
    reads = any(map(reads_values, statements(tuple(items[:-1]))))
    return [If(Binary(BinOp.GE, pieces, ONE), staged(items))] if reads else items


def _cut_out(w: Lanes, block: Block, tiling: Tiling, mark: str, number: Expr) -> None:
    """The range of the cut axis that a tile takes, and how many lanes it has."""
    height = Name(f"height{mark}")
    block.items.append(Assign("b_from", times(number, height)))
    size = w.sizes.define(f"cut{mark}", tiling.cut.size)
    block.items.append(Assign("m", least(height, minus(size, Name("b_from")))))
    held = w.sizes.define(f"held{mark}", w.area(w.frame)) if w.padded else Name(f"inner{mark}")
    block.items.append(Assign("n", times(Name("m"), held)))


def stand(body: Block, tiling: Tiling) -> None:
    """The indices outside of a tile."""
    rest: Expr = Name("line")
    for i, axis in reversed(list(enumerate(tiling.outer))):
        index = rest if i == 0 else remainder(rest, largest(axis.size, ONE))
        body.items.append(Assign(axis.name, index))
        rest = quotient(rest, largest(axis.size, ONE))


def offset_of(tiling: Tiling) -> Expr:
    """Where a tile begins in the output."""
    if tiling.parts:
        place: Expr = ZERO
        for axis in (*tiling.outer, tiling.cut, *tiling.inner):
            index: Expr = ZERO
            if axis not in tiling.inner:
                index = Name("b_from") if axis is tiling.cut else Name(axis.name)
            place = plus(times(place, axis.whole or axis.size), plus(axis.first, index))
        return place
    inner = product(axis.size for axis in tiling.inner)
    return plus(times(Name("line"), times(tiling.cut.size, inner)), times(Name("b_from"), inner))


def _whole(most: Expr, unit: int) -> Expr:
    """So many units as there is room for, where there is room for one."""
    even = times(quotient(most, Const(unit)), Const(unit))
    return Choice(Binary(BinOp.GE, most, Const(unit)), even, most)


def _even(most: Expr, size: Expr) -> Expr:
    """Parts of nearly one length, as few of them as there would be of the longest."""
    even = shares(size, largest(shares(size, most), ONE))
    return largest(least(Call(ScalarFn.ALIGN_UP, (even, _UNIT)), most), ONE)


def _share(w: Lanes, mark: str, tiling: Tiling, inner: Expr, numbers: int) -> None:
    """Host variables: indices of the cut axis in a tile, tiles, and those of a core.

    `numbers`: so many outputs are numbers of rows, which rows of no elements have, too.
    """
    sizes = w.sizes
    lines = sizes.define(f"lines{mark}", product(axis.size for axis in tiling.outer))
    size = sizes.define(f"cut{mark}", tiling.cut.size)
    fair = sizes.define(f"fair{mark}", shares(times(lines, size), ChipFact("vector_cores")))
    if w.room != TILE:  # several turns for each core, so that what is left over is less
        some = largest(shares(fair, _TURNS), least(fair, _FEW_ROWS))
        fair = sizes.define(f"turn{mark}", some)
    held = Name(f"held{mark}") if w.padded else inner
    most: Expr = quotient(w.room, largest(held, ONE))
    for limit in dict.fromkeys(w.limits):
        most = least(most, limit)
    if w.interleaved:
        most = times(quotient(most, STEP), STEP)
    if w.alone:
        most = sizes.define(f"most{mark}", most)
        if w.unit > 1:  # what a copy has besides is not read
            most = _whole(most, w.unit)
        turns = sizes.define(f"turns{mark}", shares(fair, largest(most, ONE)))
        most = shares(fair, largest(turns, ONE))
    height = largest(least(least(most, fair), size), ONE)
    if w.interleaved:
        sizes.define(f"pitch{mark}", Call(ScalarFn.ALIGN_UP, (Name(f"height{mark}"), STEP)))
    if tiling.unit > 1:
        height = _whole(sizes.define(f"room{mark}", height), tiling.unit)
    elif w.unit == 1 and not w.interleaved:
        height = _even(sizes.define(f"room{mark}", height), size)
    sizes.define(f"height{mark}", height)
    sizes.define(f"blocks{mark}", largest(shares(size, Name(f"height{mark}")), ONE))
    pieces = Binary(BinOp.MUL, lines, shares(size, Name(f"height{mark}")))
    if not numbers and not isinstance(product(axis.size for axis in tiling.inner), Const):
        pieces = Binary(BinOp.MUL, pieces, least(inner, ONE))  # none where the output is empty
    sizes.define(f"pieces{mark}", pieces)
    sizes.define(f"pieces{mark}_per_core", shares(Name(f"pieces{mark}"), Name("cores")))
    sizes.deals[(len(sizes.deals),)] = Deal((), False, f"pieces{mark}", f"pieces{mark}_per_core")
