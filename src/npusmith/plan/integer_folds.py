"""Sums, products and extremes of integers that are equal to PyTorch's bit for bit.

Reductions and scans are float32, which holds integers below 2**24. A sum whose terms are small
enough for their number is one such reduction. Others are taken apart into digits of a few bits: the
sum of each digit is exact, and the digits are put together behind the sum. The largest of several
integers is the largest upper half, and the largest lower half among those that have it. A product
is a sum of logarithms (two_adic.py).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from npusmith.ir.dtypes import DType
from npusmith.plan import integers
from npusmith.plan.dag import EXACT, Dag, Kind, Value, held
from npusmith.plan.integers import Span, span_of

Fold = Callable[[Value], Value]  # a float32 reduction or scan of a value
Joined = Callable[[Dag, Value, Fold, int], tuple[Value, int]]  # `summed` or `multiplied`

_DIGIT = 8  # bits of a digit, which is of either sign: sums of 131,071 of them are exact
_HALF = 16
_AT_ONCE = 8  # digits that one loop puts together
_SPARE = 4  # the operator serves sums of so many times the terms that were captured, at least


def summed(dag: Dag, x: Value, fold: Fold, terms: int) -> tuple[Value, int]:
    """The sum in int64, modulo 2**64, and the most terms for which it is right.

    `terms`: how many there are, as captured; 0: at most one of them is not zero.
    """
    low, high = span_of(dag, x)
    reach = max(abs(low), abs(high), 1)
    most = (EXACT - 1) // reach
    if most >= max(_SPARE * terms, 1) or (most >= terms > 0 and reach < 1 << _DIGIT):
        return _known(dag, fold(held(dag, x, Kind.FLOAT)), (low * most, high * most)), most
    bits = _HALF if terms == 0 else max(2, min(_DIGIT, 25 - (_SPARE * terms).bit_length()))
    most = (EXACT - 1) >> (bits - 1)
    parts = [
        (_known(dag, fold(digit), (own[0] * most, own[1] * most)), shift)
        for digit, shift, own in _digits(dag, x, bits, True)
    ]
    return _known(dag, _together(dag, parts), _cut((low * most, high * most))), most


def _together(dag: Dag, parts: list[tuple[Value, int]]) -> Value:
    """The sum of digits, each times 2**shift, modulo 2**64."""
    most = sum(max(map(abs, span_of(dag, digit))) << shift for digit, shift in parts)
    total: Value = dag.const(0.0)
    if most < 1 << 31:
        for digit, shift in parts:
            total = _with(dag, total, digit, shift)
        return total
    step = _AT_ONCE if len(parts) <= _AT_ONCE else 2  # each of many waits in a buffer
    for at in range(0, len(parts), step):
        some = [(total, 0), *parts[at : at + step]][0 if at else 1 :]
        pairs = [(value, integers.constant(dag, shift, DType.INT64)) for value, shift in some]
        total = integers.scalar(dag, "digits", Kind.LONG, *chain.from_iterable(pairs))
    return total


def multiplied(dag: Dag, x: Value, fold: Fold, terms: int) -> tuple[Value, int]:
    """The product in int64, modulo 2**64, and the most factors for which it is right."""
    if span_of(dag, x) == (0, 1):  # 1 where there is no 0
        others = _known(dag, dag.sub(dag.const(1.0), held(dag, x, Kind.FLOAT)), (0, 1))
        found, most = summed(dag, others, fold, terms)
        return integers.compared(dag, "eq", found, dag.const(0.0)), most
    zeros = _known(dag, integers.scalar(dag, "trailing_zeros", Kind.FLOAT, x), (0, 64))
    turned = _known(dag, integers.scalar(dag, "turned", Kind.FLOAT, x, zeros), (0, 1))
    logs = integers.scalar(dag, "log", Kind.LONG, x, zeros)
    sums = [summed(dag, item, fold, terms) for item in (logs, zeros, turned)]
    found = integers.scalar(dag, "exp", Kind.LONG, *(value for value, _ in sums))
    return found, min(most for _, most in sums)


def extreme(dag: Dag, text: str, x: Value, fold: Fold) -> Value:
    """The largest ("max") or smallest integer, by pieces of 16 bits from the top."""
    if x.kind is Kind.FLOAT:
        return _known(dag, fold(x), span_of(dag, x))
    beyond = dag.const(-1.0 if text == "max" else float(1 << _HALF))
    pieces = _digits(dag, x, _HALF, False)[::-1]
    among: Value | None = None  # where all pieces so far are those of the result
    total: Value = dag.const(0.0)
    for piece, shift, reach in pieces:
        left = piece if among is None else dag.where(among, piece, beyond)
        best = _known(dag, fold(left), reach)
        total = _with(dag, total, best, shift)
        hit = dag.test("eq", piece, best)
        among = hit if among is None else dag.mul(among, hit)
    return _known(dag, total, span_of(dag, x))


def _with(dag: Dag, total: Value, digit: Value, shift: int) -> Value:
    """total + digit * 2**shift, modulo 2**64."""
    factor = integers.constant(dag, 1 << shift, DType.INT64)
    moved = integers.arithmetic(dag, "mul", digit, factor, DType.INT64)
    return integers.arithmetic(dag, "add", total, moved, DType.INT64)


def _known(dag: Dag, value: Value, span: Span) -> Value:
    if value.op != "const":
        dag.spans[value] = span
    return value


def _cut(span: Span) -> Span:
    whole = integers.limits(DType.INT64)
    return span if whole[0] <= span[0] and span[1] <= whole[1] else whole


def _digits(dag: Dag, x: Value, bits: int, even: bool) -> list[tuple[Value, int, Span]]:
    """float32 digits with their places and spans, lowest first; the last one has the sign.

    `even`: the others are of either sign too, and so half as large; else they are not negative.
    """
    if x.kind is not Kind.LONG:
        words = [(held(dag, x, Kind.INT), 0, _size(span_of(dag, x)))]
    else:
        words = [
            (integers.scalar(dag, name, Kind.INT, x), at, 32)
            for name, at in (("copy", 0), ("high", 32))
        ]
    found: list[tuple[Value, int, Span]] = []
    carry: Value | None = None
    for word, at, size in words:
        rest = word if carry is None else dag.add(word, carry)
        last = at == words[-1][1]
        for place in range(0, size, bits):
            width = min(bits, size - place)
            half = 1 << (width - 1)
            if last and place + bits >= size:
                found.append((held(dag, rest, Kind.FLOAT), at + place, (-half, half - (not even))))
                break
            upper = integers.shift_right(dag, rest, width)
            digit = dag.sub(rest, integers.shift_left(dag, upper, width))
            if place + bits >= size:  # the sign of a lower word is a bit as any other
                upper = dag.sub(upper, integers.shift_right(dag, word, 31))
            span = (0, 2 * half - 1)
            if even:  # one of the upper half is a negative one, and one more above it
                one = integers.shift_right(dag, dag.shifted(digit, half), width)
                digit, upper = (
                    dag.sub(digit, integers.shift_left(dag, one, width)),
                    dag.add(upper, one),
                )
                span = (-half, half - 1)
            found.append((held(dag, digit, Kind.FLOAT), at + place, span))
            rest = upper
        carry = rest if even else None
    return found


def _size(span: Span) -> int:
    """Bits of the numbers of a span, sign included."""
    return min(32, max(abs(span[0] + 1), abs(span[1])).bit_length() + 1)
