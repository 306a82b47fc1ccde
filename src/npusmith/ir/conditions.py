"""What an operator asks of the shapes of its inputs, in an order in which it can be asked."""

from __future__ import annotations

from collections.abc import Iterator

from npusmith.ir.nodes import Binary, BinOp, Call, Choice, Const, Dim, Expr, ScalarFn, Size
from npusmith.ir.spec import OpSpec, dims_of
from npusmith.ir.walk import children, subexpressions

_ROUNDINGS = (ScalarFn.CEIL_DIV, ScalarFn.ALIGN_UP)


def conditions(spec: OpSpec) -> Iterator[Expr]:
    """What has to hold for the kernel to serve inputs: `OpSpec.legal`, and no division by zero.

    Before a condition, and before all of them for the dimensions of outputs, stands what it divides
    by, so that whoever asks them one after another never divides by zero. Nothing where nothing is
    known of what the kernel serves, and nothing of numbers: these held when it was written.
    """
    yield from (expr for expr in dict.fromkeys(_asked(spec)) if _has_size(expr))


def _has_size(expr: Expr) -> bool:
    return any(isinstance(part, Dim | Size) for part in subexpressions(expr))


def _asked(spec: OpSpec) -> Iterator[Expr]:
    if spec.legal is None:
        return
    for port in spec.outputs:
        for dim in dims_of(port):
            yield from _divides(dim)
    for expr in spec.legal:
        yield from _divides(expr)
        yield expr


def _divides(expr: Expr) -> Iterator[Expr]:
    """What an expression divides by must not be 0; sizes are never negative."""
    for divisor, op, bound in divisors(expr):
        if not isinstance(divisor, Const):
            yield Binary(BinOp.GE, divisor, Const(bound + (op is BinOp.EQ)))


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
