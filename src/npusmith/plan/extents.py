"""Numbers for expressions over sizes, with the shapes of tensors by name."""

from __future__ import annotations

import math
from collections.abc import Mapping

from npusmith.errors import LangError
from npusmith.ir.nodes import Dim, Expr, Size
from npusmith.ir.spec import OpSpec
from npusmith.lang.scalars import Scalars

Shape = tuple[int, ...]


def extent(expr: Expr, shapes: Mapping[str, Shape]) -> int:
    """What a size expression comes to for tensors of these shapes."""
    return _scalars(shapes).integer(expr)


def serves(spec: OpSpec, shapes: Mapping[str, Shape]) -> bool:
    """Does the operator accept inputs of these shapes? Ranks are as they were captured."""
    scalars = _scalars(shapes)
    return spec.legal is not None and all(scalars.value(expr) for expr in spec.legal)


def _scalars(shapes: Mapping[str, Shape]) -> Scalars:
    def leaf(item: Expr) -> int:
        match item:
            case Dim(tensor, index):
                return shapes[tensor][index]
            case Size(tensor):
                return math.prod(shapes[tensor])
        raise AssertionError(item)

    return Scalars({}, leaf, _fail)


def _fail(code: str, message: str) -> LangError:
    return LangError(code, message)
