"""A scan whose rows begin with the neutral element: `cat([zeros, x], -1).cumsum(-1)`.

Its rows are one element longer than those of x, which no loop over x's axes says, and some of the
last rows may be missing (`[:-1]`). A row is scanned tile by tile and stored one element further.
"""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Expr
from npusmith.plan.calls import Call, Text, Written, finish, indented, room, size_text, word_of
from npusmith.plan.names import tensor_name
from npusmith.target.chips import Chip
from npusmith.task.graph import Argument, Graph, GraphInput, Node

_SCANS = {"cumsum": ("sum", 0.0), "cumprod": ("prod", 1.0)}
_FILLED = {"zeros": 0.0, "zeros_like": 0.0, "ones": 1.0, "ones_like": 1.0}
_TILE = 8192


@dataclass(frozen=True, slots=True)
class Front:
    """What was found on the way from the output to the input."""

    node: Node  # the scan
    item: GraphInput
    missing: int  # rows of the first dimension that are left out, at the end


def write_front(graph: Graph, name: str, chip: Chip) -> Written | None:
    """The program of a module that is such a scan of one input; None for any other module."""
    found = _find(graph)
    return None if found is None else _program(graph, found, name, chip)


def _find(graph: Graph) -> Front | None:
    nodes = {node.name: node for node in graph.nodes}
    node = nodes.get(graph.outputs[0]) if len(graph.outputs) == 1 else None
    if node is None or word_of(node) not in _SCANS or not _is_last(node, node.args[1]):
        return None
    source = nodes.get(getattr(node.args[0], "ref", ""))
    missing = 0
    if source is not None and word_of(source) == "slice":
        joined = nodes.get(getattr(source.args[0], "ref", ""))
        if joined is None or len(source.args) != 4 or source.args[1:3] != (0, 0):
            return None
        missing, source = joined.shape[0] - source.shape[0], joined
    if source is None or word_of(source) != "cat" or not _is_last(source, _axis(source)):
        return None
    parts = source.args[0] if isinstance(source.args[0], tuple) else ()
    inputs = {item.name: item for item in graph.inputs if item.kind == "user"}
    item = inputs.get(getattr(parts[-1], "ref", "")) if len(parts) == 2 else None
    head = nodes.get(getattr(parts[0], "ref", "")) if parts else None
    if item is None or head is None or head.shape[-1:] != (1,) or item.dtype is not DType.FLOAT32:
        return None
    plain = len(item.shape) > (1 if missing else 0) and node.dtype is DType.FLOAT32
    return Front(node, item, missing) if plain and _fill(head) == _SCANS[word_of(node)][1] else None


def _axis(node: Node) -> Argument:
    return node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)


def _is_last(node: Node, axis: Argument) -> bool:
    return isinstance(axis, int) and axis % len(node.shape) == len(node.shape) - 1


def _fill(node: Node) -> float | None:
    """The number that a node is full of."""
    word = word_of(node)
    if word in _FILLED:
        return _FILLED[word]
    number = node.args[1] if word in ("full", "full_like") and len(node.args) > 1 else None
    return float(number) if isinstance(number, (int, float)) else None


def _program(graph: Graph, found: Front, name: str, chip: Chip) -> Written:
    item, (text, neutral) = found.item, _SCANS[word_of(found.node)]
    names = {item.name: tensor_name(item.name, {"y"})}
    call = Call(graph, word_of(found.node), found.node, None, names)
    dims = list(call.dims(item))
    out: list[Expr] = [*dims[:-1], Binary(BinOp.ADD, dims[-1], Const(1))]
    if found.missing:
        out[0] = Binary(BinOp.SUB, dims[0], Const(found.missing))
    host = [
        f"rows = max(0, {size_text(out[:-1])})",
        f"size = {size_text(dims[-1:])}",
        "cores = max(1, min(rows, chip.vector_cores))",
        "rows_per_core = ceil_div(rows, cores)",
    ]
    kernel = [
        "x_in = ub(TILE, float32)",
        "y_out = ub(TILE, float32)",
        "spare = ub(TILE, float32)",
        "front_out = ub(8, float32)",
        "first = core_id() * rows_per_core",
        "for row in range(first, min(first + rows_per_core, rows)):",
        *indented([
            f"carry = {neutral}",
            "with compute:",
            f"    duplicate(front_out, {neutral}, 1)",
            "with copy_out:",
            "    store(y[row * (size + 1)], front_out, 1)",
            "for at in range(0, size, TILE):",
            *indented([
                "n = min(TILE, size - at)",
                "with copy_in:",
                f"    load(x_in, {names[item.name]}[row * size + at], n)",
                "with compute:",
                f'    running_{text}(y_out, x_in, spare, carry, "forward", n)',
                "    carry = value(y_out[n - 1])",
                "with copy_out:",
                "    store(y[row * (size + 1) + 1 + at], y_out, n)",
            ]),
        ]),
    ]  # fmt: skip
    about = f"running {text} of {names[item.name]} behind {neutral}"
    scalars, consts = ("rows", "rows_per_core", "size"), {"TILE": room(_TILE, chip) // 128 * 128}
    return finish(Text(call, about, [item], tuple(out), consts, host, scalars, kernel), name)
