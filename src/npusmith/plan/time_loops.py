"""Scans: the kernels of a step, launched again and again on other parts of the same tensors.

before: higher_order.scan((h,), (x,), (w,)), whose step gives a new h and a row of y
after:  launch(first, h -> states[0])
        for t in range(steps):
            launch(step, states[t], x[t], w -> states[t + 1], y[t])
        launch(last, states[steps] -> the state after all steps)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npusmith.errors import PlanError
from npusmith.plan.node_kinds import takes_apart
from npusmith.task.graph import (
    SCAN,
    Graph,
    GraphInput,
    Node,
    Ref,
    SizeClass,
    crossing_input,
    is_free,
    names_in,
    references,
    with_references,
)


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan as graphs of its own, and what the tensors of these are.

    `rows`: operands with a row for each step. `olds`, `slices`, `news`: what the step's graph
    calls a state before it, a row, and a state behind it. `results`: what the graphs call the
    scan's outputs, in their order. `lasts`: names for states behind the last step, and which.
    """

    rows: tuple[str, ...]
    olds: tuple[str, ...]
    slices: tuple[str, ...]
    news: tuple[str, ...]
    results: tuple[str, ...]
    lasts: tuple[tuple[str, int], ...]
    before: tuple[Graph, ...]  # copies a state from where it comes from
    step: Graph
    after: tuple[Graph, ...]  # copies one to where it is asked for


def scan_of(graph: Graph) -> Node | None:
    """The scan of a graph that holds nothing else but what takes its results apart."""
    scans = [node for node in graph.nodes if node.op == SCAN]
    if len(scans) != 1:
        return None
    others = (node for node in graph.nodes if node is not scans[0])
    alone = all(takes_apart(node) and references(node) == [scans[0].name] for node in others)
    return scans[0] if alone else None


def beside_scans(graph: Graph) -> frozenset[str]:
    """Views that are stored as they are: operands of a scan, and outputs that show its results."""
    nodes = {node.name: node for node in graph.nodes}

    def comes_out(name: str) -> bool:
        node = nodes.get(name)
        if node is None:
            return False
        return node.op == SCAN or (
            (is_free(node) or takes_apart(node)) and any(map(comes_out, references(node)))
        )

    scans = (node for node in graph.nodes if node.op == SCAN)
    found = {name for node in scans for name in references(node)}
    found |= {name for name in graph.outputs if comes_out(name)}
    return frozenset(name for name in found if name in nodes and is_free(nodes[name]))


def taken_apart(graph: Graph, scan: Node) -> Scan:
    """A graph of one scan as graphs that kernels can be made of."""
    states, rows, held = map(names_in, scan.args)
    if not rows or scan.body is None:
        raise PlanError("plan-op", f"{scan.name} is a scan over no rows", seen=scan.op)
    given = {item.name: item for item in graph.inputs}
    olds = tuple(f"{scan.name}_old{i}" for i, _ in enumerate(states))
    slices = tuple(f"{scan.name}_row{i}" for i, _ in enumerate(rows))
    news = tuple(f"{scan.name}_new{i}" for i, _ in enumerate(states))
    taken = {node.name: node.args[1] for node in graph.nodes if takes_apart(node)}
    asked = [taken[name] for name in graph.outputs]
    results = tuple(f"{scan.name}_result{i}" for i, _ in enumerate(asked))
    called = dict(
        zip((item.name for item in scan.body.inputs), (*olds, *slices, *held), strict=True)
    )
    body = _called(scan.body, called, {name: given[name] for name in held}, scan.name)
    wanted = dict(zip(news, body.outputs, strict=False))
    lasts: list[tuple[str, int]] = []
    after: list[Graph] = []
    for result, at in zip(results, asked, strict=True):
        assert isinstance(at, int)
        if at >= len(states):
            wanted[result] = body.outputs[at]
            continue
        item = body.spec(body.outputs[at])
        last = f"{scan.name}_last{len(lasts)}"
        lasts.append((last, at))
        after.append(_copy(crossing_input(last, item.shape, item.dtype), result))
    copies = tuple(_clone(name, body, of) for name, of in wanted.items())
    step = body.model_copy(update={"nodes": (*body.nodes, *copies), "outputs": (*wanted,)})
    before = tuple(_copy(given[name], f"{scan.name}_first{i}") for i, name in enumerate(states))
    return Scan(rows, olds, slices, news, results, tuple(lasts), before, step, tuple(after))


def _copy(item: GraphInput, name: str) -> Graph:
    copied = Node(
        name=name, op="aten.clone.default", args=(Ref(ref=item.name),), shape=item.shape,
        dtype=item.dtype,
    )  # fmt: skip
    return Graph(inputs=(item,), nodes=(copied,), outputs=(name,))


def _clone(name: str, graph: Graph, of: str) -> Node:
    item = graph.spec(of)
    return Node(
        name=name, op="aten.clone.default", args=(Ref(ref=of),), shape=item.shape, dtype=item.dtype
    )


def _called(
    body: Graph, called: Mapping[str, str], held: Mapping[str, GraphInput], prefix: str
) -> Graph:
    """The body with names of its own: `called` for its inputs, of which some are held."""
    new = {**{node.name: f"{prefix}_{node.name}" for node in body.nodes}, **called}

    def moved(node: Node) -> Node:
        return with_references(node, new).model_copy(update={"name": new[node.name]})

    inputs = {
        called[item.name]: held.get(called[item.name])
        or crossing_input(called[item.name], item.shape, item.dtype)
        for item in body.inputs
    }
    classes = tuple(
        SizeClass(
            sizes=item.sizes, axes=tuple((new[name], axis) for name, axis in item.axes),
            form=item.form,
        )
        for item in body.classes
    )  # fmt: skip
    symbolic = body.symbolic and tuple(
        item.model_copy(update={"node": new[item.node]}) for item in body.symbolic
    )
    return body.model_copy(
        update={
            "inputs": tuple(inputs.values()),
            "nodes": tuple(map(moved, body.nodes)),
            "outputs": tuple(new[name] for name in body.outputs),
            "classes": classes,
            "symbolic": symbolic,
        }
    )
