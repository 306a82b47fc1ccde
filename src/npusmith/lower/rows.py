"""Which buffers a loop goes through row by row, so that no turn touches what another touches."""

from __future__ import annotations

from npusmith.ir.nodes import Binary, BinOp, Call, Const, Expr, For, Name, Op, ScalarFn, View
from npusmith.ir.walk import names, statements
from npusmith.lower.flow import assigned
from npusmith.target.intrinsics import INTRINSICS, Form, Operand


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
        case _:
            return pitch == count
