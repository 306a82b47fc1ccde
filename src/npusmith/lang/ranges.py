"""What is known before a run about where operations reach: lengths, alignment, masks, overlap."""

from __future__ import annotations

from npusmith.ir.nodes import Combine, Expr, Load, Op, Program, Stmt, Store, View
from npusmith.ir.text import show_expr, show_view
from npusmith.ir.walk import statements, values
from npusmith.lang.bounds import Bounds
from npusmith.lang.budget import length_of
from npusmith.lang.log import Log
from npusmith.lang.operands import extent, may_share, paired, reach_code, row_pitch
from npusmith.target.intrinsics import INTRINSICS, ROW_FORMS, Form, Operand


def check_ranges(program: Program, file: str) -> Log:
    """Every reach that is wrong whatever the inputs are."""
    ranges = _Ranges(program, Log(file, program.kernel.name))
    if program.kernel.is_cube:  # see cube_rules.py
        return ranges.log
    for stmt in statements(program.kernel.body):
        ranges.check(stmt)
    return ranges.log


class _Ranges:
    def __init__(self, program: Program, log: Log) -> None:
        consts = dict(program.consts)
        self.log = log
        self.bounds = Bounds.of(program)
        self.dtypes = {item.name: item.dtype for item in program.kernel.buffers}
        self.lengths = {item.name: length_of(item, consts) or 0 for item in program.kernel.buffers}

    def check(self, stmt: Stmt) -> None:
        for view in values(stmt):
            self._reach(stmt, view, 1, "lang-range")
        match stmt:
            case Op():
                self._op(stmt)
            case Load(dst, src):
                self._copy(stmt, dst, src.offset)
            case Store(dst, src):
                self._copy(stmt, src, dst.offset)
            case Combine(_, dst, src, _, count):
                most = self._count(stmt, count)
                for view in (dst, src):
                    self._align(stmt, view)
                    self._reach(stmt, view, most, "lang-range")
                self._overlap(stmt, dst, src, most, same=True)
            case _:
                pass

    def _count(self, stmt: Stmt, count: Expr) -> int:
        """The largest count that is known; 0 when none is."""
        exact = self.bounds.exact(count)
        if exact is not None and exact < 0:
            self.log.add("lang-range", f"the count is {exact}", stmt)
        return max(0, self.bounds.most(count) or 0)

    def _op(self, stmt: Op) -> None:
        row = INTRINSICS[stmt.name]
        count = self._count(stmt, stmt.count)
        kinds = list(paired(stmt))
        sources = [view for kind, view in kinds if kind is Operand.SRC]
        source = self.dtypes[(sources or [stmt.views[0]])[0].buffer]
        for kind, view in kinds:
            if row.form is not Form.ELEMENT:
                self._align(stmt, view)
            covered = extent(row, kind, count, source, self._cols(stmt))
            self._reach(stmt, view, covered, reach_code(row, kind))
            if kind is not Operand.DST:
                self._overlap(stmt, stmt.views[0], view, count, same=may_share(row))

    def _cols(self, stmt: Op) -> int:
        """Elements of a short row, as far as they are known; at least 1."""
        short = INTRINSICS[stmt.name].form in ROW_FORMS
        known = self.bounds.exact(stmt.scalars[0]) if short else None
        return max(known or 1, 1)

    def _copy(self, stmt: Load | Store, view: View, offset: Expr) -> None:
        self._align(stmt, view)
        start = self.bounds.exact(offset)
        if start is not None and start < 0:
            self.log.add("lang-gm-range", f"the offset in the tensor is {start}", stmt)
        count = self._count(stmt, stmt.count)
        if stmt.rows is None or stmt.pitch is None:
            self._reach(stmt, view, count, "lang-range")
            return
        rows, pitch = self._count(stmt, stmt.rows), self.bounds.exact(stmt.pitch)
        exact = self.bounds.exact(stmt.count)
        if pitch is not None and exact is not None and pitch < exact:
            message = f"rows of {exact} elements every {pitch} elements overlap"
            self.log.add("lang-range", message, stmt, legal="pitch at least the count")
        if rows and count:
            covered = (rows - 1) * row_pitch(count, self.dtypes[view.buffer]) + count
            both = exact is not None and self.bounds.exact(stmt.rows) is not None
            self._reach(stmt, view, covered if both else min(covered, count), "lang-range")

    def _align(self, stmt: Stmt, view: View) -> None:
        start = self.bounds.exact(view.offset)
        dtype = self.dtypes[view.buffer]
        if start is not None and start * dtype.bytes % 32:
            self.log.add(
                "lang-align", f"{show_view(view)} starts at byte {start * dtype.bytes}", stmt,
                hint=f"a multiple of {dtype.per_block} elements of {dtype.value}",
            )  # fmt: skip

    def _reach(self, stmt: Stmt, view: View, covered: int, code: str) -> None:
        """`covered` elements from the view on, an unknown offset taken as 0."""
        start = self.bounds.exact(view.offset)
        length = self.lengths[view.buffer]
        if start is not None and start < 0:
            self.log.add("lang-range", f"{show_view(view)} starts before the buffer", stmt)
        elif (start or 0) + covered > length:
            reach = f"{show_expr(view.offset)} + {covered}" if start else f"up to {covered}"
            message = f"{reach} elements of {view.buffer!r}, which has {length}"
            self.log.add(code, message, stmt, hint=self._longer(view, (start or 0) + covered))

    def _longer(self, view: View, length: int) -> str:
        return f"{view.buffer} = ub({length}, {self.dtypes[view.buffer].value})"

    def _overlap(self, stmt: Stmt, dst: View, src: View, count: int, *, same: bool) -> None:
        if dst.buffer != src.buffer:
            return
        if dst.offset == src.offset:
            if not same:
                message = f"{dst.buffer!r} is source and destination"
                self.log.add("lang-overlap", message, stmt)
            return
        first, second = self.bounds.exact(dst.offset), self.bounds.exact(src.offset)
        if first is None or second is None:
            return
        if first == second:
            if not same:
                self.log.add("lang-overlap", f"{dst.buffer!r} is source and destination", stmt)
        elif abs(first - second) < count and self.bounds.exact(_count_of(stmt)) is not None:
            message = f"{show_view(dst)} and {show_view(src)} share elements"
            self.log.add("lang-overlap", message, stmt)


def _count_of(stmt: Stmt) -> Expr:
    assert isinstance(stmt, Op | Combine)
    return stmt.count
