"""Shapes that take branches which no set of inputs took.

Sizes come from the numbers in the conditions of those branches, with their neighbours, sums and
multiples; without such a number nothing is tried. A dry run, which moves no values, tells which
branches of host code and kernel a shape takes; shapes that take a new one get a reference.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.wire import FreeAxes
from npusmith.twin import scan

Shape = tuple[int, ...]
Blocks = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a dry run took, and how many instructions it was."""

    blocks: Blocks
    instructions: int = 0


# A dry run on inputs and outputs of these shapes; None where it is refused.
Taken = Callable[[Sequence[Shape], Sequence[Shape]], DryRun | None]

MOST = 4  # shapes that get a reference
# No clock ends the search, or the verdict would depend on the machine.
_RUNS = 96
_INSTRUCTIONS = 20_000_000  # of all its runs; loops over single elements are as many as these
_TOGETHER = 8  # runs after which they are counted
_LARGEST = 1 << 20  # size of one axis
_ABOVE, _ABOVE_ELSE = 3, 12  # lines above a branch in which its condition stands
_DEEP = 3  # definitions that a condition's names are followed through
_ROW = 6  # numbers of one condition
_TEST = re.compile(r"\b(?:if|for|while|case|switch|else)\b|\?|[=!<>]=|[<>%]|&&|\|\|")
_RANK = re.compile(r"DimNum|GetBlockIdx")
_NUMBER = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F]+|[1-9]\d*)[uUlL]*(?![\w.])")
_EQUAL = re.compile(r"[!=]=\s*([1-9]\d*)\b(?!\.)|(?<![\w.])([1-9]\d*)\s*[!=]=")
_ORDINARY = 128  # other sets have sizes up to this
# `size > 140000 ? 2 : 1`: the compiler makes no branch of it
_CHOICE = re.compile(r"[<>]=?\s*([1-9]\d*)\b(?!\.)|(?<![\w.])([1-9]\d*)\s*[<>]")
# `cols > 3000 && cols < 4000`, in either order: one name between two numbers
_BOUND = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)\s*([<>])=?\s*([1-9]\d*)\b(?![.\w])")
_SETTER = re.compile(r"\bset_(\w+)\((.*)")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def find_sizes(texts: Mapping[Path, str], places: Iterable[tuple[str, int]]) -> list[int]:
    """Sizes at which the branches that begin at these places may be taken, the likelier first."""
    code = {file: scan.blank(text).splitlines() for file, text in texts.items()}
    defined = _definitions(line for lines in code.values() for line in lines)
    rows = [
        list(_numbers(_guard(code.get(Path(file), []), line), defined, _DEEP))[:_ROW]
        for file, line in sorted(places)
    ]
    rows = [row for row in rows if row]
    alone = [number for row in rows for number in row]
    sums = [s for row in rows for pair in itertools.permutations(row, 2) for s in _sums(*pair)]
    near = [size for c in alone for size in (c + 1, c - 1, 2 * c, 2 * c + 1)]
    return [size for size in dict.fromkeys([*alone, *sums, *near]) if 0 < size <= _LARGEST]


def find_equals(texts: Mapping[Path, str]) -> list[int]:
    """Numbers that something is compared with for equality: no block may tell that it never was.

    `if (cols != 777) Div(...)` leaves work out without a branch of its own. Behind them what is
    right above the numbers that a kernel chooses a value by, `size > 140000 ? 2 : 1`.
    """
    found: list[int] = []
    above: list[int] = []
    for file, text in texts.items():
        for line in scan.blank(text).splitlines():
            if _RANK.search(line) or "IsLegal" in line:
                continue
            found += [int(a or b, 0) for a, b in _EQUAL.findall(line)]
            if "?" in line and "op_host" not in file.parts:
                above += [int(a or b, 0) + 1 for a, b in _CHOICE.findall(line)]
    found += [size for size in above if size > _ORDINARY]
    doubled = (factor * size for size in found for factor in (1, 2))
    return [size for size in dict.fromkeys(doubled) if 1 < size <= _LARGEST]


def find_ranges(texts: Mapping[Path, str]) -> list[int]:
    """A size inside of each range of one name, whether a branch hangs on it or a value."""
    found: list[int] = []
    for text in texts.values():
        for line in scan.blank(text).replace("->", ".").splitlines():
            lower: dict[str, int] = {}
            upper: dict[str, int] = {}
            for name, sign, number in _BOUND.findall(line):
                (lower if sign == ">" else upper).setdefault(name, int(number))
            inside = ((lower[name], upper[name]) for name in lower if name in upper)
            found += [low + 1 for low, high in inside if low + 1 < high]
    return [size for size in dict.fromkeys(found) if 1 < size <= _LARGEST]


def _guard(lines: Sequence[str], line: int) -> str:
    """The condition of the branch that begins on this line, and what else stands around it."""
    above = lines[max(0, line - 1 - _ABOVE) : line]
    if any(re.search(r"\belse\b", text) for text in above):
        above = lines[max(0, line - 1 - _ABOVE_ELSE) : line]
    plain = (text.replace("->", ".") for text in above if not _RANK.search(text))
    return " ".join(text for text in plain if _TEST.search(text))


def _definitions(lines: Iterable[str]) -> dict[str, str]:
    """By name all that is assigned to it: `tile = 16 * 256`, `set_tile(4096)`, `#define TILE 8`."""
    found: dict[str, str] = {}
    for line in lines:
        if line.lstrip().startswith("#define"):
            _, name, *rest = [*line.split(None, 2), ""]
            found[name] = " ".join(rest)
        elif match := re.search(r"\b(\w+)\s*=(?!=)\s*(.*)", line) or _SETTER.search(line):
            found[match[1]] = f"{found.get(match[1], '')} {match[2]}"
    return found


def _numbers(text: str, defined: Mapping[str, str], deep: int) -> Iterator[int]:
    """The numbers of a condition, and those that its names stand for."""
    values = [int(match[1], 0) for match in _NUMBER.finditer(text)]
    values += [value for value in map(_product, re.split(r"[^\w* ]", text)) if value]
    yield from dict.fromkeys(value for value in values if 1 < value <= _LARGEST)
    if deep:
        for name in dict.fromkeys(_WORD.findall(text)):
            if name in defined:
                yield from _numbers(defined[name], defined, deep - 1)


def _product(text: str) -> int:
    """Of `16 * 256`; 0 for anything else."""
    factors = [_NUMBER.fullmatch(part.strip()) for part in text.split("*")]
    known = [int(factor[1], 0) for factor in factors if factor]
    return math.prod(known) if len(known) == len(factors) > 1 else 0


def _sums(a: int, b: int) -> tuple[int, ...]:
    """Where `size % a == b` holds, also past the first multiple, or `size / a` meets b."""
    return (a + b, a * b, 2 * a + b) if a > b else (a * b,)


# ------------------------------------------------------------------------------------ the search


@dataclass(frozen=True, slots=True)
class Sizes:
    """The free sizes of a task, and how its outputs follow them."""

    own: tuple[Shape, ...]
    free: tuple[FreeAxes, ...]
    known: tuple[tuple[tuple[Shape, ...], tuple[Shape, ...]], ...]  # inputs and outputs that ran

    def inputs(self, sizes: Sequence[int]) -> list[Shape]:
        result = [list(shape) for shape in self.own]
        for item, size in zip(self.free, sizes, strict=True):
            for tensor, axis in item.axes:
                result[tensor][axis] = size
        return [tuple(shape) for shape in result]

    def outputs(self, sizes: Sequence[int]) -> list[Shape] | None:
        """As the model's outputs were at other sizes; None where no rule fits them all."""
        rows = [self._sizes(inputs) for inputs, _ in self.known]
        found = []
        for at, shape in enumerate(self.known[0][1]):
            dims = [
                _extend(rows, [out[at][axis] for _, out in self.known], sizes)
                for axis in range(len(shape))
            ]
            found.append(dims)
        if any(dim is None for dims in found for dim in dims):
            return None
        return [tuple(dim for dim in dims if dim is not None) for dims in found]

    def _sizes(self, shapes: Sequence[Shape]) -> list[int]:
        return [shapes[item.axes[0][0]][item.axes[0][1]] for item in self.free]

    def at(self, wanted: Sequence[int], limit: int) -> Iterator[list[int]]:
        """One axis after the other at a size, the others as they are if it fits."""
        for size in wanted:
            for at, item in enumerate(self.free):
                for rest in zip(*((other.size, other.step) for other in self.free), strict=True):
                    sizes = list(rest)
                    sizes[at] = -(-size // item.step) * item.step
                    if sum(map(math.prod, self.inputs(sizes))) <= limit:
                        yield sizes
                        break

    def combinations(self, wanted: Sequence[int], limit: int) -> Iterator[list[int]]:
        """One axis after the other at a wanted size, the others at their smallest or own size."""
        seen = set()
        for size in wanted:
            for at, item in enumerate(self.free):
                for small in (True, False):
                    sizes = [other.step if small else other.size for other in self.free]
                    sizes[at] = -(-size // item.step) * item.step
                    elements = sum(math.prod(shape) for shape in self.inputs(sizes))
                    if elements <= limit and tuple(sizes) not in seen:
                        seen.add(tuple(sizes))
                        yield sizes


def _extend(
    rows: Sequence[Sequence[int]], values: Sequence[int], sizes: Sequence[int]
) -> int | None:
    """The value at `sizes`, by a rule that gives all `values` at `rows`."""
    if len(set(values)) == 1:
        return values[0]
    count = len(sizes)
    sets = [at for most in (1, 2) for at in itertools.combinations(range(count), most)]
    for chosen in sets:
        terms = [math.prod(row[at] for at in chosen) for row in rows]
        new = math.prod(sizes[at] for at in chosen)
        if 0 in terms:
            continue
        if len({Fraction(v, t) for v, t in zip(values, terms, strict=True)}) == 1:
            ratio = new * Fraction(values[0], terms[0])
            return int(ratio) if ratio.denominator == 1 and ratio > 0 else None
        if len({v - t for v, t in zip(values, terms, strict=True)}) == 1:
            moved = new + values[0] - terms[0]
            return moved if moved > 0 else None
    return None


def task_sizes(prepared: Prepared) -> Sizes | None:
    """None where the task has no sizes that may change, or ran at no other ones."""
    tried = [item for item in prepared.trials if not item.skipped]
    free = prepared.manifest.free
    if not free or not any(item.kind == "shape" for item in tried):
        return None
    own = next((tuple(item.shapes) for item in tried if item.kind == "random"), None)
    if own is None or not all(_fits(item, own) for item in free):
        return None
    same = [item for item in tried if [len(s) for s in item.shapes] == [len(s) for s in own]]
    known = dict.fromkeys((tuple(item.shapes), _outputs(item)) for item in same)
    if len({tuple(map(len, outputs)) for _, outputs in known}) > 1:
        return None
    return Sizes(own, free, tuple(known))


def _fits(item: FreeAxes, own: Sequence[Shape]) -> bool:
    """The child's word is checked: are there such axes?"""
    places = all(0 <= at < len(own) and 0 <= axis < len(own[at]) for at, axis in item.axes)
    return places and bool(item.axes) and item.step > 0 and item.size > 0


def _outputs(trial: TrialData) -> tuple[Shape, ...]:
    return tuple(item.shape for item in trial.record.references)


def find_shapes(
    sizes: Sizes, wanted: Sequence[int], reached: Blocks, taken: Taken, limit: int
) -> list[list[Shape]]:
    """Input shapes that take what neither `reached` holds nor a dry run at known shapes takes."""
    seen = set(reached)
    found: list[list[Shape]] = []
    plans = itertools.islice(sizes.combinations(wanted, limit), _RUNS)
    pairs = ((sizes.inputs(plan), sizes.outputs(plan)) for plan in plans)
    spent = 0
    with ThreadPoolExecutor(2) as pool:
        for dry in pool.map(lambda pair: taken(*pair), sizes.known):
            seen |= dry.blocks if dry else frozenset()
        while len(found) < MOST and spent < _INSTRUCTIONS:
            part = list(itertools.islice(pairs, _TOGETHER))
            if not part:
                break
            runs = [(inputs, outputs) for inputs, outputs in part if outputs is not None]
            for (inputs, _), dry in zip(
                runs, pool.map(lambda pair: taken(*pair), runs), strict=True
            ):
                spent += dry.instructions if dry else 0
                if dry and not dry.blocks <= seen:
                    seen |= dry.blocks
                    found.append(inputs)
    return found[:MOST]


def find_equal_shapes(
    sizes: Sizes, wanted: Sequence[int], taken: Taken, limit: int, most: int = MOST
) -> list[list[Shape]]:
    """Input shapes with these sizes that are not refused."""
    pairs = ((sizes.inputs(plan), sizes.outputs(plan)) for plan in sizes.at(wanted, limit))
    served = (
        inputs
        for inputs, outputs in pairs
        if outputs is not None and taken(inputs, outputs) is not None
    )
    return list(itertools.islice(served, most))
