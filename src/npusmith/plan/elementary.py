"""Functions of values as expressions of what the chip computes.

Every form is chosen for its last bits and its special values: no cancellation for small arguments,
division rather than the approximate reciprocal, NaN and infinities as PyTorch has them.
"""

from __future__ import annotations

import math

from npusmith.plan.dag import Dag, Value, logistic


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


# ln of the normal distribution's tail beyond a, by powers of a from 0: minimax over 0 <= a <= 6.4,
# off by at most 4.0e-6 there; further out it falls faster than the tail, which is below 1e-10.
_TAIL = (
    -0.693147421, -0.797959208, -0.317840278, -0.0373515412, 0.00587460632, -0.000639689621,
    4.20727774e-05, -1.24275539e-06,
)  # fmt: skip


def gelu(dag: Dag, x: Value) -> Value:
    """x times the share of a normal distribution below x: e**polynomial(-|x|), or 1 less that.

    Half the work of erfc, and as its form does, it keeps the tail that 1 + erf would cancel.
    """
    size = dag.unary("abs", x)
    power = dag.shifted(dag.scaled(size, _TAIL[-1]), _TAIL[-2])
    for factor in reversed(_TAIL[:-2]):
        power = dag.shifted(dag.mul(power, size), factor)
    tail = dag.unary("exp", power)
    rest = dag.shifted(dag.scaled(tail, -1.0), 1.0)
    return dag.mul(x, dag.select(dag.compare("gt", x, dag.const(0.0)), rest, tail))


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


def _repeated(dag: Dag, x: Value, exponent: int) -> Value:
    if exponent == 1:
        return x
    half = _repeated(dag, x, exponent // 2)
    square = dag.mul(half, half)
    return dag.mul(square, x) if exponent % 2 else square


def is_finite(dag: Dag, x: Value) -> Value:
    return dag.test("lt", dag.unary("abs", x), dag.const(math.inf))


def fmax(dag: Dag, a: Value, b: Value) -> Value:
    return _skip_nan(dag, a, b, dag.max(a, b))


def fmin(dag: Dag, a: Value, b: Value) -> Value:
    return _skip_nan(dag, a, b, dag.min(a, b))


def _skip_nan(dag: Dag, a: Value, b: Value, both: Value) -> Value:
    without_b = dag.select(dag.compare("eq", b, b), both, a)
    return dag.select(dag.compare("eq", a, a), without_b, b)
