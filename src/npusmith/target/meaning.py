"""NumPy meanings of the intrinsic table: slow, obvious, rounded per operation as the chip does.

Arithmetic is done in the operand's own dtype (half rounds to nearest even after every operation).
Transcendental functions are computed in float64 and rounded once. Integers wrap.
Sources: Ascend C API reference and its boundary-value appendix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from npusmith.ir.dtypes import DType

Array = np.ndarray[Any, Any]

_quiet = np.errstate(all="ignore")  # as a decorator: a block in a function costs three times that


def _same(fn: Callable[..., Any]) -> Callable[..., Array]:
    """Lift fn so that scalars take the array's dtype first and the result keeps it."""

    @_quiet
    def lifted(first: Array, *rest: Any) -> Array:
        others = [
            item if isinstance(item, np.ndarray) else np.asarray(item).astype(first.dtype)
            for item in rest
        ]
        return np.asarray(fn(first, *others)).astype(first.dtype, copy=False)

    return lifted


def _wide(fn: Callable[..., Any]) -> Callable[..., Array]:
    """Lift fn to be computed in float64 and rounded once to the dtype of the first source."""

    @_quiet
    def lifted(first: Array, *rest: Any) -> Array:
        wide = [np.asarray(item).astype(np.float64) for item in (first, *rest)]
        return np.asarray(fn(*wide)).astype(first.dtype)

    return lifted


def _each(fn: Callable[[float], float]) -> Callable[[Array], Array]:
    """fn element by element: NumPy has no error function, and a plain loop is fast enough."""
    return lambda a: np.fromiter(map(fn, a.reshape(-1).tolist()), np.float64, a.size)


add = _same(np.add)
sub = _same(np.subtract)
mul = _same(np.multiply)
div = _same(np.divide)


def _pick_max(a: Array, b: Array) -> Array:
    # np.maximum propagates NaN but may return either zero; Max(+0, -0) is +0 on the chip
    zeros, larger = (a == 0) & (b == 0), np.maximum(a, b)
    return np.where(zeros, np.where(np.signbit(a), b, a), larger) if zeros.any() else larger


def _pick_min(a: Array, b: Array) -> Array:
    # Min(+0, -0) is -0 on the chip
    zeros, smaller = (a == 0) & (b == 0), np.minimum(a, b)
    return np.where(zeros, np.where(np.signbit(a), a, b), smaller) if zeros.any() else smaller


def _sided(fn: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Array]:
    def choose(a: Array, b: Array) -> Array:
        return np.asarray(fn(a, b) if a.dtype.kind == "f" else plain(a, b))

    return _same(choose)


maximum = _sided(_pick_max, np.maximum)
minimum = _sided(_pick_min, np.minimum)
absolute = _same(np.abs)
relu = _same(lambda a: np.where((a > 0) | np.isnan(a), a, a.dtype.type(0)))
# -0 takes the slope: the vendor's table gives NaN for -0 with a NaN slope
leaky_relu = _same(lambda a, s: np.where(np.signbit(a), a * s, a))
axpy = _same(lambda d, a, s: d + a * s)
mul_add_dst = _same(lambda d, a, b: d + a * b)
shift_left = _same(lambda a, s: np.left_shift(a, s))
shift_right = _same(lambda a, s: np.right_shift(a, s))

exp = _wide(np.exp)
ln = _wide(np.log)
sqrt = _wide(np.sqrt)
rsqrt = _wide(lambda a: 1.0 / np.sqrt(a))
reciprocal = _wide(lambda a: 1.0 / a)
tanh = _wide(np.tanh)
_sigmoid = _wide(lambda a: 1.0 / (1.0 + np.exp(-a)))


def sigmoid(a: Array) -> Array:
    """Half is rounded after each step; float once."""
    if a.dtype != np.float16:
        return _sigmoid(a)
    power = exp(np.negative(a))
    return reciprocal(_wide(lambda value: 1.0 + value)(power))


erf = _wide(_each(math.erf))
erfc = _wide(_each(math.erfc))
sin, cos, tan = _wide(np.sin), _wide(np.cos), _wide(np.tan)
asin, acos, atan = _wide(np.arcsin), _wide(np.arccos), _wide(np.arctan)
sinh, cosh = _wide(np.sinh), _wide(np.cosh)
asinh, acosh, atanh = _wide(np.arcsinh), _wide(np.arccosh), _wide(np.arctanh)
log2, log10 = _wide(np.log2), _wide(np.log10)
floor, ceil, trunc, rint = _wide(np.floor), _wide(np.ceil), _wide(np.trunc), _wide(np.rint)
sign = _wide(np.sign)
power = _wide(np.power)


@_quiet
def duplicate(dtype: DType, count: int, value: Any) -> Array:
    """A source-free row: told dtype and count instead of arrays."""
    return np.full(count, np.asarray(value).astype(dtype.numpy), dtype.numpy)


def element(dtype: DType, count: int, value: Any) -> Array:
    """One number as an element; of an int, the bits that fit."""
    if not dtype.is_float:
        low, high = integer_limits(dtype)
        value = (int(value) - low) % (high - low + 1) + low
    return np.array([value] * count, dtype.numpy)


@_quiet
def create_index(dtype: DType, count: int, first: Any) -> Array:
    start = np.asarray(first).astype(dtype.numpy)
    return np.asarray(start + np.arange(count).astype(dtype.numpy)).astype(dtype.numpy)


# ------------------------------------------------------------------------------------------ cast


def _round_half_away(a: Array) -> Array:
    # a + 0.5 would be wrong for the largest number below 0.5; the distance is exact
    whole = np.trunc(a)
    return np.where(np.abs(a - whole) >= 0.5, whole + np.copysign(1.0, a), whole)


def integer_limits(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    return dtype.low, dtype.high


_TO_INT: dict[str, Callable[..., Array]] = {
    "none": np.rint,
    "rint": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": _round_half_away,
    "trunc": np.trunc,
}


def _to_integer(a: Array, dtype: DType, mode: str) -> Array:
    """Round by mode, then saturate; NaN becomes 0."""
    low, high = integer_limits(dtype)
    wide = _TO_INT[mode](a.astype(np.float64))
    wide = np.where(np.isnan(wide), 0.0, wide)
    result = np.minimum(np.maximum(wide, float(low)), float(high)).astype(np.int64)
    if dtype is DType.INT64:  # float(2**63 - 1) is 2**63, which int64 cannot hold
        result = np.where(wide >= float(high), np.int64(high), result)
    return result.astype(dtype.numpy)


def _to_narrow(a: Array, dtype: DType, mode: str) -> Array:
    """float32 to half or bfloat16 in a given direction; overflow becomes infinity."""
    exact = a.astype(np.float64)
    near = a.astype(dtype.numpy)
    if mode in ("none", "rint"):
        return near
    bits = near.view(np.uint16).astype(np.int32)
    back = near.astype(np.float64)
    away, towards = np.abs(back) > np.abs(exact), np.abs(back) < np.abs(exact)
    down = np.where(away, bits - 1, bits)  # magnitude at most |a|
    up = np.where(towards, bits + 1, bits)  # magnitude at least |a|
    negative = np.signbit(a)
    inexact = np.isfinite(exact) & (back != exact)
    if mode == "trunc":
        chosen = down
    elif mode == "floor":
        chosen = np.where(negative, up, down)
    elif mode == "ceil":
        chosen = np.where(negative, down, up)
    elif mode == "odd":
        chosen = np.where(down % 2 == 1, down, down + 1)
    else:  # "round": ties away from zero
        low = down.astype(np.uint16).view(dtype.numpy).astype(np.float64)
        high = (down + 1).astype(np.uint16).view(dtype.numpy).astype(np.float64)
        tie_or_more = np.abs(exact) - np.abs(low) >= np.abs(high) - np.abs(exact)
        chosen = np.where(np.isfinite(high), np.where(tie_or_more, down + 1, down), bits)
    return np.where(inexact, chosen, bits).astype(np.uint16).view(dtype.numpy)


@_quiet
def cast(a: Array, mode: str, dtype: DType) -> Array:
    """Convert by rounding mode; told the destination dtype last."""
    source = DType.of(a.dtype)
    if not dtype.is_float:
        return _to_integer(a, dtype, mode) if source.is_float else _saturate(a, dtype)
    if source is dtype:
        # doc: rounding a float to a whole number turns -0 into +0
        return np.asarray(_TO_INT[mode](a.astype(np.float64)) + 0.0).astype(dtype.numpy)
    if dtype is DType.FLOAT32:
        return a.astype(np.float32) if source.is_float else _int_to_float(a, mode)
    # int8, uint8 and int16 are exact in float32, so the half is rounded once
    return _to_narrow(a.astype(np.float32), dtype, mode)


def _saturate(a: Array, dtype: DType) -> Array:
    """Between integer types; those of CASTS are all within int64."""
    low, high = integer_limits(dtype)
    return np.clip(a.astype(np.int64), low, high).astype(dtype.numpy)


def _int_to_float(a: Array, mode: str) -> Array:
    """int to float32 in a given direction, rounded once."""
    exact = a.astype(np.int64)
    near = exact.astype(np.float32)
    if mode in ("none", "rint"):
        return near
    error = _difference(exact, near)  # exact - near
    lower = np.where(error < 0, np.nextafter(near, np.float32(-np.inf)), near)
    upper = np.where(error > 0, np.nextafter(near, np.float32(np.inf)), near)
    if mode == "floor":
        chosen = lower
    elif mode == "ceil":
        chosen = upper
    elif mode == "trunc":
        chosen = np.where(exact >= 0, lower, upper)
    else:  # "round": ties away from zero
        below, above = _difference(exact, lower), -_difference(exact, upper)
        away = np.where(exact >= 0, upper, lower)
        nearest = np.where(below < above, lower, upper)
        chosen = np.where(below == above, away, nearest)
    return chosen.astype(np.float32)


def _difference(a: Array, b: Array) -> Array:
    """a - b for an int64 and a float32 near it; exact, because int64 wraps at 2**63 as well."""
    wide = b.astype(np.float64)
    whole = np.where(wide >= 2.0**63, -(2.0**63), wide).astype(np.int64)
    return np.asarray(a - whole)


# ---------------------------------------------------------------------------- compare and select

_ORDER: dict[str, Callable[..., Array]] = {
    "lt": np.less,
    "gt": np.greater,
    "eq": np.equal,
    "le": np.less_equal,
    "ge": np.greater_equal,
    "ne": np.not_equal,
}


def compare(a: Array, b: Any, mode: str) -> Array:
    """Packed bits, least significant first; `ne` with a NaN on either side is 0 on the chip."""
    other = b if isinstance(b, np.ndarray) else np.asarray(b).astype(a.dtype)
    truth = _ORDER[mode](a, other)
    if mode == "ne":
        truth = truth & ~np.isnan(a) & ~np.isnan(other)
    return np.packbits(truth, bitorder="little")


def select(mask: Array, a: Array, b: Any) -> Array:
    """Bit 1 picks a, bit 0 picks b."""
    other = b if isinstance(b, np.ndarray) else np.asarray(b).astype(a.dtype)
    bits = np.unpackbits(mask, count=a.size, bitorder="little").astype(bool)
    return np.where(bits, a, other).astype(a.dtype)


# ------------------------------------------------------------------------------------ reductions


def _tree(a: Array, lanes: int) -> Array:
    """Adjacent-pair tree over each repeat of `lanes` elements (zeros fill the last one)."""
    rows = np.zeros((-(-a.size // lanes), lanes), a.dtype)
    rows.reshape(-1)[: a.size] = a
    while rows.shape[1] > 1:
        rows = rows[:, 0::2] + rows[:, 1::2]
    return rows[:, 0]


@_quiet
def reduce_sum(a: Array) -> Array:
    """Tree inside each 256-byte repeat, then repeat after repeat, rounding at every add."""
    parts = _tree(a, 256 // a.dtype.itemsize)
    total = parts[0]
    for part in parts[1:]:
        total = (total + part).astype(a.dtype)
    return np.asarray([total], a.dtype)


@_quiet
def sum_blocks(a: Array) -> Array:
    """Tree inside each block of 32 bytes."""
    return _tree(a, 32 // a.dtype.itemsize)


def max_blocks(a: Array) -> Array:
    return np.asarray(np.maximum.reduceat(a, range(0, a.size, 32 // a.dtype.itemsize)), a.dtype)


def min_blocks(a: Array) -> Array:
    return np.asarray(np.minimum.reduceat(a, range(0, a.size, 32 // a.dtype.itemsize)), a.dtype)


def reduce_max(a: Array) -> Array:
    return np.asarray([np.max(a)], a.dtype)


def reduce_min(a: Array) -> Array:
    return np.asarray([np.min(a)], a.dtype)


# ------------------------------------------------------------------------------------- short rows


def row_pitch(cols: int) -> int:
    """Elements of float32 from one short row to the next: whole blocks of 32 bytes."""
    return -(-cols // 8) * 8


def row_levels(cols: int) -> list[int]:
    """How long rows are after each fold of whole blocks, of all rows at once."""
    found: list[int] = []
    while cols > 64 and cols % 64 == 0:
        cols //= 8
        found.append(cols)
    return found


def _rows(a: Array, cols: int) -> Array:
    return a.reshape(-1, row_pitch(cols))[:, :cols]


@_quiet
def sum_rows(a: Array, cols: int) -> Array:
    """Block by block; block b of every 64 elements after the one before it; a tree over those 8.

    Rows of whole 64 elements are folded by blocks first, as long as they are.
    """
    for _ in row_levels(cols):
        a, cols = _tree(a, 8), cols // 8
    rows = _rows(a, cols)
    padded = np.zeros((rows.shape[0], -(-cols // 64) * 64), a.dtype)
    padded[:, :cols] = rows
    parts = _tree(padded.reshape(-1), 8).reshape(rows.shape[0], -1, 8)
    total = parts[:, 0]
    for i in range(1, parts.shape[1]):
        total = total + parts[:, i]
    return _tree(total.reshape(-1), 8)


def max_rows(a: Array, cols: int) -> Array:
    return np.asarray(np.max(_rows(a, cols), axis=1), a.dtype)


def min_rows(a: Array, cols: int) -> Array:
    return np.asarray(np.min(_rows(a, cols), axis=1), a.dtype)


def spread_rows(a: Array, cols: int) -> Array:
    return np.repeat(a, row_pitch(cols))


# ------------------------------------------------------------------------------------------- order


def argsort_rows(a: Array, cols: int, mode: str) -> Array:
    """numpy puts NaN last, and sorts upwards: downwards is the same from the end.

    What fills rows up is 0.
    """
    rows = _rows(a, cols)
    found = np.zeros((rows.shape[0], row_pitch(cols)), np.int32)
    if mode == "ascending":
        found[:, :cols] = np.argsort(rows, axis=1, kind="stable")
    else:
        found[:, :cols] = cols - 1 - np.argsort(rows[:, ::-1], axis=1, kind="stable")[:, ::-1]
    return found.reshape(-1)


# ---------------------------------------------------------------------------------- running folds

_RUN = 8  # elements of a block of float32: one run
SQUARE = 128  # elements that one transposition takes: 16 runs
_LAST = 16  # totals that the scalar unit joins one after another


def _running(join: np.ufunc, neutral: float) -> Callable[[Array, Any, str], Array]:
    """Runs of 8 one element after another, then their totals in the same way, level by level."""

    def fold(a: Array, start: Any, back: bool, exclusive: bool) -> Array:
        padded = np.full(-(-a.size // SQUARE) * SQUARE, neutral, a.dtype)
        padded[: a.size] = a
        order = slice(None, None, -1 if back else 1)
        runs = join.accumulate(padded.reshape(-1, _RUN)[:, order], axis=1)
        totals = runs[:, -1]
        if totals.size > _LAST:
            before = fold(totals, start, back, True)
        else:
            terms = np.concatenate([[np.asarray(start, a.dtype)], totals[order][:-1]])
            before = join.accumulate(terms)[order]
        if exclusive:
            joined = join(runs[:, :-1], before[:, None])
            runs = np.concatenate([before[:, None], joined], axis=1)
        else:
            runs = join(runs, before[:, None])
        return runs[:, order].reshape(-1)[: a.size]

    @_quiet
    def run(a: Array, start: Any, mode: str) -> Array:
        return fold(a, start, mode == "reverse", mode == "exclusive")

    return run


running_sum = _running(np.add, 0.0)
running_prod = _running(np.multiply, 1.0)


# ----------------------------------------------------------------------------------------- gather


def gather(a: Array, index: Array, base: int) -> Array:
    """Elements of `a` by their byte offsets."""
    return a[(index.astype(np.int64) + base) // a.itemsize]
