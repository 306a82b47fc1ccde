"""Rows of a buffer: which of them an operation touches, and loops that take them one by one."""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.ir.nodes import Binary, BinOp, Call, Const, Expr, For, Name, Op, ScalarFn, View
from npusmith.ir.walk import names, statements
from npusmith.lower.flow import assigned
from npusmith.target.intrinsics import INTRINSICS, Form, Operand


@dataclass(frozen=True, slots=True)
class Place:
    """What an operation touches of a buffer: the row at `row * pitch`, or anything at all."""

    buffer: str
    row: int = 0
    pitch: Expr | None = None

    def meets(self, other: Place) -> bool:
        """Whether both may touch the same element."""
        if self.buffer != other.buffer or self.pitch is None or other.pitch is None:
            return self.buffer == other.buffer
        if self.pitch == other.pitch:
            return self.row == other.row
        first, later = sorted((self, other), key=lambda place: place.row)
        assert first.pitch is not None and later.pitch is not None
        return first.row > 0 or later.row == 0 or not _at_most(first.pitch, later.pitch)

    def moves(self, changed: set[str]) -> bool:
        """Whether other values of these names make it another row."""
        return self.pitch is not None and bool(set(names(self.pitch)) & changed)


def places(op: Op, kinds: tuple[Operand, ...]) -> frozenset[Place]:
    """What the operands of these kinds touch; a destination is a source too where it is read."""
    row = INTRINSICS[op.name]
    return frozenset(
        _place(op, kind, view)
        for kind, view in zip(row.views, op.views, strict=True)
        if kind in kinds or (kind is Operand.DST and row.reads_dst and Operand.SRC in kinds)
    )


def _place(op: Op, kind: Operand, view: View) -> Place:
    what = INTRINSICS[op.name]
    # touches more than it counts
    beyond = what.whole_repeats or what.form not in (Form.MAP, Form.ROWS)
    if beyond or kind not in (Operand.DST, Operand.SRC):
        return Place(view.buffer)
    match view.offset:
        case Const(0):
            return Place(view.buffer, 0, op.count)
        case Binary(BinOp.MUL, Const(int(row)), pitch) if row > 0 and _at_most(op.count, pitch):
            return Place(view.buffer, row, pitch)
        case pitch if _at_most(op.count, pitch):
            return Place(view.buffer, 1, pitch)
        case _:
            return Place(view.buffer)


def in_rows(op: Op) -> bool:
    """Whether every operand is a row of one length."""
    kinds = INTRINSICS[op.name].views
    found = [_place(op, kind, view) for kind, view in zip(kinds, op.views, strict=True)]
    return all(place.pitch is not None and place.pitch == op.count for place in found)


def rowwise(loop: For) -> frozenset[str]:
    """Buffers whose every use in the loop is at `base + row * pitch`, within one pitch."""
    changed = assigned(loop.body) | {loop.var}
    places: dict[str, set[Expr]] = {}
    wide: set[str] = set()
    for stmt in statements(loop.body):
        if not isinstance(stmt, Op):
            continue
        for kind, view in zip(INTRINSICS[stmt.name].views, stmt.views, strict=True):
            places.setdefault(view.buffer, set()).add(view.offset)
            if not _within(stmt, kind, view, loop.var, changed):
                wide.add(view.buffer)
    alike = {buffer for buffer, offsets in places.items() if len(offsets) == 1}
    return frozenset(alike - wide)


def _within(op: Op, kind: Operand, view: View, row: str, changed: set[str]) -> bool:
    pitch = _pitch(view.offset, row, changed)
    what = INTRINSICS[op.name]
    # touches more than it counts
    beyond = what.whole_repeats or what.form not in (Form.MAP, Form.ROWS, Form.LANES)
    if pitch is None or beyond or kind is Operand.MASK:
        return False
    one = what.form is Form.LANES and kind is Operand.DST
    return _at_most(Const(1) if one else op.count, pitch)


def _pitch(offset: Expr, row: str, changed: set[str]) -> Expr | None:
    """How far apart the rows are, when `offset` has that form."""
    match offset:
        case Binary(BinOp.ADD, base, rest) if not set(names(base)) & changed:
            return _pitch(rest, row, changed)
        case Binary(BinOp.ADD, rest, base) if not set(names(base)) & changed:
            return _pitch(rest, row, changed)
        case Binary(BinOp.MUL, Name(name), pitch) | Binary(BinOp.MUL, pitch, Name(name)) if (
            name == row and not set(names(pitch)) & changed
        ):
            return pitch
        case _:
            return None


def _at_most(count: Expr, pitch: Expr) -> bool:
    match count, pitch:
        case Const(a), Const(b):
            return a <= b
        case _, Call(ScalarFn.ALIGN_UP, (inner, _)):
            return inner == count or pitch == count
        case Call(ScalarFn.MIN, parts), _:
            return any(_at_most(part, pitch) for part in parts)
        case _:
            return pitch == count
