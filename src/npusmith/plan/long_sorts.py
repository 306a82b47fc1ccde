"""Long rows in order: the kernel of one sort or topk along the last dimension, through workspace.

Rows that a tile holds are put in order there, among whatever else is computed (sorts.py); this
one takes rows of any length, piece by piece (block_sort.py), and nothing else.
"""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Const,
    Expr,
    Program,
)  # fmt: skip
from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.lang.budget import bytes_of
from npusmith.plan.block_sort import Order, PiecesKernel
from npusmith.plan.fixed_sizes import held_sizes
from npusmith.plan.names import tensor_name
from npusmith.plan.sorts import LONGEST, RULES, mode_of
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, Node, Ref

Written = tuple[Program, OpSpec, tuple[str, ...]]

_STEP = 64  # elements that are sorted together are a multiple of this


def write_sort(graph: Graph, name: str, chip: Chip) -> Written | None:
    """The program of a graph that is one sort or topk; None for others."""
    found = _find(graph)
    if found is None:
        return None
    room = -(-(found.kept or 0) // 8) * 8
    kernel: PiecesKernel | None = None
    if found.kept is not None:
        kernel = PiecesKernel(found, room)
        most = _longest(kernel, chip)
        kernel = None if 2 * room > most else kernel
    if kernel is None:
        kernel = PiecesKernel(found, 0)
        most = _longest(kernel, chip)
    consts = _consts(most, kernel.room)
    program = Program(
        consts, kernel.host(name), (kernel.kernel(name),), f"{name}: rows in {found.mode} order"
    )
    return program, _spec(graph, name, found), ()


def _consts(most: int, room: int) -> tuple[tuple[str, int | float], ...]:
    rest = (("BEST", room), ("PIECE", most - room)) if room else (("PIECE", most // 2),)
    return (("ROW", most), *rest)


def _longest(kernel: PiecesKernel, chip: Chip) -> int:
    """Elements that are sorted together, such that all buffers fit."""
    for most in range(LONGEST, 0, -_STEP):
        consts = dict(_consts(most, kernel.room))
        if sum(bytes_of(item, consts, chip) for item in kernel.buffers) <= chip.ub_bytes:
            return most
    return _STEP


# ------------------------------------------------------------------------------------ what is asked


def is_sort(graph: Graph) -> bool:
    """Whether a graph is one sort or topk of an input, and nothing else."""
    return _find(graph) is not None


def has_sort(graph: Graph) -> bool:
    """Whether something in a graph is put in order."""
    return any(_word(node) in RULES for node in graph.nodes)


def _find(graph: Graph) -> Order | None:
    calls = [node for node in graph.nodes if not node.op.endswith("getitem")]
    if len(calls) != 1 or _word(calls[0]) not in RULES:
        return None
    node = calls[0]
    taken = {item.name: item for item in graph.nodes if item is not node}
    first = node.args[0]
    x = next((i for i in graph.inputs if isinstance(first, Ref) and i.name == first.ref), None)
    if x is None or not x.shape or any(name not in taken for name in graph.outputs):
        return None
    used: set[str] = set()
    name = tensor_name(x.name, used)
    several = len(graph.outputs) > 1
    outputs = tuple(
        (tensor_name(f"y{i}" if several else "y", used), _which(taken[out]))
        for i, out in enumerate(graph.outputs)
    )
    return Order(node, x, name, mode_of(node), _kept(node), outputs)


def _which(node: Node) -> int:
    number = node.args[1]
    assert isinstance(number, int)
    return number


def _kept(node: Node) -> int | None:
    """How many elements are kept: all where None."""
    if _word(node) != "topk":
        return None
    asked = node.args[1]
    assert isinstance(asked, int)
    return asked


def _word(node: Node) -> str:
    """PyTorch's name of an operation."""
    parts = node.op.split(".")
    return parts[1] if parts[0] == "aten" and len(parts) > 1 else ""


def _spec(graph: Graph, name: str, found: Order) -> OpSpec:
    x = found.x
    last: Expr = found.dims[-1] if found.kept is None else Const(found.kept)
    shape = (*x.shape[:-1], x.shape[-1] if found.kept is None else found.kept)
    outs = tuple(
        Port(called, DType.INT64 if which else x.dtype, shape, dims=(*found.dims[:-1], last))
        for called, which in found.outputs
    )
    legal: list[Expr] = list(held_sizes(graph, {x.name: found.name}))
    if found.kept is not None:
        legal.append(Binary(BinOp.GE, found.dims[-1], Const(found.kept)))
    port = Port(
        name=found.name, dtype=x.dtype, shape=x.shape, source=Source(x.kind),
        position=x.position, target=x.target,
    )  # fmt: skip
    return OpSpec(name, (port,), outs, legal=tuple(legal))
