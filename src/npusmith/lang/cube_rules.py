"""Kernels of cube cores: which matrix is in which memory, and what each step takes."""

from __future__ import annotations

from npusmith.ir.nodes import (
    Buffer,
    Combine,
    Const,
    Expr,
    Load,
    Memory,
    Mmad,
    Op,
    Program,
    Split,
    Stmt,
    Store,
    View,
)
from npusmith.ir.text import show_view
from npusmith.ir.walk import statements, values
from npusmith.lang.bounds import Bounds
from npusmith.lang.log import Log
from npusmith.target.cube import MOST_SIZE, PRODUCTS, Path, elements, grid, split_path


def check_matrices(program: Program, file: str) -> Log:
    """Everything about matrices that is wrong whatever the inputs are."""
    log = Log(file, program.kernel.name)
    rules = _Rules(program, log)
    for item in program.kernel.buffers:
        rules.buffer(item)
    if not log.errors:
        for stmt in statements(program.kernel.body):
            rules.statement(stmt)
    return log


class _Rules:
    def __init__(self, program: Program, log: Log) -> None:
        self.log, self.kernel, self.bounds = log, program.kernel, Bounds.of(program)
        self.buffers = {item.name: item for item in program.kernel.buffers}
        self.paths: dict[str, Path] = {}  # by which a matrix in L0 is filled

    # ---- declarations

    def buffer(self, item: Buffer) -> None:
        """One kind of core has one kind of memory; matrices are whole fractals."""
        if (item.memory is Memory.UB) is self.kernel.is_cube:
            message = f"{item.name!r} is in {item.memory.value}, beside matrices of a cube core"
            hint = "a kernel of its own for each, and a scratch tensor between them"
            self.log.add("lang-memory", message, item, hint=hint)
        if item.memory is Memory.UB:
            return
        rows, cols = self._sides(item)
        legal = elements(item.memory, rows)
        if item.dtype not in legal:
            message = f"{item.memory.value} holds no matrix of {item.dtype.value}"
            names = ", ".join(dtype.value for dtype in legal)
            self.log.add("lang-op-dtype", message, item, legal=names)
            return
        unit, single = grid(item.dtype), rows == 1
        tall = (item.memory is Memory.L1 and single) or rows % unit == 0
        if cols % unit or not (single if item.memory is Memory.BIAS_TABLE else tall):
            message = f"{item.name!r} has {rows} rows and {cols} columns"
            others = ", or one row in l1 and bias_table"
            self.log.add("lang-fractal", message, item, legal=f"multiples of {unit}{others}")
        if item.memory is not Memory.L1 and max(rows, cols) > MOST_SIZE:
            message = f"{item.name!r} has {max(rows, cols)} rows or columns"
            self.log.add("lang-fractal", message, item, legal=f"at most {MOST_SIZE}")

    def _sides(self, item: Buffer) -> tuple[int, int]:
        rows, cols = self.bounds.exact(item.length), self.bounds.exact(item.cols or Const(1))
        assert rows is not None and cols is not None  # lengths have been checked
        return rows, cols

    # ---- statements

    def statement(self, stmt: Stmt) -> None:
        if not self.kernel.is_cube:
            self._vector(stmt)
            return
        for view in values(stmt):
            self._refuse(stmt, f"value() reads {view.buffer!r}")
        match stmt:
            case Op(name):
                self._refuse(stmt, f"{name} is an operation of the vector unit")
            case Combine(op):
                self._refuse(stmt, f"combine_{op} is an operation of the vector unit")
            case Load(dst):
                self._need(stmt, dst, Memory.L1)
                self._reach(stmt, dst, stmt.rows or Const(1), stmt.count)
            case Split():
                self._split(stmt)
            case Mmad():
                self._product(stmt)
            case Store(_, src):
                self._need(stmt, src, Memory.L0C)
                self._reach(stmt, src, stmt.rows or Const(1), stmt.count)
            case _:
                pass

    def _refuse(self, stmt: Stmt, what: str) -> None:
        hint = "a kernel with ub() buffers, launched before or after this one"
        self.log.add("lang-memory", f"{what}, in a kernel of cube cores", stmt, hint=hint)

    def _vector(self, stmt: Stmt) -> None:
        views = list(values(stmt))
        match stmt:
            case Split() | Mmad():
                what = "mmad" if isinstance(stmt, Mmad) else "load from L1"
                hint = "buffers in l1, l0a, l0b and l0c: rows, columns, element type"
                message = f"{what} is an operation of a cube core"
                self.log.add("lang-memory", message, stmt, hint=hint)
                return
            case Store(_, src):
                views.append(src)
                if stmt.relu:
                    hint = "relu(dst, a, n) in the compute stage"
                    self.log.add("lang-memory", "relu on the way out of UB", stmt, hint=hint)
            case Load(dst):
                views.append(dst)
            case Op():
                views += stmt.views
            case Combine():
                views += (stmt.dst, stmt.src)
            case _:
                pass
        for view in views:
            if view.col is not None:
                message = f"{show_view(view)}: {view.buffer!r} is no matrix"
                self.log.add("lang-operands", message, stmt, legal=f"{view.buffer}[offset]")

    def _need(self, stmt: Stmt, view: View, *memories: Memory) -> bool:
        item = self.buffers[view.buffer]
        if item.memory in memories:
            return True
        message = f"{item.name!r} is in {item.memory.value}"
        legal = " or ".join(memory.value for memory in memories)
        self.log.add("lang-memory", message, stmt, legal=f"a matrix in {legal}")
        return False

    def _split(self, stmt: Split) -> None:
        good = self._need(stmt, stmt.src, Memory.L1)
        if not self._need(stmt, stmt.dst, Memory.L0A, Memory.L0B, Memory.BIAS_TABLE) or not good:
            return
        src, dst = self.buffers[stmt.src.buffer], self.buffers[stmt.dst.buffer]
        if (self._sides(src)[0] == 1) is not (dst.memory is Memory.BIAS_TABLE):
            message = f"{src.name!r} has {self._sides(src)[0]} rows and goes to {dst.memory.value}"
            self.log.add(
                "lang-memory", message, stmt, legal="one row to bias_table, others to l0a and l0b"
            )
            return
        if src.dtype is not dst.dtype:
            message = f"{src.name!r} is {src.dtype.value}, {dst.name!r} is {dst.dtype.value}"
            self.log.add("lang-op-dtype", message, stmt, legal="one element type")
            return
        self._whole(stmt, stmt.dst)
        self._reach(stmt, stmt.dst, stmt.rows, stmt.cols)
        sides = (stmt.cols, stmt.rows) if stmt.transposed else (stmt.rows, stmt.cols)
        self._reach(stmt, stmt.src, *sides)
        if dst.memory is Memory.BIAS_TABLE:
            if stmt.transposed:
                self.log.add("lang-transpose", "a row is transposed on its way to bias_table", stmt)
            return
        path = split_path(dst.memory, dst.dtype, stmt.transposed)
        if self.paths.setdefault(dst.name, path) is not path and dst.dtype.bytes != 2:
            message = f"{dst.name!r} is loaded both ways, which lie differently"
            self.log.add("lang-transpose", message, stmt, legal="a matrix in L0 for each way")

    def _product(self, stmt: Mmad) -> None:
        places = ((stmt.dst, Memory.L0C), (stmt.left, Memory.L0A), (stmt.right, Memory.L0B))
        placed = [self._need(stmt, view, memory) for view, memory in places]
        placed += [] if stmt.bias is None else [self._need(stmt, stmt.bias, Memory.BIAS_TABLE)]
        if not all(placed):
            return
        sides = ((stmt.m, stmt.n), (stmt.m, stmt.k), (stmt.k, stmt.n), (Const(1), stmt.n))
        for view, (rows, cols) in zip((stmt.dst, *stmt.sources), sides, strict=False):
            self._whole(stmt, view)
            self._reach(stmt, view, rows, cols)
        dst, left, right = (self.buffers[view.buffer].dtype for view, _ in places)
        if PRODUCTS.get((left, right)) is not dst:
            self.log.add(
                "lang-op-dtype", f"mmad of {left.value} and {right.value} to {dst.value}", stmt,
                legal="; ".join(
                    f"{a.value} and {b.value} to {c.value}" for (a, b), c in PRODUCTS.items()
                ),
            )  # fmt: skip
        if stmt.bias is not None and self.buffers[stmt.bias.buffer].dtype is not dst:
            message = f"the bias is {self.buffers[stmt.bias.buffer].dtype.value}"
            self.log.add("lang-op-dtype", message, stmt, legal=dst.value)

    # ---- views

    def _whole(self, stmt: Stmt, view: View) -> None:
        """Matrices in L0A and L0B are filled and multiplied from their first element on."""
        if view.offset != Const(0) or view.col not in (None, Const(0)):
            message = f"{show_view(view)} is a part of {view.buffer!r}"
            self.log.add("lang-fractal", message, stmt, legal=view.buffer)

    def _reach(self, stmt: Stmt, view: View, rows: Expr, cols: Expr) -> None:
        if view.col is None and view.offset != Const(0):
            message = f"{show_view(view)}: {view.buffer!r} is a matrix"
            self.log.add("lang-operands", message, stmt, legal=f"{view.buffer}[row, col]")
            return
        item = self.buffers[view.buffer]
        unit, starts = grid(item.dtype), (view.offset, view.col or Const(0))
        for start, size, side, what in zip(
            starts, (rows, cols), self._sides(item), ("rows", "columns"), strict=True
        ):
            known, most = self.bounds.exact(start), self.bounds.most(size)
            if known is not None and known % unit:
                message = f"{show_view(view)} starts inside of a fractal"
                self.log.add("lang-fractal", message, stmt, legal=f"multiples of {unit}")
            elif (known is not None and known < 0) or (known or 0) + (most or 0) > side:
                message = f"{(known or 0) + (most or 0)} {what} of {item.name!r}, which has {side}"
                self.log.add("lang-range", message, stmt)
