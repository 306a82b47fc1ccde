"""What kinds of operations nodes of a graph are, and what they read."""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.plan.split_k_parts import PARTIAL
from npusmith.task.graph import Graph, Node, Ref

SHORT = 16  # elements of a short axis: one side of a tile of the cube unit
INT8_PRODUCT = "aten._int_mm.default"  # of int8, added up in int32
ATTENTION = "npusmith.attention"  # two products with a softmax between (attention_graph.py)
MATRIX_PRODUCTS = ("aten.mm.default", "aten.bmm.default")
CUBE_PRODUCT = "npusmith.matmul"  # the same on the cube unit, whatever its sizes are
PRODUCTS = (*MATRIX_PRODUCTS, INT8_PRODUCT, CUBE_PRODUCT)
OF_ANY_SIZE = (INT8_PRODUCT, CUBE_PRODUCT, PARTIAL)  # the cube unit's, however small
SHORT_FLOATS = (DType.FLOAT16, DType.BFLOAT16)


def is_on_cube(rows: int, inner: int, columns: int) -> bool:
    """Whether a product of these sizes is the cube unit's; sums of nothing are none."""
    return inner > 0 and sorted((rows, inner, columns))[1] > SHORT and min(rows, columns) > 1


def product_sizes(graph: Graph, node: Node) -> tuple[int, int, int] | None:
    """Rows, depth and columns of a node that is a product of the cube unit; None if it is none."""
    if node.op not in (*PRODUCTS, PARTIAL):
        return None
    left, right = (graph.spec(arg.ref).shape for arg in node.args[:2] if isinstance(arg, Ref))
    sizes = left[-2], left[-1], right[-1]
    return sizes if node.op in OF_ANY_SIZE or is_on_cube(*sizes) else None


def takes_apart(node: Node) -> bool:
    return node.op.split(".")[-1] == "getitem" or node.op.endswith(".getitem")
