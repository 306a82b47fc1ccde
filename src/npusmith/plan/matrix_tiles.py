"""How a matrix product is cut into tiles for the cube cores: `choose(sizes, chip)`.

A core holds one block of the result in L0C and goes through the depth: panels of both operands come
into L1, parts of them into L0A and L0B, twice each so that copies overlap with products. Which
sides a block has is decided by what bounds a core at the captured sizes: products, panels from
global memory, parts from L1, the way out, each by the constants of the timing model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod
from typing import NamedTuple

from npusmith.ir.dtypes import DType
from npusmith.lang.extents import extent
from npusmith.plan.estimate import AGAIN, hbm_us, pieces, requests
from npusmith.plan.matrix_layout import Contraction
from npusmith.target.chips import Chip
from npusmith.target.costs import values as cost_table
from npusmith.target.cube import FRACTAL_ROWS, MOST_PITCH, fractals, grid

_SIDES = (*range(16, 256, 16), 256, 288, 320, 352, 384, 448, 512)
_ACCUMULATOR = 4  # bytes of an element in L0C
_PANEL = 8  # parts of L0 that a panel in L1 holds, at most
_KEPT = 1 << 10  # products: layers of one size are asked about again and again


@dataclass(frozen=True, slots=True)
class MatrixTiles:
    """Elements: a block of the result, the depth of panels in L1, and of parts in L0."""

    rows: int
    cols: int
    panel: int
    part: int


@dataclass(frozen=True, slots=True)
class ProductSizes:
    """A product at the captured sizes. `around`: times that the depth is gone through.

    `count`: products of the same sizes, of a batch or of parts of a depth. `deep`: of each operand,
    whether elements along the depth lie side by side. `pitches`: elements between its rows.
    """

    count: int
    rows: int
    cols: int
    depth: int
    around: int
    dtype: DType
    out: DType
    deep: tuple[bool, bool]
    pitches: tuple[int, int]
    bias: bool

    @property
    def read(self) -> int:
        """Bytes of the operands, each once."""
        depth = self.count * self.depth * self.around
        return (self.rows + self.cols) * depth * self.dtype.bytes


def sizes_of(found: Contraction) -> ProductSizes:
    """Of a contraction; of one whose depth is cut, what one part goes through."""
    depth, around = found.depth.captured, prod(run.captured for run in found.around)
    if found.part is not None:
        depth = min(depth, found.part.captured)
        around = ceil(found.part.captured / depth)
    count = prod(run.captured for run in found.batch)
    rows, cols = found.rows.captured, found.cols.captured
    deep = not found.left.transposed, found.right.transposed
    steps = (
        found.rows.left if deep[0] else found.depth.left,
        found.cols.right if deep[1] else found.depth.right,
    )
    shapes = {item.name: item.item.shape for item in found.space.inputs}
    return ProductSizes(
        count, rows, cols, depth, around, found.left.dtype, found.out.dtype, deep,
        (extent(steps[0], shapes), extent(steps[1], shapes)), found.bias is not None,
    )  # fmt: skip


def choose(sizes: ProductSizes, chip: Chip) -> MatrixTiles:
    """The tiles with the fewest cycles at the captured sizes; of equal ones the largest blocks."""
    return ranked(sizes, chip)[0]


@lru_cache(maxsize=_KEPT)
def ranked(sizes: ProductSizes, chip: Chip) -> tuple[MatrixTiles, ...]:
    """All legal ones, the best first."""
    return tuple(sorted(_legal(sizes, chip), key=lambda tiles: _order(sizes, tiles, chip)))


def _order(sizes: ProductSizes, tiles: MatrixTiles, chip: Chip) -> tuple[float, int]:
    return cycles(sizes, tiles, chip), -tiles.rows * tiles.cols


def _legal(sizes: ProductSizes, chip: Chip) -> Iterator[MatrixTiles]:
    size = sizes.dtype.bytes
    deep = grid(sizes.dtype)  # where a part of a panel may begin; sides are as many
    for rows in _sides(sizes.rows, deep):
        for cols in _sides(sizes.cols, deep):
            if rows * cols * _ACCUMULATOR > chip.l0c_bytes:
                continue
            room = min(chip.l0a_bytes // rows, chip.l0b_bytes // cols) // (2 * size)
            part = min(room // deep * deep, _whole(sizes.depth, deep))
            if part < deep:
                continue
            room = chip.l1_bytes
            if sizes.bias:
                if cols * _ACCUMULATOR > chip.bias_table_bytes:
                    continue
                room -= cols * _ACCUMULATOR
            panels = room // (2 * (rows + cols) * size) // part
            panels = min(panels, _PANEL, ceil(sizes.depth / part))
            if panels >= 1:
                yield MatrixTiles(rows, cols, panels * part, part)


def _sides(size: int, unit: int) -> list[int]:
    """Sides of a block that do not reach further beyond a small matrix than they have to."""
    most = _whole(size, unit)
    return [side for side in _SIDES if side <= most and side % unit == 0]


def _whole(size: int, unit: int) -> int:
    return max(ceil(size / unit), 1) * unit


def cycles(sizes: ProductSizes, tiles: MatrixTiles, chip: Chip) -> float:
    """Of the busiest core at the captured sizes, or as long as memory takes for all."""
    costs = cost_table(chip)
    size, depth = sizes.dtype.bytes, sizes.depth
    rows = min(tiles.rows, _whole(sizes.rows, FRACTAL_ROWS))
    cols = min(tiles.cols, _whole(sizes.cols, FRACTAL_ROWS))
    parts = ceil(depth / tiles.part)
    steps = fractals(rows, cols, depth, sizes.dtype)
    slower = costs["cube.float"] if size == _ACCUMULATOR else 1.0
    product = steps * costs["cube.tile"] * slower + parts * costs["cube.gap"]
    panels, slack = 0.0, 0.0
    for row in _rows(sizes, rows, cols, tiles.panel):
        copied = row.number * row.bytes / costs["path.gm_l1.rate"]
        copied += row.number * requests(row.bytes, row.pitch) * costs["path.gm_l1.request"]
        issue = costs["path.gm_l1.issue"]
        more = row.number - 1 if row.pitch > MOST_PITCH * size else 0  # a copy for each row
        copied *= depth / tiles.panel
        least = ceil(depth / tiles.panel) * more * issue
        slack += max(least - copied, 0.0)
        panels += max(copied, least) + ceil(depth / tiles.panel) * issue
    left = rows * depth * size / costs["path.l1_l0a.rate"]
    right = cols * depth * size / costs["path.l1_l0b.rate"]
    out = rows * cols * sizes.out.bytes / costs["path.l0c_gm.rate"]
    count = sizes.count * ceil(sizes.rows / tiles.rows) * ceil(sizes.cols / tiles.cols)
    turns = ceil(count / chip.cube_cores)
    start = panels / max(ceil(depth / tiles.panel), 1)
    # what L2 does not hold yet comes more slowly, for each core, if it does not wait anyway
    late = 1 / costs["path.gm_l1.miss"] - 1 / costs["path.gm_l1.rate"]
    fetched = sizes.read / max(min(count, chip.cube_cores), 1) * late
    goes = turns * sizes.around
    panels = goes * panels + max(fetched - goes * slack, 0.0)
    core = max(goes * product, panels, goes * (left + right)) + turns * out + start
    return max(core, _memory(sizes, tiles, chip))


class _Rows(NamedTuple):
    """Rows of memory that a panel of an operand is copied from."""

    number: int
    bytes: int
    pitch: int


def _rows(sizes: ProductSizes, rows: int, cols: int, panel: int) -> Iterator[_Rows]:
    """Of both operands, for a block of so many rows and columns."""
    size = sizes.dtype.bytes
    for side, deep, pitch in zip((rows, cols), sizes.deep, sizes.pitches, strict=True):
        number, long = (side, panel) if deep else (panel, side)
        yield _Rows(number, long * size, pitch * size)


def _memory(sizes: ProductSizes, tiles: MatrixTiles, chip: Chip) -> float:
    """Cycles that the panels of all cores take: the first time out of HBM, then out of L2.

    Rows that are no whole sectors have ends that are served one by one.
    """
    line = sizes.count * sizes.depth * sizes.around * sizes.dtype.bytes
    copied = ceil(sizes.rows / tiles.rows) * sizes.cols + ceil(sizes.cols / tiles.cols) * sizes.rows
    again = max(copied * line - sizes.read, 0)
    bytes_us = hbm_us(sizes.read + again / AGAIN, chip)
    blocks = sizes.count * ceil(sizes.rows / tiles.rows) * ceil(sizes.cols / tiles.cols)
    panels = blocks * sizes.around * ceil(sizes.depth / tiles.panel)
    ends = sum(
        row.number * pieces(row.bytes, row.pitch)
        for row in _rows(sizes, tiles.rows, tiles.cols, tiles.panel)
    )
    return max(bytes_us * chip.clock_mhz, panels * ends / cost_table(chip)["gm.pieces"])
