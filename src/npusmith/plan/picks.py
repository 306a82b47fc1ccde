"""Elements picked by an index: whole rows (embedding, index_select) or elements of a row (gather).

A row that is picked is a copy of its own, from where the index says. Elements of a row are picked
on chip: the row is loaded, indices become byte offsets, and `gather` takes what they name.
"""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Expr
from npusmith.plan.calls import (
    FLOATS,
    INDICES,
    Call,
    Text,
    Written,
    find_call,
    finish,
    indented,
    room,
    size_text,
)
from npusmith.plan.scalars import same
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, GraphInput

_WORDS = ("embedding", "index_select", "gather", "take_along_dim")
_ROW_BYTES, _IDS = 65536, 1024  # of a row that elements are picked from; indices at a time
_PIECE_BYTES = 32768  # of a row that is copied


def write_picks(graph: Graph, name: str, chip: Chip) -> Written | None:
    """The program of a module that picks rows or elements; None for any other module."""
    call = find_call(graph, _WORDS)
    if call is None:
        return None
    if call.word == "embedding":
        table = call.input(call.argument(0), FLOATS)
        return _rows(call, name, chip, table, call.input(call.argument(1), INDICES), 0)
    if call.word == "index_select":
        x, at = call.input(call.argument(0), FLOATS), _axis(call, 1)
        index = call.input(call.argument(2), INDICES)
        if at < len(x.shape) - 1:
            return _rows(call, name, chip, x, index, at)
        return _elements(call, name, chip, x, index, shared=True)
    where, dim = (2, 1) if call.word == "gather" else (1, 2)
    x, at = call.input(call.argument(0), FLOATS), _axis(call, dim)
    index = call.input(call.argument(where), INDICES)
    rest = x.shape[:-1] == index.shape[:-1]
    if at != len(x.shape) - 1 or not rest:
        call.refuse(
            "plan-data-movement", "it picks along an axis that is not the last, or broadcasts",
            legal="picks along the last axis, of operands with equal other dimensions",
        )  # fmt: skip
    return _elements(call, name, chip, x, index, shared=False)


def _axis(call: Call, at: int) -> int:
    x, given = call.input(call.argument(0), FLOATS), call.argument(at, "dim")
    if not isinstance(given, int):
        call.refuse("plan-data-movement", "it picks out of the flattened tensor")
    return given % len(x.shape)


def read_index(index: GraphInput, count: str) -> list[str]:
    """Indices in `ids_in` as int32 in `ids`."""
    if index.dtype is DType.INT32:
        return [f"muls(ids, ids_in, 1, {count})"]
    return [f'cast(ids, ids_in, "none", {count})']


def _rows(call: Call, name: str, chip: Chip, x: GraphInput, index: GraphInput, at: int) -> Written:
    """Every index names a row of what lies behind the axis."""
    dims, places = call.dims(x), call.dims(index)
    out: tuple[Expr, ...] = (*dims[:at], *places, *dims[at + 1 :])
    piece = room(_PIECE_BYTES // x.dtype.bytes, chip)
    host = [
        f"size = {size_text(dims[at : at + 1])}",
        f"inner = {size_text(dims[at + 1 :])}",
        f"outer = {size_text(dims[:at])}",
        f"count = {size_text(places)}",
        "groups = max(1, ceil_div(count, IDS))",
        "fair = ceil_div(chip.vector_cores, max(1, outer * groups))",
        "ids_each = max(1, min(IDS, ceil_div(ceil_div(count, groups), fair)))",
        "blocks = ceil_div(count, ids_each)",
        "pieces = outer * blocks",
        "cores = max(1, min(pieces, chip.vector_cores))",
        "pieces_per_core = ceil_div(pieces, cores)",
    ]
    name_x, name_i = call.names[x.name], call.names[index.name]
    kernel = [
        f"ids_in = ub(IDS, {index.dtype.value})",
        "ids = ub(IDS, int32)",
        f"row = ub(PIECE, {x.dtype.value})",
        "first = core_id() * pieces_per_core",
        "for piece in range(first, min(first + pieces_per_core, pieces)):",
        *indented([
            "start = piece % blocks * ids_each",
            "base = piece // blocks",
            "n = min(ids_each, count - start)",
            "with copy_in:",
            f"    load(ids_in, {name_i}[start], n)",
            "with compute:",
            *indented(read_index(index, "n")),
            "for i in range(n):",
            *indented([
                "picked = value(ids[i])",
                "for at in range(0, inner, PIECE):",
                *indented([
                    "m = min(PIECE, inner - at)",
                    "with copy_in:",
                    f"    load(row, {name_x}[(base * size + picked) * inner + at], m)",
                    "with copy_out:",
                    "    store(y[(base * count + start + i) * inner + at], row, m)",
                ]),
            ]),
        ]),
    ]  # fmt: skip
    scalars = ("pieces", "pieces_per_core", "blocks", "ids_each", "count", "size", "inner")
    about = f"rows of {name_x} that {name_i} names"
    consts = {"IDS": room(_IDS, chip), "PIECE": piece}
    inputs = _order(call, x, index)
    return finish(Text(call, about, inputs, out, consts, host, scalars, kernel), name)


def _elements(
    call: Call, name: str, chip: Chip, x: GraphInput, index: GraphInput, shared: bool
) -> Written:
    """Every index names an element of its row; `shared`: one list of indices for all rows."""
    dims, places = call.dims(x), call.dims(index)
    half = x.dtype.bytes == 2
    most = room(_ROW_BYTES // (8 if half else 4), chip)
    if x.shape[-1] > most:
        call.refuse(
            "plan-ub", f"rows of {x.shape[-1]} elements do not fit on chip to be picked from",
            legal=f"at most {most} elements in a row",
        )  # fmt: skip
    out: tuple[Expr, ...] = (*dims[:-1], places[-1])
    host = [
        f"rows = {size_text(dims[:-1])}",
        f"size = {size_text(dims[-1:])}",
        f"count = {size_text(places[-1:])}",
        "cores = max(1, min(rows, chip.vector_cores))",
        "rows_per_core = ceil_div(rows, cores)",
    ]
    name_x, name_i = call.names[x.name], call.names[index.name]
    source, target = ("wide", "chosen") if half else ("row", "y_out")
    kernel = [
        f"ids_in = ub(IDS, {index.dtype.value})",
        "ids = ub(IDS, int32)",
        f"row = ub(ROW, {x.dtype.value})",
        *(["wide = ub(ROW, float32)", "chosen = ub(IDS, float32)"] if half else []),
        f"y_out = ub(IDS, {x.dtype.value})",
        "first = core_id() * rows_per_core",
        "for line in range(first, min(first + rows_per_core, rows)):",
        *indented([
            "with copy_in:",
            f"    load(row, {name_x}[line * size], size)",
            *(["with compute:", '    cast(wide, row, "none", size)'] if half else []),
            "for at in range(0, count, IDS):",
            *indented([
                "n = min(IDS, count - at)",
                "with copy_in:",
                f"    load(ids_in, {name_i}[{'at' if shared else 'line * count + at'}], n)",
                "with compute:",
                *indented([
                    *read_index(index, "n"),
                    "muls(ids, ids, 4, n)",
                    f"gather({target}, {source}, ids, 0, n)",
                    *(['cast(y_out, chosen, "rint", n)'] if half else []),
                ]),
                "with copy_out:",
                "    store(y[line * count + at], y_out, n)",
            ]),
        ]),
    ]  # fmt: skip
    scalars = ("rows", "rows_per_core", "size", "count")
    about = f"elements of every row of {name_x} that {name_i} names"
    consts = {"IDS": room(_IDS, chip), "ROW": most}
    notes = (f"rows of at most {most} elements",)
    rows = () if shared else map(same, places[:-1], dims[:-1])
    legal = (Binary(BinOp.LE, dims[-1], Const(most)), *rows)
    inputs = _order(call, x, index)
    return finish(
        Text(call, about, inputs, out, consts, host, scalars, kernel, notes, legal=legal), name
    )


def _order(call: Call, *items: GraphInput) -> list[GraphInput]:
    """Inputs in the graph's order."""
    return [item for item in call.graph.inputs if item in items]
