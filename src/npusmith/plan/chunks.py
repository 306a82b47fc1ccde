"""How lines are cut into chunks: the host's numbers, and the loop over a core's pieces.

A line is one index along all dealt groups, with a tile of the last one where it is among them. A
piece is a chunk of a line: piece = (line * chunks + chunk) * tiles + tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.ir.nodes import (
    Assign,
    Call,
    ChipFact,
    Const,
    Expr,
    Name,
    ScalarFn,
)
from npusmith.plan.block import Block, Path
from npusmith.plan.host import LEAST_TILE, STEP, TILE, Deal, Sizes
from npusmith.plan.loops import Run, open_outer, part
from npusmith.plan.scalars import (
    ONE,
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
from npusmith.plan.writer import Writer


@dataclass(frozen=True, slots=True)
class Cut:
    """Lines cut along a group: names of host variables."""

    group: int
    deal: Deal  # pieces
    chunks: str  # of a line
    span: str  # indices of a chunk
    width: str = ""  # lanes of a tile that a chunk touches, where the last group is cut


LEAST_ROWS = Const(16)  # rows of a chunk: joining what they come to takes as long as 16 loads


def cut_lines(sizes: Sizes, dealt: frozenset[int], group: int) -> Cut:
    """As many chunks as give every core a piece, none of them tiny."""
    last = sizes.space.last
    outer = tuple(sorted(dealt - {last}))
    mark = str(len(sizes.cuts) + 1) if sizes.cuts else ""
    lines = product(sizes.size(other) for other in outer)
    tile, tiles = _tiles(sizes, mark) if last in dealt else ("", "")
    columns = product((lines, Name(tiles) if tiles else ONE))
    wanted = quotient(ChipFact("vector_cores"), largest(columns, ONE))
    size = sizes.size(group)
    even = shares(size, largest(wanted, ONE))
    rows, elements = largest(even, LEAST_ROWS), largest(even, LEAST_TILE)
    aligned = Call(ScalarFn.ALIGN_UP, (elements, STEP))
    span = sizes.define(f"chunk_size{mark}", aligned if group == last else rows)
    width = sizes.define(f"chunk_width{mark}", least(TILE, span)).id if group == last else ""
    chunks = sizes.define(f"chunks{mark}", largest(shares(size, span), ONE))
    units = sizes.define(f"chunk_pieces{mark}", product((columns, chunks)))
    share = sizes.define(f"{units.id}_per_core", shares(units, Name("cores")))
    deal = Deal(outer, bool(tiles), units.id, share.id, tile, tiles)
    sizes.cuts.append(deal)
    return Cut(group, deal, chunks.id, span.id, width)


def _tiles(sizes: Sizes, mark: str) -> tuple[str, str]:
    """Tiles of the last group, as long as they can be: it is the chunks that keep cores busy."""
    cols = sizes.size(sizes.space.last)
    even = shares(cols, largest(shares(cols, TILE), ONE))
    padded = Call(ScalarFn.ALIGN_UP, (largest(even, ONE), STEP))
    tile = sizes.define(f"chunk_tile{mark}", padded)
    return tile.id, sizes.define(f"chunk_tiles{mark}", shares(cols, tile)).id


def pieces(w: Writer, path: Path, cut: Cut) -> Run:
    """A loop over this core's pieces, with loops inside that keep to its `chunk`."""
    deal, size = cut.deal, w.sizes.size(cut.group)
    first, stop = part(deal)
    groups = (*deal.outer, *((w.space.last,) if deal.tiled else ()))
    block = Block(path[-1].opened | set(groups))
    rest: Expr = Name("piece")
    if deal.tiled:
        _open_tile(w, block, deal)
        rest = quotient(rest, Name(deal.tiles))
    line = w.var(deal.outer[0]) if len(deal.outer) == 1 else "line"
    block.items.append(Assign("chunk", remainder(rest, Name(cut.chunks)) if deal.outer else rest))
    if deal.outer:
        block.items.append(Assign(line, quotient(rest, Name(cut.chunks))))
    start, end = Name("chunk_from"), Name("chunk_to")
    block.items.append(Assign(start.id, times(Name("chunk"), Name(cut.span))))
    block.items.append(Assign(end.id, least(plus(start, Name(cut.span)), size)))
    block.bounds[cut.group] = (start, end)
    block.width = Name(cut.width) if cut.width else None
    open_outer(w, block, deal, line)
    block.head = len(block.items)
    return Run("piece", Name("first"), stop, ONE, block, (first,))


def first_piece(cut: Cut) -> Assign:
    """`base`: the piece of this line's first chunk."""
    step = Name(cut.deal.tiles) if cut.deal.tiled else ONE
    return Assign("base", minus(Name("piece"), times(Name("chunk"), step)))


def _open_tile(w: Writer, block: Block, deal: Deal) -> None:
    at = times(remainder(Name("piece"), Name(deal.tiles)), Name(deal.tile))
    size = w.sizes.size(w.space.last)
    block.items.append(Assign("at", at))
    block.items.append(Assign("n", least(Name(deal.tile), minus(size, Name("at")))))
    block.index[w.space.last] = Name("at")
    block.count = Name("n")
