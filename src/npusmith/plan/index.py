"""Index expressions: where an element of a tensor stands, as integer arithmetic on loop indices.

They are expressions of the tile language whose names stand for what is not there yet: the index
along an axis, the size of one, an element of an index tensor. `Poly` is their normal form: a sum of
products, so that equal addresses look equal and the step along an axis can be read off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from npusmith.ir.nodes import Binary, BinOp, Call, Choice, Const, Dim, Expr, Name, ScalarFn, Size
from npusmith.ir.walk import names
from npusmith.plan.scalars import ONE, ZERO, largest, least, minus, plus, product, times

Monomial = tuple[Expr, ...]  # factors, sorted by their text


_once = lru_cache(maxsize=1 << 16)  # the same index expressions are asked about again and again


@dataclass(frozen=True, slots=True)
class Poly:
    """Coefficients by monomial; the empty monomial is the constant."""

    terms: tuple[tuple[Monomial, int], ...]

    @property
    def number(self) -> int | None:
        """The value of a constant; None for anything else."""
        if not self.terms:
            return 0
        only = self.terms[0]
        return only[1] if len(self.terms) == 1 and not only[0] else None

    def expr(self) -> Expr:
        """As an expression, the constant last."""
        result: Expr = ZERO
        for factors, number in sorted(self.terms, key=lambda term: not term[0]):
            size = product((*factors, Const(abs(number)))) if factors else Const(abs(number))
            result = plus(result, size) if number > 0 else minus(result, size)
        return result

    def __add__(self, other: Poly) -> Poly:
        return _poly([*self.terms, *other.terms])

    def __sub__(self, other: Poly) -> Poly:
        return _poly([*self.terms, *((factors, -number) for factors, number in other.terms)])

    def __mul__(self, other: Poly) -> Poly:
        return _poly(
            [
                (tuple(sorted((*one, *two), key=_text)), a * b)
                for one, a in self.terms
                for two, b in other.terms
            ]
        )


_text = _once(repr)


def _poly(terms: Iterable[tuple[Monomial, int]]) -> Poly:
    found: dict[Monomial, int] = {}
    for factors, number in terms:
        found[factors] = found.get(factors, 0) + number
    return Poly(tuple((factors, number) for factors, number in found.items() if number))


_NOTHING = Poly(())


def constant(number: int) -> Poly:
    return _poly([((), number)])


@_once
def poly(expr: Expr) -> Poly:
    """The normal form; what is not a sum or product is one factor."""
    match expr:
        case Const(value):
            return constant(int(value))
        case Binary(BinOp.ADD, left, right):
            return poly(left) + poly(right)
        case Binary(BinOp.SUB, left, right):
            return poly(left) - poly(right)
        case Binary(BinOp.MUL, left, right):
            return poly(left) * poly(right)
        case Binary(BinOp.FLOORDIV, left, Const(value)) if isinstance(value, int) and value > 0:
            return _divided(poly(left), value)
        case _:
            return _poly([((expr,), 1)])


def _divided(whole: Poly, value: int) -> Poly:
    """`whole // value`: multiples come out, and a number leaves its rest: (n - 7) // 4 + 1."""
    out = [(factors, number // value) for factors, number in whole.terms
           if not factors or number % value == 0]  # fmt: skip
    rest = whole - _poly((factors, number * value) for factors, number in out)
    if not any(factors for factors, _ in rest.terms):
        return _poly(out)
    part = Binary(BinOp.FLOORDIV, rest.expr(), Const(value))
    return _poly([*out, ((part,), 1)])


@_once
def simple(expr: Expr) -> Expr:
    """The expression in normal form."""
    return poly(expr).expr()


def bound(expr: Expr) -> tuple[Expr, BinOp, int]:
    """`expr >= 0` as a comparison of what varies with a number."""
    terms = poly(expr).terms
    number = sum(value for factors, value in terms if not factors)
    rest = [(factors, value) for factors, value in terms if factors]
    if rest and all(value < 0 for _, value in rest):
        return _poly((factors, -value) for factors, value in rest).expr(), BinOp.LE, number
    return _poly(rest).expr(), BinOp.GE, -number


def multiple(expr: Expr) -> tuple[Expr, Expr] | None:
    """(a, c) where `expr` is c * (a // c) - a: 0 where a is a multiple of c, less elsewhere."""
    for factors, number in poly(expr).terms:
        if len(factors) == 1 and isinstance(factors[0], Binary):
            part = factors[0]
            if part.op is BinOp.FLOORDIV and part.right == Const(number):
                rest = poly(times(Const(number), part)) - poly(expr)
                return (part.left, part.right) if rest == poly(part.left) else None
    return None


@_once
def is_positive(expr: Expr) -> bool:
    """Whether an expression is at least 0 at all sizes, as far as its terms show."""
    low: dict[Monomial, float] = {}
    for factors, number in poly(expr).terms:
        part = factors[0] if len(factors) == 1 else None
        if isinstance(part, Binary) and part.op is BinOp.FLOORDIV and isinstance(part.right, Const):
            if number > 0:
                if is_positive(part.left):
                    continue
                return False
            for inner, value in poly(part.left).terms:  # at most the quotient
                low[inner] = low.get(inner, 0) + number * value / part.right.value
        elif all(isinstance(item, Name | Dim | Size) for item in factors):
            low[factors] = low.get(factors, 0) + number
        else:
            return False
    return all(number >= 0 for number in low.values())


def steps(expr: Expr, lanes: Iterable[str]) -> tuple[Expr, dict[str, Poly]] | None:
    """What is left at lane 0, and the step along each of these names; None where not affine."""
    wanted = dict.fromkeys(lanes)
    base: list[tuple[Monomial, int]] = []
    found: dict[str, list[tuple[Monomial, int]]] = {name: [] for name in wanted}
    for factors, number in poly(expr).terms:
        own = [item for item in factors if isinstance(item, Name) and item.id in wanted]
        rest = tuple(item for item in factors if item not in own)
        if len(own) > 1 or any(name in wanted for item in rest for name in names(item)):
            return None
        if len(factors) != len(rest) + len(own):
            return None
        if own:
            found[own[0].id].append((rest, number))
        else:
            base.append((factors, number))
    along = {name: _poly(terms) if terms else _NOTHING for name, terms in found.items()}
    return _poly(base).expr(), along


# ------------------------------------------------------------------------------------- arithmetic


def floor_div(a: Expr, b: Expr) -> Expr:
    if b == ONE:
        return a
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(int(a.value) // int(b.value))
    return Binary(BinOp.FLOORDIV, a, b)


def modulo(a: Expr, b: Expr) -> Expr:
    if b == ONE:
        return ZERO
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(int(a.value) % int(b.value))
    return Binary(BinOp.MOD, a, b)


def clamp(a: Expr, low: Expr, high: Expr) -> Expr:
    return least(largest(a, low), high)


_SIMPLIFIED = {
    BinOp.ADD: plus, BinOp.SUB: minus, BinOp.MUL: times, BinOp.FLOORDIV: floor_div,
    BinOp.MOD: modulo,
}  # fmt: skip


def replaced(expr: Expr, new: Callable[[str], Expr | None]) -> Expr:
    """The expression with names replaced, where `new` has something for them."""
    if isinstance(expr, Binary):
        left, right = replaced(expr.left, new), replaced(expr.right, new)
        simplified = _SIMPLIFIED.get(expr.op)
        return simplified(left, right) if simplified else Binary(expr.op, left, right)
    match expr:
        case Name(name):
            return new(name) or expr
        case Call(fn, args):
            return Call(fn, tuple(replaced(arg, new) for arg in args))
        case Choice(cond, yes, no):
            return Choice(*(replaced(item, new) for item in (cond, yes, no)))
        case _:
            return expr


# --------------------------------------------------------------------------------------- bounds


Bounds = Mapping[str, tuple[Expr, Expr]]


def bounds(expr: Expr, known: Bounds) -> tuple[Expr, Expr] | None:
    """The least and the largest value when names lie in these ranges; None where that is unknown.

    Names that are not in `known` are fixed and not negative.
    """
    if not any(name in known for name in names(expr)):
        return expr, expr
    affine = steps(expr, known)
    if affine is not None:
        return _affine_bounds(*affine, known)
    match expr:
        case Binary(BinOp.ADD, left, right):
            return _both(left, right, known, lambda a, b: (plus(a[0], b[0]), plus(a[1], b[1])))
        case Binary(BinOp.SUB, left, right):
            return _both(left, right, known, lambda a, b: (minus(a[0], b[1]), minus(a[1], b[0])))
        case Binary(BinOp.FLOORDIV, left, right) if not _varies(right, known):
            return _one(left, known, lambda a: floor_div(a, right))
        case Binary(BinOp.MOD, left, right) if not _varies(right, known):
            found = bounds(left, known)
            if found is None:
                return ZERO, minus(right, ONE)
            low, high = found
            alike = Binary(BinOp.EQ, floor_div(low, right), floor_div(high, right))
            return (
                Choice(alike, modulo(low, right), ZERO),
                Choice(alike, modulo(high, right), minus(right, ONE)),
            )
        case Binary(BinOp.MUL, left, right):
            if _varies(right, known):
                left, right = right, left
            if not _varies(right, known):  # sizes and strides: not negative
                return _one(left, known, lambda a: times(a, right))
            return None
        case Call(ScalarFn.MIN | ScalarFn.MAX, (left, right)):
            keep = least if expr.fn is ScalarFn.MIN else largest
            found = _both(left, right, known, lambda a, b: (keep(a[0], b[0]), keep(a[1], b[1])))
            if found is not None and not (poly(left) + poly(right)).terms:  # |x|, or -|x|
                low, high = found
                is_max = expr.fn is ScalarFn.MAX
                return (keep(low, ZERO), high) if is_max else (low, keep(high, ZERO))
            return found
        case _:
            return None


def _varies(expr: Expr, known: Bounds) -> bool:
    return any(name in known for name in names(expr))


def _affine_bounds(
    base: Expr, found: Mapping[str, Poly], known: Bounds
) -> tuple[Expr, Expr] | None:
    low = high = base
    for name, step in found.items():
        if not step.terms:
            continue
        first, last = (times(end, step.expr()) for end in known[name])
        signs = {number > 0 for _, number in step.terms}
        if len(signs) > 1:
            return None
        if signs == {False}:
            first, last = last, first
        low, high = plus(low, first), plus(high, last)
    return simple(low), simple(high)


Pair = tuple[Expr, Expr]


def _both(
    left: Expr, right: Expr, known: Bounds, join: Callable[[Pair, Pair], Pair]
) -> Pair | None:
    one, two = bounds(left, known), bounds(right, known)
    return None if one is None or two is None else join(one, two)


def _one(expr: Expr, known: Bounds, fn: Callable[[Expr], Expr]) -> Pair | None:
    found = bounds(expr, known)
    return None if found is None else (fn(found[0]), fn(found[1]))
