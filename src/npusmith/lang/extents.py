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


def unmet(spec: OpSpec, shapes: Mapping[str, Shape]) -> Expr | None:
    """The condition of the operator's own that inputs of these shapes break; None if none is.

    Ranks are as they were captured. Raises LangError for a condition that says something else.
    """
    scalars = _scalars(shapes)
    return next((expr for expr in spec.legal or () if not scalars.value(expr)), None)


def serves(spec: OpSpec, shapes: Mapping[str, Shape]) -> bool:
    """Does the operator say of inputs of these shapes that it serves them?"""
    return spec.legal is not None and unmet(spec, shapes) is None


def _scalars(shapes: Mapping[str, Shape]) -> Scalars:
    def leaf(item: Expr) -> int:
        match item:
            case Dim(tensor, index) if index < len(shapes.get(tensor, ())):
                return shapes[tensor][index]
            case Size(tensor) if tensor in shapes:
                return math.prod(shapes[tensor])
        raise _fail("lang-expression", "sizes of inputs are all that shapes tell")

    return Scalars({}, leaf, _fail)


def _fail(code: str, message: str) -> LangError:
    return LangError(code, message)
