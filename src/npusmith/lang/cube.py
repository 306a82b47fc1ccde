"""The cube unit of one core of the interpreter: matrices, row by row, without their layouts.

What the chip's layouts leave undefined is an error here: the columns and rows behind those that a
step was given, and sizes of a product that are not those its operands were loaded with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Buffer, Expr, Memory, Mmad, Program, Split, Store, View
from npusmith.lang.bounds import const_int
from npusmith.lang.memory import LocalBuffer, Slot
from npusmith.lang.scalars import Fail
from npusmith.target.cube import grid

Array = np.ndarray[Any, Any]
Integer = Callable[[Expr], int]
SlotOf = Callable[..., Slot]


@dataclass(frozen=True, slots=True)
class Sides:
    """Rows and columns."""

    rows: int
    cols: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """A buffer at one moment: its elements, and which of them are defined."""

    item: Buffer
    slot: Slot
    data: Array
    defined: Array


def sides_of_matrices(program: Program) -> dict[str, Sides]:
    """Of the buffers of a kernel of cube cores."""
    consts = dict(program.consts)
    return {
        item.name: Sides(const_int(item.length, consts) or 0, const_int(item.cols, consts) or 0)
        for item in program.kernel.buffers
        if item.cols is not None
    }


class CubeUnit:
    """State of one core's cube unit: what part of each matrix in L0 is in use."""

    def __init__(
        self,
        sides: Mapping[str, Sides],
        items: Sequence[Buffer],
        buffers: Mapping[str, LocalBuffer],
        tools: tuple[Integer, SlotOf, Fail],
    ) -> None:
        self.sides, self.buffers = sides, buffers
        self.items = {item.name: item for item in items}
        self.integer, self.slot, self.fail = tools
        self.filled: dict[int, Sides] = {}  # by the identity of a slot

    # ---- steps

    def load(self, dst: View, values: Array) -> None:
        """Rows into L1: zeros up to the end of the last block of 32 bytes, rows behind it stay."""
        rows, cols = values.shape
        matrix, row, col = self._at(dst, Sides(rows, cols), load=True)
        wide = -(-cols // matrix.item.dtype.per_block) * matrix.item.dtype.per_block
        for part, value in ((matrix.data, 0), (matrix.defined, True)):
            part[row : row + rows, col : col + wide] = value
        matrix.data[row : row + rows, col : col + cols] = values

    def split(self, stmt: Split) -> None:
        """A part of L1 to L0A or L0B; what is undefined stays so."""
        size = Sides(self._size(stmt.rows), self._size(stmt.cols))
        if not size.rows or not size.cols:
            return
        turned = Sides(size.cols, size.rows) if stmt.transposed else size
        src, row, col = self._at(stmt.src, turned)
        dst, _, _ = self._at(stmt.dst, size, load=True)
        dst.defined[:] = False
        for to, part in ((dst.data, src.data), (dst.defined, src.defined)):
            taken = part[row : row + turned.rows, col : col + turned.cols]
            to[: size.rows, : size.cols] = taken.T if stmt.transposed else taken
        self.filled[id(dst.slot)] = size

    def product(self, stmt: Mmad, accumulate: bool) -> None:
        """k after k, each product and each sum rounded once; integers wrap."""
        m, n, k = (self._size(part) for part in (stmt.m, stmt.n, stmt.k))
        if not m or not n or not k:
            return
        left, right = self._read(stmt.left, Sides(m, k)), self._read(stmt.right, Sides(k, n))
        dst, _, _ = self._at(stmt.dst, Sides(m, n))
        old = None
        if accumulate:
            laid = self.filled.get(id(dst.slot), Sides(m, n))
            self._need_layout(dst, "rows", laid.rows, m, 16)
            old = self._part(dst, 0, 0, Sides(m, n))
        else:
            if stmt.bias is not None:
                bias, _, _ = self._at(stmt.bias, Sides(1, n))
                old = np.repeat(self._part(bias, 0, 0, Sides(1, n)), m, axis=0)
            dst.defined[:] = False
            self.filled[id(dst.slot)] = Sides(m, n)
        dst.data[:m, :n] = multiply(left, right, old)
        dst.defined[:m, :n] = True

    def store(self, stmt: Store, size: Sides, to: DType) -> Array:
        """Rows of L0C in the type of a tensor."""
        matrix, row, col = self._at(stmt.src, size, store=True)
        values = self._part(matrix, row, col, size)
        if stmt.relu:
            values = np.where(values < 0, values.dtype.type(0), values)
        return values.astype(to.numpy)

    # ---- parts of matrices

    def _size(self, expr: Expr) -> int:
        size = self.integer(expr)
        if size < 0:
            raise self.fail("lang-range", f"the size is {size}")
        return size

    def _at(
        self, view: View, size: Sides, *, load: bool = False, store: bool = False
    ) -> tuple[Matrix, int, int]:
        """The matrix of a view that has room for that size, and where the view begins."""
        item, whole = self.items[view.buffer], self.sides[view.buffer]
        row = self.integer(view.offset)
        col = 0 if view.col is None else self.integer(view.col)
        if row % grid(item.dtype) or col % grid(item.dtype):
            raise self.fail("lang-fractal", f"{item.name}[{row}, {col}] is inside of a fractal")
        if min(row, col) < 0 or row + size.rows > whole.rows or col + size.cols > whole.cols:
            message = f"{size.rows} rows and {size.cols} columns of {item.name}[{row}, {col}]"
            raise self.fail("lang-range", f"{message}, which is {whole.rows} by {whole.cols}")
        slot = self.slot(self.buffers[view.buffer], load=load, store=store)
        shape = (whole.rows, whole.cols)
        matrix = Matrix(item, slot, slot.data.reshape(shape), slot.defined.reshape(shape))
        return matrix, row, col

    def _part(self, matrix: Matrix, row: int, col: int, size: Sides) -> Array:
        place = slice(row, row + size.rows), slice(col, col + size.cols)
        good = matrix.defined[place]
        if not good.all():
            at = np.argwhere(~good)[0]
            name = f"{matrix.item.name}[{row + at[0]}, {col + at[1]}]"
            raise self.fail("lang-undefined-read", f"{name} is undefined")
        return matrix.data[place].copy()

    def _read(self, view: View, size: Sides) -> Array:
        """An operand of a product; its rows of fractals are as long as they were loaded."""
        matrix, _, _ = self._at(view, size)
        loaded = self.filled.get(id(matrix.slot), size)
        self._need_layout(matrix, "columns", loaded.cols, size.cols, self._unit(matrix.item))
        return self._part(matrix, 0, 0, size)

    def _unit(self, item: Buffer) -> int:
        """Columns that a fractal of an operand has."""
        return 16 if item.memory is Memory.L0B else item.dtype.per_block

    def _need_layout(self, matrix: Matrix, what: str, laid: int, used: int, unit: int) -> None:
        if -(-laid // unit) != -(-used // unit):
            message = f"{used} {what} of {matrix.item.name!r}, which was filled with {laid}"
            raise self.fail("lang-matrix", message)


def multiply(left: Array, right: Array, old: Array | None) -> Array:
    """`old + left @ right` in the type of the sum."""
    kind = np.int32 if left.dtype.kind == "i" else np.float32
    a, b = left.astype(kind), right.astype(kind)
    if kind is np.int32:
        total = a @ b
        return total if old is None else total + old
    total = np.zeros((a.shape[0], b.shape[1]), np.float32) if old is None else old
    product = np.empty_like(total)
    for at in range(a.shape[1]):
        np.multiply(a[:, at, None], b[at], out=product)
        total += product
    return total
