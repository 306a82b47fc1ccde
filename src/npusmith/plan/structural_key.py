"""`structural_key(graph)`: text that is the same for parts of a graph that differ in names alone.

The steps of an unrolled loop are the same graph again and again, with other names.
"""

from __future__ import annotations

from npusmith.task.graph import Argument, Graph, Literals, Node, Ref, Slot, replaced


def structural_key(graph: Graph) -> str:
    """Of inputs, nodes, outputs and sizes; lines of a source file are left out.

    Values and parameters are numbered as they come up. Of the classes of sizes only the axes of
    these values count.
    """
    names = _Numbers()
    inputs = [
        (names(item.name), item.shape, item.dtype, item.kind, names(item.target), item.position)
        for item in graph.inputs
    ]
    nodes = [_node(node, names) for node in graph.nodes]
    outputs = [names(name) for name in graph.outputs]
    classes = [
        (at, item.sizes, [(names(name), axis) for name, axis in item.axes if name in names.known])
        for at, item in enumerate(graph.classes)
    ]
    named = graph.classes_of(graph.symbolic or ())
    kept = [(at, sizes, axes) for at, sizes, axes in classes if axes or at in named]
    turn = {at: i for i, (at, _, _) in enumerate(kept)}
    symbolic = graph.symbolic and [
        item.model_copy(
            update={"node": names(item.node), "classes": tuple(turn[at] for at in item.classes)}
        )
        for item in graph.symbolic
    ]
    forms = [
        (turn[at], form.model_copy(update={"classes": tuple(turn[i] for i in form.classes)}))
        for at in sorted(named)
        if (form := graph.classes[at].form) is not None
    ]
    eager = [_node(node, names) for node in graph.eager]
    return repr((inputs, nodes, outputs, [item[1:] for item in kept], forms, symbolic, eager))


class _Numbers:
    """A number, as text, for each name."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        return self.known.setdefault(name, str(len(self.known)))


def _node(node: Node, names: _Numbers) -> tuple[object, ...]:
    def numbered(slot: Slot, item: Ref | Literals) -> Ref | Literals:
        return Ref(ref=names(item.ref)) if isinstance(item, Ref) else item

    def argument(item: Argument) -> Argument:
        return replaced(0, item, numbered)

    args = [argument(item) for item in node.args]
    kwargs = [(key, argument(item)) for key, item in sorted(node.kwargs.items())]
    body = node.body and structural_key(node.body)
    return names(node.name), node.op, args, kwargs, node.shape, node.dtype, body
