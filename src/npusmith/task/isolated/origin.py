"""Do the results of a module come out of its launches? `trace(calls) -> findings`.

A candidate's Python may move data (views, slices, concatenations, casts) and may not compute. What
it took, launched and returned is known from outside of its process, so this is read from the
bytes: each element of an output must be an element of what the launches wrote, and each element
that goes into a launch one of the inputs, of earlier launches, or a constant.

Equal bits could be luck, and an order that depends on the values (a sort, a maximum) moves bits as
well. So calls of the same shapes are laid side by side: the bits of an element in all of them
together are its signature, and moving data keeps signatures. An element that is the same in all
calls is a constant: a weight, padding. A cast is tried where types differ.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from npusmith.errors import CODES
from npusmith.ir.dtypes import DType
from npusmith.twin.finding import Finding
from npusmith.twin.remote import Launch

Array = np.ndarray[Any, Any]
_POWER = 0.02  # of all signatures; a pool with more of them explains anything
_NARROW = (DType.FLOAT16.numpy, DType.BFLOAT16.numpy)
_MOST_AXES = 5
_NOTHING = np.zeros(0, np.uint64)
_SHOWN = 3  # values of a message
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the module, as seen from outside: all that went in, was launched and came out."""

    inputs: Sequence[Array]
    launches: Sequence[Launch]
    outputs: Sequence[Array]

    @property
    def form(self) -> tuple[Any, ...]:
        """Calls of the same form have the same tensors at the same places."""
        rows = ((item.op, *_shapes(item.inputs), *_shapes(item.outputs)) for item in self.launches)
        return (*_shapes(self.inputs), *rows, *_shapes(self.outputs))


def _shapes(tensors: Iterable[Array]) -> tuple[Any, ...]:
    return tuple((item.shape, str(item.dtype)) for item in tensors)


def trace(calls: Sequence[Call], file: str = "", handed: Collection[int] = ()) -> list[Finding]:
    """What does not come out of launches, one finding for each place of it.

    `handed`: numbers of the outputs that the reference itself hands back as they came in.
    """
    groups: dict[Any, list[Call]] = {}
    for call in calls:
        groups.setdefault(call.form, []).append(call)
    found: dict[tuple[str, str], Finding] = {}
    for group in groups.values():
        others = [call for call in calls if call.form != group[0].form]
        for code, message, seen in _trace(group, others, handed):
            row = Finding(code=code, level=CODES[code].level, message=message, file=file, seen=seen)
            found.setdefault((code, message), row)
    return list(found.values())


def _trace(
    group: Sequence[Call], others: Sequence[Call], handed: Collection[int]
) -> Iterator[tuple[str, str, str]]:
    given = _columns(call.inputs for call in group)
    written: list[list[Array]] = []
    for at, launch in enumerate(group[0].launches):
        for number, target in enumerate(_columns(call.launches[at].inputs for call in group)):
            seen = _unexplained(target, [*given, *written], strict=False)
            if seen and not (len(group) == 1 and _appears(target[0], others)):
                where = f"input {number} of launch {at} ({launch.op})"
                yield "cheat-input", f"{where} is computed outside of launches", seen
        if len({call.launches[at].scalars for call in group}) > 1:
            seen = " or ".join(str(call.launches[at].scalars) for call in group[:2])
            message = f"a number given to launch {at} ({launch.op}) depends on the inputs"
            yield "cheat-input", message, seen[:200]
        written += _columns(call.launches[at].outputs for call in group)
    for number, target in enumerate(_columns(call.outputs for call in group)):
        if number in handed and not _unexplained(target, given, strict=True):
            continue
        yield from _output(number, target, written, given)


def _output(
    number: int, target: list[Array], written: list[list[Array]], given: list[list[Array]]
) -> Iterator[tuple[str, str, str]]:
    if target[0].size == 0 or any(_is_cast(target, source) for source in written):
        return
    if not written:
        yield "cheat-origin", f"output {number} comes from no launch: there was none", ""
        return
    seen = _unexplained(target, written, strict=True)
    if not seen:
        return
    if _touches(target, written) and not _unexplained(target, [*written, *given], strict=True):
        yield "cheat-moved", f"output {number} holds inputs that went through no launch", seen
        return
    yield "cheat-origin", f"output {number} is not what the launches wrote", seen


def _columns(rows: Iterable[Sequence[Array]]) -> list[list[Array]]:
    """One tensor of each call, for each place."""
    return [list(column) for column in zip(*rows, strict=True)]


def _appears(target: Array, others: Sequence[Call]) -> bool:
    """Whether another call gave a launch the same tensor: a weight."""
    held = (array for call in others for launch in call.launches for array in launch.inputs)
    return any(array.shape == target.shape and _equal(array, target) for array in held)


# ------------------------------------------------------------------------------------ comparing


def _unexplained(target: list[Array], sources: list[list[Array]], *, strict: bool) -> str:
    """What of a tensor is neither constant nor an element of the sources; "" when all is.

    `strict`: there must be an element of the sources, and where bits are too few to tell one
    element from another, the order must be that of a source.
    """
    if target[0].size == 0 or any(_is_cast(target, source) for source in sources):
        return ""
    constant = _constant(target)
    if bool(constant.all()):
        return _shown(target, constant) if strict else ""
    for hop in (None, *_NARROW):  # a cast, or one by way of a narrower type
        pool = [_cast_all(source, hop, target[0].dtype) for source in sources]
        known = np.unique(np.concatenate([_signatures(item) for item in pool] or [_NOTHING]))
        wrong = ~(np.isin(_signatures(target), known) | constant)
        if not wrong.any():
            break
    else:
        return _shown(target, wrong)
    if strict and len(known) > _POWER * _space(target):
        ordered = any(_is_view(target, source) for source in pool)
        return "" if ordered else "too few bits to tell its elements apart, and no launch's order"
    return ""


def _touches(target: list[Array], written: list[list[Array]]) -> bool:
    """Whether any element that changes between calls was written by a launch."""
    pool = [_cast_all(source, None, target[0].dtype) for source in written]
    known = np.unique(np.concatenate([_signatures(item) for item in pool]))
    return bool((np.isin(_signatures(target), known) & ~_constant(target)).any())


def _space(target: list[Array]) -> float:
    """How many signatures there are."""
    dtype = target[0].dtype
    return float(2.0 ** (len(target) * (1 if dtype == np.bool_ else 8 * dtype.itemsize)))


def _constant(target: list[Array]) -> Array:
    """Which elements are the same in all calls; of a single call, those of plain constants."""
    first = target[0].reshape(-1)
    if len(target) == 1:
        plain = np.array([0, 1, -1, np.inf, -np.inf, np.nan]).astype(np.float64)
        wide = first.astype(np.float64) if first.dtype.kind != "c" else np.abs(first)
        return np.isin(wide, plain) | np.isnan(wide)
    same = np.ones(first.size, bool)
    for other in target[1:]:
        same &= _bits(first) == _bits(other.reshape(-1))
    return same


def _is_cast(target: list[Array], source: list[Array]) -> bool:
    """All elements in their order, whatever the shape."""
    if target[0].size != source[0].size:
        return False
    return all(_equal(ours.reshape(-1), _cast(theirs.reshape(-1), ours.dtype))
               for ours, theirs in zip(target, source, strict=True))  # fmt: skip


def _is_view(target: list[Array], source: list[Array]) -> bool:
    """Axes in another order, or the first elements along each axis."""
    shape = target[0].shape
    if target[0].size == source[0].size and len(shape) <= _MOST_AXES:
        for order in permutations(range(len(shape))):
            if all(_equal(ours.transpose(order).reshape(-1), theirs.reshape(-1))
                   for ours, theirs in zip(target, source, strict=True)):  # fmt: skip
                return True
    if len(shape) != source[0].ndim:
        return False
    corner = tuple(slice(0, size) for size in shape)
    return all(ours.shape == theirs[corner].shape and _equal(ours, theirs[corner])
               for ours, theirs in zip(target, source, strict=True))  # fmt: skip


def _equal(left: Array, right: Array) -> bool:
    """The same bits; one NaN is as good as another."""
    return left.dtype == right.dtype and bool(np.array_equal(_bits(left), _bits(right)))


def _cast_all(source: list[Array], hop: Any, dtype: Any) -> list[Array]:
    return [_cast(item if hop is None else _cast(item, hop), dtype) for item in source]


def _cast(array: Array, dtype: Any) -> Array:
    if array.dtype == dtype:
        return array
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex to real
        return array.astype(dtype)


def _bits(array: Array) -> Array:
    """The elements as whole numbers of their width."""
    if array.dtype.kind == "c":
        return np.ascontiguousarray(array).view(np.uint64 if array.itemsize == 8 else "V16")
    found: Array = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    if array.dtype.kind in "biu":
        return found
    nan = np.isnan(array)
    if nan.any():
        found = np.where(nan, np.iinfo(found.dtype).max, found)
    return found


def _signatures(column: list[Array]) -> Array:
    """A number for each element: its bits in all calls, mixed."""
    mixed = np.zeros(column[0].size, np.uint64)
    for array in column:
        mixed ^= _bits(array.reshape(-1)).astype(np.uint64)
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _shown(target: list[Array], wrong: Array) -> str:
    places = np.flatnonzero(wrong)
    values = ", ".join(str(target[0].reshape(-1)[at]) for at in places[:_SHOWN])
    return f"{len(places)} of {target[0].size} elements, the first ones {values}"
