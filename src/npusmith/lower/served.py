"""What host code and bindings check before a kernel runs: the shapes that it serves.

One list of conditions from the operator's own facts (ranks of its ports, `OpSpec.legal`, what the
dimensions of its outputs divide by); a Site says how the surrounding code spells them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from npusmith.ir.conditions import conditions
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr, Size
from npusmith.ir.rebuild import map_children
from npusmith.ir.spec import OpSpec, Port, Source, dims_of
from npusmith.ir.text import show_expr
from npusmith.ir.walk import subexpressions
from npusmith.lower.arithmetic import Site, shapes_dialect
from npusmith.lower.cpp import show
from npusmith.lower.fold import fold
from npusmith.lower.kinds import Kind
from npusmith.lower.names import camel, safe


@dataclass(frozen=True, slots=True)
class Condition:
    """What a shape has to fulfil: `holds` is C++, `legal` what a message says."""

    name: str  # of the argument that the message shows, in OpDef and PyTorch's schema
    holder: str  # of that argument's shape
    holds: str
    legal: str


def input_conditions(spec: OpSpec, site: Site) -> list[Condition]:
    """What has to hold for the inputs: ranks first, because what follows rests on them.

    Empty where nothing is known of what the kernel serves.
    """
    if spec.legal is None:
        return []
    dialect = shapes_dialect(spec, site)
    found = [_rank(port, site) for port in spec.inputs]
    for expr in conditions(spec):
        name = next(e.tensor for e in subexpressions(expr) if isinstance(e, Dim | Size))
        found.append(_condition(name, site, show(expr, dialect), show_expr(expr)))
    return found


def restrictions(spec: OpSpec) -> list[Expr]:
    """What the operator asks of sizes besides equal ones, sizes that are numbers first.

    Of sizes that have to be equal one stands for all, and what follows from numbers is left out.
    """
    first: dict[Expr, Expr] = {}
    for left, right in map(_sides, equal_sizes(spec)):
        one, two = first.get(left, left), first.get(right, right)
        first = {key: one if value == two else value for key, value in first.items()}
        first |= {left: one, right: one, two: one}

    def same(expr: Expr) -> Expr:
        return first.get(expr) or map_children(expr, same)

    every: dict[Expr, Expr] = {}  # as one stands for all, and as it was written
    for expr in spec.legal or ():
        if not _is_equality(expr):
            every.setdefault(same(expr), expr)
    numbers = {
        expr.left: expr.right
        for expr in every
        if isinstance(expr, Binary) and expr.op is BinOp.EQ and isinstance(expr.right, Const)
    }

    def known(expr: Expr) -> Expr:
        return numbers.get(expr) or map_children(expr, known)

    held = [Binary(BinOp.EQ, left, right) for left, right in numbers.items()]
    open_ = [expr for expr in every if fold(known(expr), lambda _: Kind.INT) != Const(True)]
    return [every[expr] for expr in dict.fromkeys((*held, *open_))]


def with_own_weights(spec: OpSpec, shapes: Mapping[str, tuple[int, ...]]) -> OpSpec:
    """With the sizes of weights as numbers in its conditions: they are the model's own.

    shapes: those of parameters and buffers, by their names in the model.
    """
    held = {
        port.name: shapes[port.target]
        for port in spec.inputs
        if port.source is not Source.USER and port.target in shapes
    }

    def number(expr: Expr) -> Expr:
        if isinstance(expr, Dim) and expr.index < len(shape := held.get(expr.tensor, ())):
            return Const(shape[expr.index])
        return map_children(expr, number)

    legal = (fold(number(expr), lambda _: Kind.INT) for expr in spec.legal or ())
    return replace(spec, legal=tuple(expr for expr in legal if expr != Const(True)))


def equal_sizes(spec: OpSpec) -> list[Expr]:
    """Sizes that have to be equal: most of them the model refuses, too."""
    return [expr for expr in spec.legal or () if _is_equality(expr)]


def _is_equality(expr: Expr) -> bool:
    return isinstance(expr, Binary) and expr.op is BinOp.EQ and {*map(type, _sides(expr))} == {Dim}


def _sides(expr: Expr) -> tuple[Expr, Expr]:
    assert isinstance(expr, Binary)
    return expr.left, expr.right


def output_conditions(spec: OpSpec, site: Site) -> list[Condition]:
    """How many elements the outputs have that a caller brings along."""
    if spec.legal is None:
        return []
    dialect = shapes_dialect(spec, site)
    found = []
    for port in spec.outputs:
        count = _product(dims_of(port))
        holds = f"{site.size(_holder(port.name, site))} == {show(count, dialect)}"
        found.append(_condition(port.name, site, holds, f"{show_expr(count)} elements"))
    return found


def _condition(name: str, site: Site, holds: str, legal: str) -> Condition:
    return Condition(safe(name), _holder(name, site), holds, legal)


def _holder(name: str, site: Site) -> str:
    return safe(site.tensor.format(camel(name)))


def _rank(port: Port, site: Site) -> Condition:
    holder = _holder(port.name, site)
    if not port.shape:  # a scalar may come as a tensor of one element
        return _condition(port.name, site, f"{site.size(holder)} == 1", "one element")
    rank = len(port.shape)
    return _condition(port.name, site, f"{site.rank(holder)} == {rank}", f"rank {rank}")


def _product(dims: tuple[Expr, ...]) -> Expr:
    """Elements of a tensor: its numbers as one factor, in front."""
    number = math.prod(int(dim.value) for dim in dims if isinstance(dim, Const))
    result: Expr = Const(number)
    for dim in dims:
        if not isinstance(dim, Const):
            result = dim if result == Const(1) else Binary(BinOp.MUL, result, dim)
    return result
