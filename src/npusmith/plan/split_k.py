"""Split-K: matrix products of few blocks and a long depth -> sums of products of its parts."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const
from npusmith.lang.extents import evaluate
from npusmith.plan.estimate import WAIT, hbm_us
from npusmith.plan.matrix_tiles import ProductSizes, choose, cycles
from npusmith.plan.node_kinds import product_sizes
from npusmith.plan.split_k_parts import PARTIAL, depth_of_part
from npusmith.target.chips import Chip
from npusmith.task.graph import Argument, Graph, Node, Ref

WORTH = 0.85  # of the time of the product at once


def with_split_products(graph: Graph, chip: Chip) -> Graph:
    """The graph with products in parts, where these take much less time at the captured sizes.

    before: `c = mm(a, b)`
    after:  `parts = partial_products(a, b)`, `c = sum(parts, 0)`, which kernels behind it take in
    """
    nodes: list[Node] = []
    for node in graph.nodes:
        parts = _parts(graph, node, chip)
        if parts == 1:
            nodes.append(node)
            continue
        name, shape = f"{node.name}_parts", (parts, *node.shape)
        update = {"name": name, "op": PARTIAL, "shape": shape, "dtype": DType.FLOAT32}
        summed = {"op": "aten.sum.dim_IntList", "args": (Ref(ref=name), (0,)), "kwargs": {}}
        nodes += [node.model_copy(update=update), node.model_copy(update=summed)]
    return graph.model_copy(update={"nodes": tuple(nodes)})


def _parts(graph: Graph, node: Node, chip: Chip) -> int:
    """Parts of the depth that are worth it at the captured sizes."""
    product = product_sizes(graph, node)
    if product is None or node.dtype is None or 0 in (*node.shape, product[1]):
        return 1
    rows, depth, cols = product
    operand = next(graph.spec(arg.ref).dtype for arg in node.args if isinstance(arg, Ref))
    if not operand.is_float:
        return 1
    sizes = [Const(size) for size in node.shape]
    each = int(evaluate(depth_of_part(sizes, Const(depth)), {}, {}, chip))
    parts = ceil(depth / each)
    if parts == 1:
        return 1
    count = prod(node.shape[:-2])
    deep = not _is_turned(graph, node.args[0]), _is_turned(graph, node.args[1])
    pitches = depth if deep[0] else rows, depth if deep[1] else cols
    whole = ProductSizes(count, rows, cols, depth, 1, operand, node.dtype, deep, pitches, False)
    split = replace(whole, count=count * parts, depth=each, out=DType.FLOAT32)
    once, cut = (cycles(it, choose(it, chip), chip) / chip.clock_mhz for it in (whole, split))
    added = hbm_us(2 * parts * prod(node.shape) * DType.FLOAT32.bytes, chip) + WAIT
    return parts if cut + added < WORTH * once else 1


def _is_turned(graph: Graph, arg: Argument) -> bool:
    """Whether an operand is a transposed view: `x @ w.t()`."""
    made = (node for node in graph.nodes if isinstance(arg, Ref) and node.name == arg.ref)
    return any(node.op.split(".")[1:2] in (["t"], ["transpose"], ["permute"]) for node in made)
