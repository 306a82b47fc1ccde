"""What host code and bindings check before a kernel runs: the shapes that it serves.

One list of conditions from the operator's own facts (ranks of its ports, `OpSpec.legal`, what the
dimensions of its outputs divide by); a Site says how the surrounding code spells them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr, Size
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.text import show_expr
from npusmith.ir.walk import subexpressions
from npusmith.lower.arithmetic import Site, dims_of, divisors, shapes_dialect
from npusmith.lower.cpp import show
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
    for expr in (*_divided(spec), *spec.legal):
        name = next(e.tensor for e in subexpressions(expr) if isinstance(e, Dim | Size))
        found.append(_condition(name, site, show(expr, dialect), show_expr(expr)))
    return found


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


def _divided(spec: OpSpec) -> Iterator[Expr]:
    """What the dimensions of the outputs divide by must not be 0; sizes are never negative."""
    for port in spec.outputs:
        for divisor, op, bound in (item for dim in dims_of(port) for item in divisors(dim)):
            if not isinstance(divisor, Const):
                yield Binary(BinOp.GE, divisor, Const(bound + (op is BinOp.EQ)))


def _product(dims: tuple[Expr, ...]) -> Expr:
    """Elements of a tensor: its numbers as one factor, in front."""
    number = math.prod(int(dim.value) for dim in dims if isinstance(dim, Const))
    result: Expr = Const(number)
    for dim in dims:
        if not isinstance(dim, Const):
            result = dim if result == Const(1) else Binary(BinOp.MUL, result, dim)
    return result
