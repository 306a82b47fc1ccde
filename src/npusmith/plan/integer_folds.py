"""Sums and extremes of integers that are equal to PyTorch's bit for bit.

Reductions and scans are float32, which holds integers below 2**24. A sum whose terms are small
enough for their number is one such reduction. Others are taken apart into digits of a few bits: the
sum of each digit is exact, and the digits are put together behind the sum. The largest of several
integers is the largest upper half, and the largest lower half among those that have it.
"""

from __future__ import annotations

from collections.abc import Callable

from npusmith.ir.dtypes import DType
from npusmith.plan import integers
from npusmith.plan.dag import EXACT, Dag, Kind, Value, held
from npusmith.plan.integers import Span, span_of

Fold = Callable[[Value], Value]  # a float32 reduction or scan of a value

_DIGIT = 8  # bits of a digit: sums of 65,535 of them are exact
_LONG_DIGIT = 11  # of 64-bit numbers: fewer digits, and sums of 8,191
_HALF = 16
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
    if terms == 0:
        bits = _HALF
    elif x.kind is Kind.LONG and _SPARE**2 * terms < 1 << (24 - _LONG_DIGIT):
        bits = _LONG_DIGIT
    else:
        bits = max(1, min(_DIGIT, 24 - (_SPARE * terms).bit_length()))
    most = (1 << (24 - bits)) - 1
    total: Value = dag.const(0.0)
    for digit, shift, reach_ in _digits(dag, x, bits):
        part = _known(dag, fold(digit), (reach_[0] * most, reach_[1] * most))
        factor = integers.constant(dag, 1 << shift, DType.INT64)
        moved = integers.arithmetic(dag, "mul", part, factor, DType.INT64)
        total = integers.arithmetic(dag, "add", total, moved, DType.INT64)
    return _known(dag, total, _cut((low * most, high * most))), most


def extreme(dag: Dag, text: str, x: Value, fold: Fold) -> Value:
    """The largest ("max") or smallest integer, by pieces of 16 bits from the top."""
    if x.kind is Kind.FLOAT:
        return _known(dag, fold(x), span_of(dag, x))
    beyond = dag.const(-1.0 if text == "max" else float(1 << _HALF))
    pieces = list(reversed(list(_digits(dag, x, _HALF))))
    among: Value | None = None  # where all pieces so far are those of the result
    total: Value = dag.const(0.0)
    for piece, shift, reach in pieces:
        left = piece if among is None else dag.where(among, piece, beyond)
        best = _known(dag, fold(left), reach)
        factor = integers.constant(dag, 1 << shift, DType.INT64)
        moved = integers.arithmetic(dag, "mul", best, factor, DType.INT64)
        total = integers.arithmetic(dag, "add", total, moved, DType.INT64)
        hit = dag.test("eq", piece, best)
        among = hit if among is None else dag.mul(among, hit)
    return _known(dag, total, span_of(dag, x))


def _known(dag: Dag, value: Value, span: Span) -> Value:
    if value.op != "const":
        dag.spans[value] = span
    return value


def _cut(span: Span) -> Span:
    whole = integers.limits(DType.INT64)
    return span if whole[0] <= span[0] and span[1] <= whole[1] else whole


def _digits(dag: Dag, x: Value, bits: int) -> list[tuple[Value, int, Span]]:
    """float32 digits with their places and spans, lowest first; the last one has the sign."""
    if x.kind is not Kind.LONG:
        return _digits_of_word(dag, held(dag, x, Kind.INT), bits, _size(span_of(dag, x)), True)
    by = integers.constant(dag, 32, DType.INT64)
    low = integers.scalar(dag, "copy", Kind.INT, x)
    high = integers.scalar(
        dag, "copy", Kind.INT, integers.scalar(dag, "right", Kind.LONG, x, by, by)
    )
    found = _digits_of_word(dag, low, bits, 32, False)
    return found + [
        (digit, place + 32, span)
        for digit, place, span in _digits_of_word(dag, high, bits, 32, True)
    ]


def _size(span: Span) -> int:
    """Bits of the numbers of a span, sign included."""
    return min(32, max(abs(span[0] + 1), abs(span[1])).bit_length() + 1)


def _digits_of_word(
    dag: Dag, x: Value, bits: int, size: int, signed: bool
) -> list[tuple[Value, int, Span]]:
    """Digits of an int32 number of which `size` bits count."""
    found: list[tuple[Value, int, Span]] = []
    for place in range(0, size, bits):
        own = _right(dag, x, place)
        width = min(bits, size - place)
        span = (0, (1 << width) - 1)
        if place + bits < size:
            own = dag.sub(own, _left(dag, _right(dag, x, place + bits), bits))
        elif signed:
            span = (-(1 << (width - 1)), (1 << (width - 1)) - 1)
        else:  # its sign is a bit as any other
            own = dag.sub(own, _left(dag, _right(dag, x, 31), width))
        found.append((held(dag, own, Kind.FLOAT), place, span))
    return found


def _right(dag: Dag, x: Value, by: int) -> Value:
    return dag.make("shift_right", x, number=by, kind=Kind.INT) if by else x


def _left(dag: Dag, x: Value, by: int) -> Value:
    return dag.make("shift_left", x, number=by, kind=Kind.INT)
