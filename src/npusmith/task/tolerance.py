"""Tolerance profiles: when is a candidate's output right?

Every profile compares element by element in float64, in chunks, against two references: what
PyTorch computes on the CPU in the task's own dtype (`native`) and the same module in float64
(`golden`).

Common to all profiles: bool and int outputs must be equal. Where native and golden agree that an
element is NaN or an infinity, the candidate must have the same; where they disagree, torch itself
does not define the element and it is left out, and so is one whose bound is infinite: there the
same operations in the task's own dtype overflow, which ATen's wider sums do not. All else is the
profile's rule:

- `multikernelbench`: |a - native| <= 1e-4 + 1e-4 |native| (MultiKernelBench since 2026-01-22).
- `npukernelbench`: an element fails only if |a - native| > 1e-3 and
  |a - native| / (|native| + 1e-7) > 1e-3 (PCL's NPUKernelBench).
- `cann-bench`: against golden, by dtype: mean relative error below t and largest below 10 t, with
  the published separate counts for small values and for cancellation (CANN-bench design document).
- `strict` (the default): all of these that apply to the output's dtype must hold. An element that
  breaks one is excused within MARGIN times its bound (error_bounds.py): so far apart lie right
  answers that add up in other orders. One that is PyTorch's bit for bit, or up to two steps of its
  type nearer to golden, breaks none, and neither does one that is golden's by `cann-bench` where
  PyTorch's own is not. Where a set of inputs has no bounds and PyTorch's own result
  breaks a rule against golden, the candidate may be off by up to twice what PyTorch is off by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from npusmith.errors import TaskError
from npusmith.ir.dtypes import DType

Array = np.ndarray[Any, Any]

CHUNK = 1 << 19  # elements compared at a time, so that float64 copies stay below 32 MB
MARGIN = 8.0  # times the error bound: a bound is the largest of a few random moves
_STEPS = 2.0  # of a type, between a value of PyTorch's and one that is as right
EPSILON = 1e-7  # in the denominator of a relative error (both published rules use it)

PROFILES = ("strict", "multikernelbench", "npukernelbench", "cann-bench")
DEFAULT = "strict"


@dataclass(frozen=True, slots=True)
class Limits:
    """CANN-bench's thresholds for one dtype."""

    mean: float  # mean relative error; the largest may be ten times that
    small: float  # below this a golden value counts as small ...
    small_error: float  # ... and an absolute error above this as an error
    cancel: float  # below this an output may come from cancellation


CANN_LIMITS: dict[DType, Limits] = {
    DType.FLOAT16: Limits(2.0**-10, 2.0**-11, 2.0**-16, 2.0**-5),
    DType.BFLOAT16: Limits(2.0**-7, 2.0**-8, 2.0**-16, 2.0**-3),
    DType.FLOAT32: Limits(2.0**-13, 2.0**-14, 2.0**-30, 2.0**-8),
}
_FLOATS = {dtype.numpy: dtype for dtype in CANN_LIMITS}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing one output gave; errors are absolute and relative to `against`."""

    passed: bool
    elements: int
    mismatched: int
    max_abs: float
    mean_abs: float
    max_rel: float
    mean_rel: float
    message: str
    against: str  # "golden" or "native"
    places: Array | None = None  # flat indices of the wrong elements, ascending
    worst: int = 0  # of them the one that the message names


@dataclass(frozen=True, slots=True)
class Spot:
    """An element that fails: its flat index, and the values."""

    gap: float
    index: int
    actual: float
    expected: float


@dataclass(slots=True)
class Counter:
    """Errors of one side (candidate or PyTorch) under one rule, summed over chunks."""

    failed: int = 0
    places: list[Array] = field(default_factory=list)  # where, chunk by chunk
    worst: float = 0.0  # largest |x - golden| among the failing
    spot: Spot | None = None  # where that is
    small_spot: Spot | None = None  # the same among small values ...
    cancel_spot: Spot | None = None  # ... and among cancelled ones
    relative: float = 0.0  # sum of relative errors in the normal range
    normal: int = 0
    small: int = 0  # errors among small values
    cancelled: int = 0  # errors among cancelled values

    @property
    def mean(self) -> float:
        return self.relative / self.normal if self.normal else 0.0


@dataclass(slots=True)
class Chunk:
    """One piece of an output in float64, finite elements only; `where` are their flat indices."""

    actual: Array
    native: Array
    golden: Array
    where: Array
    bound: Array | None  # how far from golden an element may be, whatever the rule says


@dataclass(slots=True)
class Tally:
    """Everything that is summed while walking the chunks of one output."""

    elements: int = 0
    class_errors: int = 0
    class_places: list[Array] = field(default_factory=list)
    sum_abs: float = 0.0
    sum_rel: float = 0.0
    compared: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    torch_worst: float = 0.0  # largest |native - golden|
    misfit: Spot | None = None  # the first that is NaN or infinite and should not be, or not
    candidate: dict[str, Counter] = field(default_factory=dict)
    torch: dict[str, Counter] = field(default_factory=dict)


def check_profile(name: str) -> str:
    """The profile's own name ("default" is the strict one); raises tolerance-unknown."""
    chosen = DEFAULT if name == "default" else name
    if chosen not in PROFILES:
        raise TaskError(
            "tolerance-unknown", f"no tolerance is called {name!r}", seen=name,
            legal=", ".join(PROFILES),
        )  # fmt: skip
    return chosen


def rules_of(profile: str, dtype: DType) -> tuple[str, ...]:
    """The published rules that a profile applies to an output of this dtype."""
    if profile != "strict":
        return (profile,)
    # 1e-4 is MultiKernelBench's figure for float32 tasks; half cannot represent it
    return ("multikernelbench", "cann-bench") if dtype is DType.FLOAT32 else ("cann-bench",)


def compare(
    actual: Array,
    native: Array,
    golden: Array | None,
    profile: str,
    bound: Array | None = None,
) -> Comparison:
    """Judge one output. All have one shape; golden None means native serves as golden.

    `bound`: per element how far right answers lie apart. Only the strict profile looks at it.
    """
    if actual.shape != native.shape or actual.dtype != native.dtype:
        seen = f"{actual.dtype}{list(actual.shape)}"
        want = f"{native.dtype}{list(native.shape)}"
        return _whole_mismatch(native.size, f"output is {seen}, the reference {want}")
    if native.dtype not in _FLOATS:  # a type that the chip lacks must be equal, too
        return _compare_exact(actual, native, bound if profile == "strict" else None)
    dtype = _FLOATS[native.dtype]
    rules = rules_of(profile, dtype)
    wide = native if golden is None else golden
    limit = bound if profile == "strict" else None
    against = "golden" if "cann-bench" in rules else "native"
    tally = Tally(
        candidate={rule: Counter() for rule in rules}, torch={rule: Counter() for rule in rules}
    )
    for chunk in _chunks(actual, native, wide, limit, tally):
        _measure(chunk, against, tally)
        # float64 may be far from what float32 defines: `x % 0.7`, another number there
        same = partial(_is_right, chunk, native.dtype) if profile == "strict" else None
        for rule in rules:
            expected = chunk.golden if rule == "cann-bench" else chunk.native
            _apply(rule, chunk, chunk.actual, expected, dtype, tally.candidate[rule], same)
    # the published rules forgive nothing; only strict looks at torch's own error
    conclude = partial(
        _conclude, tally, rules, dtype, profile == "strict", limit is not None, against
    )
    if (alone := conclude()).passed:
        return alone
    # most candidates pass on their own; PyTorch's errors are counted only for those that do not
    for chunk in _chunks(actual, native, wide, limit, Tally()):
        for rule in rules:
            _apply(rule, chunk, chunk.native, chunk.golden, dtype, tally.torch[rule])
    return conclude()


def _whole_mismatch(elements: int, message: str) -> Comparison:
    inf = float("inf")
    return Comparison(False, elements, elements, inf, inf, inf, inf, message, "native")


def _compare_exact(actual: Array, native: Array, bound: Array | None) -> Comparison:
    if native.dtype == np.bool_:
        # by bytes: a kernel may have left another byte than 0 or 1, which NumPy would call True
        actual, native = actual.view(np.uint8), native.view(np.uint8)
    wrong = np.asarray(actual != native)  # NumPy compares single numbers to no array
    if bound is not None and wrong.any():
        apart = np.abs(actual[wrong].astype(np.float64) - native[wrong].astype(np.float64))
        wrong[wrong] = ~(apart <= bound[wrong])
    count = int(np.count_nonzero(wrong))
    worst = mean = 0.0
    message, index, places = "", 0, None
    if count:
        places = np.flatnonzero(wrong)
        index = int(places[0])
        wide = np.complex128 if native.dtype.kind == "c" else np.float64
        gap = np.abs(actual.astype(wide) - native.astype(wide))
        worst, mean = float(gap.max()), float(gap.mean())
        message = _first_words(index, actual.shape, actual.flat[index], native.flat[index])
    return Comparison(
        count == 0, native.size, count, worst, mean, worst, mean, message, "native", places, index
    )


def _chunks(
    actual: Array, native: Array, golden: Array, bound: Array | None, tally: Tally
) -> Iterator[Chunk]:
    """Walk the output; count class errors (NaN, infinities), yield what is finite on all sides."""
    flat = [item.reshape(-1) for item in (actual, native, golden)]
    for start in range(0, native.size, CHUNK):
        part = slice(start, start + CHUNK)
        with np.errstate(all="ignore"):
            a, n, g = (item[part].astype(np.float64) for item in flat)
            rounded = g.astype(native.dtype).astype(np.float64)
        tally.elements += n.size
        limit = None if bound is None else MARGIN * bound.reshape(-1)[part].astype(np.float64)
        if all(np.isfinite(item).all() for item in (a, n, rounded)) and (
            limit is None or np.isfinite(limit).all()
        ):
            yield Chunk(a, n, g, np.arange(start, start + n.size), limit)
            continue
        defined = _kind(n) == _kind(rounded)
        if limit is not None:  # a right answer that is computed in another order overflows
            defined &= np.isfinite(limit)
        wrong = defined & (_kind(a) != _kind(n))
        if tally.misfit is None and wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            tally.misfit = Spot(np.inf, start + at, float(a[at]), float(n[at]))
        if wrong.any():
            tally.class_places.append(start + np.flatnonzero(wrong))
        tally.class_errors += int(np.count_nonzero(wrong))
        keep = defined & ~wrong & np.isfinite(n)
        where = np.flatnonzero(keep) + start
        limit = None if limit is None else limit[keep]
        yield Chunk(a[keep], n[keep], g[keep], where, limit)


def as_near(chunk: Chunk, dtype: np.dtype[Any]) -> Array:
    """Where an element is PyTorch's, or a step or two from that towards golden."""
    low, high = np.minimum(chunk.native, chunk.golden), np.maximum(chunk.native, chunk.golden)
    of = ml_dtypes.finfo(dtype)  # the steps below its normal numbers are all as long
    normal = np.maximum(np.abs(chunk.native), float(of.smallest_normal))
    step = np.ldexp(float(of.eps), np.frexp(normal)[1] - 1)
    near = np.abs(chunk.actual - chunk.native) <= _STEPS * step
    return np.asarray(near & (low <= chunk.actual) & (chunk.actual <= high))


def _is_right(chunk: Chunk, dtype: np.dtype[Any]) -> Array:
    """Where an element breaks no rule: as PyTorch's, or golden's where PyTorch's is none.

    A kernel that keeps in float32 what PyTorch rounds to 16 bits on the way, and so to 0, is nearer
    than PyTorch; rules that compare with PyTorch know nothing of that.
    """
    limits = CANN_LIMITS[_FLOATS[dtype]]
    size = np.abs(chunk.golden)
    far = 10 * limits.mean * (size + EPSILON)
    ours, torch = (np.abs(item - chunk.golden) >= far for item in (chunk.actual, chunk.native))
    return np.asarray(as_near(chunk, dtype) | (torch & ~ours & (size >= limits.small)))


def _kind(values: Array) -> Array:
    """0 finite, 1 NaN, 2 +inf, 3 -inf."""
    kind = np.isnan(values).astype(np.int8)
    kind[np.isposinf(values)] = 2
    kind[np.isneginf(values)] = 3
    return kind


def _measure(chunk: Chunk, against: str, tally: Tally) -> None:
    expected = chunk.golden if against == "golden" else chunk.native
    gap = np.abs(chunk.actual - expected)
    if not gap.size:
        return
    relative = gap / (np.abs(expected) + EPSILON)
    tally.compared += gap.size
    tally.sum_abs += float(gap.sum())
    tally.sum_rel += float(relative.sum())
    tally.max_abs = max(tally.max_abs, float(gap.max()))
    tally.max_rel = max(tally.max_rel, float(relative.max()))
    tally.torch_worst = max(tally.torch_worst, float(np.abs(chunk.native - chunk.golden).max()))


def _apply(
    rule: str,
    chunk: Chunk,
    values: Array,
    expected: Array,
    dtype: DType,
    counter: Counter,
    same: Callable[[], Array] | None = None,
) -> None:
    """Count where the values of one side break a rule; `same`: elements that cannot.

    Most values break none: what is excused is looked at where one would.
    """
    gap = np.abs(values - chunk.golden)

    def excused() -> Array:
        bounded = np.zeros(gap.shape, bool) if chunk.bound is None else gap <= chunk.bound
        return bounded if same is None else bounded | same()

    if rule == "cann-bench":
        failed = _cann_failures(values, chunk, excused, CANN_LIMITS[dtype], counter)
    else:
        failed = _far_apart(rule, values, expected)
        failed = failed & ~excused() if failed.any() else failed
    if count := int(np.count_nonzero(failed)):
        counter.failed += count
        counter.places.append(chunk.where[failed])
    counter.spot = _worst(counter.spot, failed, gap, values, expected, chunk)
    counter.worst = counter.spot.gap if counter.spot else 0.0


def _worst(
    before: Spot | None, failed: Array, gap: Array, values: Array, expected: Array, chunk: Chunk
) -> Spot | None:
    """The failing element that is farthest from golden."""
    if not failed.any():
        return before
    rows = np.flatnonzero(failed)
    at = int(rows[np.argmax(gap[rows])])
    if before is not None and before.gap >= gap[at]:
        return before
    return Spot(float(gap[at]), int(chunk.where[at]), float(values[at]), float(expected[at]))


def _far_apart(rule: str, values: Array, expected: Array) -> Array:
    gap = np.abs(values - expected)
    if rule == "multikernelbench":
        return np.asarray(gap > 1e-4 + 1e-4 * np.abs(expected))
    return np.asarray((gap > 1e-3) & (gap / (np.abs(expected) + EPSILON) > 1e-3))


def _cann_failures(
    values: Array, chunk: Chunk, excused: Callable[[], Array], limits: Limits, counter: Counter
) -> Array:
    """Count by range and return the mask of normal-range failures."""
    golden = chunk.golden
    gap, size = np.abs(values - golden), np.abs(golden)
    relative = gap / (size + EPSILON)
    small = size < limits.small
    cancel = ~small & (size < limits.cancel) & (np.abs(values) < limits.cancel)
    far = relative >= 10 * limits.mean
    normal = ~small & ~(cancel & far)
    off, lost, failed = small & (gap > limits.small_error), cancel & far, normal & far
    # an element whose digits the operation itself loses says nothing of the mean
    strayed = normal & (relative >= limits.mean)
    if any(mask.any() for mask in (off, lost, strayed)):  # `failed` have strayed
        free = excused()
        off, lost, failed, strayed = (mask & ~free for mask in (off, lost, failed, strayed))
        counted = normal & (strayed | (relative < limits.mean))
    else:
        counted = normal
    counter.small += int(np.count_nonzero(off))
    counter.cancelled += int(np.count_nonzero(lost))
    counter.small_spot = _worst(counter.small_spot, off, gap, values, golden, chunk)
    counter.cancel_spot = _worst(counter.cancel_spot, lost, gap, values, golden, chunk)
    counter.relative += float(relative[counted].sum())
    counter.normal += int(np.count_nonzero(counted))
    return np.asarray(failed)


def _conclude(
    tally: Tally,
    rules: tuple[str, ...],
    dtype: DType,
    lenient: bool,
    bounded: bool,
    against: str,
) -> Comparison:
    broken: list[tuple[str, Spot | None]] = []
    places = [*tally.class_places]
    if tally.class_errors:
        said = f"{tally.class_errors} elements differ in being NaN or infinite"
        broken.append((said, tally.misfit))
    mismatched = tally.class_errors
    for rule in rules:
        mine, torch = tally.candidate[rule], tally.torch[rule]
        limit = 2 * tally.torch_worst if lenient and not bounded and torch.failed else 0.0
        if mine.failed and mine.worst > limit:
            mismatched = max(mismatched, mine.failed + tally.class_errors)
            broken.append((f"{mine.failed} of {tally.elements} elements break {rule}", mine.spot))
            places += mine.places
        if rule == "cann-bench":
            broken += _cann_totals(mine, torch, CANN_LIMITS[dtype], lenient)
    count = max(tally.compared, 1)
    message = "; ".join(said for said, _ in broken)
    spot = next((spot for _, spot in broken if spot is not None), None)
    if spot is not None:
        message += (
            f"; worst at flat index {spot.index}: {spot.actual!r} where {spot.expected!r} "
            "is expected"
        )
    return Comparison(
        passed=not broken,
        elements=tally.elements,
        mismatched=max(mismatched, 1) if broken else 0,
        max_abs=tally.max_abs if not tally.class_errors else float("inf"),
        mean_abs=tally.sum_abs / count,
        max_rel=tally.max_rel,
        mean_rel=tally.sum_rel / count,
        message=message,
        against=against,
        places=_together(places, spot, tally.elements) if broken else None,
        worst=spot.index if spot is not None else 0,
    )


def _together(places: list[Array], spot: Spot | None, elements: int) -> Array:
    """Wrong elements of all rules; a rule about means names its worst alone."""
    wrong = np.zeros(elements, np.bool_)
    for part in places:
        wrong[part] = True
    if spot is not None:
        wrong[spot.index] = True
    return np.flatnonzero(wrong)


def _cann_totals(
    mine: Counter, torch: Counter, limits: Limits, lenient: bool
) -> list[tuple[str, Spot | None]]:
    """The rules on whole outputs: mean error, and counts against PyTorch's own."""
    broken: list[tuple[str, Spot | None]] = []
    mean_limit = limits.mean
    if lenient and torch.mean >= limits.mean:
        mean_limit = 2 * torch.mean
    if mine.mean >= mean_limit and mine.normal:
        said = f"mean relative error {mine.mean:.3g} is not below {mean_limit:.3g}"
        broken.append((said, None))
    if mine.small > 2 * max(torch.small, 1):
        said = f"{mine.small} small values are off, PyTorch has {torch.small}"
        broken.append((said, mine.small_spot))
    if mine.cancelled > 2 * max(torch.cancelled, 1):
        said = f"{mine.cancelled} cancelled values are off, PyTorch has {torch.cancelled}"
        broken.append((said, mine.cancel_spot))
    return broken


def _first_words(index: int, shape: tuple[int, ...], got: object, want: object) -> str:
    spot = [int(i) for i in np.unravel_index(index, shape)] if shape else []
    return f"first at {spot}: {got} where {want} is expected"
