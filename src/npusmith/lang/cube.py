"""The cube unit of a core of the interpreter: matrices, row by row, without their layouts.

What the chip's layouts leave undefined is an error here: the columns and rows behind those that a
step was given, and sizes of a product that are not those its operands were loaded with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusmith.ir.nodes import (
    Buffer,
    Const,
    Expr,
    Load,
    Memory,
    Mmad,
    Program,
    Split,
    Store,
    View,
)
from npusmith.lang.access import Accesses
from npusmith.lang.bounds import const_int
from npusmith.lang.copies import Copy
from npusmith.lang.core import Core, Step
from npusmith.lang.memory import Slot
from npusmith.target.cube import grid

Array = np.ndarray[Any, Any]


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


At = Callable[[Core, Sides], tuple[Matrix, int, int]]


def sides_of_matrices(program: Program) -> dict[str, Sides]:
    """Of the buffers of a kernel of cube cores."""
    consts = dict(program.consts)
    return {
        item.name: Sides(const_int(item.length, consts) or 0, const_int(item.cols, consts) or 0)
        for item in program.kernel.buffers
        if item.cols is not None
    }


class CubeUnit:
    """Steps of the statements that only cube cores have."""

    def __init__(self, accesses: Accesses, sides: Mapping[str, Sides]) -> None:
        self.accesses, self.sides = accesses, sides

    def step(self, stmt: Load | Store | Split | Mmad) -> Step:
        match stmt:
            case Load():
                return self._load(stmt)
            case Store():
                return self._store(stmt)
            case Split():
                return self._split(stmt)
            case Mmad():
                return self._product(stmt)

    # ---- steps

    def _load(self, stmt: Load) -> Step:
        """Rows into L1, which may overlap in memory.

        Zeros up to the end of the last block of 32 bytes; rows behind it stay.
        """
        dtype = self.accesses.buffers[stmt.dst.buffer].dtype
        copy, at = Copy(stmt, stmt.src, dtype, self.accesses), self._at(stmt.dst, True)

        def run(core: Core) -> None:
            cols, rows = copy.amounts(core)
            if not rows or not cols:
                return
            tensor, index = copy.span(core, cols, rows, overlaps=True)
            values = tensor.read(index, core.when, core.fail).reshape(rows, cols)
            matrix, row, col = at(core, Sides(rows, cols))
            wide = -(-cols // dtype.per_block) * dtype.per_block
            for part, value in ((matrix.data, 0), (matrix.defined, True)):
                part[row : row + rows, col : col + wide] = value
            matrix.data[row : row + rows, col : col + cols] = values

        return run

    def _split(self, stmt: Split) -> Step:
        """A part of L1 to L0A or L0B; what is undefined stays so."""
        sizes = self._sizes(stmt.rows, stmt.cols)
        source, target = self._at(stmt.src), self._at(stmt.dst, True)

        def run(core: Core) -> None:
            rows, cols = sizes(core)
            if not rows or not cols:
                return
            turned = Sides(cols, rows) if stmt.transposed else Sides(rows, cols)
            src, row, col = source(core, turned)
            dst, _, _ = target(core, Sides(rows, cols))
            dst.defined[:] = False
            for to, part in ((dst.data, src.data), (dst.defined, src.defined)):
                taken = part[row : row + turned.rows, col : col + turned.cols]
                to[:rows, :cols] = taken.T if stmt.transposed else taken
            core.filled[id(dst.slot)] = rows, cols

        return run

    def _product(self, stmt: Mmad) -> Step:
        """k after k, each product and each sum rounded once; integers wrap."""
        sizes = self._sizes(stmt.m, stmt.n, stmt.k)
        accumulate = self.accesses.scalars.value(stmt.accumulate)
        left_at, right_at, dst_at = (self._at(v) for v in (stmt.left, stmt.right, stmt.dst))
        bias_at = None if stmt.bias is None else self._at(stmt.bias)

        def run(core: Core) -> None:
            more = accumulate(core) != 0
            m, n, k = sizes(core)
            if not m or not n or not k:
                return
            left, right = _read(core, left_at, Sides(m, k)), _read(core, right_at, Sides(k, n))
            dst, _, _ = dst_at(core, Sides(m, n))
            old = None
            if more:
                laid = core.filled.get(id(dst.slot), (m, n))
                _need_layout(core, dst, "rows", laid[0], m, 16)
                old = _part(core, dst, 0, 0, Sides(m, n))
            else:
                if bias_at is not None:
                    bias, _, _ = bias_at(core, Sides(1, n))
                    old = np.repeat(_part(core, bias, 0, 0, Sides(1, n)), m, axis=0)
                dst.defined[:] = False
                core.filled[id(dst.slot)] = m, n
            dst.data[:m, :n] = multiply(left, right, old)
            dst.defined[:m, :n] = True

        return run

    def _store(self, stmt: Store) -> Step:
        """Rows of L0C in the type of a tensor."""
        dtype = self.accesses.buffers[stmt.src.buffer].dtype
        copy, at = Copy(stmt, stmt.dst, dtype, self.accesses), self._at(stmt.src, False)

        def run(core: Core) -> None:
            cols, rows = copy.amounts(core)
            if not rows or not cols:
                return
            tensor, index = copy.span(core, cols, rows)
            matrix, row, col = at(core, Sides(rows, cols))
            values = _part(core, matrix, row, col, Sides(rows, cols))
            if stmt.relu:
                values = np.where(values < 0, values.dtype.type(0), values)
            values = values.astype(tensor.data.dtype)
            values = values[0] if rows == 1 else values
            tensor.write(index, values, stmt.atomic, core.when, core.fail)

        return run

    # ---- parts of matrices

    def _sizes(self, *exprs: Expr) -> Callable[[Core], list[int]]:
        reads = [self.accesses.count(expr, "size") for expr in exprs]
        return lambda core: [read(core) for read in reads]

    def _at(self, view: View, filling: bool | None = None) -> At:
        """The matrix of a view that has room for a size, and where the view begins."""
        item, whole = self.accesses.buffers[view.buffer], self.sides[view.buffer]
        integer, slot_of = self.accesses.scalars.integer, self.accesses.matrix(view, filling)
        row_of = integer(view.offset)
        col_of = integer(Const(0) if view.col is None else view.col)

        def at(core: Core, size: Sides) -> tuple[Matrix, int, int]:
            row, col = row_of(core), col_of(core)
            if row % grid(item.dtype) or col % grid(item.dtype):
                message = f"{item.name}[{row}, {col}] is inside of a fractal"
                raise core.fail("lang-fractal", message)
            if min(row, col) < 0 or row + size.rows > whole.rows or col + size.cols > whole.cols:
                message = f"{size.rows} rows and {size.cols} columns of {item.name}[{row}, {col}]"
                message += f", which is {whole.rows} by {whole.cols}"
                raise core.fail("lang-range", message)
            slot, shape = slot_of(core), (whole.rows, whole.cols)
            defined = slot.defined.reshape(shape)
            return Matrix(item, slot, slot.data.reshape(shape), defined), row, col

        return at


def _part(core: Core, matrix: Matrix, row: int, col: int, size: Sides) -> Array:
    place = slice(row, row + size.rows), slice(col, col + size.cols)
    good = matrix.defined[place]
    if not good.all():
        at = np.argwhere(~good)[0]
        name = f"{matrix.item.name}[{row + at[0]}, {col + at[1]}]"
        raise core.fail("lang-undefined-read", f"{name} is undefined")
    return matrix.data[place].copy()


def _read(core: Core, at: At, size: Sides) -> Array:
    """An operand of a product; its rows of fractals are as long as they were loaded."""
    matrix, _, _ = at(core, size)
    loaded = core.filled.get(id(matrix.slot), (size.rows, size.cols))
    _need_layout(core, matrix, "columns", loaded[1], size.cols, _unit(matrix.item))
    return _part(core, matrix, 0, 0, size)


def _unit(item: Buffer) -> int:
    """Columns that a fractal of an operand has."""
    return 16 if item.memory is Memory.L0B else item.dtype.per_block


def _need_layout(core: Core, matrix: Matrix, what: str, laid: int, used: int, unit: int) -> None:
    if -(-laid // unit) != -(-used // unit):
        message = f"{used} {what} of {matrix.item.name!r}, which was filled with {laid}"
        raise core.fail("lang-matrix", message)


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
