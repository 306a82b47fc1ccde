"""Tiles of two axes: where an output runs along one axis and an input along another.

A tile is a block of both. It comes on chip in rows along the input's innermost axis, is brought
into the output's order by one gather, and leaves in rows along the output's innermost axis. Axes
that every input goes through as if they were one are one, so that rows are long.

The output's innermost axis is taken in stretches; what is left of it is a loop of its own, so that
all rows of a loop are equally long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Expr, If, Name, Note, Store, View
from npusmith.ir.nodes import Span as Place
from npusmith.plan.axes import Atom
from npusmith.plan.block import Block, Path, staged
from npusmith.plan.dag import Value
from npusmith.plan.index import Poly, poly, simple, steps
from npusmith.plan.lane_space import LANE, OUTSIDE, Axis, Lanes, Tiling, dependencies
from npusmith.plan.padded_rows import store_rows
from npusmith.plan.passes import ensure
from npusmith.plan.scalars import ONE, ZERO, least, plus, product, quotient, remainder, times
from npusmith.plan.stores import Target, stored
from npusmith.plan.stores import reserve as reserve_output
from npusmith.plan.tile_loops import Along, index_tensors, over_tiles, resolved

STRETCH = 64  # elements of the output's innermost axis in a tile; axes that are shorter are short
_SECTOR = 128  # bytes of a line that come from memory together
_TYPES = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
_OTHER = ("order", "reduce", "running", "put", "index", "count")  # no arithmetic of single elements


@dataclass(frozen=True, slots=True)
class Run:
    """Axes of an output that all of its inputs go through as if they were one."""

    leaves: tuple[Atom, ...]
    size: Expr
    captured: int


@dataclass(frozen=True, slots=True)
class Transposed:
    """The axes of an output, and which of them an input has innermost."""

    runs: tuple[Run, ...]
    across: int
    unit: int  # elements of 128 bytes of that input: rows of whole sectors are read fastest


def transposed(w: Lanes, target: Target, row: Sequence[Atom]) -> Transposed | None:
    """The axes of an output whose inputs are far apart along its innermost one; None for others."""
    value = target.output.value
    held = [element.value for element in w.meaning.reader.elements]
    if target.output.dtype not in _TYPES or index_tensors(w, [value]):
        return None
    if any(item.op in _OTHER for item in dependencies([value], held)):
        return None
    found = _reads(w, value, row)
    reads = [read for read, _ in found]
    if not reads:
        return None
    long = [at for at, leaf in enumerate(row) if w.known[leaf] != ONE]
    runs: list[list[int]] = []
    for at in long:
        size = poly(w.known[row[at]])
        if runs and all(read[runs[-1][-1]] == read[at] * size for read in reads):
            runs[-1].append(at)
        else:
            runs.append([at])
    made = [_run(w, [row[at] for at in run]) for run in runs]
    if not made or made[-1].captured < STRETCH:
        return None
    for read, dtype in found:
        along = [read[run[-1]] for run in runs]
        for at, step in enumerate(along[:-1]):
            if step == poly(ONE) and along[-1].terms and made[at].captured >= STRETCH:
                return Transposed(tuple(made), at, _SECTOR // dtype.bytes)
    return None


def _run(w: Lanes, leaves: Sequence[Atom]) -> Run:
    captured = 1
    for leaf in leaves:
        captured *= leaf.size
    return Run(tuple(leaves), product(w.known[leaf] for leaf in leaves), captured)


def _reads(w: Lanes, value: Value, row: Sequence[Atom]) -> list[tuple[list[Poly], DType]]:
    """Of every read its steps along the axes of the output; none where one has no such steps."""
    axes = [Axis(w.known[leaf], leaf.size, f"{OUTSIDE}{at}") for at, leaf in enumerate(row)]
    (made,) = resolved(w, [value], row, Tiling(tuple(axes), Axis(ONE, 1, f"{LANE}0"), ()))
    found: list[tuple[list[Poly], DType]] = []
    for item in dependencies([made], []):
        if item.op == "fetch" and item.dtype in _TYPES:
            known = steps(item.index[0], [axis.name for axis in axes])
            if known is None:
                return []
            found.append(([known[1][axis.name] for axis in axes], item.dtype))
        elif item.op != "const" and not item.args:
            return []
    return found


def write_transposed(
    w: Lanes, root: Block, target: Target, row: Sequence[Atom], found: Transposed, mark: str
) -> list[Expr]:
    """All blocks of an output: first those of whole stretches, then what is left.

    Returns what the host has to test for that.
    """
    last = found.runs[-1].size
    whole, rest = (w.sizes.named(of(last, Const(STRETCH))) for of in (quotient, remainder))
    some = w.sizes.named(least(rest, ONE))
    captured = found.runs[-1].captured
    outside = Name(f"{OUTSIDE}{len(found.runs)}")
    stretches = Axis(whole, captured // STRETCH, outside.id)
    left = Axis(some, 1, outside.id)
    root.items.append(Note("a tile is a block of two axes"))
    start = times(outside, Const(STRETCH))
    tiling = _tiling(found, row, stretches, Const(STRETCH), start)
    _write(w, root, target, row, tiling, mark)
    needs = w.needs
    after = Block()
    after.items.append(Note("what is left of the innermost axis"))
    tiling = _tiling(found, row, left, rest, times(whole, Const(STRETCH)))
    _write(w, after, target, row, tiling, f"{mark}r")
    root.items.append(If(Binary(BinOp.GT, rest, ZERO), staged(after.items)))
    none = Binary(BinOp.EQ, rest, ZERO)
    return [*needs, *(Binary(BinOp.OR, none, need) for need in w.needs)]


def _tiling(
    found: Transposed, row: Sequence[Atom], stretches: Axis, size: Expr, start: Expr
) -> Tiling:
    """`start`: of the stretch along the innermost axis; `size`: its elements."""
    outer: list[Axis] = []
    index: dict[Atom, Expr] = dict.fromkeys(row, ZERO)
    offset: Expr = ZERO
    run = found.runs[found.across]
    cut = Axis(run.size, run.captured, f"{LANE}0")
    pitch = product(other.size for other in found.runs[found.across + 1 :])
    for at, run in enumerate(found.runs):
        below = product(other.size for other in found.runs[at + 1 :])
        first: Expr = Name(f"{OUTSIDE}{at}")
        own = first
        if at == len(found.runs) - 1:
            first, own = start, plus(start, Name(f"{LANE}1"))
        elif at == found.across:
            first = Name("b_from")
            own = plus(first, Name(cut.name))
        else:
            outer.append(Axis(run.size, run.captured, f"{OUTSIDE}{at}"))
        index[run.leaves[-1]] = own
        offset = plus(offset, times(first, below))
    inner = Axis(size, STRETCH, f"{LANE}1")
    indices = tuple(index[leaf] for leaf in row)
    whole = Tiling((*outer, stretches), cut, (inner,))
    return replace(whole, indices=indices, start=simple(offset), pitch=pitch, unit=found.unit)


def _write(
    w: Lanes, root: Block, target: Target, row: Sequence[Atom], tiling: Tiling, mark: str
) -> None:
    def store(path: Path, values: Sequence[Value]) -> None:
        output = replace(target.output, value=values[0], groups=(0,))
        done = replace(target, output=output)
        if w.tail(w.frame):
            ensure(w, path, values)
            store_rows(w, path, done, tiling.start, tiling.pitch)
            return
        reserve_output(w, path, done)
        ensure(w, path, values)
        buffer, place = stored(w, path, done, True), Place(target.name, tiling.start)
        size = tiling.inner[0].size
        path[-1].items.append(Store(place, View(buffer), size, Name("m"), tiling.pitch))

    over_tiles(w, root, Along([target.output.value], row), tiling, mark, store)
