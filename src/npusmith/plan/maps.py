"""Pointwise operations of core ATen, made of the functions of elementary.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from npusmith.ir.dtypes import DType
from npusmith.plan import integers
from npusmith.plan.dag import Dag, Value, logistic, natural
from npusmith.plan.elementary import (
    elu,
    expm1,
    fmax,
    fmin,
    gelu,
    gelu_tanh,
    is_finite,
    log1p,
    power,
    raised,
    sign,
    with_signed_zeros,
)
from npusmith.plan.reader import Reader, Result, Rule, Tensor
from npusmith.plan.views import convert

Unary = Callable[[Dag, Value], Value]
Binary = Callable[[Dag, Value, Value], Value]


def _op(name: str) -> Unary:
    return lambda dag, x: dag.unary(name, x)


UNARY: dict[str, Unary] = {
    "exp": _op("exp"),
    "log": _op("ln"),
    "sqrt": _op("sqrt"),
    "rsqrt": lambda dag, x: dag.inverse(dag.unary("sqrt", x)),
    "reciprocal": lambda dag, x: dag.inverse(with_signed_zeros(dag, x)),
    "log2": lambda dag, x: dag.scaled(dag.unary("ln", x), 1.0 / math.log(2.0)),
    "log10": lambda dag, x: dag.scaled(dag.unary("ln", x), 1.0 / math.log(10.0)),
    "exp2": lambda dag, x: dag.unary("exp", dag.scaled(x, math.log(2.0))),
    "log1p": log1p,
    "expm1": expm1,
    "sigmoid": logistic,
    "silu": lambda dag, x: dag.mul(x, logistic(dag, x)),
    "frac": lambda dag, x: dag.sub(x, dag.unary("trunc", x)),
    **{
        name: _op(name)
        for name in (
            "tanh", "erf", "erfc", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
            "asinh", "acosh", "atanh",
        )
    },
}  # fmt: skip

Whole = Callable[..., Value]  # of a Dag, integers and their type

EXACT_UNARY: dict[str, tuple[Unary, Whole]] = {  # for floats, and for integers
    "neg": (
        lambda dag, x: dag.neg(x),
        lambda dag, x, dtype: integers.arithmetic(dag, "sub", dag.const(0.0), x, dtype),
    ),
    "abs": (_op("abs"), lambda dag, x, dtype: _whole_abs(dag, x, dtype)),
    "relu": (
        lambda dag, x: dag.max(x, dag.const(0.0)),
        lambda dag, x, dtype: integers.arithmetic(dag, "max", x, dag.const(0.0), dtype),
    ),
    "square": (
        lambda dag, x: dag.mul(x, x),
        lambda dag, x, dtype: integers.arithmetic(dag, "mul", x, x, dtype),
    ),
    "sign": (sign, lambda dag, x, _: integers.sign(dag, x)),
    **{
        name: (_op(intrinsic), lambda dag, x, _: x)
        for name, intrinsic in (
            ("floor", "floor"), ("ceil", "ceil"), ("round", "rint"), ("trunc", "trunc"),
        )
    },
}  # fmt: skip

EXACT_BINARY: dict[str, tuple[Binary, str]] = {  # for floats; for integers by their name
    "mul": (lambda dag, a, b: dag.mul(a, b), "mul"),
    "maximum": (lambda dag, a, b: dag.max(a, b), "max"),
    "minimum": (lambda dag, a, b: dag.min(a, b), "min"),
}


def _whole_abs(dag: Dag, x: Value, dtype: DType) -> Value:
    if integers.span_of(dag, x)[0] >= 0:
        return x
    turned = integers.arithmetic(dag, "sub", dag.const(0.0), x, dtype)
    return integers.arithmetic(dag, "max", x, turned, dtype)


TESTS: dict[str, Unary] = {
    "isnan": lambda dag, x: dag.test("ne", x, x),
    "isinf": lambda dag, x: dag.test("eq", dag.unary("abs", x), dag.const(math.inf)),
    "isfinite": is_finite,
}

COMPARES = ("lt", "gt", "eq", "le", "ge", "ne")


def pointwise(
    r: Reader, tensors: tuple[Tensor, ...], fn: Callable[..., Value], whole: Whole | None
) -> Tensor:
    """`fn` of floats, or `whole` of integers: the operands are brought to the result's type."""
    apart, dims = r.aligned(*tensors)
    if r.dtype.is_float:
        return Tensor(fn(r.dag, *(r.floating(item) for item in apart)), dims, r.dtype)
    if whole is None:
        r.refuse("plan-dtype", f"this operation is written for float results, not {r.dtype.value}")
    values = [convert(r, item, r.dtype) for item in apart]
    return Tensor(whole(r.dag, *values, r.dtype), dims, r.dtype)


def floats(r: Reader, tensors: tuple[Tensor, ...], fn: Callable[..., Value]) -> Tensor:
    return pointwise(r, tensors, fn, None)


def _unary_rule(fn: Unary, whole: Whole | None = None) -> Rule:
    def rule(r: Reader) -> Result:
        assert r.node is not None
        if len(r.node.args) > 1 or r.node.kwargs:
            r.refuse("plan-unsupported-op", "this form of the operation is not supported")
        return pointwise(r, (r.tensor(r.argument(0)),), fn, whole)

    return rule


def _binary_rule(fn: Binary, name: str = "") -> Rule:
    def whole(dag: Dag, a: Value, b: Value, dtype: DType) -> Value:
        return integers.arithmetic(dag, name, a, b, dtype)

    def rule(r: Reader) -> Result:
        pair = (r.tensor(r.argument(0)), r.tensor(r.argument(1, "other")))
        return pointwise(r, pair, fn, whole if name else None)

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
        alpha = r.argument(2, "alpha", 1)
        factor = r.number(alpha)
        if swap:
            a, b = b, a
            if factor != 1:
                r.refuse("plan-unsupported-op", "rsub with alpha is not supported")

        def fn(dag: Dag, x: Value, y: Value) -> Value:
            y = dag.scaled(y, factor)
            return dag.add(x, y) if sign_of_second > 0 else dag.sub(x, y)

        def whole(dag: Dag, x: Value, y: Value, dtype: DType) -> Value:
            if dtype is DType.BOOL:
                return _truth_sum(r, x, y, sign_of_second * factor)
            if factor != 1:
                times = integers.constant(dag, int(factor), dtype)
                y = integers.arithmetic(dag, "mul", y, times, dtype)
            return integers.arithmetic(dag, "add" if sign_of_second > 0 else "sub", x, y, dtype)

        return pointwise(r, (a, b), fn, whole)

    return rule


def _truth_sum(r: Reader, x: Value, y: Value, factor: float) -> Value:
    """The sum of two bools is "or"."""
    if factor != 1:
        r.refuse("plan-dtype", "a difference of bools is not supported")
    return r.dag.max(x, y)


def _positions(pair: Sequence[Tensor]) -> bool:
    """Positions by a positive number: index maps know these divisions by name."""
    a, b = (item.value for item in pair)
    known = integers.positional(a) and integers.positional(b)
    return known and b.op == "const" and b.number > 0


def _remainder(trunc: bool) -> Rule:
    def rule(r: Reader) -> Result:
        pair = (r.tensor(r.argument(0)), r.tensor(r.argument(1, "other")))
        if r.dtype.is_float:
            r.refuse("plan-dtype", "remainders are written for integers only")
        apart, dims = r.aligned(*pair)
        a, b = (convert(r, item, r.dtype) for item in apart)
        if _positions(apart) and (not trunc or natural(a)):
            return Tensor(r.dag.make("mod", a, b), dims, r.dtype)
        name = "fmod" if trunc else "mod"
        return Tensor(integers.divided(r.dag, name, a, b, r.dtype), dims, r.dtype)

    return rule


def divide(r: Reader) -> Result:
    pair = (r.tensor(r.argument(0)), r.tensor(r.argument(1, "other")))
    mode = r.argument(2, "rounding_mode")
    if mode is None:
        return floats(r, pair, lambda dag, a, b: dag.div(a, with_signed_zeros(dag, b)))
    if r.dtype.is_float:
        return _rounded_quotient(r, pair, str(mode))
    apart, dims = r.aligned(*pair)
    a, b = (convert(r, item, r.dtype) for item in apart)
    if mode == "floor" and _positions(apart):
        return Tensor(r.dag.make("floordiv", a, b), dims, r.dtype)
    name = "floordiv" if mode == "floor" else "truncdiv"
    return Tensor(integers.divided(r.dag, name, a, b, r.dtype), dims, r.dtype)


def _rounded_quotient(r: Reader, pair: tuple[Tensor, Tensor], mode: str) -> Tensor:
    """Of floats: exact where the divisor is a power of two; elsewhere rounding may lose a step."""
    number = pair[1].value.number if pair[1].value.op == "const" else 0.0
    if number == 0 or abs(math.frexp(number)[0]) != 0.5:
        r.refuse(
            "plan-unsupported-op", "division of floats that rounds its quotient is not supported",
            legal="integers, or a power of two as divisor",
            hint="use a plain division followed by torch.floor or torch.trunc if that is meant",
        )  # fmt: skip

    def fn(dag: Dag, a: Value, b: Value) -> Value:
        whole = dag.unary(mode, dag.div(a, b))
        # of an infinity PyTorch's floor is NaN
        return dag.add(whole, dag.scaled(a, 0.0)) if mode == "floor" else whole

    return floats(r, pair, fn)


def _compare_rule(mode: str) -> Rule:
    def rule(r: Reader) -> Result:
        a, b = r.tensor(r.argument(0)), r.tensor(r.argument(1, "other"))
        (a, b), dims = r.aligned(a, b)
        if a.dtype.is_float or b.dtype.is_float:
            truth = r.dag.test(mode, r.floating(a), r.floating(b))
        else:
            truth = integers.compared(r.dag, mode, a.value, b.value)
        return Tensor(truth, dims, DType.BOOL)

    return rule


def where(r: Reader) -> Result:
    cond, a, b = (r.tensor(r.argument(i)) for i in range(3))
    (cond, a, b), dims = r.aligned(cond, a, b)
    if r.dtype.is_float:
        found = r.dag.where(_truthy(r, cond), r.floating(a), r.floating(b))
    else:
        yes, no = (convert(r, item, r.dtype) for item in (a, b))
        found = integers.chosen(r.dag, _truthy(r, cond), yes, no)
    return Tensor(found, dims, r.dtype)


def _truthy(r: Reader, x: Tensor) -> Value:
    if x.dtype is DType.BOOL:
        return x.value
    return r.dag.test("ne", r.floating(x), r.dag.const(0.0))


def _logic_rule(name: str, bitwise: bool) -> Rule:
    def rule(r: Reader) -> Result:
        pair = r.tensor(r.argument(0)), r.tensor(r.argument(1, "other"))
        (a, b), dims = r.aligned(*pair)
        if not bitwise or r.dtype is DType.BOOL:
            return Tensor(_LOGIC[name](r.dag, _truthy(r, a), _truthy(r, b)), dims, DType.BOOL)
        one, two = convert(r, a, r.dtype), convert(r, b, r.dtype)
        return Tensor(integers.bits(r.dag, name, one, two, r.dtype), dims, r.dtype)

    return rule


_LOGIC: dict[str, Binary] = {
    "and": lambda dag, a, b: dag.mul(a, b),
    "or": lambda dag, a, b: dag.max(a, b),
    "xor": lambda dag, a, b: dag.test("ne", a, b),
}


def _not_rule(bitwise: bool) -> Rule:
    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        if bitwise and r.dtype is not DType.BOOL:
            return Tensor(integers.inverted(r.dag, x.value, r.dtype), x.dims, r.dtype)
        zero, one = r.dag.const(0.0), r.dag.const(1.0)
        return Tensor(r.dag.where(_truthy(r, x), zero, one), x.dims, DType.BOOL)

    return rule


def _shift_rule(name: str) -> Rule:
    def rule(r: Reader) -> Result:
        pair = r.tensor(r.argument(0)), r.tensor(r.argument(1, "other"))
        if r.dtype.is_float:
            r.refuse("plan-dtype", "shifts are written for integers only")
        (a, b), dims = r.aligned(*pair)
        one, two = convert(r, a, r.dtype), convert(r, b, r.dtype)
        return Tensor(integers.shifted(r.dag, name, one, two, r.dtype), dims, r.dtype)

    return rule


def clamp(r: Reader) -> Result:
    """min(max(x, low), high), as PyTorch where low > high."""
    x = r.tensor(r.argument(0))
    low, high = r.optional(r.argument(1, "min")), r.optional(r.argument(2, "max"))
    present = [item for item in (low, high) if item is not None]
    names = [name for name, item in (("max", low), ("min", high)) if item is not None]

    def fn(dag: Dag, value: Value, *bounds: Value) -> Value:
        for name, bound in zip(names, bounds, strict=True):
            value = dag.make(name, value, bound)
        return value

    def whole(dag: Dag, value: Value, *rest: Any) -> Value:
        *bounds, dtype = rest
        for name, bound in zip(names, bounds, strict=True):
            value = integers.arithmetic(dag, name, value, bound, dtype)
        return value

    return pointwise(r, (x, *present), fn, whole)


def _power(r: Reader) -> Result:
    base, exponent = r.tensor(r.argument(0)), r.tensor(r.argument(1))
    if exponent.value.op == "const":
        number = float(exponent.value.number)
        return pointwise(
            r, (base,), lambda dag, x: power(dag, x, number),
            lambda dag, x, dtype: integers.power(dag, x, int(number), dtype),
        )  # fmt: skip
    return pointwise(
        r, (base, exponent), lambda dag, a, b: raised(dag, a, b, r.dtype), integers.raised
    )


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
    low = r.tensor(r.argument(1, "min_val", -1.0))
    high = r.tensor(r.argument(2, "max_val", 1.0))

    def fn(dag: Dag, x: Value, least: Value, most: Value) -> Value:
        return dag.min(dag.max(x, least), most)

    def whole(dag: Dag, x: Value, least: Value, most: Value, dtype: DType) -> Value:
        return integers.arithmetic(
            dag, "min", integers.arithmetic(dag, "max", x, least, dtype), most, dtype
        )

    return pointwise(r, (r.tensor(r.argument(0)), low, high), fn, whole)


RULES: dict[str, Rule] = {
    **{name: _unary_rule(fn) for name, fn in UNARY.items()},
    **{name: _unary_rule(fn, whole) for name, (fn, whole) in EXACT_UNARY.items()},
    **{name: _binary_rule(fn, whole) for name, (fn, whole) in EXACT_BINARY.items()},
    "fmax": _binary_rule(fmax, "max"),
    "fmin": _binary_rule(fmin, "min"),
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
    "logical_not": _not_rule(bitwise=False),
    "bitwise_not": _not_rule(bitwise=True),
    **{f"logical_{name}": _logic_rule(name, bitwise=False) for name in _LOGIC},
    **{f"bitwise_{name}": _logic_rule(name, bitwise=True) for name in _LOGIC},
    **dict.fromkeys(("__lshift__", "bitwise_left_shift"), _shift_rule("left")),
    **dict.fromkeys(("__rshift__", "bitwise_right_shift"), _shift_rule("right")),
}
