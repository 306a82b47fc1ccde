"""Numbers for size expressions: `extent(expr, shapes)`, with the shapes of tensors by name."""

from __future__ import annotations

import math
from collections.abc import Mapping

from npusmith.errors import LangError
from npusmith.ir.nodes import Dim, Expr, Size
from npusmith.lang.scalars import Scalars

Shape = tuple[int, ...]


def extent(expr: Expr, shapes: Mapping[str, Shape]) -> int:
    """What a size expression comes to for tensors of these shapes."""

    def leaf(item: Expr) -> int:
        match item:
            case Dim(tensor, index):
                return shapes[tensor][index]
            case Size(tensor):
                return math.prod(shapes[tensor])
        raise AssertionError(item)

    return Scalars({}, leaf, _fail).integer(expr)


def _fail(code: str, message: str) -> LangError:
    return LangError(code, message)
