"""Shape sets: which other sizes a kernel for dynamic shapes has to get right. Plans only.

Each set has a purpose, and its sizes are drawn for it from the seed: sizes that everybody knows can
be written for.

Dimensions that must change together form a class. First guess: axes of equal size at the same place
counted from the right (so operands that broadcast go together). When the reference refuses that,
all axes of that size; when it refuses this too, only multiples of some step, or larger sizes alone,
as indices that were drawn up to a size ask for; else it is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from random import Random

Shape = tuple[int, ...]
Axis = tuple[int, int]  # tensor index, axis counted from the left

MAX_SETS = 8
PROBES = (7, 11)  # a size that nobody baked in; the second when a class has that size already
STEPS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_MORE_STEPS = 8  # that are tried besides
TILE = range(4097, 4096 + 64, 2)  # past a tile of 4096 elements
LONG = range(65537, 65536 + 2048, 2)  # a float32 row of this length is longer than the buffer
RAGGED = range(33, 96, 2)  # not a multiple of 32 bytes at 1, 2 or 4 bytes per element
CORES = range(49, 72)  # past the vector cores of the default chip, by less than half of them
NARROW = range(18, 31)
PRIMES = (3, 5, 7, 11, 13, 17, 19, 23)
LAST_PRIMES = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181)
EDGED = ("primes", "past the cores, rows off 32 bytes")  # sets that are tried with edge values too


@dataclass(frozen=True, slots=True)
class Class:
    """Axes that change together: sizes are multiples of `step`, and at least `least`."""

    size: int
    axes: frozenset[Axis]
    step: int = 1
    is_last: bool = False
    least: int = 1

    def fit(self, size: int) -> int:
        """A size of the class; another one for each that is too small."""
        whole = -(-size // self.step) * self.step
        return whole if whole >= self.least else self.least + whole


@dataclass(frozen=True, slots=True)
class Pattern:
    """One shape set: what the last axis' size, the leading one's and the others' are drawn from.

    None keeps the size that get_inputs() has. `about` names the axes without which the pattern
    makes no point: "last", "lead", "both", or "any" of them.
    """

    name: str
    about: str
    last: Sequence[int] | None
    lead: Sequence[int] | None
    middle: Sequence[int] | None


ONE = (1,)
PATTERNS = (
    Pattern("one row", "lead", None, ONE, ONE),
    Pattern("one column", "last", ONE, None, None),
    Pattern("one element", "both", ONE, ONE, ONE),
    Pattern("primes", "any", LAST_PRIMES, PRIMES, PRIMES),
    Pattern("past the cores, rows off 32 bytes", "any", RAGGED, CORES, (2, 3)),
    Pattern("past a tile", "last", TILE, (2, 3, 5), (2, 3)),
    Pattern("more rows than a tile", "lead", NARROW, TILE, (2, 3)),
    Pattern("a row longer than the buffer", "last", LONG, (2, 3), ONE),
)


def show(shapes: Sequence[Shape]) -> str:
    """As the names of trials have them: `3x4, 4`."""
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)


def aligned(shapes: Sequence[Shape]) -> list[Class]:
    """Classes by place from the right and size; axes of size 1 broadcast and stay."""
    groups: dict[tuple[int, int], set[Axis]] = {}
    for i, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            if size > 1:
                groups.setdefault((axis - len(shape), size), set()).add((i, axis))
    order = sorted(groups)  # leading axes first
    return [Class(size, frozenset(groups[place, size])) for place, size in order]


def by_size(shapes: Sequence[Shape], size: int) -> Class:
    """All axes of that size as one class."""
    axes = {(i, a) for i, shape in enumerate(shapes) for a, dim in enumerate(shape) if dim == size}
    return Class(size, frozenset(axes))


def from_left(shapes: Sequence[Shape], item: Class) -> Class:
    """All axes of that size that stand where one of the class does, from the left: a batch."""
    places = {axis for _, axis in item.axes}
    found = {axes for axes in by_size(shapes, item.size).axes if axes[1] in places}
    return Class(item.size, frozenset(found))


def find_classes(
    shapes: Sequence[Shape], accepts: Callable[[list[Shape]], str]
) -> tuple[list[Class], list[str]]:
    """Free classes, and a line for each fixed one. `accepts` gives the reason why not, or "".

    Two other sizes are tried: thirds of 7 are 3, 3 and 1, which broadcasts.
    """
    free: list[Class] = []
    notes: list[str] = []
    for item in aligned(shapes):
        if any(item.axes & other.axes for other in free):
            continue  # went together with an earlier one
        found, reason = _free(item, shapes, accepts)
        if found is None:
            notes.append(f"size {item.size} is fixed: {reason}")
        else:
            free.append(found)
    last = {(i, len(shape) - 1) for i, shape in enumerate(shapes) if shape}
    return [_mark(item, bool(item.axes & last)) for item in free], notes


def _mark(item: Class, is_last: bool) -> Class:
    return replace(item, is_last=is_last)


def _free(
    item: Class, shapes: Sequence[Shape], accepts: Callable[[list[Shape]], str]
) -> tuple[Class | None, str]:
    reason = accepts(resize(shapes, {item: next(_others(item))}))
    if not reason and _takes_all(item, shapes, accepts):
        return item, ""
    both = [item]
    for together in (from_left(shapes, item), by_size(shapes, item.size)):
        if together.axes != both[-1].axes:
            both.append(together)
    # larger sizes before steps: those that are tried are multiples of none
    larger = [replace(one, least=item.size) for one in both if reason]
    steps = [Class(item.size, item.axes, step) for step in _steps(item.size)]
    candidates = [*both[1:], *larger, *steps]
    for candidate in candidates:
        if _takes_all(candidate, shapes, accepts):
            return candidate, ""
    if not reason:  # sizes up to some limit
        return item, ""
    for candidate in candidates:
        if not accepts(resize(shapes, {candidate: next(_others(candidate))})):
            return candidate, ""
    return None, reason


def _steps(size: int) -> list[int]:
    """Numbers that a size is a multiple of: usual ones first, which one model in many needs."""
    small = [step for step in range(1, isqrt(size) + 1) if size % step == 0]
    all_steps = sorted({*small, *(size // step for step in small)} - {1})
    others = [step for step in all_steps if step not in STEPS]
    return [*(step for step in STEPS if step in all_steps), *others[:_MORE_STEPS]]


def _takes_all(item: Class, shapes: Sequence[Shape], accepts: Callable[[list[Shape]], str]) -> bool:
    return not any(accepts(resize(shapes, {item: size})) for size in _others(item))


def _others(item: Class) -> Iterator[int]:
    """Sizes of the class that are not its own: by steps of 3, a probe of 7 would be 21 again."""
    return (item.fit(probe * item.step) for probe in PROBES if probe * item.step != item.size)


def resize(shapes: Sequence[Shape], sizes: dict[Class, int]) -> list[Shape]:
    """The shapes with each class' axes at a new size."""
    result = [list(shape) for shape in shapes]
    for item, size in sizes.items():
        for i, axis in item.axes:
            result[i][axis] = size
    return [tuple(shape) for shape in result]


def plan_sets(
    shapes: Sequence[Shape], free: list[Class], limit: int, seed: int
) -> list[tuple[str, list[Shape]]]:
    """Up to MAX_SETS named lists of shapes, none twice, none with more than `limit` elements.

    The same seed gives the same sizes in every process.
    """
    found: list[tuple[str, list[Shape]]] = []
    seen = [list(shapes)]
    for pattern in (item for item in PATTERNS if _makes_point(item, free)):
        sized = _fitted(shapes, _sizes(pattern, free, Random(f"{seed} {pattern.name}")), limit)
        if sized is not None and sized not in seen:
            seen.append(sized)
            found.append((pattern.name, sized))
    return found[:MAX_SETS]


def one_by_one(
    shapes: Sequence[Shape], classes: Iterable[Iterable[Axis]], sized: Sequence[Shape], limit: int
) -> Iterator[list[Shape]]:
    """Of a set that the model refuses: what it has for one class of axes alone."""
    for axes in classes:
        result = [list(shape) for shape in shapes]
        for i, axis in axes:
            result[i][axis] = sized[i][axis]
        one = [tuple(shape) for shape in result]
        if one not in (list(shapes), list(sized)) and sum(map(_count, one)) <= limit:
            yield one


def _makes_point(pattern: Pattern, free: list[Class]) -> bool:
    places = {item.is_last for item in free}
    wanted = {"last": {True}, "lead": {False}, "both": {True, False}}
    return bool(places) if pattern.about == "any" else wanted[pattern.about] <= places


def _sizes(pattern: Pattern, free: list[Class], random: Random) -> dict[Class, int]:
    """A size for each free class; primes are distinct as long as there are some left."""
    sizes: dict[Class, int] = {}
    leading = [item for item in free if not item.is_last]
    primes = random.sample(PRIMES, len(PRIMES))
    for i, item in enumerate(leading):
        choice = pattern.lead if i == 0 else pattern.middle
        choice = (primes[i % len(primes)],) if pattern.name == "primes" else choice
        sizes[item] = item.size if choice is None else item.fit(random.choice(choice))
    for item in free:
        if item.is_last:
            choice = pattern.last
            sizes[item] = item.size if choice is None else item.fit(random.choice(choice))
    return sizes


def _fitted(shapes: Sequence[Shape], sizes: dict[Class, int], limit: int) -> list[Shape] | None:
    """Shrink the largest size until the elements fit; None when fixed sizes alone are too many."""
    while True:
        sized = resize(shapes, sizes)
        if sum(_count(shape) for shape in sized) <= limit:
            return sized
        if not _halve(sizes):
            return None


def _halve(sizes: dict[Class, int]) -> bool:
    """The largest size becomes half of it; False where it is as small as it gets."""
    largest = max(sizes, key=lambda item: sizes[item], default=None)
    if largest is None or sizes[largest] <= max(largest.step, largest.least):
        return False
    half = sizes[largest] // 2
    sizes[largest] = max(largest.step, largest.least, half // largest.step * largest.step)
    return True


def smaller(sized: Sequence[Shape], free: Sequence[Class]) -> list[Shape] | None:
    """A set with its largest free size halved; None where it is as small as it gets."""
    places = {item: min(item.axes) for item in free}
    sizes = {item: sized[i][axis] for item, (i, axis) in places.items()}
    return resize(sized, sizes) if _halve(sizes) else None


def raise_rank(shapes: Sequence[Shape], seed: int) -> list[list[Shape]]:
    """Inputs with a leading axis more, the likelier ones first.

    Those of the largest rank get it; in the first list also all that lead with the same size.
    """
    largest = max(map(len, shapes), default=0)
    size = Random(f"{seed} rank").randrange(2, 9)
    leads = {shape[0] for shape in shapes if shape and len(shape) == largest}
    both = [
        [(size, *s) if len(s) == largest or (s and s[0] in leads) else s for s in shapes],
        [(size, *s) if len(s) == largest else s for s in shapes],
    ]
    return both if both[0] != both[1] else both[:1]


def lower_rank(shapes: Sequence[Shape]) -> list[list[Shape]]:
    """Inputs without their leading axis, as in raise_rank; none where a scalar would be left."""
    largest = max(map(len, shapes), default=0)
    if largest < 2:
        return []
    leads = {shape[0] for shape in shapes if len(shape) == largest}
    both = [
        [s[1:] if len(s) == largest or (len(s) > 1 and s[0] in leads) else s for s in shapes],
        [s[1:] if len(s) == largest else s for s in shapes],
    ]
    return both if both[0] != both[1] else both[:1]


def smallest(own: Sequence[Shape], sets: Sequence[Sequence[Shape]]) -> list[Shape]:
    """Of the own shapes and these sets the one with the fewest elements.

    A set in which an axis shrank to 1 does not count: two ranks look alike there.
    """
    whole = [list(sized) for sized in sets if is_whole(own, sized)]
    return min([*whole, list(own)], key=lambda sized: sum(map(_count, sized)))


def is_whole(own: Sequence[Shape], sized: Sequence[Shape]) -> bool:
    """Did no axis shrink to 1?"""
    pairs = zip(own, sized, strict=True)
    return all(new > 1 or old < 2 for pair in pairs for old, new in zip(*pair, strict=True))


def _count(shape: Shape) -> int:
    count = 1
    for dim in shape:
        count *= dim
    return count
