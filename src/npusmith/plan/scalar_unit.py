"""Operations of 64-bit integers, element by element on the scalar unit: slow, and exact."""

from __future__ import annotations

from collections.abc import Callable

from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    Choice,
    Const,
    Expr,
    For,
    Name,
    Op,
    ScalarFn,
    Stage,
    StageKind,
    Stmt,
    View,
)
from npusmith.ir.nodes import Value as Read
from npusmith.plan import two_adic
from npusmith.plan.block import Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.scalars import ONE, ZERO
from npusmith.plan.writer import Writer

_MINUS_ONE = Const(-1)


def _two(fn: ScalarFn) -> Callable[..., Expr]:
    return lambda a, b: Call(fn, (a, b))


def _test(op: BinOp) -> Callable[..., Expr]:
    return lambda a, b: Choice(Binary(op, a, b), Const(1.0), Const(0.0))


def _is(op: BinOp, a: Expr, b: Expr) -> Expr:
    return Binary(op, a, b)


def _guarded(a: Expr, b: Expr, by_minus_one: Expr, otherwise: Expr) -> Expr:
    """Divisors that no instruction is given: 0 has no quotient, and by -1 the lowest wraps."""
    usual = Choice(_is(BinOp.EQ, b, _MINUS_ONE), by_minus_one, otherwise)
    return Choice(_is(BinOp.EQ, b, ZERO), ZERO, usual)


def _negative(a: Expr) -> Expr:
    return Call(ScalarFn.WRAP_SUB, (ZERO, a))


def _rounds(a: Expr, b: Expr) -> Expr:
    """Whether floor and truncation of a / b differ."""
    signs = _is(BinOp.NE, _is(BinOp.LT, a, ZERO), _is(BinOp.LT, b, ZERO))
    return _is(BinOp.AND, _is(BinOp.NE, Binary(BinOp.MOD, a, b), ZERO), signs)


def _floordiv(a: Expr, b: Expr) -> Expr:
    return _guarded(a, b, _negative(a), Binary(BinOp.FLOORDIV, a, b))


def _truncdiv(a: Expr, b: Expr) -> Expr:
    up = Choice(_rounds(a, b), ONE, ZERO)
    return _guarded(a, b, _negative(a), Binary(BinOp.ADD, Binary(BinOp.FLOORDIV, a, b), up))


def _mod(a: Expr, b: Expr) -> Expr:
    return _guarded(a, b, ZERO, Binary(BinOp.MOD, a, b))


def _fmod(a: Expr, b: Expr) -> Expr:
    down = Choice(_rounds(a, b), b, ZERO)
    return _guarded(a, b, ZERO, Binary(BinOp.SUB, Binary(BinOp.MOD, a, b), down))


def _among(b: Expr, most: Expr) -> Expr:
    return _is(BinOp.AND, _is(BinOp.GE, b, ZERO), _is(BinOp.LE, b, most))


def _left(a: Expr, b: Expr, most: Expr) -> Expr:
    return Choice(_among(b, most), Call(ScalarFn.LEFT_SHIFT, (a, b)), ZERO)


def _right(a: Expr, b: Expr, most: Expr) -> Expr:
    return Call(ScalarFn.RIGHT_SHIFT, (a, Choice(_among(b, most), b, most)))


def _digits(*pairs: Expr) -> Expr:
    """A sum of digits, each behind its place."""
    total: Expr = ZERO
    for digit, place in zip(pairs[::2], pairs[1::2], strict=True):
        part = digit if place == ZERO else Call(ScalarFn.LEFT_SHIFT, (digit, place))
        total = part if total == ZERO else Call(ScalarFn.WRAP_ADD, (total, part))
    return total


OPERATIONS: dict[str, Callable[..., Expr]] = {
    "copy": lambda a: a,
    "add": _two(ScalarFn.WRAP_ADD),
    "sub": _two(ScalarFn.WRAP_SUB),
    "mul": _two(ScalarFn.WRAP_MUL),
    "max": _two(ScalarFn.MAX),
    "min": _two(ScalarFn.MIN),
    "and": _two(ScalarFn.BITWISE_AND),
    "or": _two(ScalarFn.BITWISE_OR),
    "xor": _two(ScalarFn.BITWISE_XOR),
    "floordiv": _floordiv,
    "truncdiv": _truncdiv,
    "mod": _mod,
    "fmod": _fmod,
    "left": _left,
    "right": _right,
    "high": lambda a: Call(ScalarFn.RIGHT_SHIFT, (a, Const(32))),
    "digits": _digits,
    "turned": two_adic.turned,
    "pick": lambda truth, a, b: Choice(_is(BinOp.NE, truth, ZERO), a, b),
    **{op.name.lower(): _test(op) for op in (BinOp.LT, BinOp.LE, BinOp.GT, BinOp.GE, BinOp.EQ)},
    "ne": _test(BinOp.NE),
}

STEPS: dict[str, Callable[..., two_adic.Steps]] = {
    "trailing_zeros": two_adic.trailing_zeros,
    "log": two_adic.log,
    "exp": two_adic.exp,
}


def scalar_loop(w: Writer, path: Path, value: Value, target: str) -> None:
    """Compute a "scalar" value, whose arguments are at hand, into a buffer."""
    wide = w.space.wide(value)
    at: Expr = Name(w.fresh("element_")) if wide else ZERO
    reads: list[Stmt] = []
    operands: list[Expr] = []
    for arg in value.args:
        if arg.op == "const":
            operands.append(Const(int(arg.number)))
            continue
        lone = w.is_number(arg, wide)
        read: Expr = w.number(path, arg) if lone else Read(View(w.held(path, arg), at))
        whole = Call(ScalarFn.INT, (read,)) if arg.kind is Kind.FLOAT else read
        name = w.fresh("operand_")
        reads.append(Assign(name, whole))
        operands.append(Name(name))
    if value.text in STEPS:
        steps, result = STEPS[value.text](w.fresh, *operands)
        reads += steps
    else:
        result = OPERATIONS[value.text](*operands)
    each(path, at, w.count(path, wide), reads, target, result)


def each(path: Path, at: Expr, count: Expr, reads: list[Stmt], target: str, result: Expr) -> None:
    """Set every element of a buffer; `at`: the variable of the loop, or the only element."""
    body = (*reads, Op("set", (View(target, at),), (result,), "", ONE))
    if isinstance(at, Name):
        body = (For(at.id, ZERO, count, ONE, body),)
    path[-1].items.append(Stage(StageKind.COMPUTE, body))


def copy(w: Writer, path: Path, target: str, source: Expr | str, count: Expr) -> None:
    """A number everywhere, or the elements of another buffer."""
    at = Name(w.fresh("element_"))
    each(path, at, count, [], target, Read(View(source, at)) if isinstance(source, str) else source)
