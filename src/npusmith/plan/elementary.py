"""Functions of values as expressions of what the chip computes.

Every form is chosen for its last bits and its special values: no cancellation for small arguments,
division rather than the approximate reciprocal, NaN and infinities as PyTorch has them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.plan.dag import ROUNDINGS, Dag, Value, logistic


def log1p(dag: Dag, x: Value) -> Value:
    """ln(u) * x / (u - 1) with u = 1 + x: what rounding took from u cancels in the quotient."""
    one = dag.const(1.0)
    u = dag.shifted(x, 1.0)
    log = dag.unary("ln", u)
    small = dag.mul(log, dag.div(x, dag.shifted(u, -1.0)))
    small = dag.select(dag.compare("eq", u, one), x, small)
    return dag.select(dag.compare("gt", x, dag.const(0.5)), log, small)


def expm1(dag: Dag, x: Value) -> Value:
    """(u - 1) * x / ln(u) with u = e**x for |x| < 1, and u - 1 elsewhere."""
    one = dag.const(1.0)
    u = dag.unary("exp", x)
    rest = dag.shifted(u, -1.0)
    small = dag.mul(rest, dag.div(x, dag.unary("ln", u)))
    small = dag.select(dag.compare("eq", u, one), x, small)
    return dag.select(dag.compare("lt", dag.unary("abs", x), one), small, rest)


def sign(dag: Dag, x: Value) -> Value:
    zero = dag.const(0.0)
    below = dag.select(dag.compare("lt", x, zero), dag.const(-1.0), zero)
    return dag.select(dag.compare("gt", x, zero), dag.const(1.0), below)


# ln of twice the normal distribution's tail beyond a, by powers of a from 1: minimax in float32,
# weighted for errors of GELU itself: at most 1.6e-7 of max(1, |x|), 1.9e-5 of values above 6e-5,
# 4.5e-10 below these.
_TAIL = (
    -0.79791952, -0.318066185, -0.0369612402, 0.00558104339, -0.000532551972, 2.34125808e-05,
)  # fmt: skip
_END = 12.0  # float32 has no tail beyond, and the polynomials still fall


def gelu(dag: Dag, x: Value) -> Value:
    """max(x, 0) less |x| times the tail beyond |x|: nothing cancels, on either side.

    An infinity is cut off before its tail, which is 0, is multiplied; minus infinity is NaN by the
    slope of 0, as in PyTorch.
    """
    size = dag.min(dag.unary("abs", x), dag.const(_END))
    twice = dag.unary("exp", _polynomial(dag, size, _TAIL))
    below = dag.scaled(dag.mul(size, twice), -0.5)
    rising = dag.make("leaky_relu", x, dag.const(0.0))
    # in the order in which fewer tiles are alive: that of what is loaded stays in any case
    return dag.add(below, rising) if x.op in ("load", "at") else dag.add(rising, below)


def _polynomial(dag: Dag, x: Value, factors: Sequence[float]) -> Value:
    """By powers of x from 1, two at a time by its square.

    A product with a number that is added is one instruction (fused_products.py): three for two
    factors, where Horner's rule has four.
    """
    square = dag.mul(x, x)
    *rest, last = factors
    total = dag.scaled(x if len(rest) % 2 == 0 else square, last)
    if len(rest) % 2:
        total = dag.add(total, dag.scaled(x, rest.pop()))
    while rest:
        total = dag.shifted(total, rest.pop())
        total = dag.add(dag.mul(total, square), dag.scaled(x, rest.pop()))
    return total


def gelu_tanh(dag: Dag, x: Value) -> Value:
    """x / (1 + e**(-2u)): (1 + tanh u) / 2 without its cancellation."""
    cube = dag.mul(dag.mul(x, x), x)
    u = dag.add(x, dag.scaled(cube, 0.044715))
    return dag.mul(x, logistic(dag, dag.scaled(u, 2.0 * math.sqrt(2.0 / math.pi))))


def elu(dag: Dag, x: Value, alpha: float, scale: float, input_scale: float) -> Value:
    negative = dag.scaled(expm1(dag, dag.scaled(x, input_scale)), alpha * scale)
    return dag.select(dag.compare("gt", x, dag.const(0.0)), dag.scaled(x, scale), negative)


def power(dag: Dag, x: Value, exponent: float) -> Value:
    if exponent == 0:
        return dag.const(1.0)
    if exponent < 0 and (exponent == int(exponent) or exponent == -0.5):
        return dag.inverse(power(dag, x, -exponent))
    if exponent == 0.5:
        return dag.unary("sqrt", x)
    if exponent == int(exponent) and exponent <= 8:
        return _repeated(dag, x, int(exponent))
    return dag.make("power", x, dag.const(exponent))


_BITS = 16  # of a logarithm whose product with a bfloat16 number is exact
_FAR = 150.0  # float32 has neither e**_FAR nor e**-_FAR


def raised(dag: Dag, base: Value, exponent: Value, dtype: DType) -> Value:
    """A positive number to the power of x is e**(x ln base): exact products and a small rest.

    The rounding of a plain product would be multiplied by its size. Numbers of 16 bits hide it.
    """
    with np.errstate(over="ignore"):
        number = float(np.float32(base.number)) if base.op == "const" else 0.0
    log = math.log(number) if 0 < number < math.inf else 0.0
    if log == 0:
        return dag.make("power", base, exponent)
    if dtype is not DType.FLOAT32:
        return dag.unary("exp", dag.scaled(exponent, log))
    mantissa, power_of_two = math.frexp(log)
    high = math.ldexp(round(math.ldexp(mantissa, _BITS)), power_of_two - _BITS)
    most = _FAR / abs(log)
    x = dag.max(dag.min(exponent, dag.const(most)), dag.const(-most))
    near = dag.keep(Value("narrow", (x,), dtype=DType.BFLOAT16))
    rest = dag.add(dag.scaled(dag.sub(x, near), high), dag.scaled(x, log - high))
    return dag.mul(dag.unary("exp", dag.scaled(near, high)), dag.unary("exp", rest))


def _repeated(dag: Dag, x: Value, exponent: int) -> Value:
    if exponent == 1:
        return x
    half = _repeated(dag, x, exponent // 2)
    square = dag.mul(half, half)
    return dag.mul(square, x) if exponent % 2 else square


def with_signed_zeros(dag: Dag, x: Value) -> Value:
    """A divisor: what was rounded to zero has its sign, which a cast of the chip drops."""
    rounded = x.args[0] if x.op == "narrow" else x
    if rounded.op not in ROUNDINGS:
        return x
    return dag.where(dag.test("eq", x, dag.const(0.0)), dag.scaled(rounded.args[0], 0.0), x)


def is_finite(dag: Dag, x: Value) -> Value:
    return dag.test("lt", dag.unary("abs", x), dag.const(math.inf))


def fmax(dag: Dag, a: Value, b: Value) -> Value:
    return _skip_nan(dag, a, b, dag.max(a, b))


def fmin(dag: Dag, a: Value, b: Value) -> Value:
    return _skip_nan(dag, a, b, dag.min(a, b))


def _skip_nan(dag: Dag, a: Value, b: Value, both: Value) -> Value:
    without_b = dag.select(dag.compare("eq", b, b), both, a)
    return dag.select(dag.compare("eq", a, a), without_b, b)
