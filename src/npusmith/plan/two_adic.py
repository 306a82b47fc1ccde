"""Products modulo 2**64 as sums: the 2-adic logarithm and exponential, on the scalar unit.

Every number is a power of two times an odd one, and every odd one is 1 modulo 4 or the negative of
such a number. Modulo 2**64 the logarithm turns products of these into sums, and exp turns the sums
back. Both take out the bits below 2**8 one by one, as factors 1 + 2**i; what is left is so near 1
(or 0) that eight terms of the power series are exact.
"""

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
    Name,
    ScalarFn,
    Stmt,
)
from npusmith.lang.scalars import wrapped
from npusmith.plan.scalars import ONE, ZERO

_BITS = range(2, 8)  # taken out one by one
_TERMS = 8  # z**9 / 9 and z**9 / 9! of a multiple z of 2**8 are multiples of 2**64
_EIGHTH = 3  # bits: the largest power of two that divides a term's number is 8

Steps = tuple[list[Stmt], Expr]  # what comes first, and the result
Fresh = Callable[[str], str]  # a new name


def trailing_zeros(fresh: Fresh, x: Expr) -> Steps:
    """The power of two in a number, as a float; 64 in 0."""
    rest, found = fresh("rest_"), fresh("zeros_")
    steps: list[Stmt] = [Assign(rest, x), Assign(found, ZERO)]
    for width in (32, 16, 8, 4, 2, 1):
        low = Call(ScalarFn.BITWISE_AND, (Name(rest), Const((1 << width) - 1)))
        more = fresh("more_")
        steps += [
            Assign(more, Choice(Binary(BinOp.EQ, low, ZERO), Const(width), ZERO)),
            Assign(rest, Call(ScalarFn.RIGHT_SHIFT, (Name(rest), Name(more)))),
            Assign(found, Binary(BinOp.ADD, Name(found), Name(more))),
        ]
    last = Choice(Binary(BinOp.EQ, Name(rest), ZERO), ONE, ZERO)
    return steps, Call(ScalarFn.FLOAT, (Binary(BinOp.ADD, Name(found), last),))


def turned(x: Expr, zeros: Expr) -> Expr:
    """1.0 where the odd factor is 3 modulo 4: its negative has the logarithm."""
    return Choice(_is_set(_odd(x, zeros), 1), Const(1.0), Const(0.0))


def log(fresh: Fresh, x: Expr, zeros: Expr) -> Steps:
    """The logarithm of the odd factor, or of its negative, modulo 2**64; a multiple of 4."""
    number, found = fresh("number_"), fresh("log_")
    negative = Call(ScalarFn.WRAP_SUB, (ZERO, Name(number)))
    steps: list[Stmt] = [
        Assign(number, _odd(x, zeros)),
        Assign(number, Choice(_is_set(Name(number), 1), negative, Name(number))),
        Assign(found, ZERO),
    ]
    for bit in _BITS:
        steps += _factor(fresh, bit, Name(number), number, found)
    z, series = fresh("distance_"), fresh("series_")
    steps += [Assign(z, _sub(Name(number), ONE)), Assign(series, ZERO)]
    for n in range(_TERMS, 1, -1):  # (-1)**(n + 1) * 8 / n: whole, modulo 2**64
        steps.append(Assign(series, _horner(Name(z), series, _over(-8 * (-1) ** n, n))))
    eighth = Call(ScalarFn.RIGHT_SHIFT, (Name(z), Const(_EIGHTH)))
    steps.append(Assign(series, _horner(eighth, series, 1)))
    return steps, _add(Name(found), _mul(Name(z), Name(series)))


def exp(fresh: Fresh, logs: Expr, zeros: Expr, turns: Expr) -> Steps:
    """The number with this logarithm, times a power of two, negated where `turns` is odd."""
    rest, found = fresh("rest_"), fresh("number_")
    steps: list[Stmt] = [Assign(rest, logs), Assign(found, ONE)]
    for bit in _BITS:
        steps += _factor(fresh, bit, Name(rest), found, rest)
    series = fresh("series_")
    steps.append(Assign(series, ONE))
    for n in range(_TERMS, 0, -1):
        shift = _twos(n)
        moved = Call(ScalarFn.RIGHT_SHIFT, (Name(rest), Const(shift)))
        part = _mul(moved if shift else Name(rest), Const(_over(1 << shift, n)))
        steps.append(Assign(series, _horner(part, series, 1)))
    number = fresh("number_")
    steps.append(Assign(number, _mul(Name(found), Name(series))))
    negative = Call(ScalarFn.WRAP_SUB, (ZERO, Name(number)))
    steps.append(Assign(number, Choice(_is_set(turns, 0), negative, Name(number))))
    few = Binary(BinOp.LT, zeros, Const(64))
    return steps, Choice(few, Call(ScalarFn.LEFT_SHIFT, (Name(number), zeros)), ZERO)


def _odd(x: Expr, zeros: Expr) -> Expr:
    """What a power of two leaves; 0 has 64 zeros."""
    return Call(ScalarFn.RIGHT_SHIFT, (x, Call(ScalarFn.MIN, (zeros, Const(63)))))


def _factor(fresh: Fresh, bit: int, tested: Expr, product: str, logs: str) -> list[Stmt]:
    """Where a bit is set, one more factor 1 + 2**bit, and its logarithm taken off."""
    on = fresh("set_")
    return [
        Assign(on, _bit(tested, bit)),
        Assign(product, _add(Name(product), _mul(Name(product), _mul(Name(on), Const(1 << bit))))),
        Assign(logs, _sub(Name(logs), _mul(Name(on), Const(_log_of_factor(bit))))),
    ]


def _log_of_factor(bit: int) -> int:
    """log(1 + 2**bit) modulo 2**64: the series 2**bit - 2**(2 bit) / 2 + ..., each term whole."""
    total = 0
    for n in range(1, 64):
        power, twos = n * bit - _twos(n), _twos(n)
        total += (-1) ** (n + 1) * (1 << power) * pow(n >> twos, -1, 1 << 64)
    return wrapped(total, 64)


def _twos(number: int) -> int:
    return (number & -number).bit_length() - 1


def _over(number: int, divisor: int) -> int:
    """A quotient modulo 2**64; the divisor's power of two divides the number."""
    twos = _twos(divisor)
    return wrapped((number >> twos) * pow(divisor >> twos, -1, 1 << 64), 64)


def _horner(x: Expr, series: str, term: int) -> Expr:
    return _add(Const(term), _mul(x, Name(series)))


def _bit(x: Expr, bit: int) -> Expr:
    moved = Call(ScalarFn.RIGHT_SHIFT, (x, Const(bit))) if bit else x
    return Call(ScalarFn.BITWISE_AND, (moved, ONE))


def _is_set(x: Expr, bit: int) -> Expr:
    return Binary(BinOp.NE, _bit(x, bit), ZERO)


def _add(a: Expr, b: Expr) -> Expr:
    return Call(ScalarFn.WRAP_ADD, (a, b))


def _sub(a: Expr, b: Expr) -> Expr:
    return Call(ScalarFn.WRAP_SUB, (a, b))


def _mul(a: Expr, b: Expr) -> Expr:
    return Call(ScalarFn.WRAP_MUL, (a, b))
