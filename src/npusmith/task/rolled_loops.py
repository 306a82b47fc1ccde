"""Loops in time that a model runs itself: equal steps of a captured graph become one scan.

before: select(x, 0, 0), cat, mm, tanh, select(x, 0, 1), cat, mm, tanh, ..., cat(unsqueeze(y0), ...)
after:  scan((h,), (x,), (w,)), whose body is one of the steps, and the rows that it gives

A step begins where the model takes the next row of a tensor, and is the same operations on the same
values each time, but for that row and for what the step before it gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from sys import maxsize

from npusmith.task.graph import (
    SCAN,
    Argument,
    Graph,
    GraphInput,
    Literals,
    Node,
    Ref,
    TensorSpec,
    crossing_input,
    needed,
    references,
    with_references,
)

FEWEST = 4  # steps
_FEWEST_KNOWN = 2  # ... of a loop that there is at the model's own sizes
# One kernel holds the steps of a loop without products, and its states on chip, up to so many
# operations; a product is a kernel of its own, and what is added up often ends one, so that few
# steps are many launches.
MOST_UNROLLED = 256
_MOST_KERNELS = 8
_PRODUCTS = ("mm", "bmm", "convolution")
_REDUCTIONS = ("sum", "mean", "amax", "amin", "max", "min", "prod", "_softmax", "_log_softmax")
_JOIN, _RAISED = "aten.cat.default", "aten.unsqueeze.default"


def roll_loops(graph: Graph, as_in: Graph | None = None) -> Graph:
    """The graph with its long loops as scans; as it is where there is none.

    `as_in`: the graph of the same model at its own sizes, which decides for all sizes.
    """
    if as_in is not None and not any(map(_is_rolled, as_in.nodes)):
        return graph
    while (found := _first(graph, as_in is not None)) is not None:
        graph = found
    return graph


def _is_rolled(node: Node) -> bool:
    """Whether it is a scan that was a loop of the model's own."""
    return node.op == SCAN and node.added


def renamed_behind(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Names behind a rolled loop that do not count its steps; by the new one, the captured name.

    before: mul_47 = mul(add_23, x) behind 21 steps, mul_133 = mul(add_66, x) behind 64
    after:  mul_behind_1 = mul(add_behind_1, x)
    """
    first = next((at for at, node in enumerate(graph.nodes) if _is_rolled(node)), None)
    if first is None:
        return graph, {}
    new: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for node in graph.nodes[first:]:
        if not node.added:
            word = node.op.split(".")[1]
            counts[word] += 1
            new[node.name] = f"{word}_behind_{counts[word]}"
    nodes = (
        with_references(node, new).model_copy(update={"name": new.get(node.name, node.name)})
        for node in graph.nodes
    )
    outputs = tuple(new.get(name, name) for name in graph.outputs)
    renamed = graph.model_copy(update={"nodes": tuple(nodes), "outputs": outputs})
    return renamed, {after: before for before, after in new.items()}


def _first(graph: Graph, any_length: bool) -> Graph | None:
    loop = _Loop(graph, _FEWEST_KNOWN if any_length else FEWEST)
    for rows in loop.groups():
        steps = _Steps.of(loop, rows)
        if steps is None or not (any_length or steps.is_long()):
            continue
        if (rolled := steps.rolled()) is not None:
            return rolled
    return None


@dataclass(frozen=True, slots=True)
class _Row:
    """`kept`: its axis is there, with a size of 1."""

    tensor: str
    dim: int
    index: int
    kept: bool = False


class _Loop:
    """A graph whose rows of tensors are operands, no nodes: a model may take them all at first."""

    def __init__(self, graph: Graph, fewest: int) -> None:
        self.graph, self.fewest = graph, fewest
        made = {node.name: node for node in graph.nodes}
        found = {node.name: _row(node, made) for node in graph.nodes}
        self.shapes = {item.name: item.shape for item in graph.inputs}
        self.shapes |= {node.name: node.shape for node in graph.nodes if node.dtype is not None}
        taken: dict[tuple[str, int], set[int]] = {}
        for row in filter(None, found.values()):
            taken.setdefault((row.tensor, row.dim), set()).add(row.index)
        # an element that a step takes of what it has made is no row of a loop
        whole = {key for key, indices in taken.items() if self._are_rows(key, indices)}
        self.rows = {
            name: row
            for name, row in found.items()
            if row is not None and (row.tensor, row.dim) in whole
        }
        self.nodes = [node for node in graph.nodes if node.name not in self.rows]

    def _are_rows(self, key: tuple[str, int], indices: set[int]) -> bool:
        """Are these all rows of a tensor, but for the first one?"""
        shape = self.shapes.get(key[0], ())  # none: of a type that the chip lacks
        if not shape or len(indices) < self.fewest:
            return False
        return indices >= set(range(1, shape[key[1]]))

    def groups(self) -> Iterator[list[int]]:
        """Places of nodes that are the first to read the rows of a tensor, one after the other.

        With the first row or without it: a loop may begin behind it. With the last row or without
        it: of the last step what only a next one would read is missing.
        """
        places: dict[tuple[str, int], dict[int, int]] = {}
        for place, node in enumerate(self.nodes):
            for row in map(self.rows.get, references(node)):
                if row is not None:
                    places.setdefault((row.tensor, row.dim), {}).setdefault(row.index, place)
        for (tensor, dim), readers in places.items():
            count = self.graph.spec(tensor).shape[dim]
            for first in (0, 1):
                rows = [at for at in readers if at >= first]
                if len(rows) >= self.fewest and rows == list(range(first, count)):
                    yield [readers[at] for at in rows]
                    yield [readers[at] for at in rows[:-1]]


def _row(node: Node, made: Mapping[str, Node]) -> _Row | None:
    """The row of a tensor that a node is: by an index, or a slice, with its axis or without."""
    match node.op, node.args:
        case "aten.select.int", (Ref(ref=name), int(dim), int(index)) if index >= 0:
            return _Row(name, dim % (len(node.shape) + 1), index)
        case "aten.slice.Tensor", (Ref(ref=name), int(dim), int(index), int(stop), *step):
            if index >= 0 and stop == index + 1 and step in ([], [1]):
                return _Row(name, dim % len(node.shape), index, kept=True)
        case "aten.squeeze.dims", (Ref(ref=name), (int(dim),)) if name in made:
            row = _row(made[name], made)
            if row is not None and row.kept and row.dim == dim % (len(node.shape) + 1):
                return replace(row, kept=False)
    return None


@dataclass(slots=True)
class _Steps:
    """Equal steps: `steps[k][i]` is node i of step k."""

    loop: _Loop
    steps: list[list[Node]]
    start: int  # the first node's place
    rows: dict[str, _Row] = field(default_factory=dict)  # of the first step, by name
    states: dict[int, str] = field(default_factory=dict)  # node of a step -> before the first step
    held: dict[str, None] = field(default_factory=dict)

    @staticmethod
    def of(loop: _Loop, places: Sequence[int]) -> _Steps | None:
        """Steps that read these rows, whatever they do in front of that."""
        length = places[1] - places[0]
        if length < 1 or any(two - one != length for one, two in pairwise(places)):
            return None
        for lead in range(min(length, places[0] + 1)):
            if places[-1] - lead + length > len(loop.nodes):
                continue
            steps = [loop.nodes[at - lead : at - lead + length] for at in places]
            made = _Steps(loop, steps, places[0] - lead)
            if made._are_equal():
                return made
        return None

    @property
    def graph(self) -> Graph:
        return self.loop.graph

    def _are_equal(self) -> bool:
        """Are all steps the first one, with the next rows and what the step before has given?"""
        first = self.steps[0]
        own = {node.name: i for i, node in enumerate(first)}
        for k, step in enumerate(self.steps[1:], 1):
            here = {node.name: i for i, node in enumerate(step)}
            before = {node.name: i for i, node in enumerate(self.steps[k - 1])}
            for one, node in zip(first, step, strict=True):
                if (one.op, one.shape, one.dtype) != (node.op, node.shape, node.dtype):
                    return False
                if one.body is not None or (pairs := _paired(one, node)) is None:
                    return False
                for old, new in pairs:
                    if not self._same(k, old, new, own, here, before):
                        return False
        return True

    def _is_row(self, k: int, old: str, new: str) -> bool:
        """Is one the row of the first step, and the other k rows behind it?"""
        first, row = self.loop.rows.get(old), self.loop.rows.get(new)
        if first is None or row != replace(first, index=first.index + k):
            return False
        self.rows[old] = first
        return True

    def _same(
        self,
        k: int,
        old: Ref | Literals,
        new: Ref | Literals,
        own: Mapping[str, int],
        here: Mapping[str, int],
        before: Mapping[str, int],
    ) -> bool:
        if not isinstance(old, Ref) or not isinstance(new, Ref):
            return type(old) is type(new) and (old == new or old != old)
        if old.ref in own:  # of the same step
            return here.get(new.ref) == own[old.ref]
        if new.ref in before:  # a state
            return self.states.setdefault(before[new.ref], old.ref) == old.ref
        if self._is_row(k, old.ref, new.ref):
            return True
        self.held[old.ref] = None
        rows = self.loop.rows
        return old.ref == new.ref or (old.ref in rows and rows[old.ref] == rows.get(new.ref))

    def is_long(self) -> bool:
        """Is it better not unrolled?"""
        step, count = self.steps[0], len(self.steps)
        words = {node.op.split(".")[1] for node in step}
        if not words.isdisjoint(_PRODUCTS):
            return count > _MOST_KERNELS
        many = count > _MOST_KERNELS and not words.isdisjoint(_REDUCTIONS)
        return many or count * len(step) > MOST_UNROLLED

    # ------------------------------------------------------------------------------------ the scan

    def rolled(self) -> Graph | None:
        """None where what stands behind the loop needs more of it than last states and rows."""
        last, nodes = self.steps[-1], self.loop.nodes
        outside = {item.name for item in self.graph.inputs} | set(self.loop.rows)
        outside |= {node.name for node in nodes[: self.start]}
        if not {*self.states.values(), *self.held} <= outside & set(self.loop.shapes):
            return None
        if any(self.loop.rows[name].tensor not in outside for name in self._rows_read()):
            return None
        if not all(self._fits(at, name) for at, name in self.states.items()):
            return None
        inside = {
            node.name: (k, i) for k, step in enumerate(self.steps) for i, node in enumerate(step)
        }
        tail = nodes[self.start + len(self.steps) * len(last) :]
        joined = dict(self._joined(tail, inside))
        taken = {name for names in joined.values() for name in names if name not in inside}
        others = (node for node in tail if node.name not in taken and node.name not in joined)
        read = dict.fromkeys(name for node in others for name in references(node))
        read |= dict.fromkeys(self.graph.outputs)
        lasts: dict[str, int] = {}
        for name in read:
            if name in taken:
                return None
            if name not in inside:
                continue
            k, at = inside[name]
            if k != len(self.steps) - 1 or at not in self.states:
                return None
            lasts[name] = at
        return self._written(tail, joined, taken, inside, lasts, last)

    def _rows_read(self) -> list[str]:
        """Rows that are operands of the scan, by name: read, before it, or as what is held."""
        names = (*self.states.values(), *self.held, *self.rows)
        return [name for name in names if name in self.loop.rows]

    def _fits(self, at: int, name: str) -> bool:
        """Has the state behind a step the shape and type of that before the first one?"""
        node = self.steps[0][at]
        if node.dtype is None:
            return False
        spec = self.graph.spec(name)
        return (spec.shape, spec.dtype) == (node.shape, node.dtype)

    def _joined(
        self, tail: Sequence[Node], inside: Mapping[str, tuple[int, int]]
    ) -> Iterator[tuple[str, list[str]]]:
        """Joins of what every step gives, as rows: their names, and the nodes that raise rows."""
        raised = {node.name: node for node in self.graph.nodes if node.op == _RAISED}
        for node in tail:
            if node.op != _JOIN or not isinstance(node.args[0], tuple):
                continue
            names = [item.ref for item in node.args[0] if isinstance(item, Ref)]
            parts = [raised.get(name) for name in names]
            given = [
                inside.get(references(part)[0])
                if part is not None and _raised_at(part) == _axis(node)
                else None
                for part in parts
            ]
            start = next((i for i, item in enumerate(given) if item and not item[0]), len(given))
            own = given[start : start + len(self.steps)]
            if own and own == [(k, (own[0] or (0, 0))[1]) for k in range(len(self.steps))]:
                yield node.name, names[start : start + len(own)]

    def _written(
        self,
        tail: Sequence[Node],
        joined: Mapping[str, list[str]],
        taken: set[str],
        inside: Mapping[str, tuple[int, int]],
        lasts: Mapping[str, int],
        last: Sequence[Node],
    ) -> Graph:
        name = f"scan_{self.steps[0][0].name}"
        states = list(self.states)
        nodes = self._before()
        rows: dict[_Row, str] = {}
        for row in dict.fromkeys(replace(row, kept=False) for row in self.rows.values()):
            views = self._operand(name, row)
            nodes += views
            rows[row] = views[-1].name if views else row.tensor
        made = {node.name: node for node in tail if node.name in joined}
        raised = {node.name: node for node in self.graph.nodes}
        gives: dict[str, int] = {}  # joins -> node of a step
        for join in made:
            gives[join] = inside[references(raised[joined[join][0]])[0]][1]
        body = self._body(states, list(rows), list(gives.values()))
        nodes.append(
            Node(
                name=name, op=SCAN, body=body, shape=(), dtype=None, added=True,
                source=self.steps[0][0].source,
                args=(_refs(self.states.values()), _refs(rows.values()), _refs(self.held)),
            )
        )  # fmt: skip
        for result, at in lasts.items():
            nodes.append(_taken(result, name, states.index(at), last[at]))
        for number, (join, node) in enumerate([*made.items()], len(states)):
            *views, made[join] = _rows(join, name, number, node, joined[join])
            nodes += views
        gone = {*taken, *(node.name for step in self.steps for node in step)}
        gone |= {node.name for node in nodes}
        nodes += [made.get(item.name, item) for item in self.graph.nodes if item.name not in gone]
        return self.graph.model_copy(update={"nodes": needed(nodes, self.graph.outputs)})

    def _operand(self, name: str, row: _Row) -> list[Node]:
        """Views that make the rows of all steps, along the first axis, of a tensor."""
        spec, count = self.graph.spec(row.tensor), len(self.steps)
        shape = tuple(count if i == row.dim else size for i, size in enumerate(spec.shape))
        found: list[Node] = []
        if shape != spec.shape:
            end = row.index + count
            stop = maxsize if end == spec.shape[row.dim] else end
            found.append(
                Node(
                    name=f"{name}_{row.tensor}_from{row.index}", op="aten.slice.Tensor",
                    args=(Ref(ref=row.tensor), row.dim, row.index, stop), shape=shape,
                    dtype=spec.dtype, added=True,
                )
            )  # fmt: skip
        if row.dim:
            order = (row.dim, *(i for i in range(len(shape)) if i != row.dim))
            of = found[-1].name if found else row.tensor
            found.append(
                Node(
                    name=f"{name}_{row.tensor}_rows{row.index or ''}", op="aten.permute.default",
                    args=(Ref(ref=of), order), shape=tuple(shape[i] for i in order),
                    dtype=spec.dtype, added=True,
                )
            )  # fmt: skip
        return found

    def _before(self) -> list[Node]:
        """The nodes in front of the first step, and rows of what is there."""
        front = {node.name for node in self.loop.nodes[: self.start]}
        known = {*front, *(item.name for item in self.graph.inputs)}
        others = {node.name for node in self.loop.nodes} - front
        found: list[Node] = []
        for node in self.graph.nodes:
            if node.name not in others and set(references(node)) <= known:
                known.add(node.name)
                found.append(node)
        return found

    def _body(self, states: Sequence[int], rows: Sequence[_Row], gives: Sequence[int]) -> Graph:
        """The second step, of which all that it takes from the first one is a state."""
        before, step = self.steps[0], self.steps[1]
        new = {before[at].name: f"state{i}" for i, at in enumerate(states)}
        held = {name: f"held{i}" for i, name in enumerate(self.held)}
        given = [_input(f"state{i}", before[at]) for i, at in enumerate(states)]
        for i, row in enumerate(rows):
            spec = self.graph.spec(row.tensor)
            shape = tuple(size for axis, size in enumerate(spec.shape) if axis != row.dim)
            given.append(crossing_input(f"row{i}", shape, spec.dtype))
        given += [_input(called, self.graph.spec(name)) for name, called in held.items()]
        nodes: list[Node] = []
        for one, node in zip(before, step, strict=True):
            called = dict(new)
            for old, ref in _paired(one, node) or ():
                if not isinstance(old, Ref) or not isinstance(ref, Ref) or ref.ref in called:
                    continue
                if old.ref in self.rows and ref.ref != old.ref:
                    row = self.rows[old.ref]
                    called[ref.ref] = f"row{list(rows).index(replace(row, kept=False))}"
                    if row.kept:
                        kept = _raised(called[ref.ref], row.dim, self.graph.spec(old.ref))
                        nodes += [kept] if kept not in nodes else []
                        called[ref.ref] = kept.name
                elif old.ref in held:
                    called[ref.ref] = held[old.ref]
            nodes.append(with_references(node, called))
        outputs = [step[at].name for at in (*states, *gives)]
        return Graph(inputs=tuple(given), nodes=tuple(nodes), outputs=tuple(outputs))


def _paired(one: Node, two: Node) -> list[tuple[Ref | Literals, Ref | Literals]] | None:
    """What stands in the same slots of two nodes; None where they have other slots."""
    if len(one.args) != len(two.args) or list(one.kwargs) != list(two.kwargs):
        return None
    found: list[tuple[Ref | Literals, Ref | Literals]] = []
    for old, new in zip(_arguments(one), _arguments(two), strict=True):
        if isinstance(old, tuple) != isinstance(new, tuple):
            return None
        if isinstance(old, tuple) and isinstance(new, tuple):
            if len(old) != len(new):
                return None
            found += zip(old, new, strict=True)
        elif not isinstance(old, tuple) and not isinstance(new, tuple):
            found.append((old, new))
    return found


def _arguments(node: Node) -> tuple[Argument, ...]:
    return (*node.args, *node.kwargs.values())


def _raised(row: str, dim: int, like: TensorSpec) -> Node:
    return Node(
        name=f"{row}_kept", op=_RAISED, args=(Ref(ref=row), dim), shape=like.shape,
        dtype=like.dtype,
    )  # fmt: skip


def _raised_at(node: Node | None) -> int | None:
    """The axis of size 1 that an unsqueeze adds."""
    if node is None or not isinstance(node.args[1], int):
        return None
    return node.args[1] % len(node.shape)


def _refs(names: Iterable[str]) -> Argument:
    return tuple(Ref(ref=name) for name in names)


def _input(name: str, spec: TensorSpec | Node) -> GraphInput:
    assert spec.dtype is not None
    return crossing_input(name, spec.shape, spec.dtype)


def _taken(name: str, scan: str, number: int, like: Node) -> Node:
    return Node(
        name=name, op="aten.getitem", args=(Ref(ref=scan), number), shape=like.shape,
        dtype=like.dtype,
    )  # fmt: skip


def _axis(join: Node) -> int:
    dim = join.args[1] if len(join.args) > 1 else 0
    assert isinstance(dim, int)
    return dim % len(join.shape)


def _rows(name: str, scan: str, number: int, join: Node, names: Sequence[str]) -> list[Node]:
    """What every step gives, along the axis that the join puts it on, beside what else it has."""
    dim, count = _axis(join), len(names)
    assert isinstance(join.args[0], tuple)
    pieces = list(join.args[0])
    at = pieces.index(Ref(ref=names[0]))
    alone = count == len(pieces)
    if alone and not dim:
        return [_taken(name, scan, number, join)]
    rest = tuple(size for axis, size in enumerate(join.shape) if axis != dim)
    found = [
        Node(
            name=f"{name}_by_step", op="aten.getitem", args=(Ref(ref=scan), number),
            shape=(count, *rest), dtype=join.dtype, added=True,
        )
    ]  # fmt: skip
    if dim:
        order = (*range(1, dim + 1), 0, *range(dim + 1, len(join.shape)))
        shape = (*rest[:dim], count, *rest[dim:])
        found.append(
            Node(
                name=name if alone else f"{name}_turned", op="aten.permute.default",
                args=(Ref(ref=found[-1].name), order), shape=shape, dtype=join.dtype,
                source=join.source, added=not alone,
            )
        )  # fmt: skip
    if not alone:
        others = (*pieces[:at], Ref(ref=found[-1].name), *pieces[at + count :])
        found.append(join.model_copy(update={"args": (others, *join.args[1:])}))
    return found
