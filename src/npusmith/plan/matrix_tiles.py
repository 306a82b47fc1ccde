"""How a matrix product is cut into tiles for the cube cores: `choose(contraction, chip)`.

A core holds one block of the result in L0C and goes through the depth: panels of both operands come
into L1, parts of them into L0A and L0B, twice each so that copies overlap with products. Which
sides a block has is decided by what bounds a core at the captured sizes: products, panels from
global memory, parts from L1, the way out, each by the constants of the timing model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod

from npusmith.plan.matrix_layout import Contraction
from npusmith.target.chips import Chip
from npusmith.target.costs import values as cost_table
from npusmith.target.cube import FRACTAL_ROWS, fractals, grid

_SIDES = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512)
_ACCUMULATOR = 4  # bytes of an element in L0C
_PANEL = 8  # parts of L0 that a panel in L1 holds, at most


@dataclass(frozen=True, slots=True)
class MatrixTiles:
    """Elements: a block of the result, the depth of panels in L1, and of parts in L0."""

    rows: int
    cols: int
    panel: int
    part: int


def choose(found: Contraction, chip: Chip) -> MatrixTiles:
    """The tiles with the fewest cycles at the captured sizes; of equal ones the largest blocks."""
    return min(_legal(found, chip), key=lambda tiles: _order(found, tiles, chip))


def _order(found: Contraction, tiles: MatrixTiles, chip: Chip) -> tuple[float, int]:
    return cycles(found, tiles, chip), -tiles.rows * tiles.cols


def _legal(found: Contraction, chip: Chip) -> Iterator[MatrixTiles]:
    size = found.left.dtype.bytes
    deep = grid(found.left.dtype)  # where a part of a panel may begin
    for rows in _sides(found.rows.captured):
        for cols in _sides(found.cols.captured):
            if rows * cols * _ACCUMULATOR > chip.l0c_bytes:
                continue
            room = min(chip.l0a_bytes // rows, chip.l0b_bytes // cols) // (2 * size)
            part = min(room // deep * deep, _whole(found.depth.captured, deep))
            if part < deep:
                continue
            panels = chip.l1_bytes // (2 * (rows + cols) * size) // part
            panels = min(panels, _PANEL, ceil(found.depth.captured / part))
            if panels >= 1:
                yield MatrixTiles(rows, cols, panels * part, part)


def _sides(size: int) -> list[int]:
    """Sides of a block that do not reach further beyond a small matrix than they have to."""
    most = _whole(size, FRACTAL_ROWS)
    return [side for side in _SIDES if side <= most] or [FRACTAL_ROWS]


def _whole(size: int, unit: int) -> int:
    return max(ceil(size / unit), 1) * unit


def cycles(found: Contraction, tiles: MatrixTiles, chip: Chip) -> float:
    """Of the busiest core at the captured sizes."""
    costs = cost_table(chip)
    size, depth = found.left.dtype.bytes, found.depth.captured
    rows = min(tiles.rows, _whole(found.rows.captured, FRACTAL_ROWS))
    cols = min(tiles.cols, _whole(found.cols.captured, FRACTAL_ROWS))
    parts = ceil(depth / tiles.part)
    steps = fractals(rows, cols, depth, found.left.dtype)
    slower = costs["cube.float"] if size == _ACCUMULATOR else 1.0
    product = steps * costs["cube.tile"] * slower + parts * costs["cube.gap"]
    panels = (rows + cols) * depth * size / costs["path.gm_l1.rate"]
    panels += ceil(depth / tiles.panel) * 2 * costs["path.gm_l1.issue"]
    left = rows * depth * size / costs["path.l1_l0a.rate"]
    right = cols * depth * size / costs["path.l1_l0b.rate"]
    out = rows * cols * found.out.dtype.bytes / costs["path.l0c_gm.rate"]
    count = prod(run.captured for run in found.batch)
    count *= ceil(found.rows.captured / tiles.rows) * ceil(found.cols.captured / tiles.cols)
    around = prod(run.captured for run in found.around)
    start = panels / max(ceil(depth / tiles.panel), 1)
    block = around * max(product, panels, left + right) + out
    return ceil(count / chip.cube_cores) * block + start
