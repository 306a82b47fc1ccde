"""Takes runs of operations out of a graph, as graphs of their own.

Views and constants belong to no run: they cost nothing and are made again wherever they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from npusmith.errors import PlanError
from npusmith.plan.node_kinds import ATTENTION, PRODUCTS, takes_apart
from npusmith.plan.split_k_parts import PARTIAL
from npusmith.plan.views import CASTS
from npusmith.task.graph import (
    CROSSING,
    Graph,
    GraphInput,
    Node,
    SymbolicSize,
    crossing_input,
    is_free,
    references,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """An operation with what takes its results apart (getitem)."""

    nodes: tuple[Node, ...]


class Cutter:
    """Takes runs of operations out of a graph."""

    def __init__(self, graph: Graph, copied: frozenset[str] = frozenset()) -> None:
        self.graph = graph
        self.copied = copied  # views that are stored
        self.nodes = {node.name: node for node in graph.nodes}
        self.position = {name: at for at, name in enumerate(self.nodes)}
        self.inputs = {item.name: item for item in graph.inputs}
        self.units = self._units()
        self.unit_of = {node.name: i for i, unit in enumerate(self.units) for node in unit.nodes}
        if any(not self.bases([name]) & set(self.unit_of) for name in graph.outputs):
            self.units.append(Unit(()))  # for what is an input, or a view of one
        self.readers = self._readers()
        self._passing = self._passing_on()

    def reads_unknown(self, unit: int) -> bool:
        """Whether an operation reads a tensor of a type that the chip does not have."""
        read = self.bases(name for node in self.units[unit].nodes for name in references(node))
        made = (self.nodes[name] for name in read - set(self.inputs) if name in self.nodes)
        return any(node.dtype is None and self.unit_of.get(node.name) != unit for node in made)

    def passing(self, stop: int) -> int:
        """Bytes of what is made before a unit and read from it on."""
        return self._passing[stop]

    def is_joint(self, unit: int) -> bool:
        """Whether an output is ready before an operation."""
        return any(node.name in self.graph.outputs for node in self.units[unit - 1].nodes)

    def passes_on(self, unit: int, stop: int) -> bool:
        """Whether what an operation makes is read behind a part."""
        names = (node.name for node in self.units[unit].nodes)
        return any(max(self.readers.get(name, {0})) >= stop for name in names)

    def is_valley(self, start: int, unit: int) -> bool:
        """Whether less than half the bytes pass on here than behind the next operation."""
        size = self.passing(unit)
        falls = unit - 1 == start or self.passing(unit - 1) >= size
        return falls and 2 * size < self.passing(unit + 1)

    def borders_product(self, unit: int) -> bool:
        """Whether an operation, or the one in front of it, is a product of matrices."""
        nodes = (*self.units[unit - 1].nodes, *self.units[unit].nodes)
        return any(node.op in (*PRODUCTS, PARTIAL, ATTENTION) for node in nodes)

    def reduces(self, unit: int) -> bool:
        """Whether less than half comes out of an operation than its largest operand is."""
        nodes = self.units[unit].nodes
        read = [self._bytes(name) for node in nodes for name in references(node)]
        made = [self._bytes(node.name) for node in nodes]
        return 2 * max(made, default=0) < max(read, default=0)

    def _bytes(self, name: str) -> int:
        item = self.nodes.get(name) or self.inputs[name]
        return prod(item.shape) * (item.dtype.bytes if item.dtype is not None else 0)

    def _units(self) -> list[Unit]:
        needed = self._needed()
        runs: dict[str, list[Node]] = {}
        owner: dict[str, str] = {}
        for node in self.graph.nodes:
            if node.name not in needed or self._free(node):
                continue
            base = next(iter(references(node)), "") if takes_apart(node) else ""
            key = owner.get(base, node.name) if base in self.nodes else node.name
            owner[node.name] = key
            runs.setdefault(key, []).append(node)
        return [Unit(tuple(nodes)) for nodes in runs.values()]

    def _needed(self) -> set[str]:
        found: set[str] = set()
        queue = list(self.graph.outputs)
        while queue:
            name = queue.pop()
            if name not in found:
                found.add(name)
                queue += references(self.nodes[name]) if name in self.nodes else []
        return found

    def _passing_on(self) -> list[int]:
        """`passing` of every unit, and behind the last."""
        changes = [0] * (len(self.units) + 2)
        for name, readers in self.readers.items():
            made = self.unit_of.get(name)
            if made is not None and (last := max(readers)) > made:
                changes[made + 1] += self._bytes(name)
                changes[last + 1] -= self._bytes(name)
        return list(accumulate(changes))

    def _readers(self) -> dict[str, set[int]]:
        """Units that read a value, directly or through views of it."""
        found: dict[str, set[int]] = {}
        for i, unit in enumerate(self.units):
            for node in unit.nodes:
                for name in self.bases(references(node)):
                    found.setdefault(name, set()).add(i)
        return found

    def bases(self, names: Iterable[str]) -> set[str]:
        """What these values are views of."""
        found: set[str] = set()
        queue = list(names)
        while queue:
            name = queue.pop()
            node = self.nodes.get(name)
            if node is not None and self._free(node):
                queue += references(node)
            else:
                found.add(name)
        return found

    def _free(self, node: Node) -> bool:
        return is_free(node) and node.name not in self.copied

    def views(self, unit: int) -> frozenset[str]:
        """Views that a unit reads, and outputs that are views of what it makes."""
        own = [node for node in self.units[unit].nodes if node.name not in self.copied]
        read = [name for node in own for name in references(node)]
        made = {node.name for node in own}
        out = [name for name in self.graph.outputs if self.bases([name]) & made]
        return frozenset(
            name for name in (*read, *out) if name in self.nodes and is_free(self.nodes[name])
        )

    def part(self, start: int, stop: int) -> Graph:
        """The units from `start` to before `stop` as a graph."""
        own = [node for unit in self.units[start:stop] for node in unit.nodes]
        names = {node.name for node in own}
        outputs = [name for name in self.graph.outputs if self._home(name) in range(start, stop)]
        crossing = [
            node.name for node in own
            if any(reader >= stop for reader in self.readers.get(node.name, ()))
        ]  # fmt: skip
        included = self._with_views(names, [*outputs, *crossing])
        inside = {node.name for node in included}
        read = {ref for node in included for ref in references(node)} | set(outputs)
        symbolic = [item for item in self.graph.symbolic or () if item.node in inside]
        read |= self._sizes(symbolic, read - inside)
        inputs = [item for item in self.graph.inputs if item.name in read]
        earlier = [name for name in read if name in self.nodes and name not in inside]
        earlier.sort(key=self.position.__getitem__)
        inputs += [stored_input(self.nodes[name]) for name in earlier]
        return Graph(
            inputs=tuple(inputs), nodes=tuple(included), outputs=(*outputs, *crossing),
            eager=self._eager(own), classes=self.graph.classes,
            symbolic=None if self.graph.symbolic is None else tuple(symbolic),
        )  # fmt: skip

    def _sizes(self, symbolic: Iterable[SymbolicSize], read: set[str]) -> set[str]:
        """Inputs of the graph that give sizes to numbers of a part, and that it does not read."""
        needed = self.graph.classes_of(symbolic)
        axes = [self.graph.classes[at].axes for at in needed]
        given = (row for row in axes if row[0][0] in self.inputs)
        return {row[0][0] for row in given if not any(name in read for name, _ in row)}

    def _home(self, output: str) -> int:
        """The unit in whose part an output is stored: the last that it is a view of."""
        bases = [self.unit_of[name] for name in self.bases([output]) if name in self.unit_of]
        return max(bases, default=len(self.units) - 1)

    def _with_views(self, names: set[str], outputs: Iterable[str]) -> list[Node]:
        """The nodes and the views and constants that they, or the outputs, read."""
        found = set(names)
        queue = [ref for name in names for ref in references(self.nodes[name])]
        queue += [name for name in outputs if name in self.nodes]
        while queue:
            name = queue.pop()
            node = self.nodes.get(name)
            if node is not None and name not in found and self._free(node):
                found.add(name)
                queue += references(node)
        return [node for node in self.graph.nodes if node.name in found]

    def _eager(self, own: Sequence[Node]) -> tuple[Node, ...]:
        """A part of one operation is that call; else only what the model rounds is of interest."""
        calls = [node for node in own if not takes_apart(node)]
        if len(calls) == 1:
            return tuple(calls)
        return tuple(node for node in self.graph.eager if node.op.split(".")[1:2] in CASTS)


def stored_input(node: Node) -> GraphInput:
    """What an earlier part stores, as an input of a later one."""
    if node.dtype is None:
        raise PlanError("plan-dtype", f"{node.name} has no element type that the chip has")
    return crossing_input(node.name, node.shape, node.dtype)


def crossing_name(item: GraphInput) -> str:
    """The value of an earlier part that a part's input is; "" where it is an input of the graph."""
    return item.target.removeprefix(CROSSING) if item.target.startswith(CROSSING) else ""
