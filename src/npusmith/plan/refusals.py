"""Errors that name a node of the graph, its shapes and its line in the model."""

from __future__ import annotations

from npusmith.errors import Place, PlanError
from npusmith.task.graph import Argument, Graph, Node, Ref


def refusal(
    graph: Graph, node: Node | None, code: str, why: str, *, legal: str = "", hint: str = ""
) -> PlanError:
    """The error that names a node, its shapes and its line in the model, where there is a node."""
    if node is None:
        return PlanError(code, why, legal=legal, hint=hint)
    shapes = ", ".join(_shape_text(graph, arg) for arg in node.args)
    seen = f"{node.name} = {node.op}({shapes}) -> {list(node.shape)}"
    message = f"{node.op} ({node.name}): {why}"
    return PlanError(code, message, place_of(node), seen=seen, legal=legal, hint=hint)


def _shape_text(graph: Graph, arg: Argument) -> str:
    if isinstance(arg, Ref):
        try:
            spec = graph.spec(arg.ref)
        except (KeyError, StopIteration):
            return arg.ref
        return f"{arg.ref}: {spec.dtype.value}{list(spec.shape)}"
    return (
        str([item.ref if isinstance(item, Ref) else item for item in arg])
        if isinstance(arg, tuple)
        else str(arg)
    )


def place_of(node: Node) -> Place:
    """`file.py:12 forward` as a Place; whatever does not look like that is kept as the file."""
    spot, _, function = node.source.partition(" ")
    file, _, line = spot.rpartition(":")
    if file and line.isdigit():
        return Place(file, int(line), function)
    return Place(node.source)
