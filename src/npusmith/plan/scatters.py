"""Elements of rows put where an index says: scatters along the last dimension.

The result begins as a copy of the tensor; then values are stored, or added, in the order of their
indices. A core owns the rows that it writes. So the last of several values for one place wins, and
sums are added in one order, on any number of cores.
"""

from __future__ import annotations

from npusmith.ir.dtypes import DType
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

_WORDS = ("scatter", "scatter_add")
_IDS, _ROOM = 512, 16384  # indices at a time; elements of a buffer for rows
_ADDABLE = (DType.FLOAT32, DType.FLOAT16)  # types of the atomic addition of a copy


def write_scatter(graph: Graph, name: str, chip: Chip) -> Written | None:
    """The program of a module that stores by an index; None for any other module."""
    call = find_call(graph, _WORDS)
    if call is None:
        return None
    return _elements(call, name, chip)


def read_index(index: GraphInput, count: str) -> list[str]:
    """Indices in `ids_in` as int32 in `ids`."""
    if index.dtype is DType.INT32:
        return [f"muls(ids, ids_in, 1, {count})"]
    return [f'cast(ids, ids_in, "none", {count})']


def _check_sum(call: Call, x: GraphInput, adds: bool) -> None:
    if adds and x.dtype not in _ADDABLE:
        legal = ", ".join(dtype.value for dtype in _ADDABLE)
        call.refuse("plan-dtype", f"sums of {x.dtype.value} are not written", legal=legal)


def _elements(call: Call, name: str, chip: Chip) -> Written:
    """Elements of rows, one after another: a copy moves no less than a block of its own."""
    x = call.input(call.argument(0), FLOATS)
    index = call.input(call.argument(2), INDICES)
    values = call.input(call.argument(3), (x.dtype,))
    adds, dims = call.word == "scatter_add", call.dims(x)
    _check_sum(call, x, adds)
    at = call.argument(1, "dim")
    last = isinstance(at, int) and at % len(x.shape) == len(x.shape) - 1
    if not last or index.shape != values.shape or index.shape[:-1] != x.shape[:-1]:
        call.refuse(
            "plan-data-movement", "it stores along an axis that is not the last, or of operands "
            "whose other dimensions differ",
        )  # fmt: skip
    if x.dtype is not DType.FLOAT32 or "reduce" in call.node.kwargs:
        call.refuse("plan-dtype", "single elements are stored in float32", legal="float32")
    host = [
        f"rows = {size_text(dims[:-1])}",
        f"size = {size_text(dims[-1:])}",
        f"count = {size_text(call.dims(index)[-1:])}",
        "cores = max(1, min(rows, chip.vector_cores))",
        "rows_per_core = ceil_div(rows, cores)",
    ]
    name_x, name_i, name_v = (call.names[item.name] for item in (x, index, values))
    how = ', atomic="add"' if adds else ""
    kernel = [
        f"ids_in = ub(IDS, {index.dtype.value})",
        "ids = ub(IDS, int32)",
        "x_copy = ub(ROOM, float32)",
        "v_in = ub(IDS, float32)",
        "spread = ub(8 * IDS, int32)",
        "apart = ub(8 * IDS, float32)",
        "one = ub(8, float32)",
        "with compute:",
        *indented([
            '"element i of a tile goes to block i, where a copy may begin"',
            "create_index(spread, 0, 8 * IDS)",
            "shift_right(spread, spread, 3, 8 * IDS)",
            "muls(spread, spread, 4, 8 * IDS)",
        ]),
        "first = core_id() * rows_per_core",
        "for row in range(first, min(first + rows_per_core, rows)):",
        *indented([
            "for at in range(0, size, ROOM):",
            *indented([
                "n = min(ROOM, size - at)",
                "with copy_in:",
                f"    load(x_copy, {name_x}[row * size + at], n)",
                "with copy_out:",
                "    store(y[row * size + at], x_copy, n)",
            ]),
            "for start in range(0, count, IDS):",
            *indented([
                "k = min(IDS, count - start)",
                "with copy_in:",
                f"    load(ids_in, {name_i}[row * count + start], k)",
                f"    load(v_in, {name_v}[row * count + start], k)",
                "with compute:",
                *indented([
                    *read_index(index, "k"),
                    "gather(apart, v_in, spread, 0, 8 * k)",
                ]),
                "for i in range(k):",
                *indented([
                    "with compute:",
                    "    place = value(ids[i])",
                    "    muls(one, apart[8 * i], 1.0, 1)",
                    "with copy_out:",
                    f"    store(y[row * size + place], one, 1{how})",
                ]),
            ]),
        ]),
    ]  # fmt: skip
    scalars = ("rows", "rows_per_core", "size", "count")
    word = "added" if adds else "stored"
    about = f"{name_x}, with elements of {name_v} {word} where {name_i} says"
    inputs = [item for item in call.graph.inputs if item in (x, index, values)]
    consts = {"IDS": room(_IDS, chip), "ROOM": room(_ROOM, chip)}
    picked = call.dims(index)
    legal = (*map(same, picked[:-1], dims[:-1]), *map(same, call.dims(values), picked))
    return finish(Text(call, about, inputs, dims, consts, host, scalars, kernel, legal=legal), name)
