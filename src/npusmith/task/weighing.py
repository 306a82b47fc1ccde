"""One comparison: `weigh(record, pair, criterion)` fills in what the outputs of a set say.

Outputs and references are arrays with a tree each (isolated/values.py). First comes their form:
number, nesting, shapes, types, and where values are not numbers. Then the values: by the rule of a
suite, which sees what PyTorch would, and by a profile of tolerance.py, which gives the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.task.isolated.arrays import Array, Tree, Value
from npusmith.task.prepared import TrialData
from npusmith.task.tolerance import Comparison, compare
from npusmith.task.verdict import Trial
from npusmith.task.wire import OURS
from npusmith.task.wrong_elements import describe

_FLOATS = (DType.FLOAT16.numpy, DType.BFLOAT16.numpy)
_NARROWER = {np.dtype(np.float64): (DType.FLOAT32.numpy, *_FLOATS), DType.FLOAT32.numpy: _FLOATS}


@dataclass(frozen=True, slots=True)
class Pair:
    """A set of inputs with what it should have given, and what the candidate gave."""

    trial: TrialData
    found: Value


@dataclass(frozen=True, slots=True)
class Criterion:
    """When the outputs of a set are right. By default: exactly as a profile says."""

    profile: str = "strict"
    # a suite's rule for all sets at once: what is wrong with each, "" when nothing
    official: Callable[[Sequence[Pair]], Sequence[str]] | None = None
    # the profile of null kernels, and of sets that the suite does not have; "": the same
    ours: str = ""
    # [1] for [], a float of another width: what a suite's own binding cannot do otherwise
    lenient: bool = False
    undefined: bool = True  # a NaN that float64 does not have is left out

    @property
    def own(self) -> str:
        return self.ours or self.profile

    def says(self, pairs: Sequence[Pair]) -> list[str | None]:
        """What the suite's rule says of each pair; None where the profile decides alone."""
        asked = [pair for pair in pairs if pair.trial.kind not in OURS]
        if self.official is None or not asked:
            return [None] * len(pairs)
        said = iter(self.official(asked))
        return [None if pair.trial.kind in OURS else next(said) for pair in pairs]


def value_of(outputs: Sequence[Array], trial: TrialData) -> Value:
    """An operator's outputs, which are not nested, in the structure of the reference's."""
    return Value(trial.record.result or {}, outputs)


def weigh(record: Trial, pair: Pair, criterion: Criterion, said: str | None = None) -> None:
    """Whether the set is right by the rule, in form, and by the profile; the figures of the worst.

    `said`: what a suite's rule says of the pair, where there is one.
    """
    record.ended = True
    bent = form(pair, criterion)
    results = [] if _misfit(pair, criterion) else list(_compare_all(pair, criterion.profile))
    _fill(record, results)
    values = _words(results)
    if said is None:
        again = criterion.own != criterion.profile and results
        said = _words(list(_compare_all(pair, criterion.own))) if again else values
        said = said if criterion.official else bent or said
    record.passed = not said
    record.strict = not said and not bent
    record.precise = record.strict and not values
    record.message = (said or bent or values)[:2000]
    if record.message:
        _describe(record, pair, results)


def reject(record: Trial, why: str, criterion: Criterion) -> None:
    """What is wrong besides the outputs; no suite's rule looks at it."""
    record.message = why if record.strict else record.message
    record.strict = record.precise = False
    record.passed = record.passed and criterion.official is not None


def form(pair: Pair, criterion: Criterion = Criterion()) -> str:
    """What is wrong with the outputs whatever the tolerance; "" when nothing."""
    if said := _misfit(pair, criterion):
        return said
    trial = pair.trial
    goldens = trial.goldens if criterion.undefined else trial.references
    bounds = trial.bounds if criterion.undefined else [None] * len(goldens)
    rows = zip(trial.references, pair.found.tensors, goldens, bounds, strict=True)
    for at, (want, got, golden, bound) in enumerate(rows):
        if count := _not_numbers(want, got.reshape(want.shape), golden, bound):
            mine = int(np.count_nonzero(np.isnan(got)))
            said = f"{mine} here, {int(np.count_nonzero(np.isnan(want)))} in the reference"
            return f"output {at}: {count} elements are NaN on one side alone: {said}"
    return ""


def _misfit(pair: Pair, criterion: Criterion) -> str:
    """How the outputs differ from the reference's in number, nesting, shape or type."""
    wanted, found = pair.trial.references, pair.found.tensors
    if len(found) != len(wanted):
        return f"returns {len(found)} tensors, the reference {len(wanted)}"
    tree = pair.trial.record.result
    if tree is not None and _nesting(tree) != _nesting(pair.found.tree):
        return "what it returns is nested in another way than the reference's"
    for at, (want, got) in enumerate(zip(wanted, found, strict=True)):
        shaped = want.shape == got.shape or (
            criterion.lenient and want.size == got.size == 1 and want.ndim + got.ndim == 1
        )
        wide = criterion.lenient and (_narrower(want, got) or _narrower(got, want))
        if not shaped or not (want.dtype == got.dtype or wide):
            return f"output {at} is {_name(got)}, the reference {_name(want)}"
    return ""


def _nesting(tree: Tree, *, top: bool = True) -> Any:
    """What is in what; a list is as good as a tuple, and a list of one as what is in it."""
    for key in ("list", "tuple"):
        if key in tree:
            inner = [_nesting(item, top=False) for item in tree[key]]
            return inner[0] if top and len(inner) == 1 else inner
    if "dict" in tree:
        return {str(key): _nesting(item, top=False) for key, item in tree["dict"]}
    return "tensor" if "tensor" in tree else repr(tree)


def _name(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _narrower(one: Array, other: Array) -> bool:
    return one.dtype in _NARROWER.get(other.dtype, ())


def _not_numbers(want: Array, got: Array, golden: Array, bound: Array | None) -> int:
    """Elements that are NaN on one side alone, but for those of which float64 says otherwise.

    And for those that overflow where PyTorch adds up in a wider type.
    """
    if want.dtype.kind not in "fcV":
        return 0
    with np.errstate(invalid="ignore"):
        mine, theirs = (np.isnan(item) for item in (got, want))
        odd = mine != theirs
        if odd.any() and golden is not want:
            odd &= theirs == np.isnan(golden)
        if odd.any() and bound is not None:
            odd &= np.isfinite(bound)
    return int(np.count_nonzero(odd))


# ------------------------------------------------------------------------------------------ values


def _compare_all(pair: Pair, profile: str) -> Iterator[Comparison]:
    trial = pair.trial
    rows = zip(trial.references, trial.goldens, trial.bounds, pair.found.tensors, strict=True)
    for want, golden, bound, got in rows:
        yield _compare_one(want, golden, bound, got.reshape(want.shape), profile)


def _compare_one(
    want: Array, golden: Array, bound: Array | None, got: Array, profile: str
) -> Comparison:
    if _narrower(got, want):  # the wide reference is its own golden
        golden, want = want, want.astype(got.dtype)
    elif _narrower(want, got):
        got = got.astype(want.dtype)
    if want.dtype.kind == "c":
        want, golden, got, bound = *map(_real, (want, golden, got)), None
    return compare(got, want, golden, profile, bound)


def _real(array: Array) -> Array:
    """A complex tensor's parts side by side."""
    return np.stack((array.real, array.imag))


def _fill(record: Trial, results: Sequence[Comparison]) -> None:
    """The figures of the worst output."""
    if not results:
        return
    record.max_abs_error = max(item.max_abs for item in results)
    record.mean_abs_error = max(item.mean_abs for item in results)
    record.max_rel_error = max(item.max_rel for item in results)
    record.mean_rel_error = max(item.mean_rel for item in results)
    record.elements = sum(item.elements for item in results)
    record.mismatched = sum(item.mismatched for item in results)


def _describe(record: Trial, pair: Pair, results: Sequence[Comparison]) -> None:
    """Where the first wrong output is wrong."""
    rows = zip(results, pair.trial.references, pair.found.tensors, strict=True) if results else ()
    for found, want, got in rows:
        if found.passed or found.places is None or not found.places.size or want.dtype.kind == "c":
            continue
        wrong = describe(got.reshape(want.shape), want, found.places, found.worst)
        record.wrong, record.likely = list(wrong.lines), wrong.likely
        return


def _words(results: Sequence[Comparison]) -> str:
    rows = enumerate(results)
    return "; ".join(f"output {at}: {item.message}" for at, item in rows if not item.passed)
