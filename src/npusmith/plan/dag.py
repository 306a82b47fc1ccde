"""What a graph computes, as one small expression per element: floats, integers and masks.

Operations are those that the chip has (names of the intrinsic table), so that writing the kernel is
a matter of order and buffers. Values have no shape: they run along named axes (axes.py). Every
value is made once, constants are folded, and cancelling forms are replaced by ones that do not
cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Expr
from npusmith.lang.scalars import wrapped

EXACT = 1 << 24  # float32 holds every integer below this

Axis = Any  # an Atom while the graph is read, a group number afterwards


class Kind(str, Enum):
    """What a value is made of on the chip."""

    FLOAT = "float32"
    INT = "int32"
    LONG = "int64"  # no vector instruction computes with it
    MASK = "one bit per element"


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One node. Compared by identity: `Dag.make` makes equal nodes once.

    op is "load" (text: the input's name), "const" (number), "count" (elements along axes, minus
    number), "index" (position along axes), "reduce" (text: sum, prod, max or min; over axes; mode
    "loop": inside a tile, however many elements),
    "running" (text: sum, prod, max, min or logsumexp; along axes; mode: forward, reverse or
    exclusive),
    "narrow" (rounded to dtype and back), "shift_left" and "shift_right" (by number), "scalar"
    (text: an operation of the scalar unit), "at" (the argument where `axes` have the values that
    `index` says; the first parts[0] axes share the first of these, and so on; mode
    "kept": the argument is worth holding on chip), "put" (args: a
    tensor, rows or elements, and the index that says where these are stored in it), or an
    operation on args.
    """

    op: str
    args: tuple[Value, ...] = ()
    number: int | float = 0
    text: str = ""
    axes: tuple[Axis, ...] = ()
    dtype: DType | None = None
    kind: Kind = Kind.FLOAT
    mode: str = ""
    index: tuple[Expr, ...] = ()
    parts: tuple[int, ...] = ()


# For questions that are asked of arguments, too: where each of n steps uses the one before it
# twice, they would be asked 2**n times.
remembered = lru_cache(maxsize=1 << 16)

ROUNDINGS = ("floor", "ceil", "rint", "trunc")  # to whole numbers: casts
COMPARES = ("lt", "gt", "eq", "le", "ge")
_WIDTH = (Kind.FLOAT, Kind.INT, Kind.LONG)
_SWAPPED = {"lt": "gt", "gt": "lt", "eq": "eq", "le": "ge", "ge": "le"}
COMMUTES = ("add", "mul", "max", "min")


@dataclass(slots=True)
class Dag:
    """Makes values; holds them so that equal ones are the same object."""

    seen: dict[tuple[Any, ...], Value] = field(default_factory=dict)
    spans: dict[Value, tuple[int, int]] = field(default_factory=dict)  # of integers (integers.py)

    def make(
        self,
        op: str,
        *args: Value,
        number: int | float = 0,
        text: str = "",
        axes: tuple[Axis, ...] = (),
        kind: Kind = Kind.FLOAT,
        mode: str = "",
        index: tuple[Expr, ...] = (),
        parts: tuple[int, ...] = (),
    ) -> Value:
        return self.keep(Value(op, args, number, text, axes, None, kind, mode, index, parts))

    def keep(self, value: Value) -> Value:
        """The value, simplified, as the one object that stands for it."""
        op, args = value.op, value.args
        if op in COMMUTES and args[0].op == "const":
            args = (args[1], args[0])
        simpler = _simplify(self, op, args, value.kind)
        if simpler is not None:
            return simpler
        key = (
            op, args, repr(value.number), value.text, value.axes, value.dtype, value.kind,
            value.mode, value.index, value.parts,
        )  # fmt: skip
        if key not in self.seen:
            self.seen[key] = replace(value, args=args) if args is not value.args else value
        return self.seen[key]

    # ------------------------------------------------------------------------------------ leaves

    def const(self, number: int | float | bool, kind: Kind = Kind.FLOAT) -> Value:
        return self.make(
            "const", number=float(number) if kind is Kind.FLOAT else int(number), kind=kind
        )

    def load(self, name: str, dtype: DType) -> Value:
        kind = {DType.INT32: Kind.INT, DType.INT64: Kind.LONG}.get(dtype, Kind.FLOAT)
        return self.keep(Value("load", text=name, dtype=dtype, kind=kind))

    def count(self, axes: tuple[Axis, ...], less: int = 0) -> Value:
        """How many elements a reduction over these axes takes in, minus `less`, at least 0."""
        return self.make("count", axes=axes, number=less)

    def reduce(self, text: str, value: Value, axes: tuple[Axis, ...]) -> Value:
        return self.make("reduce", value, text=text, axes=axes) if axes else value

    def running(self, text: str, value: Value, axes: tuple[Axis, ...], mode: str) -> Value:
        return self.make("running", value, text=text, axes=axes, mode=mode)

    # -------------------------------------------------------------------------------- arithmetic

    def add(self, a: Value, b: Value) -> Value:
        return self.make("add", a, b, kind=a.kind)

    def sub(self, a: Value, b: Value) -> Value:
        return self.make("sub", a, b, kind=a.kind)

    def mul(self, a: Value, b: Value) -> Value:
        return self.make("mul", a, b, kind=a.kind)

    def div(self, a: Value, b: Value) -> Value:
        return self.make("div", a, b)

    def max(self, a: Value, b: Value) -> Value:
        return self.make("max", a, b, kind=a.kind)

    def min(self, a: Value, b: Value) -> Value:
        return self.make("min", a, b, kind=a.kind)

    def scaled(self, a: Value, factor: float) -> Value:
        return self.mul(a, self.const(factor, a.kind))

    def shifted(self, a: Value, amount: float) -> Value:
        return self.add(a, self.const(amount, a.kind))

    def neg(self, a: Value) -> Value:
        return self.scaled(a, -1)

    def inverse(self, a: Value) -> Value:
        return self.div(self.const(1.0), a)

    def unary(self, op: str, a: Value) -> Value:
        return self.make(op, a)

    # ------------------------------------------------------------------------------------- truth

    def compare(self, mode: str, a: Value, b: Value) -> Value:
        """A mask. `ne` is not here: on the chip it is 0 for NaN, PyTorch's is true."""
        if a.op == "const" and b.op != "const":
            return self.make(_SWAPPED[mode], b, a, kind=Kind.MASK)
        return self.make(mode, a, b, kind=Kind.MASK)

    def select(self, mask: Value, a: Value, b: Value) -> Value:
        kind = max((a.kind, b.kind), key=_WIDTH.index)
        if kind is Kind.FLOAT or a is b or mask.op == "const":
            return self.make("select", mask, a, b)
        a, b = held(self, a, kind), held(self, b, kind)
        if kind is Kind.LONG:
            return self.make("scalar", self.truth(mask), a, b, text="pick", kind=kind)
        # b + (a - b) * 1 or 0: what wraps comes back
        taken = self.make("to_int", self.truth(mask), kind=kind)
        return self.add(b, self.mul(self.sub(a, b), taken))

    def truth(self, mask: Value) -> Value:
        """A mask as 1.0 and 0.0, the form in which bool tensors are held."""
        return self.select(mask, self.const(1.0), self.const(0.0))

    def test(self, mode: str, a: Value, b: Value) -> Value:
        if mode == "ne":
            return self.select(self.compare("eq", a, b), self.const(0.0), self.const(1.0))
        return self.truth(self.compare(mode, a, b))

    def where(self, truth: Value, a: Value, b: Value) -> Value:
        """`a` where a truth value is 1, else `b`."""
        if truth.op == "const":
            return a if truth.number else b
        if truth.op == "select":
            yes, no = truth.args[1], truth.args[2]
            if (yes.op, no.op) == ("const", "const") and {yes.number, no.number} == {0.0, 1.0}:
                return self.select(truth.args[0], a, b) if yes.number else self._other(truth, a, b)
        return self.select(self.compare("gt", truth, self.const(0.5)), a, b)

    def _other(self, truth: Value, a: Value, b: Value) -> Value:
        return self.select(truth.args[0], b, a)


# --------------------------------------------------------------------------------- simplification


def _quiet(fn: Callable[..., float]) -> Callable[..., float]:
    """fn with IEEE answers where Python raises."""

    def safe(*args: float) -> float:
        try:
            return fn(*args)
        except (ValueError, ZeroDivisionError):
            return math.nan
        except OverflowError:
            return math.inf

    return safe


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _larger(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)


def _smaller(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b)


_FOLD: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "max": _larger,
    "min": _smaller,
    "abs": abs,
    "exp": _quiet(math.exp),
    "ln": lambda a: -math.inf if a == 0 else _quiet(math.log)(a),
    "sqrt": _quiet(math.sqrt),
    "tanh": math.tanh,
    "erf": math.erf,
    "erfc": math.erfc,
    "lt": lambda a, b: a < b,
    "gt": lambda a, b: a > b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "ge": lambda a, b: a >= b,
}


def _simplify(dag: Dag, op: str, args: tuple[Value, ...], kind: Kind) -> Value | None:
    """A simpler value that is equal, or None."""
    if op == "select":
        return _simplify_select(args)
    if op in _FOLD and all(arg.op == "const" for arg in args):
        number = _FOLD[op](*(arg.number for arg in args))
        if kind is Kind.INT:
            number = wrapped(int(number), 32)
        return dag.make("const", number=number, kind=kind)
    if kind is Kind.MASK or len(args) != 2:
        return None
    left, right = args
    if right.op == "const":
        return _with_constant(dag, op, left, right.number)
    if op == "sub" and left.op == "const" and left.number == 1:
        return _one_minus(dag, right)
    if op == "mul":
        return _finite(dag, left, right) or _finite(dag, right, left)
    return None


def _simplify_select(args: tuple[Value, ...]) -> Value | None:
    mask, yes, no = args
    if yes is no:
        return yes
    if mask.op == "const":
        return yes if mask.number else no
    return None


def _with_constant(dag: Dag, op: str, left: Value, number: int | float) -> Value | None:
    if (op, number) in (("mul", 1), ("add", 0), ("sub", 0), ("div", 1)):
        return left
    if (op, number) == ("add", 1):
        return _one_plus(dag, left)
    return None


def _one_plus(dag: Dag, value: Value) -> Value | None:
    """1 + erf(z) and 1 + tanh(z) without the cancellation that they have for negative z."""
    if value.op == "erf":
        return dag.unary("erfc", dag.neg(value.args[0]))
    if value.op == "tanh":
        return dag.scaled(logistic(dag, dag.scaled(value.args[0], 2.0)), 2.0)
    return None


def _one_minus(dag: Dag, value: Value) -> Value | None:
    if value.op == "erf":
        return dag.unary("erfc", value.args[0])
    if value.op == "tanh":
        return dag.scaled(logistic(dag, dag.scaled(value.args[0], -2.0)), 2.0)
    return None


def _finite(dag: Dag, known: Value, bounded: Value) -> Value | None:
    """`x == x and abs(x) != inf` is `abs(x) < inf`, which NaN is not either."""
    size = bounded.args[0].args[0] if bounded.op == "select" and bounded.args[0].args else None
    if size is None or size.op != "abs":
        return None
    x, infinity = size.args[0], dag.const(math.inf)
    if known is not dag.test("eq", x, x) or bounded is not dag.test("ne", size, infinity):
        return None
    return dag.test("lt", size, infinity)


def logistic(dag: Dag, a: Value) -> Value:
    """1 / (1 + e**-a): right at both infinities, no cancellation."""
    return dag.inverse(dag.shifted(dag.unary("exp", dag.neg(a)), 1.0))


def quotient_of(dag: Dag, op: str, a: Value, b: Value) -> Value:
    """Floor division or remainder of integers below 2**22: float32 divides them exactly enough."""
    whole = dag.unary("floor", dag.div(a, b))
    return whole if op == "floordiv" else dag.sub(a, dag.mul(b, whole))


def held(dag: Dag, value: Value, kind: Kind) -> Value:
    """An integer in another form; the caller knows that it has room for it, or may be rounded."""
    if value.kind is kind:
        return value
    if value.op == "const":
        return dag.const(value.number, kind)
    if kind is not Kind.FLOAT:
        return dag.make("to_int" if kind is Kind.INT else "to_long", value, kind=kind)
    if value.kind is Kind.LONG and value.op == "load":  # converted as it is loaded
        return dag.keep(Value("load", text=value.text, axes=value.axes, dtype=value.dtype))
    if value.kind is Kind.LONG and value.op == "at":
        inner = held(dag, value.args[0], kind)
        return dag.make(
            "at", inner, axes=value.axes, index=value.index, parts=value.parts, mode=value.mode
        )
    if value.op == "scalar" and value.text in ("pick", "max", "min"):
        # rounding keeps order: the choice may be made among rounded numbers
        *truth, a, b = value.args
        a, b = held(dag, a, kind), held(dag, b, kind)
        return dag.where(truth[0], a, b) if truth else dag.make(value.text, a, b)
    return dag.make("to_float", value)


_INTEGERS = (DType.BOOL, DType.UINT8, DType.INT8, DType.INT16)
_WHOLE = ("broadcast", "add", "sub", "max", "min", "abs", "floordiv", "mod", "at", "floor")


@remembered
def small_integer(value: Value) -> bool:
    """Whether float32 holds a value's integer exactly, as long as nothing has 2**22 elements."""
    match value.op:
        case "const":
            return value.number == int(value.number) and abs(value.number) < EXACT
        case "index" | "place" | "count":
            return True
        case "select":
            return all(small_integer(arg) for arg in value.args[1:])
        case "reduce" | "running":
            return value.text in ("max", "min") and small_integer(value.args[0])
        case "load" | "fetch":
            return value.dtype in _INTEGERS
        case "mul":
            factors = [
                arg
                for arg in value.args
                if arg.op in ("count", "place") or (arg.op == "const" and abs(arg.number) <= 64)
            ]
            return bool(factors) and all(small_integer(arg) for arg in value.args)
        case "floor" if value.args[0].op == "div":  # of a floor division
            return all(small_integer(arg) for arg in value.args[0].args)
        case op if op in _WHOLE:
            return all(small_integer(arg) for arg in value.args)
        case _:
            return False


@remembered
def natural(value: Value) -> bool:
    """Whether an integer is certainly not negative."""
    match value.op:
        case "const":
            return value.number >= 0
        case "index" | "place" | "count" | "abs" | "mod":
            return True
        case "add" | "mul" | "min" | "floordiv":
            return all(natural(arg) for arg in value.args)
        case "max":
            return any(natural(arg) for arg in value.args)
        case _:
            return False


def reachable(roots: Sequence[Value]) -> list[Value]:
    """Every value that the roots depend on, arguments first."""
    seen: dict[Value, None] = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        value, ready = stack.pop()
        if ready:
            seen.setdefault(value)
        elif value not in seen:
            stack.append((value, True))
            stack += [(arg, False) for arg in reversed(value.args)]
    return list(seen)
