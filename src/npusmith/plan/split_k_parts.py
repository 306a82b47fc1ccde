"""Split-K: how deep a part is, the one formula of graph and program.

A product of few blocks and a long depth keeps few cores busy. In parts, each of which is a product
of its own, it keeps all of them; the parts are added up by vector cores (split_k.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.ir.nodes import ChipFact, Const, Expr
from npusmith.plan.scalars import ONE, largest, product, quotient, shares, times

PARTIAL = "npusmith.partial_products"  # a product with one more dimension: its parts
_SIDE = Const(128)  # of a block, about
_STEP = Const(256)  # elements: a part is that deep, or a multiple


def depth_of_part(result: Sequence[Expr], depth: Expr) -> Expr:
    """Elements of the depth in a part; all of it where blocks alone keep the cores busy.

    `result`: the sizes of the product, rows and columns last. Each part has at least one element.
    """
    *batch, rows, cols = result
    blocks = shares(product((*batch, shares(rows, _SIDE), shares(cols, _SIDE))), Const(2))
    parts = largest(quotient(ChipFact("cube_cores"), largest(blocks, ONE)), ONE)
    return times(shares(shares(depth, parts), _STEP), _STEP)
