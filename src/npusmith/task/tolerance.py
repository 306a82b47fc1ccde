"""Tolerance profiles: when is a candidate's output right?

Every profile compares element by element in float64, in chunks, against two references: what
PyTorch computes on the CPU in the task's own dtype (`native`) and the same module in float64
(`golden`).

Common to all profiles: bool and int outputs must be equal. Where native and golden agree that an
element is NaN or an infinity, the candidate must have the same; where they disagree, torch itself
does not define the element and it is left out. All else is the profile's rule:

- `multikernelbench`: |a - native| <= 1e-4 + 1e-4 |native| (MultiKernelBench since 2026-01-22).
- `npukernelbench`: an element fails only if |a - native| > 1e-3 and
  |a - native| / (|native| + 1e-7) > 1e-3 (PCL's NPUKernelBench).
- `cann-bench`: against golden, by dtype: mean relative error below t and largest below 10 t, with
  the published separate counts for small values and for cancellation (CANN-bench design document).
- `strict` (the default): all of these that apply to the output's dtype must hold. Where PyTorch's
  own float32, half or bfloat16 result breaks a rule against golden, the candidate may be off by up
  to twice what PyTorch is off by, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npusmith.errors import TaskError
from npusmith.ir.dtypes import DType

Array = np.ndarray[Any, Any]

CHUNK = 1 << 19  # elements compared at a time, so that float64 copies stay below 32 MB
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


@dataclass(slots=True)
class Counter:
    """Errors of one side (candidate or PyTorch) under one rule, summed over chunks."""

    failed: int = 0
    worst: float = 0.0  # largest |x - golden| among the failing
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


@dataclass(slots=True)
class Tally:
    """Everything that is summed while walking the chunks of one output."""

    elements: int = 0
    class_errors: int = 0
    sum_abs: float = 0.0
    sum_rel: float = 0.0
    compared: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    torch_worst: float = 0.0  # largest |native - golden|
    first: tuple[int, float, float] | None = None  # index, actual, expected
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


def compare(actual: Array, native: Array, golden: Array | None, profile: str) -> Comparison:
    """Judge one output. All three have one shape; golden None means native serves as golden."""
    dtype = DType.of(native.dtype)
    if actual.shape != native.shape or actual.dtype != native.dtype:
        seen = f"{actual.dtype}{list(actual.shape)}"
        want = f"{native.dtype}{list(native.shape)}"
        return _whole_mismatch(native.size, f"output is {seen}, the reference {want}")
    if not dtype.is_float:
        return _compare_exact(actual, native)
    rules = rules_of(profile, dtype)
    wide = native if golden is None else golden
    # Most candidates pass on their own; PyTorch's errors are counted only for those that do not.
    alone = _weigh(actual, native, wide, rules, profile, with_torch=False)
    return alone if alone.passed else _weigh(actual, native, wide, rules, profile, with_torch=True)


def _weigh(
    actual: Array,
    native: Array,
    golden: Array,
    rules: tuple[str, ...],
    profile: str,
    *,
    with_torch: bool,
) -> Comparison:
    dtype = DType.of(native.dtype)
    against = "golden" if "cann-bench" in rules else "native"
    tally = Tally(
        candidate={rule: Counter() for rule in rules}, torch={rule: Counter() for rule in rules}
    )
    for chunk in _chunks(actual, native, golden, tally):
        _measure(chunk, against, tally)
        for rule in rules:
            _apply(rule, chunk, dtype, tally, with_torch)
    # the published rules forgive nothing; only strict looks at torch's own error
    return _conclude(tally, rules, dtype, profile == "strict", against)


def _whole_mismatch(elements: int, message: str) -> Comparison:
    inf = float("inf")
    return Comparison(False, elements, elements, inf, inf, inf, inf, message, "native")


def _compare_exact(actual: Array, native: Array) -> Comparison:
    if native.dtype == np.bool_:
        # by bytes: a kernel may have left another byte than 0 or 1, which NumPy would call True
        actual, native = actual.view(np.uint8), native.view(np.uint8)
    wrong = actual != native
    count = int(np.count_nonzero(wrong))
    worst = mean = 0.0
    message = ""
    if count:
        index = int(np.flatnonzero(wrong)[0])
        gap = np.abs(actual.astype(np.float64) - native.astype(np.float64))
        worst, mean = float(gap.max()), float(gap.mean())
        message = _first_words(index, actual.shape, actual.flat[index], native.flat[index])
    return Comparison(count == 0, native.size, count, worst, mean, worst, mean, message, "native")


def _chunks(actual: Array, native: Array, golden: Array, tally: Tally) -> Iterator[Chunk]:
    """Walk the output; count class errors (NaN, infinities), yield what is finite on all sides."""
    flat = [item.reshape(-1) for item in (actual, native, golden)]
    for start in range(0, native.size, CHUNK):
        part = slice(start, start + CHUNK)
        with np.errstate(all="ignore"):
            a, n, g = (item[part].astype(np.float64) for item in flat)
            rounded = g.astype(native.dtype).astype(np.float64)
        tally.elements += n.size
        defined = _kind(n) == _kind(rounded)
        wrong = defined & (_kind(a) != _kind(n))
        _note_first(tally, wrong, start, a, n)
        tally.class_errors += int(np.count_nonzero(wrong))
        keep = defined & ~wrong & np.isfinite(n)
        where = np.flatnonzero(keep) + start
        yield Chunk(a[keep], n[keep], g[keep], where)


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


def _apply(rule: str, chunk: Chunk, dtype: DType, tally: Tally, with_torch: bool) -> None:
    sides = ((chunk.actual, tally.candidate[rule]), (chunk.native, tally.torch[rule]))
    for values, counter in sides if with_torch else sides[:1]:
        if rule == "cann-bench":
            failed = _cann_failures(values, chunk.golden, CANN_LIMITS[dtype], counter)
        else:
            # torch's own side is held against golden, the candidate against native
            expected = chunk.native if values is chunk.actual else chunk.golden
            failed = _far_apart(rule, values, expected)
        counter.failed += int(np.count_nonzero(failed))
        if failed.any():
            counter.worst = max(counter.worst, float(np.abs(values - chunk.golden)[failed].max()))
            if values is chunk.actual:
                _note_first(tally, failed, chunk.where, values, chunk.golden)


def _far_apart(rule: str, values: Array, expected: Array) -> Array:
    gap = np.abs(values - expected)
    if rule == "multikernelbench":
        return np.asarray(gap > 1e-4 + 1e-4 * np.abs(expected))
    return np.asarray((gap > 1e-3) & (gap / (np.abs(expected) + EPSILON) > 1e-3))


def _cann_failures(values: Array, golden: Array, limits: Limits, counter: Counter) -> Array:
    """Count by range and return the mask of normal-range failures."""
    gap, size = np.abs(values - golden), np.abs(golden)
    relative = gap / (size + EPSILON)
    small = size < limits.small
    cancel = ~small & (size < limits.cancel) & (np.abs(values) < limits.cancel)
    far = relative >= 10 * limits.mean
    normal = ~small & ~(cancel & far)
    counter.small += int(np.count_nonzero(small & (gap > limits.small_error)))
    counter.cancelled += int(np.count_nonzero(cancel & far))
    counter.relative += float(relative[normal].sum())
    counter.normal += int(np.count_nonzero(normal))
    return np.asarray(normal & far)


def _note_first(
    tally: Tally, wrong: Array, where: int | Array, actual: Array, expected: Array
) -> None:
    if tally.first is not None or not wrong.any():
        return
    spot = int(np.flatnonzero(wrong)[0])
    index = int(where[spot]) if isinstance(where, np.ndarray) else where + spot
    tally.first = (index, float(actual[spot]), float(expected[spot]))


def _conclude(
    tally: Tally, rules: tuple[str, ...], dtype: DType, forgiving: bool, against: str
) -> Comparison:
    broken = [f"{tally.class_errors} elements differ in being NaN or infinite"]
    broken = broken if tally.class_errors else []
    mismatched = tally.class_errors
    for rule in rules:
        mine, torch = tally.candidate[rule], tally.torch[rule]
        limit = 2 * tally.torch_worst if forgiving and torch.failed else 0.0
        if mine.failed and mine.worst > limit:
            mismatched = max(mismatched, mine.failed + tally.class_errors)
            broken.append(f"{mine.failed} of {tally.elements} elements break {rule}")
        if rule == "cann-bench":
            broken += _cann_totals(mine, torch, CANN_LIMITS[dtype], forgiving)
    count = max(tally.compared, 1)
    message = "; ".join(broken)
    if broken and tally.first is not None:
        index, got, want = tally.first
        message += f"; first at flat index {index}: {got!r} where {want!r} is expected"
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
    )


def _cann_totals(mine: Counter, torch: Counter, limits: Limits, forgiving: bool) -> list[str]:
    """The rules on whole outputs: mean error, and counts against PyTorch's own."""
    broken = []
    mean_limit = limits.mean
    if forgiving and torch.mean >= limits.mean:
        mean_limit = 2 * torch.mean
    if mine.mean >= mean_limit and mine.normal:
        broken.append(f"mean relative error {mine.mean:.3g} is not below {mean_limit:.3g}")
    if mine.small > 2 * max(torch.small, 1):
        broken.append(f"{mine.small} small values are off, PyTorch has {torch.small}")
    if mine.cancelled > 2 * max(torch.cancelled, 1):
        broken.append(f"{mine.cancelled} cancelled values are off, PyTorch has {torch.cancelled}")
    return broken


def _first_words(index: int, shape: tuple[int, ...], got: object, want: object) -> str:
    spot = [int(i) for i in np.unravel_index(index, shape)] if shape else []
    return f"first at {spot}: {got} where {want} is expected"
