"""Products that are small as captured, but not at other sizes, on the cube unit all the same."""

from __future__ import annotations

from collections.abc import Container

from npusmith.plan.node_kinds import CUBE_PRODUCT, MATRIX_PRODUCTS, is_on_cube, product_sizes
from npusmith.task.graph import Graph, Node, Ref


def with_cube_products(graph: Graph, names: Container[str]) -> Graph:
    """The graph with products of these names on the cube unit, where captures have them larger.

    before: `c = bmm(a, b)`, of 7 x 9 and 9 x 7 as captured, at another capture of 1129 x 9
    after:  `c = npusmith.matmul(a, b)`, whose kernel is a cube unit's at all sizes
    """
    sizes = {axis: item.sizes for item in graph.classes for axis in item.axes}
    nodes = [
        node.model_copy(update={"op": CUBE_PRODUCT})
        if node.name in names and _grows(graph, node, sizes)
        else node
        for node in graph.nodes
    ]
    if nodes == [*graph.nodes]:
        return graph
    return graph.model_copy(update={"nodes": tuple(nodes)})


def _grows(graph: Graph, node: Node, sizes: dict[tuple[str, int], tuple[int, ...]]) -> bool:
    if node.op not in MATRIX_PRODUCTS or product_sizes(graph, node) is not None:
        return False
    if node.dtype is None or not node.dtype.is_float or 0 in node.shape:
        return False
    left, right = (arg.ref for arg in node.args[:2] if isinstance(arg, Ref))

    def each(name: str, axis: int) -> tuple[int, ...]:
        shape = graph.spec(name).shape
        return sizes.get((name, len(shape) + axis), (shape[axis],))

    axes = [each(left, -2), each(left, -1), each(right, -1)]
    count = max(map(len, axes))
    tried = zip(*(item if len(item) == count else item * count for item in axes), strict=True)
    return any(is_on_cube(*item) for item in tried)
