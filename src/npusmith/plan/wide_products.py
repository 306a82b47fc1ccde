"""Matrix products of 16-bit types -> products in float32, as the cube unit adds them up."""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.plan.node_kinds import PRODUCTS, SHORT_FLOATS
from npusmith.task.graph import Graph, Node, is_free, references

_PICKING = (
    ["sort"], ["argsort"], ["topk"], ["kthvalue"], ["median"], ["mode"], ["argmax"], ["argmin"],
    ["max"], ["min"], ["cummax"], ["cummin"],
)  # fmt: skip


def with_wide_products(graph: Graph) -> Graph:
    """The graph with matrix products of 16-bit types in float32, as the cube unit adds them up.

    What stands behind them (a bias, an activation) then rounds once. A product that is an output,
    an operand of another product, or put in order, stays in its type: what rounding makes equal
    has its places in the order of PyTorch.
    """
    views: dict[str, set[str]] = {}  # of each value: what it is, or is a view of
    narrow = set(graph.outputs)
    for node in graph.nodes:
        bases = set().union(*(views.get(name, {name}) for name in references(node)))
        views[node.name] = bases if is_free(node) else {node.name}
        narrow |= bases if node.op in PRODUCTS or _picks(node) else set()
    narrow |= {base for name in graph.outputs for base in views.get(name, ())}
    wide: dict[str, DType | None] = {}  # products, views of them, and the type that they had
    nodes: list[Node] = []
    for node in graph.nodes:
        product = node.op in PRODUCTS and node.dtype in SHORT_FLOATS and node.name not in narrow
        view = is_free(node) and any(wide.get(name) == node.dtype for name in references(node))
        if product or view:
            wide[node.name] = node.dtype
            node = node.model_copy(update={"dtype": DType.FLOAT32})
        nodes.append(node)
    return graph.model_copy(update={"nodes": tuple(nodes)})


def _picks(node: Node) -> bool:
    return node.op.split(".")[1:2] in _PICKING  # which elements come first, or where the largest is
