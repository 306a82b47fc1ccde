"""Pointwise core ATen operations as expressions of what the chip computes.

Every form is chosen for its last bits and its special values: no cancellation for small arguments,
division rather than the approximate reciprocal, NaN and infinities as PyTorch has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from npusmith.ir.dtypes import DType
from npusmith.plan.dag import EXACT, Dag, Kind, Value, logistic, natural, small_integer
from npusmith.plan.reader import Reader, Result, Rule, Tensor

# ---------------------------------------------------------------------------- functions of values


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


# ------------------------------------------------------------------------------------------ rules

Unary = Callable[[Dag, Value], Value]
Binary = Callable[[Dag, Value, Value], Value]


def _op(name: str) -> Unary:
    return lambda dag, x: dag.unary(name, x)


UNARY: dict[str, Unary] = {
    "exp": _op("exp"),
    "log": _op("ln"),
    "sqrt": _op("sqrt"),
    "rsqrt": lambda dag, x: dag.inverse(dag.unary("sqrt", x)),
    "reciprocal": lambda dag, x: dag.inverse(x),
    "log2": lambda dag, x: dag.scaled(dag.unary("ln", x), 1.0 / math.log(2.0)),
    "log10": lambda dag, x: dag.scaled(dag.unary("ln", x), 1.0 / math.log(10.0)),
    "exp2": lambda dag, x: dag.unary("exp", dag.scaled(x, math.log(2.0))),
    "log1p": log1p,
    "expm1": expm1,
    "sigmoid": logistic,
    "silu": lambda dag, x: dag.mul(x, logistic(dag, x)),
    "sign": sign,
    "floor": _op("floor"),
    "ceil": _op("ceil"),
    "round": _op("rint"),
    "trunc": _op("trunc"),
    "frac": lambda dag, x: dag.sub(x, dag.unary("trunc", x)),
    **{
        name: _op(name)
        for name in (
            "tanh", "erf", "erfc", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
            "asinh", "acosh", "atanh",
        )
    },
}  # fmt: skip

EXACT_UNARY: dict[str, Unary] = {  # these have an int32 form as well
    "neg": lambda dag, x: dag.neg(x),
    "abs": lambda dag, x: dag.max(x, dag.neg(x)) if x.kind is Kind.INT else dag.unary("abs", x),
    "relu": lambda dag, x: dag.max(x, dag.const(0, x.kind)),
    "square": lambda dag, x: dag.mul(x, x),
}

EXACT_BINARY: dict[str, Binary] = {
    "mul": lambda dag, a, b: dag.mul(a, b),
    "maximum": lambda dag, a, b: dag.max(a, b),
    "minimum": lambda dag, a, b: dag.min(a, b),
}

BINARY: dict[str, Binary] = {
    "fmax": fmax,
    "fmin": fmin,
}

TESTS: dict[str, Unary] = {
    "isnan": lambda dag, x: dag.test("ne", x, x),
    "isinf": lambda dag, x: dag.test("eq", dag.unary("abs", x), dag.const(math.inf)),
    "isfinite": is_finite,
}

COMPARES = ("lt", "gt", "eq", "le", "ge", "ne")


def arithmetic(r: Reader, *tensors: Tensor) -> tuple[list[Value], Kind]:
    """Operands in the type that the result is computed in."""
    dtype = r.dtype
    if dtype.is_float:
        return [r.floating(item) for item in tensors], Kind.FLOAT
    if dtype is DType.INT32:
        return [r.integral(item) for item in tensors], Kind.INT
    if dtype is DType.INT64 and all(small_integer(item.value) for item in tensors):
        return [item.value for item in tensors], Kind.FLOAT
    if dtype is not DType.BOOL or any(item.dtype is not DType.BOOL for item in tensors):
        r.refuse(
            "plan-dtype", f"arithmetic in {dtype.value} is not written",
            hint="compute in float32 (x.float()) or int32",
        )  # fmt: skip
    return [item.value for item in tensors], Kind.FLOAT


def pointwise(r: Reader, tensors: tuple[Tensor, ...], fn: Callable[..., Value]) -> Tensor:
    apart, dims = r.aligned(*tensors)
    values, _ = arithmetic(r, *apart)
    return Tensor(fn(r.dag, *values), dims, r.dtype)


def floats(r: Reader, tensors: tuple[Tensor, ...], fn: Callable[..., Value]) -> Tensor:
    if not r.dtype.is_float:
        r.refuse("plan-dtype", f"this operation is written for float results, not {r.dtype.value}")
    return pointwise(r, tensors, fn)


def _unary_rule(fn: Unary, exact: bool) -> Rule:
    def rule(r: Reader) -> Result:
        assert r.node is not None
        if len(r.node.args) > 1 or r.node.kwargs:
            r.refuse("plan-unsupported-op", "this form of the operation is not written")
        x = r.tensor(r.argument(0))
        return (pointwise if exact else floats)(r, (x,), fn)

    return rule


def _binary_rule(fn: Binary, exact: bool) -> Rule:
    def rule(r: Reader) -> Result:
        pair = (r.tensor(r.argument(0)), r.tensor(r.argument(1, "other")))
        return (pointwise if exact else floats)(r, pair, fn)

    return rule


def _test_rule(fn: Unary) -> Rule:
    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        return Tensor(fn(r.dag, r.floating(x)), x.dims, DType.BOOL)

    return rule


def _sum_rule(sign_of_second: int, swap: bool = False) -> Rule:
    """add, sub and rsub: a +- alpha * b."""

    def rule(r: Reader) -> Result:
        a, b = r.tensor(r.argument(0)), r.tensor(r.argument(1, "other"))
        alpha = r.number(r.argument(2, "alpha", 1))
        if swap:
            a, b = b, a
            if alpha != 1:
                r.refuse("plan-unsupported-op", "rsub with alpha is not written")

        def fn(dag: Dag, x: Value, y: Value) -> Value:
            if r.dtype is DType.BOOL:
                return _truth_sum(r, x, y, sign_of_second * alpha)
            y = dag.scaled(y, alpha)
            return dag.add(x, y) if sign_of_second > 0 else dag.sub(x, y)

        return pointwise(r, (a, b), fn)

    return rule


def _truth_sum(r: Reader, x: Value, y: Value, factor: float) -> Value:
    """The sum of two bools is "or"."""
    if factor != 1:
        r.refuse("plan-dtype", "a difference of bools is not written")
    return r.dag.max(x, y)


def _integers(r: Reader, pair: Sequence[Tensor]) -> bool:
    """Positions by a positive number: what float32 divides exactly."""
    a, b = (item.value for item in pair)
    return small_integer(a) and b.op == "const" and small_integer(b) and b.number > 0


def _remainder(trunc: bool) -> Rule:
    """Of positions only: the quotient of floats may round up to the next integer."""

    def rule(r: Reader) -> Result:
        pair = (r.tensor(r.argument(0)), r.tensor(r.argument(1, "other")))
        if not _integers(r, pair) or (trunc and not natural(pair[0].value)):
            r.refuse("plan-dtype", "remainders are written for indices by a positive number only")
        apart, dims = r.aligned(*pair)
        return Tensor(r.dag.make("mod", *(item.value for item in apart)), dims, r.dtype)

    return rule


def divide(r: Reader) -> Result:
    pair = (r.tensor(r.argument(0)), r.tensor(r.argument(1, "other")))
    mode = r.argument(2, "rounding_mode")
    if mode == "floor" and _integers(r, pair):
        apart, dims = r.aligned(*pair)
        return Tensor(r.dag.make("floordiv", *(item.value for item in apart)), dims, r.dtype)
    if mode is not None:
        r.refuse(
            "plan-unsupported-op", "division that rounds its quotient is not written",
            hint="use a plain division followed by torch.floor or torch.trunc if that is meant",
        )  # fmt: skip
    return floats(r, pair, lambda dag, a, b: dag.div(a, b))


def _compare_rule(mode: str) -> Rule:
    def rule(r: Reader) -> Result:
        a, b = r.tensor(r.argument(0)), r.tensor(r.argument(1, "other"))
        _check_comparable(r, a, b)
        (a, b), dims = r.aligned(a, b)
        return Tensor(r.dag.test(mode, r.floating(a), r.floating(b)), dims, DType.BOOL)

    return rule


def _check_comparable(r: Reader, a: Tensor, b: Tensor) -> None:
    """int32 and int64 go through float32: exact when one side is a number below 2**24."""
    wide = (DType.INT32, DType.INT64, DType.UINT32)
    if a.dtype not in wide and b.dtype not in wide:
        return
    if all(small_integer(side.value) for side in (a, b)):
        return
    for side in (a, b):
        if side.value.op == "const" and abs(side.value.number) < EXACT:
            return
    r.refuse(
        "plan-dtype", "two integer tensors cannot be compared exactly on a vector core",
        legal="comparing floats, or an integer tensor with a number below 2**24",
        hint="convert to float32 if the values are small enough",
    )  # fmt: skip


def where(r: Reader) -> Result:
    cond, a, b = (r.tensor(r.argument(i)) for i in range(3))
    (cond, a, b), dims = r.aligned(cond, a, b)
    if r.dtype is DType.INT32:
        r.refuse("plan-dtype", "a select on int32 is not written", hint="compute in float32")
    yes, no = r.floating(a), r.floating(b)
    return Tensor(r.dag.where(_truthy(r, cond), yes, no), dims, r.dtype)


def _truthy(r: Reader, x: Tensor) -> Value:
    if x.dtype is DType.BOOL:
        return x.value
    return r.dag.test("ne", r.floating(x), r.dag.const(0.0))


def _logic_rule(fn: Binary, boolean_only: bool) -> Rule:
    def rule(r: Reader) -> Result:
        a, b = r.tensor(r.argument(0)), r.tensor(r.argument(1, "other"))
        _check_boolean(r, boolean_only, a, b)
        (a, b), dims = r.aligned(a, b)
        return Tensor(fn(r.dag, _truthy(r, a), _truthy(r, b)), dims, DType.BOOL)

    return rule


def _not_rule(boolean_only: bool) -> Rule:
    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        _check_boolean(r, boolean_only, x)
        zero, one = r.dag.const(0.0), r.dag.const(1.0)
        return Tensor(r.dag.where(_truthy(r, x), zero, one), x.dims, DType.BOOL)

    return rule


def _check_boolean(r: Reader, boolean_only: bool, *tensors: Tensor) -> None:
    if boolean_only and any(item.dtype is not DType.BOOL for item in tensors):
        r.refuse("plan-dtype", "bitwise operations are written for bool tensors only")


def clamp(r: Reader) -> Result:
    """min(max(x, low), high), as PyTorch where low > high."""
    x = r.tensor(r.argument(0))
    low, high = r.optional(r.argument(1, "min")), r.optional(r.argument(2, "max"))
    present = [item for item in (low, high) if item is not None]
    operands, dims = r.aligned(x, *present)
    values, _ = arithmetic(r, *operands)
    value, bounds = values[0], values[1:]
    if low is not None:
        value = r.dag.max(value, bounds.pop(0))
    if high is not None:
        value = r.dag.min(value, bounds.pop(0))
    return Tensor(value, dims, r.dtype)


def _power(r: Reader) -> Result:
    base, exponent = r.tensor(r.argument(0)), r.tensor(r.argument(1))
    if exponent.value.op == "const":
        number = float(exponent.value.number)
        integer = not r.dtype.is_float
        if integer and not (number == int(number) and 0 <= number <= 8):
            r.refuse("plan-dtype", "this power is written for float results only")
        if integer and number == 0:
            r.refuse("plan-dtype", "an int32 power of 0 is not written")
        return pointwise(r, (base,), lambda dag, x: power(dag, x, number))
    return floats(r, (base, exponent), lambda dag, a, b: dag.make("power", a, b))


def _gelu(r: Reader) -> Result:
    form = r.argument(1, "approximate", "none")
    if form not in ("none", "tanh"):
        r.refuse("plan-unsupported-op", f"gelu has no form {form!r}")
    return floats(r, (r.tensor(r.argument(0)),), gelu if form == "none" else gelu_tanh)


def _elu(r: Reader) -> Result:
    names = ("alpha", "scale", "input_scale")
    alpha, scale, inner = (r.number(r.argument(i + 1, name, 1.0)) for i, name in enumerate(names))
    return floats(r, (r.tensor(r.argument(0)),), lambda dag, x: elu(dag, x, alpha, scale, inner))


def _leaky(r: Reader) -> Result:
    slope = r.number(r.argument(1, "negative_slope", 0.01))

    def fn(dag: Dag, x: Value) -> Value:
        return dag.make("leaky_relu", x, dag.const(slope))

    return floats(r, (r.tensor(r.argument(0)),), fn)


def _hardtanh(r: Reader) -> Result:
    low = r.number(r.argument(1, "min_val", -1.0))
    high = r.number(r.argument(2, "max_val", 1.0))

    def fn(dag: Dag, x: Value) -> Value:
        return dag.min(dag.max(x, dag.const(low, x.kind)), dag.const(high, x.kind))

    return pointwise(r, (r.tensor(r.argument(0)),), fn)


RULES: dict[str, Rule] = {
    **{name: _unary_rule(fn, exact=False) for name, fn in UNARY.items()},
    **{name: _unary_rule(fn, exact=True) for name, fn in EXACT_UNARY.items()},
    **{name: _binary_rule(fn, exact=True) for name, fn in EXACT_BINARY.items()},
    **{name: _binary_rule(fn, exact=False) for name, fn in BINARY.items()},
    **{name: _test_rule(fn) for name, fn in TESTS.items()},
    **{mode: _compare_rule(mode) for mode in COMPARES},
    "remainder": _remainder(trunc=False),
    "fmod": _remainder(trunc=True),
    "add": _sum_rule(1),
    "sub": _sum_rule(-1),
    "rsub": _sum_rule(-1, swap=True),
    "div": divide,
    "where": where,
    "clamp": clamp,
    "clamp_min": clamp,
    "pow": _power,
    "gelu": _gelu,
    "elu": _elu,
    "leaky_relu": _leaky,
    "hardtanh": _hardtanh,
    "logical_not": _not_rule(False),
    "bitwise_not": _not_rule(True),
    **{
        f"{family}_{name}": _logic_rule(fn, family == "bitwise")
        for family in ("logical", "bitwise")
        for name, fn in {
            "and": lambda dag, a, b: dag.mul(a, b),
            "or": lambda dag, a, b: dag.max(a, b),
            "xor": lambda dag, a, b: dag.test("ne", a, b),
        }.items()
    },
}
