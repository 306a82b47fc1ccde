"""Attention as loops: where rows, keys, depth and columns lie in queries, keys, values and mask.

`out[b, m, e] = sum over n of softmax(sum over d of q[b, m, d] * k[b, d, n] * scale + mask[b, m, n])
* v[b, n, e]`, whatever the axes are called. Heads of keys that serve several heads of queries stand
still along an axis of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Expr
from npusmith.plan.accesses import accessed
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.dag import Value, reachable
from npusmith.plan.matrix_layout import Finder, Steps, is_forward
from npusmith.plan.node_kinds import ATTENTION, SHORT_FLOATS
from npusmith.plan.read import Meaning
from npusmith.plan.scalars import ONE, ZERO, product
from npusmith.plan.space import Space
from npusmith.plan.stores import Target
from npusmith.plan.views import atoms_of
from npusmith.task.graph import Node


@dataclass(frozen=True, slots=True)
class Matrices:
    """A tensor of the program: its first element, and elements for a step along each axis.

    `rows`: along the axis outside of a matrix, whose elements of a row lie together, 0 of a mask
    that all rows have; `batch`: along each axis of the batch, 0 where all of its matrices are one.
    """

    tensor: str
    dtype: DType
    start: Expr
    rows: Expr
    batch: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Attention:
    """Everything that a program of it needs. Sizes with those of the captured shapes."""

    query: Matrices
    key: Matrices
    value: Matrices
    mask: Matrices | None
    out: Matrices
    rows: tuple[Expr, int]
    keys: tuple[Expr, int]
    depth: tuple[Expr, int]
    cols: tuple[Expr, int]
    batch: tuple[tuple[Expr, int], ...]
    scale: float
    causal: bool  # a row's keys are those up to its own number
    safe: bool  # 0 where a row has no key
    planes: int  # 2: weights are a number of 16 bits and one that it lacks
    space: Space
    target: Target


def has_attention(meaning: Meaning) -> bool:
    return any(value.op == ATTENTION for value in reachable(meaning.roots))


def find_attention(meaning: Meaning, taken: Iterable[str]) -> Attention:
    """The one attention that a graph is; no tensor is called as one of `taken`.

    Raises plan-cube for anything else.
    """
    meaning = accessed(meaning)
    value = next(item for item in reachable(meaning.roots) if item.op == ATTENTION)
    node = meaning.reader.origin.get(value)
    found = _Finder(meaning, meaning.stored[0], node, True, taken={*taken})
    if node is None or len(meaning.stored) != 1 or meaning.stored[0].tensor.value is not value:
        raise found.refuse("something stands between it and what is stored")
    return found.attention(value, node)


class _Finder(Finder):
    def attention(self, value: Value, node: Node) -> Attention:
        row = atoms_of(self.piece.tensor.dims)
        self.measure(value, row)
        layout = [self.steps(arg) for arg in value.args]
        walks: list[Steps] = [steps for _, steps in layout]
        query, key, values = walks[:3]
        added = leaves(value.axes)
        depth = tuple(leaf for leaf in added if leaf in query)
        keys = tuple(leaf for leaf in added if leaf not in query)
        walks.append(self.dense(row))
        cols = tuple(leaf for leaf in row if leaf not in query and leaf in values)
        own = [leaf for leaf in row if leaf in query and not (leaf in key or leaf in values)]
        causal = bool(node.kwargs["causal"])
        rows = self._numbered(own, node.shape[-2]) if causal else self._inner(own, walks)
        batch = self.groups([leaf for leaf in row if leaf not in {*cols, *rows}], walks)
        runs = (rows, keys, depth, cols, *batch)
        if any(len(self.groups(run, walks)) > 1 for run in runs):
            raise self.refuse("an axis of its matrices lies in two stretches")
        inner = [depth, depth, cols, *([keys] if len(value.args) > 3 else []), cols]
        outer = [rows, keys, keys, *([rows] if len(value.args) > 3 else []), rows]
        starts = [start for start, _ in layout] + [ZERO]
        target, space = self.ends(value)
        names = [self.called[arg.text] for arg in value.args] + [target.name]
        dtypes = [arg.dtype for arg in value.args] + [self.meaning.outputs[0].dtype]
        made: list[Matrices] = []
        for i, name in enumerate(names):
            around = outer[i], inner[i], batch, 2 < i < len(names) - 1
            made.append(self._matrices(name, dtypes[i], starts[i], walks[i], *around))
        types = {item.dtype for item in made[:3]}
        if len(types) > 1 or not types <= {DType.FLOAT32, *SHORT_FLOATS}:
            raise self.refuse("queries, keys and values are of several types, or of integers")
        return Attention(
            made[0], made[1], made[2], made[3] if len(made) > 4 else None, made[-1],
            self._size(rows), self._size(keys), self._size(depth), self._size(cols),
            tuple(map(self._size, batch)), float(str(node.kwargs["scale"])),
            causal, bool(node.kwargs["safe"]),
            2 if types <= {*SHORT_FLOATS} and not node.kwargs["narrow"] else 1, space, target,
        )  # fmt: skip

    def _numbered(self, own: Sequence[Atom], count: int) -> tuple[Atom, ...]:
        """Those of a head's rows alone, which are compared with the numbers of keys.

        Heads that share their keys could be rows of one matrix otherwise.
        """
        at = len(own)
        while at and prod(leaf.size for leaf in own[at:]) < count:
            at -= 1
        if prod(leaf.size for leaf in own[at:]) != count:
            raise self.refuse("its rows lie among others")
        return tuple(own[at:])

    def _inner(self, row: Sequence[Atom], walks: Sequence[Steps]) -> tuple[Atom, ...]:
        runs = self.groups(row, walks)
        return runs[-1] if runs else ()

    def _size(self, run: Sequence[Atom]) -> tuple[Expr, int]:
        captured = 1
        for leaf in run:
            captured *= leaf.size
        return product(self.known[leaf] for leaf in run), captured

    def _matrices(
        self, name: str, dtype: DType | None, start: Expr, steps: Steps, outer: Sequence[Atom],
        inner: Sequence[Atom], batch: Sequence[Sequence[Atom]], may_stand: bool,
    ) -> Matrices:  # fmt: skip
        assert dtype is not None
        if inner and steps[inner[-1]] != ONE:
            raise self.refuse(f"rows of {name} do not lie together")
        pitch = steps.get(outer[-1], ZERO) if outer else self._size(inner)[0]
        if not is_forward(pitch) and not (pitch == ZERO and may_stand):
            raise self.refuse(f"{name} has no rows of its own")
        return Matrices(name, dtype, start, pitch, tuple(steps.get(run[-1], ZERO) for run in batch))
