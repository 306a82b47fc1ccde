"""What is provable about an int expression: is it positive, and what divides it.

`low` is 1 (at least one), 0 (not negative) or None (unknown); `step` is a number that divides every
value (0 when the only value is 0). A name's fact holds for all values that it ever has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import gcd

from npusmith.ir.nodes import (
    INT_FNS,
    Assign,
    Binary,
    BinOp,
    Call,
    ChipFact,
    Choice,
    Const,
    CoreCount,
    CoreId,
    Dim,
    Expr,
    For,
    Name,
    Negate,
    Program,
    ScalarFn,
    Size,
)
from npusmith.ir.walk import Block, statements


@dataclass(frozen=True, slots=True)
class Fact:
    low: int | None
    step: int

    def join(self, other: Fact) -> Fact:
        """What holds when the value is one or the other."""
        return Fact(_least(self.low, other.low), gcd(self.step, other.step))


Facts = Mapping[str, Fact]

NOTHING = Fact(None, 1)
_EVERYTHING = Fact(1, 0)  # of a name without any value: the start of the fixpoint


def prove(expr: Expr, facts: Facts) -> Fact:
    """What holds for `expr` when the names in it have these facts."""
    match expr:
        case Const(int() as value):
            return Fact(min(1, int(value)) if value >= 0 else None, abs(int(value)))
        case Name(name):
            return facts.get(name, NOTHING)
        case Negate(value):
            return Fact(None, prove(value, facts).step)
        case Binary(op, left, right):
            return _binary(op, left, right, facts)
        case Call(fn, args):
            return _call(fn, args, facts)
        case Choice(_, then, other):
            return prove(then, facts).join(prove(other, facts))
        case Dim() | Size() | CoreId():
            return Fact(0, 1)
        case ChipFact() | CoreCount():
            return Fact(1, 1)
        case _:
            return NOTHING


def _least(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a, b)


def _binary(op: BinOp, left: Expr, right: Expr, facts: Facts) -> Fact:
    a, b = prove(left, facts), prove(right, facts)
    known = a.low is not None and b.low is not None
    match op:
        case BinOp.ADD:
            low = max(a.low or 0, b.low or 0) if known else None
            return Fact(low, gcd(a.step, b.step))
        case BinOp.SUB:
            return Fact(None, gcd(a.step, b.step))
        case BinOp.MUL:
            return Fact(_least(a.low, b.low), a.step * b.step)
        case BinOp.FLOORDIV:
            return Fact(0 if known else None, _quotient_step(a.step, right))
        case BinOp.MOD:
            return Fact(0 if b.low == 1 else None, gcd(a.step, b.step))
        case _:
            return NOTHING


def _quotient_step(step: int, divisor: Expr) -> int:
    match divisor:
        case Const(int() as value) if value and step % value == 0:
            return abs(step // value)
        case _:
            return 1


def _call(fn: ScalarFn, args: tuple[Expr, ...], facts: Facts) -> Fact:
    proved = [prove(arg, facts) for arg in args]
    if fn in (ScalarFn.INT, ScalarFn.FLOAT, *INT_FNS):
        return NOTHING
    a, b = proved
    match fn:
        case ScalarFn.MIN:
            return a.join(b)
        case ScalarFn.MAX:
            lows = [item.low for item in proved if item.low is not None]
            return Fact(max(lows) if lows else None, gcd(a.step, b.step))
        case ScalarFn.CEIL_DIV:
            return Fact(a.low if b.low == 1 else None, _quotient_step(a.step, args[1]))
        case _:  # ALIGN_UP
            exact = b.step and a.step % b.step == 0 and isinstance(args[1], Const)
            return Fact(a.low if b.low == 1 else None, a.step if exact else b.step)


# ------------------------------------------------------------------------------------- fixpoint


def host_facts(program: Program) -> dict[str, Fact]:
    """Facts about the names of the host function."""
    return _settle(program.host.body, _constants(program))


def kernel_facts(program: Program) -> dict[str, Fact]:
    """Facts about the names of the kernel; its parameters get theirs from launch()."""
    host = host_facts(program)
    known = _constants(program)
    given = [dict(launch.args) for launch in program.host.launches]
    for scalar in program.kernel.scalars:
        has_value = not scalar.is_float and all(scalar.name in args for args in given)
        proved = [prove(args[scalar.name], host) for args in given] if has_value else [NOTHING]
        known[scalar.name] = reduce(Fact.join, proved)
    return _settle(program.kernel.body, known)


def _constants(program: Program) -> dict[str, Fact]:
    return {name: prove(Const(value), {}) for name, value in program.consts}


def _settle(body: Block, known: dict[str, Fact]) -> dict[str, Fact]:
    """Start from "everything holds" and weaken until every assignment agrees."""
    bindings = [item for item in statements(body) if isinstance(item, Assign | For)]
    facts = dict(known)
    for item in bindings:
        facts.setdefault(_bound(item), _EVERYTHING)
    while True:
        before = dict(facts)
        for item in bindings:
            facts[_bound(item)] = facts[_bound(item)].join(_given(item, facts))
        if facts == before:
            return facts


def _bound(item: Assign | For) -> str:
    return item.target if isinstance(item, Assign) else item.var


def _given(item: Assign | For, facts: Facts) -> Fact:
    if isinstance(item, Assign):
        return prove(item.value, facts)
    start, step = prove(item.start, facts), prove(item.step, facts)
    return Fact(start.low, gcd(start.step, step.step))
