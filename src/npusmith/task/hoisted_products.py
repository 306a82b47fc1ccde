"""Products of a step that need its row alone, for all steps at once in front of the scan.

before: scan over x, whose step computes mm(x[t], w) + b, among others
after:  view(mm(view(x), w) + b), and a scan over the rows of that
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.task.graph import (
    SCAN,
    Graph,
    Node,
    Ref,
    crossing_input,
    is_free,
    names_in,
    needed,
    references,
    with_references,
)

_PRODUCT, _SUM = "aten.mm.default", "aten.add.Tensor"


def hoist_products(graph: Graph) -> Graph:
    """The graph with such products in front of its scans."""
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op == SCAN and node.body is not None:
            before, node = _hoisted(graph, node, node.body)
            nodes += before
        nodes.append(node)
    return graph.model_copy(update={"nodes": tuple(nodes)})


def _hoisted(graph: Graph, scan: Node, body: Graph) -> tuple[list[Node], Node]:
    """What stands in front of the scan, and the scan."""
    states, rows, held = map(names_in, scan.args)
    given = [item.name for item in body.inputs]
    row_of = dict(zip(given[len(states) : len(states) + len(rows)], rows, strict=True))
    held_of = dict(zip(given[len(states) + len(rows) :], held, strict=True))
    found = [
        item
        for item in (_product(body, node, row_of, held_of) for node in body.nodes)
        if item is not None
    ]
    if not found:
        return [], scan
    before: list[Node] = []
    new: dict[str, str] = {}
    for number, item in enumerate(found, len(rows)):
        before += item.nodes(scan.name, graph, row_of, held_of)
        new[item.last.name] = f"row{number}"
        rows = (*rows, before[-1].name)
    inner = [
        crossing_input(new[item.last.name], item.last.shape, item.product.dtype)
        for item in found
        if item.product.dtype is not None
    ]
    at = len(states) + len(row_of)
    gone = {node.name for item in found for node in (item.product, item.last)}
    outputs = tuple(new.get(name, name) for name in body.outputs)
    left = [with_references(node, new) for node in body.nodes if node.name not in gone]
    nodes = needed(left, outputs)
    read = {name for node in nodes for name in references(node)} | set(outputs)
    taken = (*body.inputs[:at], *inner, *body.inputs[at:])
    pairs = [*zip(taken, (*states, *rows, *held), strict=True)]
    end = at + len(inner)
    left_rows, left_held = (
        [pair for pair in part if pair[0].name in read]
        for part in (pairs[len(states) : end], pairs[end:])
    )
    inputs = (item for item, _ in (*pairs[: len(states)], *left_rows, *left_held))
    step = body.model_copy(update={"inputs": tuple(inputs), "nodes": nodes, "outputs": outputs})
    operands = (tuple(Ref(ref=name) for _, name in part) for part in (left_rows, left_held))
    args = (scan.args[0], *operands)
    return before, scan.model_copy(update={"body": step, "args": args})


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of a row with what is held; `last`: it, or its sum with a vector that is held."""

    product: Node
    last: Node
    row: str
    chain: tuple[Node, ...]  # views of what is held
    bias: str = ""

    def nodes(
        self, scan: str, graph: Graph, row_of: Mapping[str, str], held_of: Mapping[str, str]
    ) -> list[Node]:
        """The same for all rows; the last one has a row for each step."""
        rows = graph.spec(row_of[self.row])
        name, dtype = f"{scan}_{self.product.name}", self.product.dtype
        count, wide = rows.shape[0], self.product.shape[1]
        every = rows.shape[0] * rows.shape[1]
        new = {**held_of, **{node.name: f"{name}_{node.name}" for node in self.chain}}
        found = [
            with_references(node, new).model_copy(update={"name": new[node.name], "added": True})
            for node in self.chain
        ]
        weight = references(self.product)[1]
        found.append(_view(f"{name}_rows", rows.name, (every, rows.shape[2]), dtype))
        found.append(
            Node(
                name=name, op=_PRODUCT, added=True, shape=(every, wide), dtype=dtype,
                args=(Ref(ref=found[-1].name), Ref(ref=new[weight])),
            )
        )  # fmt: skip
        if self.bias:
            found.append(
                Node(
                    name=f"{name}_sum", op=_SUM, added=True, shape=(every, wide), dtype=dtype,
                    args=(Ref(ref=name), Ref(ref=held_of[self.bias])),
                )
            )  # fmt: skip
        shape = (count, rows.shape[1], wide)
        return [*found, _view(f"{name}_by_step", found[-1].name, shape, dtype)]


def _product(
    body: Graph, node: Node, row_of: Mapping[str, str], held_of: Mapping[str, str]
) -> _Product | None:
    if node.op != _PRODUCT:
        return None
    row, weight = references(node)
    chain = _views(body, weight, held_of)
    if row not in row_of or chain is None:
        return None
    readers = [item for item in body.nodes if node.name in references(item)]
    if len(readers) == 1 and node.name not in body.outputs and readers[0].op == _SUM:
        (reader,) = readers
        other = [name for name in references(reader) if name != node.name]
        vector = other and other[0] in held_of and body.spec(other[0]).shape == node.shape[1:]
        if vector and not reader.kwargs and len(reader.args) == 2:
            return _Product(node, reader, row, chain, other[0])
    return _Product(node, node, row, chain)


def _views(body: Graph, name: str, held_of: Mapping[str, str]) -> tuple[Node, ...] | None:
    """The views between what is held and a value, which is one of it; None where it is not."""
    made = {node.name: node for node in body.nodes}
    found: list[Node] = []
    while name not in held_of:
        node = made.get(name)
        if node is None or not is_free(node) or len(references(node)) != 1:
            return None
        found.append(node)
        (name,) = references(node)
    return tuple(reversed(found))


def _view(name: str, of: str, shape: tuple[int, ...], dtype: DType | None) -> Node:
    return Node(
        name=name, op="aten.view.default", args=(Ref(ref=of), shape), shape=shape, dtype=dtype,
        added=True,
    )  # fmt: skip
