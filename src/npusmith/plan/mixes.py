"""Space -> Mix: rows of every token multiplied by small matrices, and products of rows summed up.

Takes a space (space.py); gives a Mix where all outputs have one of two forms, else None:

    y[t, i, :] = sum of terms, each numbers times rows:  sum over k of h[t, k, i] * x[t, k, :]
    d[t, k, i] = one row times another, summed along:    sum over j of x[t, k, j] * g[t, i, j]

t are tokens, k and i short axes, the rows are the last axis. Short axes stay on chip whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr, Size
from npusmith.plan.dag import Value
from npusmith.plan.products import SHORT
from npusmith.plan.space import Input, Space

FLOATS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


@dataclass(frozen=True, slots=True)
class Tile:
    """What one tensor has of a token: rows of the last axis, or as many single numbers."""

    name: str  # in the program
    dtype: DType
    axes: tuple[int, ...]  # short groups in memory order
    wide: bool  # whether it runs along the last axis

    def count(self, mix: Mix) -> int:
        return math.prod(mix.short[axis] for axis in self.axes)


@dataclass(frozen=True, slots=True)
class Term:
    """`factor` times numbers times a row; axes that the output lacks are summed over."""

    row: Tile
    numbers: tuple[Tile, ...]
    factor: float


@dataclass(frozen=True, slots=True)
class Blend:
    """An output of rows: a sum of terms."""

    output: Tile
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Dot:
    """An output of numbers: one row times another, summed along the last axis."""

    output: Tile
    left: Tile
    right: Tile


@dataclass(frozen=True, slots=True)
class Mix:
    tokens: tuple[int, ...]  # groups
    short: Mapping[int, int]  # groups and their sizes
    last: int
    single: tuple[int, ...]  # groups of size 1 that some tensor lacks
    inputs: tuple[Tile, ...]
    outputs: tuple[Tile, ...]
    blends: tuple[Blend, ...]
    dots: tuple[Dot, ...]

    @property
    def rows(self) -> tuple[Tile, ...]:
        return tuple(item for item in self.inputs if item.wide)

    @property
    def numbers(self) -> tuple[Tile, ...]:
        return tuple(item for item in self.inputs if not item.wide)


def find_mix(space: Space, names: Sequence[str]) -> Mix | None:
    """The Mix that a space is, or None. `names`: those of the outputs, by their number."""
    tensors = [item.groups for item in space.inputs] + [out.groups for out in space.outputs]
    captured = _captured(space)
    if space.last < 0 or not all(tensors) or any(i not in captured for i in range(space.last + 1)):
        return None
    common = set.intersection(*(set(groups) for groups in tensors))
    single = {i for i in range(space.last) if i not in common and captured[i] == 1}
    tokens = tuple(i for i in range(space.last) if i in common)
    short = {i: captured[i] for i in range(space.last) if i not in common | single}
    legal = short and tokens and all(size <= SHORT for size in short.values())
    if not legal or len(space.groups) > space.last + 1:
        return None
    finder = _Finder(space, tokens, short, frozenset(single))
    try:
        return finder.mix(names)
    except _Other:
        return None


def _captured(space: Space) -> dict[int, int]:
    """Sizes of the groups in the captured shapes."""
    shapes = {item.name: item.item.shape for item in space.inputs}
    return {group.id: evaluate(group.size, shapes) for group in space.groups}


def evaluate(expr: Expr, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """A size as a number; -1 for what is no plain size."""
    match expr:
        case Const(value):
            return int(value)
        case Dim(tensor, index):
            return shapes[tensor][index]
        case Size(tensor):
            return math.prod(shapes[tensor])
        case Binary(BinOp.MUL, left, right):
            return evaluate(left, shapes) * evaluate(right, shapes)
        case Binary(BinOp.FLOORDIV, left, right):
            return evaluate(left, shapes) // max(evaluate(right, shapes), 1)
        case _:
            return -1


class _Other(Exception):
    """The graph is something else."""


@dataclass(slots=True)
class _Finder:
    space: Space
    tokens: tuple[int, ...]
    short: dict[int, int]
    single: frozenset[int]

    def mix(self, names: Sequence[str]) -> Mix:
        inputs = tuple(self._input(item) for item in self.space.inputs)
        known = {item.item.name: tile for item, tile in zip(self.space.inputs, inputs, strict=True)}
        outputs, blends, dots = [], [], []
        for i, out in enumerate(self.space.outputs):
            tile = self._tile(names[i], out.dtype, out.groups)
            outputs.append(tile)
            if tile.wide:
                blends.append(self._blend(tile, out.value, known))
            else:
                dots.append(self._dot(tile, out.value, known))
        mix = Mix(
            self.tokens, self.short, self.space.last, tuple(sorted(self.single)), inputs,
            tuple(outputs), tuple(blends), tuple(dots),
        )  # fmt: skip
        if not mix.rows or not _reused(mix):
            raise _Other
        return mix

    def _input(self, item: Input) -> Tile:
        return self._tile(item.name, item.item.dtype, item.groups)

    def _tile(self, name: str, dtype: DType, groups: tuple[int, ...]) -> Tile:
        own = tuple(group for group in groups if group not in self.single)
        wide = own[-1:] == (self.space.last,)
        axes = own[len(self.tokens) : len(own) - wide]
        ordered = own[: len(self.tokens)] == self.tokens and set(axes) <= set(self.short)
        if not ordered or dtype not in FLOATS:
            raise _Other
        return Tile(name, dtype, axes, wide)

    def _blend(self, output: Tile, value: Value, known: Mapping[str, Tile]) -> Blend:
        terms = tuple(self._term(item, known) for item in _addends(value))
        for term in terms:
            reach = {axis for item in term.numbers for axis in item.axes}
            if reach - set(output.axes) - set(term.row.axes):
                raise _Other  # a sum of numbers alone
        return Blend(output, tuple(sorted(terms, key=lambda term: _summed(term, output))))

    def _term(self, value: Value, known: Mapping[str, Tile]) -> Term:
        over: tuple[int, ...] = ()
        if value.op == "reduce" and value.text == "sum":
            over, value = value.axes, value.args[0]
        if self.space.last in over:
            raise _Other
        factors = list(_factors(value))
        tiles = [known[item.text] for item in factors if item.op == "load"]
        rows = [tile for tile in tiles if tile.wide]
        if len(rows) != 1 or any(item.op not in ("load", "const") for item in factors):
            raise _Other
        factor = math.prod(float(item.number) for item in factors if item.op == "const")
        return Term(rows[0], tuple(tile for tile in tiles if not tile.wide), factor)

    def _dot(self, output: Tile, value: Value, known: Mapping[str, Tile]) -> Dot:
        summed = value.op == "reduce" and value.text == "sum" and value.axes == (self.space.last,)
        factors = list(_factors(value.args[0])) if summed else []
        if len(factors) != 2 or any(item.op != "load" for item in factors):
            raise _Other
        left, right = (known[item.text] for item in factors)
        apart = not set(left.axes) & set(right.axes)
        if not (left.wide and right.wide and apart):
            raise _Other
        # the rows of the inner loop are those of the innermost axis of the output
        if output.axes[-1:] != right.axes[-1:]:
            left, right = right, left
        if output.axes != (*left.axes, *right.axes):
            raise _Other
        return Dot(output, left, right)


def _addends(value: Value) -> Iterator[Value]:
    if value.op == "add":
        for arg in value.args:
            yield from _addends(arg)
    else:
        yield value


def _factors(value: Value) -> Iterator[Value]:
    if value.op == "mul":
        for arg in value.args:
            yield from _factors(arg)
    else:
        yield value


def _summed(term: Term, output: Tile) -> bool:
    return not set(term.row.axes) <= set(output.axes)


def _reused(mix: Mix) -> bool:
    """Whether some row is needed more than once: else nothing is gained by keeping it."""
    blends = any(set(b.output.axes) - set(t.row.axes) for b in mix.blends for t in b.terms)
    return blends or any(d.left.axes or d.right.axes for d in mix.dots)
