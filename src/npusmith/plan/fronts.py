"""A scan whose rows begin with the neutral element: `cat([zeros, x], -1).cumsum(-1)`.

Its rows are one element longer than those of x, which no loop over x's axes says, and some of the
last rows may be missing (`[:-1]`). A row is scanned tile by tile and stored one element further.
Few long rows are cut into chunks, as in relay.py.
"""

from __future__ import annotations

import math
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
_LONG = 16384  # elements of a row that is worth a wait of all cores
_TAKEN = ("carry", "wanted", "chunk", "begin", "end", "done", "other", "m", "k")
_SHARE = 4  # cores for a row, at least


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
    names = {item.name: tensor_name(item.name, {"y", *_TAKEN})}
    call = Call(graph, word_of(found.node), found.node, names)
    dims = list(call.dims(item))
    out: list[Expr] = [*dims[:-1], Binary(BinOp.ADD, dims[-1], Const(1))]
    if found.missing:
        out[0] = Binary(BinOp.SUB, dims[0], Const(found.missing))
    rows, size = size_text(out[:-1]), size_text(dims[-1:])
    few = _is_few(found, chip)
    host = [f"rows = max(0, {rows})", f"size = {size}", *(_CUT if few else _DEALT)]
    scan = Scan(names[item.name], text, neutral)
    return finish(
        Text(
            call, f"running {text} of {names[item.name]} behind {neutral}", [item], tuple(out),
            {"TILE": room(_TILE, chip) // 128 * 128}, host,
            ("size", *_SCALARS) if few else ("rows", "rows_per_core", "size"),
            scan.cut() if few else scan.dealt(),
            scratch={"part": "pieces * 8"} if few else {},
            legal=(Binary(BinOp.GE, dims[0], Const(found.missing)),) if found.missing else (),
        ),
        name,
    )  # fmt: skip


def _is_few(found: Front, chip: Chip) -> bool:
    """Whether rows leave so many cores idle that each is worth being scanned twice by several."""
    *lead, size = found.item.shape
    rows = math.prod(lead) - found.missing * math.prod(lead[1:])
    return 0 < rows * _SHARE <= chip.vector_cores and size >= _LONG


_DEALT = ("cores = max(1, min(rows, chip.vector_cores))", "rows_per_core = ceil_div(rows, cores)")
_CUT = (
    "wanted = max(1, chip.vector_cores // max(1, rows))",
    "chunk = align_up(max(ceil_div(size, wanted), 256), 64)",
    "chunks = max(1, ceil_div(size, chunk))",
    "pieces = rows * chunks",
    "cores = max(1, min(pieces, chip.vector_cores))",
    "pieces_per_core = ceil_div(pieces, cores)",
)
_SCALARS = ("chunk", "chunks", "pieces", "pieces_per_core")


@dataclass(frozen=True, slots=True)
class Scan:
    """The kernel's text, for rows that are dealt to cores or cut into chunks."""

    source: str
    text: str
    neutral: float

    def dealt(self) -> list[str]:
        return [
            *self._buffers(),
            "first = core_id() * rows_per_core",
            "for row in range(first, min(first + rows_per_core, rows)):",
            *indented([f"carry = {self.neutral}", *self._front(), *self._tiles("0", "size")]),
        ]

    def cut(self) -> list[str]:
        """What each chunk comes to, then its scan from what the chunks before it come to."""
        return [
            *self._buffers(),
            "done = ub(TILE, float32)",
            "part_out = ub(8, float32)",
            "part_in = ub(512, float32)",
            *self._pieces([f"carry = {self.neutral}", *self._totals()]),
            "sync_cores()",
            *self._pieces([
                f"carry = {self.neutral}",
                *self._joined(),
                "if begin == 0:",
                *indented(self._front()),
                *self._tiles("begin", "end"),
            ]),
        ]  # fmt: skip

    def _buffers(self) -> list[str]:
        return [
            "x_in = ub(TILE, float32)",
            "y_out = ub(TILE, float32)",
            "spare = ub(TILE, float32)",
            "front_out = ub(8, float32)",
        ]

    def _pieces(self, body: list[str]) -> list[str]:
        return [
            "first = core_id() * pieces_per_core",
            "for piece in range(first, min(first + pieces_per_core, pieces)):",
            *indented([
                "row = piece // chunks",
                "begin = piece % chunks * chunk",
                "end = min(begin + chunk, size)",
                *body,
            ]),
        ]  # fmt: skip

    def _front(self) -> list[str]:
        return [
            "with compute:",
            f"    duplicate(front_out, {self.neutral}, 1)",
            "with copy_out:",
            "    store(y[row * (size + 1)], front_out, 1)",
        ]

    def _tiles(self, begin: str, end: str) -> list[str]:
        return [
            f"for at in range({begin}, {end}, TILE):",
            *indented([
                f"n = min(TILE, {end} - at)",
                *self._scan("y_out"),
                "with copy_out:",
                "    store(y[row * (size + 1) + 1 + at], y_out, n)",
            ]),
        ]  # fmt: skip

    def _totals(self) -> list[str]:
        return [
            "for at in range(begin, end, TILE):",
            *indented(["n = min(TILE, end - at)", *self._scan("done")]),
            "with compute:",
            "    duplicate(part_out, carry, 8)",
            "with copy_out:",
            "    store(part[piece * 8], part_out, 8)",
        ]

    def _scan(self, target: str) -> list[str]:
        return [
            "with copy_in:",
            f"    load(x_in, {self.source}[row * size + at], n)",
            "with compute:",
            f'    running_{self.text}({target}, x_in, spare, carry, "forward", n)',
            f"    carry = value({target}[n - 1])",
        ]

    def _joined(self) -> list[str]:
        sign = {"sum": "+", "prod": "*"}[self.text]
        return [
            "for other in range(row * chunks, piece, 64):",
            *indented([
                "m = min(64, piece - other)",
                "with copy_in:",
                "    load(part_in, part[other * 8], m * 8)",
                "with compute:",
                "    for k in range(m):",
                f"        carry = carry {sign} value(part_in[k * 8])",
            ]),
        ]  # fmt: skip
