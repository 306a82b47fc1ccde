"""The loops of a kernel: axes in memory order, merged where nothing tells them apart.

Takes a graph's meaning (read.py); gives groups of axes with their sizes as host expressions, the
groups of every input and output, and the expressions rewritten over groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import NoReturn

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Expr, Size
from npusmith.plan.accesses import breaks
from npusmith.plan.axes import Atom, Dims, leaves, sizes
from npusmith.plan.axis_sizes import leaf_sizes, legal_sizes, size_notes, sized
from npusmith.plan.dag import Dag, Value, quotient_of, reachable
from npusmith.plan.names import tensor_name
from npusmith.plan.read import Meaning, Scatter
from npusmith.plan.refusals import refusal
from npusmith.plan.scalars import ONE, product
from npusmith.plan.used_inputs import used_inputs
from npusmith.plan.views import atoms_of
from npusmith.task.graph import Graph, GraphInput, Node


@dataclass(frozen=True, slots=True)
class Group:
    """Adjacent axes that every tensor and reduction treats alike: one loop."""

    id: int
    name: str  # the kernel's name for its size
    size: Expr  # over input shapes


@dataclass(frozen=True, slots=True)
class Input:
    item: GraphInput
    name: str  # in the program
    groups: tuple[int, ...]  # in memory order


@dataclass(frozen=True, slots=True)
class Places:
    """Where rows of a piece are stored: an index tensor says it (read.Scatter)."""

    index: str  # the input
    dtype: DType
    group: int  # that the index runs along
    step: Expr
    rows: Expr
    adds: bool


@dataclass(frozen=True, slots=True)
class Output:
    value: Value
    groups: tuple[int, ...]
    dims: tuple[Expr, ...]  # of every dimension, over input shapes
    shape: tuple[int, ...]  # in the captured shapes
    dtype: DType
    node: Node | None  # what made it; None for an input that is passed through
    port: int = 0  # the graph's output that this is, or a piece of
    access: tuple[Expr, ...] = ()  # of a piece: a start, and a step along each group
    places: Places | None = None


@dataclass(slots=True)
class Space:
    groups: tuple[Group, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    last: int  # the group that is contiguous in memory: vectors run along it; -1 when none
    dag: Dag
    graph: Graph
    notes: tuple[str, ...] = ()
    legal: tuple[Expr, ...] = ()  # what holds for the input shapes that are served
    origin: dict[Value, Node] = field(default_factory=dict)  # the node that made a value
    cache: dict[Value, frozenset[int]] = field(default_factory=dict)
    named: dict[Value, tuple[str, str]] = field(default_factory=dict)  # names in formulas
    backward: dict[int, bool] = field(default_factory=dict)  # which way scans run along a group

    def axes(self, value: Value) -> frozenset[int]:
        """The groups that a value differs along."""
        if value not in self.cache:
            self.cache[value] = self.rule(value)
        return self.cache[value]

    def rule(self, value: Value) -> frozenset[int]:
        return axes_of(self, value)

    def wide(self, value: Value) -> bool:
        """Whether a value is a vector along the last group; otherwise it is one number."""
        return self.last in self.axes(value)


def axes_of(space: Space, value: Value) -> frozenset[int]:
    if value.op in ("load", "index"):
        return frozenset(value.axes)
    if value.op in ("const", "count"):
        return frozenset()
    union: frozenset[int] = frozenset().union(*(space.axes(arg) for arg in value.args))
    if value.op == "fill":
        return union | {space.last}
    return union - frozenset(value.axes) if value.op == "reduce" else union


def resolve(meaning: Meaning) -> Space:
    """Order the axes, merge them, and rewrite the expressions. Raises plan-transpose and others."""
    values = reachable(meaning.roots)
    for value in values:
        if value.op in ("at", "put", "order"):
            reader = meaning.reader
            node = reader.origin.get(value)
            raise refusal(reader.graph, node, "plan-data-movement", "its elements move")
    if not meaning.pieces:  # accesses have a step along each axis that there was
        pin_innermost(meaning)
    used = used_inputs(meaning)
    taken: set[str] = set()
    called = {item.name: tensor_name(item.name, taken) for item, _ in used}
    cut = [value for value in values if value.op == "load" and value.index]
    whole = _whole(values, used)
    rows = [atoms_of(dims) for _, dims in whole] + [value.axes for value in cut]
    labels = [f"input {item.name}" for item, _ in whole] + [f"input {v.text}" for v in cut]
    read = len(rows)
    rows += [atoms_of(piece.tensor.dims) for piece in meaning.stored]
    labels += [f"output {piece.output}" for piece in meaning.stored]
    for i, row in enumerate(rows):
        if len(set(row)) != len(row):
            _refuse(
                meaning, i - read, "plan-repeated-axis",
                f"{labels[i]} runs along one loop in two of its dimensions",
            )  # fmt: skip
    _check_order(meaning, rows, labels, read)
    special = [value for value in values if value.op in ("reduce", "running", "count", "index")]
    order = _order([*rows, *_around(meaning)])
    loose = [leaf for value in special for leaf in leaves(value.axes) if leaf not in order]
    everything = order + list(dict.fromkeys(loose))
    reader = meaning.reader
    apart = {pair for value in cut for pair in breaks(reader, value.axes, value.index)}
    for piece in meaning.stored:
        apart |= breaks(reader, atoms_of(piece.tensor.dims), piece.access)
    merged = _merge(everything, rows, [leaves(value.axes) for value in special], apart)
    return _build(meaning, used, merged, set(order), called)


def pin_innermost(meaning: Meaning) -> None:
    """Innermost axes of one element are for good of one, where something else is reduced.

    Vectors would run along one element each time (a mask of 64 x 512 x 1 that is added up).
    """
    reductions = [value for value in reachable(meaning.roots) if value.op == "reduce"]
    reduced = {leaf for value in reductions for leaf in leaves(value.axes) if leaf.size > 1}
    rows = [atoms_of(dims) for _, dims in used_inputs(meaning)] if reduced else []
    inner = {row[-1] for row in rows if row and reduced & set(row)}
    while inner and all(leaf.size == 1 and not leaf.varied for leaf in inner):
        for leaf in inner:
            leaf.pinned = True
        rows = [tuple(leaf for leaf in row if not leaf.pinned) for row in rows]
        inner = {row[-1] for row in rows if row and reduced & set(row)}


def _around(meaning: Meaning) -> Iterator[tuple[Atom, ...]]:
    """The loop over an index goes around those over the tensor that it says places in."""
    for before, piece in pairwise(meaning.stored):
        if piece.scatter is not None:
            own, rows = atoms_of(piece.scatter.index.dims), atoms_of(before.tensor.dims)
            yield (*own, *(leaf for leaf in rows if leaf not in atoms_of(piece.tensor.dims)))


def _whole(
    values: Sequence[Value], used: Sequence[tuple[GraphInput, Dims]]
) -> list[tuple[GraphInput, Dims]]:
    """The inputs that are loaded as they lie: of others slices are, or nothing but sizes."""
    loaded = {value.text for value in values if value.op == "load" and not value.index}
    return [(item, dims) for item, dims in used if item.name in loaded]


def _refuse(meaning: Meaning, piece: int, code: str, why: str) -> NoReturn:
    """Refuse because of an output (by what is stored; a negative one means none in particular)."""
    node = meaning.node(meaning.stored[piece].output) if piece >= 0 else None
    raise refusal(meaning.reader.graph, node, code, why)


def _check_order(
    meaning: Meaning, rows: Sequence[tuple[Atom, ...]], labels: Sequence[str], inputs: int
) -> None:
    """Refuse two tensors that hold two axes in opposite orders."""
    seen: dict[tuple[Atom, Atom], str] = {}
    for i, row in enumerate(rows):
        for pair in combinations(row, 2):
            other = seen.get((pair[1], pair[0]))
            if other is not None:
                _refuse(
                    meaning, i - inputs, "plan-transpose",
                    f"{other} and {labels[i]} hold the same axes in different orders",
                )  # fmt: skip
            seen.setdefault(pair, labels[i])


# ------------------------------------------------------------------------------------------ order


def _order(rows: Sequence[tuple[Atom, ...]]) -> list[Atom]:
    """One order of all axes that agrees with the memory order of every tensor."""
    before: dict[Atom, set[Atom]] = {}
    for row in sorted(rows, key=len, reverse=True):
        for i, leaf in enumerate(row):
            before.setdefault(leaf, set()).update(row[i - 1 : i])
    follows = {(row[i], row[i + 1]) for row in rows for i in range(len(row) - 1)}
    result: list[Atom] = []
    waiting = list(before)
    while waiting:
        ready = [leaf for leaf in waiting if before[leaf] <= set(result)]
        if not ready:
            raise PlanError(
                "plan-transpose", "no one order of axes agrees with every tensor of this graph"
            )
        chained = [leaf for leaf in ready if result and (result[-1], leaf) in follows]
        leaf = (chained or ready)[0]
        result.append(leaf)
        waiting.remove(leaf)
    return result


def _merge(
    order: Sequence[Atom],
    rows: Sequence[tuple[Atom, ...]],
    special: Sequence[tuple[Atom, ...]],
    apart: Collection[tuple[Atom, Atom]],
) -> list[tuple[Atom, ...]]:
    """Neighbours with the same appearances become one group, but for those that are apart."""
    sets = [frozenset(row) for row in (*rows, *special)]

    def mark(leaf: Atom) -> tuple[bool, ...]:
        return tuple(leaf in row for row in sets)

    merged: list[tuple[Atom, ...]] = []
    for leaf in order:
        before = merged[-1][-1] if merged else leaf
        if merged and mark(before) == mark(leaf) and (before, leaf) not in apart:
            merged[-1] = (*merged[-1], leaf)
        else:
            merged.append((leaf,))
    return merged


_NAMES = {1: ("size",), 2: ("rows", "cols"), 3: ("batch", "rows", "cols")}


def _group_names(count: int) -> tuple[str, ...]:
    if count in _NAMES:
        return _NAMES[count]
    return ("batch", *(f"part{i}" for i in range(1, count - 2)), "rows", "cols")


def _whole_tensor(
    row: tuple[Atom, ...], used: Sequence[tuple[GraphInput, Dims]], called: dict[str, str]
) -> Expr | None:
    """`x.size` when a group is all of x."""
    for item, dims in used:
        if atoms_of(dims) == row and item.kind == "user":
            return Size(called[item.name])
    return None


# ---------------------------------------------------------------------------------------- rebuild


def _build(
    meaning: Meaning,
    used: list[tuple[GraphInput, Dims]],
    merged: list[tuple[Atom, ...]],
    ordered: set[Atom],
    called: dict[str, str],
) -> Space:
    wanted = [leaf for row in merged for leaf in row]
    if meaning.pieces:
        wanted += [leaf for atom in meaning.reader.atoms for leaf in leaves((atom,))]
    known = leaf_sizes(
        meaning, used, called, wanted + [a for out in meaning.outputs for a in atoms_of(out.dims)]
    )
    real = [row for row in merged if row[0] in ordered]
    names = (*_group_names(len(real)), *(f"extra{i}" for i in range(len(merged) - len(real))))
    groups = tuple(
        Group(i, names[i], _group_size(row, used, called, known)) for i, row in enumerate(merged)
    )
    number = {leaf: i for i, row in enumerate(merged) for leaf in row}
    whole = [item for item, _ in _whole(reachable(meaning.roots), used)]
    inputs = tuple(
        Input(item, called[item.name], _numbers(atoms_of(dims), number) if item in whole else ())
        for item, dims in used
    )
    by_name = {item.item.name: item.groups for item in inputs}
    space = Space(groups, inputs, (), len(real) - 1, Dag(), meaning.reader.graph)
    rewriter = Rewriter(space, by_name, number, lambda expr: sized(meaning, known, expr))
    outputs = []
    for i, piece in enumerate(meaning.stored):
        out, node = meaning.outputs[piece.output], meaning.node(piece.output)
        dims = tuple(product(known[leaf] for leaf in leaves(dim)) for dim in out.dims)
        value, axes = rewriter.rewrite(piece.tensor.value), atoms_of(piece.tensor.dims)
        row, access = _numbers(axes, number), rewriter.access(axes, piece.access)
        shape = sizes(out.dims)
        places = rewriter.places(piece.scatter)
        outputs.append(
            Output(value, row, dims, shape, out.dtype, node, piece.output, access, places)
        )
        if not space.axes(value) <= set(row):
            _refuse(meaning, i, "plan-reshape", "an axis that it differs along is lost")
    space.outputs = tuple(outputs)
    space.notes = tuple(size_notes(used, known))
    space.legal = tuple(legal_sizes(meaning, used, called, known))
    origin = meaning.reader.origin
    space.origin = {new: origin[old] for old, new in rewriter.done.items() if old in origin}
    known_spans = meaning.reader.dag.spans
    space.dag.spans = {
        new: known_spans[old] for old, new in rewriter.done.items() if old in known_spans
    }
    return space


def _group_size(
    row: tuple[Atom, ...],
    used: Sequence[tuple[GraphInput, Dims]],
    called: dict[str, str],
    known: dict[Atom, Expr],
) -> Expr:
    return _whole_tensor(row, used, called) or product(known[leaf] for leaf in row)


def _numbers(row: tuple[Atom, ...], number: dict[Atom, int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number[leaf] for leaf in row))


@dataclass(slots=True)
class Rewriter:
    """Copies expressions into a new Dag, with groups for axes."""

    space: Space
    inputs: dict[str, tuple[int, ...]]
    number: dict[Atom, int]
    sized: Callable[[Expr], Expr | None]  # sizes of axes, over input shapes
    done: dict[Value, Value] = field(default_factory=dict)

    def access(self, axes: tuple[Atom, ...], access: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """A start, and a step along each group, over input shapes."""
        if not access:
            return ()
        last = {self.number[leaf]: step for leaf, step in zip(axes, access[1:], strict=True)}
        found = [self.sized(expr) for expr in (access[0], *last.values())]
        result = tuple(expr for expr in found if expr is not None)
        if len(result) < len(found) or last.get(self.space.last, ONE) != ONE:
            raise PlanError("plan-data-movement", "elements of a slice do not lie side by side")
        return result

    def places(self, scatter: Scatter | None) -> Places | None:
        if scatter is None:
            return None
        groups = _numbers(atoms_of(scatter.index.dims), self.number)
        step, rows = self.sized(scatter.step), self.sized(scatter.rows)
        if step is None or rows is None or len(groups) != 1:
            raise PlanError("plan-data-movement", "an index runs along several loops")
        index = scatter.index
        return Places(index.value.text, index.dtype, groups[0], step, rows, scatter.adds)

    def rewrite(self, root: Value) -> Value:
        for value in reachable([root]):
            if value not in self.done:
                self.done[value] = self._copy(value)
        return self.done[root]

    def _copy(self, value: Value) -> Value:
        dag = self.space.dag
        args = tuple(self.done[arg] for arg in value.args)
        if value.op == "load":
            axes = _numbers(value.axes, self.number) if value.index else self.inputs[value.text]
            return dag.keep(
                Value(
                    "load",
                    text=value.text,
                    axes=axes,
                    dtype=value.dtype,
                    kind=value.kind,
                    index=self.access(value.axes, value.index),
                )
            )
        axes = tuple(sorted({self.number[leaf] for leaf in leaves(value.axes)}))
        if value.op == "reduce":
            return self._reduce(value, args[0], axes)
        if value.op == "running":
            return self._running(value, args[0], axes)
        if value.op == "count" and not axes:
            return dag.const(max(1 - value.number, 0))
        if value.op == "mul":
            return product_of(self.space, args[0], args[1], value, self._alike)
        if value.op == "select":
            return self._select(args[0], args[1], args[2])
        if value.op in ("floordiv", "mod"):
            return quotient_of(dag, value.op, args[0], args[1])
        if value.op == "index" and len(axes) != 1:
            raise PlanError(
                "plan-data-movement", "an index runs along an axis that had to be split",
                hint="index before reshaping",
            )  # fmt: skip
        return dag.keep(replace(value, args=tuple(args), axes=axes, mode="", index=(), parts=()))

    def _alike(self, one: Value, two: Value) -> bool:
        return self.space.wide(one) == self.space.wide(two)

    def _reduce(self, value: Value, operand: Value, axes: tuple[int, ...]) -> Value:
        """Leave out axes that the operand does not differ along."""
        dag = self.space.dag
        present = tuple(axis for axis in axes if axis in self.space.axes(operand))
        absent = tuple(axis for axis in axes if axis not in present)
        inner = dag.reduce(value.text, operand, present)
        if not absent or value.text in ("max", "min"):
            return inner
        if value.text == "prod":
            return dag.make("power", inner, dag.count(absent))
        return dag.mul(inner, dag.count(absent))

    def _running(self, value: Value, operand: Value, axes: tuple[int, ...]) -> Value:
        dag = self.space.dag
        if not axes:  # one element
            neutral = dag.const(1.0 if value.text == "prod" else 0.0)
            return neutral if value.mode == "exclusive" else operand
        if len(axes) != 1 or axes[0] not in self.space.axes(operand):
            raise PlanError(
                "plan-data-movement",
                f"a running {value.text} goes along several loops, or along one that its operand "
                "does not differ along",
                hint="scan before reshaping, and what has been expanded not at all",
            )
        backward = value.mode == "reverse"
        if self.space.backward.setdefault(axes[0], backward) != backward:
            raise PlanError(
                "plan-mixed-reductions", "one scan runs forwards and one backwards along an axis",
                hint="two operators",
            )  # fmt: skip
        return dag.running(value.text, operand, axes, value.mode)

    def _select(self, mask: Value, yes: Value, no: Value) -> Value:
        """A mask that is one bit for a whole tile becomes a tile of bits."""
        dag = self.space.dag
        wide = self.space.wide(yes) or self.space.wide(no)
        if wide and not self.space.wide(mask) and mask.op != "const":
            everywhere = dag.make("fill", dag.truth(mask))
            mask = dag.compare("gt", everywhere, dag.const(0.5))
        return dag.select(mask, yes, no)


def product_of(
    space: Space, a: Value, b: Value, value: Value, alike: Callable[[Value, Value], bool]
) -> Value:
    """x * (1 / d) is x / d, where that is no more work: one rounding less.

    `alike`: whether two values have as many elements.
    """
    for x, inverse in ((a, b), (b, a)):
        if inverse.op == "div" and inverse.args[0].op == "const" and inverse.args[0].number == 1:
            under = inverse.args[1]
            if under.op != "const" and alike(under, x):
                return space.dag.div(x, under)
    return space.dag.make("mul", a, b, kind=value.kind)
