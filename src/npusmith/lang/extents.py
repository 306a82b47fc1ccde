"""Numbers for expressions over sizes, with the shapes of tensors by name."""

from __future__ import annotations

import math
from collections.abc import Mapping

from npusmith.errors import LangError
from npusmith.ir.conditions import conditions
from npusmith.ir.nodes import ChipFact, Dim, Expr, Size
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import names
from npusmith.lang.scalars import Scalar, Scalars
from npusmith.target.chips import Chip

Shape = tuple[int, ...]


def extent(
    expr: Expr,
    shapes: Mapping[str, Shape],
    cores: int | None = None,
    defined: Mapping[str, Expr] | None = None,
) -> int:
    """What a size expression comes to for tensors of these shapes, on a chip with so many cores.

    `defined`: host variables that it reads.
    """
    scalars = _scalars(shapes, cores)
    _define(scalars, expr, defined or {})
    return scalars.integer(expr)


def evaluate(
    expr: Expr, sizes: Mapping[str, int], defined: Mapping[str, Expr], chip: Chip
) -> Scalar:
    """The value of an expression over host variables.

    `sizes`: variables that are given; `defined`: those that follow from others.
    """

    def leaf(item: Expr) -> int:
        assert isinstance(item, ChipFact), item
        return int(getattr(chip, item.name))

    scalars = Scalars(dict(sizes), leaf, _fail)
    _define(scalars, expr, defined)
    return scalars.value(expr)


def _define(scalars: Scalars, expr: Expr, defined: Mapping[str, Expr]) -> None:
    """Give values to the variables of an expression."""
    for name in names(expr):
        if name not in scalars.names and name in defined:
            _define(scalars, defined[name], defined)
            scalars.names[name] = scalars.value(defined[name])


def unmet(spec: OpSpec, shapes: Mapping[str, Shape]) -> Expr | None:
    """The condition of the operator's own that inputs of these shapes break; None if none is.

    Ranks are as they were captured. Raises LangError for a condition that says something else.
    """
    scalars = _scalars(shapes)
    return next((expr for expr in conditions(spec) if not scalars.value(expr)), None)


def serves(spec: OpSpec, shapes: Mapping[str, Shape]) -> bool:
    """Does the operator say of inputs of these shapes that it serves them?"""
    return spec.legal is not None and unmet(spec, shapes) is None


def _scalars(shapes: Mapping[str, Shape], cores: int | None = None) -> Scalars:
    def leaf(item: Expr) -> int:
        match item:
            case ChipFact("vector_cores") if cores is not None:
                return cores
            case Dim(tensor, index) if index < len(shapes.get(tensor, ())):
                return shapes[tensor][index]
            case Size(tensor) if tensor in shapes:
                return math.prod(shapes[tensor])
        raise _fail("lang-expression", "sizes of inputs are all that shapes tell")

    return Scalars({}, leaf, _fail)


def _fail(code: str, message: str) -> LangError:
    return LangError(code, message)
