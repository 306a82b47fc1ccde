"""Products that are small as captured, but not at other sizes, on the cube unit all the same."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from operator import is_

from npusmith.plan.node_kinds import CUBE_PRODUCT, MATRIX_PRODUCTS, is_on_cube, product_sizes
from npusmith.task.graph import Graph, Node, Ref


def with_cube_products(graph: Graph, names: Container[str]) -> Graph:
    """The graph with products of these names on the cube unit, where captures have them larger.

    before: `c = bmm(a, b)`, of 7 x 9 and 9 x 7 as captured, at another capture of 1129 x 9
    after:  `c = npusmith.matmul(a, b)`, whose kernel is a cube unit's at all sizes
    """
    captures = list(graph.captures())
    nodes = tuple(
        node.model_copy(update={"op": CUBE_PRODUCT})
        if node.name in names and _grows(graph, node, captures)
        else node
        for node in graph.nodes
    )
    return graph if all(map(is_, nodes, graph.nodes)) else graph.model_copy(update={"nodes": nodes})


def _grows(graph: Graph, node: Node, captures: Sequence[Mapping[tuple[str, int], int]]) -> bool:
    """Whether a product that is not the cube unit's as captured is its own at another capture."""
    if node.op not in MATRIX_PRODUCTS or product_sizes(graph, node) is not None:
        return False
    if node.dtype is None or not node.dtype.is_float or 0 in node.shape:
        return False
    left, right = (arg.ref for arg in node.args[:2] if isinstance(arg, Ref))

    def size(name: str, axis: int, sizes: Mapping[tuple[str, int], int]) -> int:
        shape = graph.spec(name).shape
        return sizes.get((name, len(shape) + axis), shape[axis])

    return any(
        is_on_cube(size(left, -2, sizes), size(left, -1, sizes), size(right, -1, sizes))
        for sizes in captures
    )
