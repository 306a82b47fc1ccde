"""What an operator asks of the shapes of its inputs, in an order in which it can be asked."""

from __future__ import annotations

from collections.abc import Iterator

from npusmith.ir.nodes import Binary, BinOp, Call, Choice, Const, Expr, ScalarFn
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.walk import children

_ROUNDINGS = (ScalarFn.CEIL_DIV, ScalarFn.ALIGN_UP)


def conditions(spec: OpSpec) -> Iterator[Expr]:
    """What has to hold for the kernel to serve inputs: `OpSpec.legal`, and no division by zero.

    Before a condition, and before all of them for the dimensions of outputs, stands what it divides
    by, so that whoever asks them one after another never divides by zero. Nothing where nothing is
    known of what the kernel serves.
    """
    if spec.legal is None:
        return
    asked: set[Expr] = set()
    dims = [dim for port in spec.outputs for dim in dims_of(port)]
    for expr, itself in (*((dim, ()) for dim in dims), *((expr, (expr,)) for expr in spec.legal)):
        for wanted in (*_divides(expr), *itself):
            if wanted not in asked:
                asked.add(wanted)
                yield wanted


def _divides(expr: Expr) -> Iterator[Expr]:
    """What an expression divides by must not be 0; sizes are never negative."""
    for divisor, op, bound in divisors(expr):
        if not isinstance(divisor, Const):
            yield Binary(BinOp.GE, divisor, Const(bound + (op is BinOp.EQ)))


def dims_of(port: Port) -> tuple[Expr, ...]:
    """The dimensions of an output: as given, else those of the task's first inputs."""
    if port.dims or not port.shape:
        return port.dims
    return tuple(Const(size) for size in port.shape)


def divisors(expr: Expr) -> Iterator[tuple[Expr, BinOp, int]]:
    """What `expr` certainly divides by, and the comparison that tells what it must not be.

    Divisors of divisors come first. The branches of a choice may not be taken.
    """
    match expr:
        case Choice(cond):
            yield from divisors(cond)
            return
        case Binary(BinOp.AND | BinOp.OR, left):
            yield from divisors(left)
            return
    for child in children(expr):
        yield from divisors(child)
    match expr:
        case Binary(BinOp.FLOORDIV | BinOp.MOD, _, right):
            yield right, BinOp.EQ, 0
        case Call(fn, (_, right)) if fn in _ROUNDINGS:
            yield right, BinOp.LT, 1
