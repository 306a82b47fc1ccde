"""Where an output is wrong, in words: an element, what lies around it, and the pattern of all.

A pattern says more about a kernel than the number of wrong elements: a tail is a count of a last
tile, columns at the end of each row are padding, one core is how work was dealt out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_AROUND = 3  # elements shown on either side
_LISTED = 6  # rows, columns or cores that are named one by one
_ROUNDED = 1e-2  # relative: what is off by less is rounding, or a formula that is nearly right
_SHIFTS = (1, -1, 2, -2, 4, -4, 8, -8)  # elements by which values may stand beside their places
_NEARLY_ALL = 0.9
_MOST = 1 << 14  # elements of which differences are looked at


@dataclass(frozen=True, slots=True)
class Wrong:
    """`lines`: the element, its neighbours, the pattern, the cores. `likely`: what to look at."""

    lines: tuple[str, ...]
    likely: str = ""


def describe(
    actual: Array, expected: Array, places: Array, worst: int, writer: Array | None = None
) -> Wrong:
    """Of two arrays of one shape, at least one element of which is wrong.

    `places`: flat indices of the wrong elements, ascending. `worst`: the one to show. `writer`: the
    core that stored each element, -1 for nobody.
    """
    mine, theirs = actual.reshape(-1), expected.reshape(-1)
    pattern = _pattern(places, actual.shape)
    lines = [
        f"at {_place(worst, actual.shape)} {_number(mine[worst])} where {_number(theirs[worst])} "
        "is expected",
        _around(mine, theirs, worst, places),
        f"wrong: {pattern}",
    ]
    cores = "" if writer is None else _cores(places, writer.reshape(-1), worst)
    sides = tuple(side[places[:_MOST]] for side in (mine, theirs))
    relation = _relation(*sides) or _shift(mine, theirs, places[:_MOST])
    lines += [line for line in (cores, relation) if line]
    return Wrong(tuple(lines), _likely(pattern, cores, relation, *sides))


# ------------------------------------------------------------------------------------- one element


def _place(at: int, shape: tuple[int, ...]) -> str:
    spot = ", ".join(str(int(i)) for i in np.unravel_index(at, shape)) if shape else ""
    return f"[{spot}]"


def _number(value: Any) -> str:
    return f"{value:.6g}" if np.issubdtype(type(value), np.floating) else str(value)


def _around(mine: Array, theirs: Array, at: int, places: Array) -> str:
    """Neighbours in memory; those that are wrong too are marked."""
    first, last = max(0, at - _AROUND), min(mine.size, at + _AROUND + 1)
    wrong = set(places[slice(*np.searchsorted(places, (first, last)))].tolist())
    got = (f"{_number(mine[i])}{'!' if i in wrong else ''}" for i in range(first, last))
    want = (_number(theirs[i]) for i in range(first, last))
    return f"elements {first} to {last - 1}: {', '.join(got)}; expected {', '.join(want)}"


# ---------------------------------------------------------------------------------------- patterns


def _pattern(places: Array, shape: tuple[int, ...]) -> str:
    size, count = int(np.prod(shape, dtype=np.int64)), int(places.size)
    if count == size:
        return "every element"
    if count == 1:
        return "one element alone"
    first, last = int(places[0]), int(places[-1])
    if last - first + 1 == count:
        if last == size - 1:
            return f"the last {count:,} elements"
        if first == 0:
            return f"the first {count:,} elements"
        return f"{count:,} elements on end, from {_place(first, shape)} on (flat index {first:,})"
    if len(shape) > 1 and shape[-1] > 1 and (found := _rows(places, size, shape[-1])):
        return found
    if step := _step(places):
        return f"every {_ordinal(step)} element in memory, from flat index {first:,} on"
    how = "nearly all" if count > _NEARLY_ALL * size else "scattered"
    return f"{count:,} of {size:,} elements, {how}"


def _rows(places: Array, size: int, length: int) -> str:
    """Whole rows, or the same columns of rows; "" where neither is so."""
    rows, counts = np.unique(places // length, return_counts=True)
    columns = np.unique(places % length)
    lines = size // length
    which = "every row" if rows.size == lines else _listed(rows, "row")
    if (counts == length).all():
        return f"whole rows along the last axis: {which} of {lines:,}"
    if not (counts == columns.size).all():
        return ""
    if int(columns[0]) + columns.size == length and int(columns[-1]) == length - 1:
        return f"the last {columns.size:,} of {length:,} elements of {which}"
    return f"{_listed(columns, 'column')} of {length:,}, in {which}"


def _listed(numbers: Array, what: str) -> str:
    first, last = int(numbers[0]), int(numbers[-1])
    if numbers.size == 1:
        return f"{what} {first}"
    if last - first + 1 == numbers.size:
        return f"{what}s {first} to {last}"
    if step := _step(numbers):
        return f"every {_ordinal(step)} {what} from {first} on"
    shown = ", ".join(map(str, numbers[:_LISTED].tolist()))
    return f"{what}s {shown}" + ("" if numbers.size <= _LISTED else f" and {numbers.size} in all")


def _step(numbers: Array) -> int:
    """The one distance between neighbours; 0 where they lie otherwise."""
    if numbers.size < 3:
        return 0
    gaps = np.diff(numbers)
    return int(gaps[0]) if (gaps == gaps[0]).all() and gaps[0] > 1 else 0


def _ordinal(number: int) -> str:
    ends = {1: "st", 2: "nd", 3: "rd"}
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else ends.get(number % 10, 'th')}"


def _cores(places: Array, writer: Array, worst: int) -> str:
    by = writer[places]
    mine = np.flatnonzero(writer == writer[worst])
    if writer[worst] < 0:
        return ""
    text = (
        f"stored by core {int(writer[worst])}, whose elements lie from {int(mine[0]):,} "
        f"to {int(mine[-1]):,}"
    )
    cores, held = np.unique(by), np.unique(writer[writer >= 0])
    if held.size > 1 and cores.size < held.size:
        text += f"; wrong elements are those of {_listed(cores, 'core')} alone, of {held.size}"
    return text


# ----------------------------------------------------------------------------------- values


def _relation(mine: Array, theirs: Array) -> str:
    """What all wrong elements have in common with what is expected."""
    got, want = mine.astype(np.float64), theirs.astype(np.float64)
    if np.isnan(got).all():
        return "all of them are NaN"
    if (got == 0).all():
        return "all of them are 0"
    if got.size > 1 and (got == got[0]).all() and not (want == want[0]).all():
        return f"all of them are {_number(mine[0])}"
    usable = np.isfinite(got) & np.isfinite(want) & (want != 0)
    if usable.sum() < 2 or usable.sum() < got.size // 2:
        return ""
    got, want = got[usable], want[usable]
    for name, found in (("times", got / want), ("more than", got - want)):
        middle = float(np.median(found))
        spread = float(np.abs(found - middle).max())
        if spread <= 1e-3 * max(abs(middle), 1e-6) and abs(middle - (name == "times")) > _ROUNDED:
            return f"each of them is {middle:.4g} {name} what is expected"
    return ""


def _shift(mine: Array, theirs: Array, places: Array) -> str:
    """Whether the values are right and stand elsewhere."""
    for by in _SHIFTS:
        other = places + by
        inside = (other >= 0) & (other < theirs.size)
        if places.size > 2 and inside.sum() > places.size // 2:
            got, want = mine[places[inside]], theirs[other[inside]]
            if np.allclose(got.astype(float), want.astype(float), rtol=1e-3, atol=1e-6):
                return f"each of them is what is expected {abs(by)} places {_side(by)}"
    return ""


def _side(by: int) -> str:
    return "further on" if by > 0 else "before"


def _likely(pattern: str, cores: str, relation: str, mine: Array, theirs: Array) -> str:
    return next(_guesses(pattern, cores, relation, mine, theirs))


def _guesses(pattern: str, cores: str, relation: str, mine: Array, theirs: Array) -> Iterator[str]:
    """The likeliest first."""
    got, want = mine.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(got) & np.isfinite(want)
    gap = np.abs(got - want)[finite]
    if finite.all() and (gap <= _ROUNDED * np.abs(want) + 1e-6).all():
        yield (
            "all of them are nearly right: rounding, an approximate function or an order of sums, "
            "not the formula; compute in float32, divide instead of multiplying by a reciprocal"
        )
    if "places" in relation:
        yield "an offset or a pitch is wrong: values are right and stand in other places"
    if "NaN" in relation or not finite.all():
        yield (
            "NaN or infinity: an overflow in exp, a division by zero, or elements that were never "
            "loaded"
        )
    if "all of them are 0" in relation:
        yield "these elements look as if nothing had been computed for them: a loop ends too early"
    if " alone, of " in cores:
        yield "how work is dealt out: the first and last element of these cores' parts"
    if pattern.startswith(("the last", "one element alone")) or " elements of " in pattern:
        yield "a tail: the count and the offset of the last tile or of the end of each row"
    if "row" in pattern or "column" in pattern:
        yield "the loop over rows: its pitch, what it keeps from one row to the next"
    if "times" in relation or "more than" in relation:
        yield "a factor or a constant: one term of the formula"
    if pattern == "every element" or pattern.endswith("nearly all"):
        yield "the formula, or its order of operations"
    yield "what tells these elements from the right ones: offset, count, mask or branch"
