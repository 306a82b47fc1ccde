"""Concatenations of more and more tensors read the one before: `with_concat_chains(graph)`.

before: cat([x, a]), cat([x, a, b]), cat([x, a, b, c]), as in a DenseNet: kernels of their own
after:  cat([x, a]) = p, cat([p, b]) = q, cat([q, c]): the same kernel at other sizes
"""

from __future__ import annotations

from npusmith.task.graph import Graph, Node, Ref

_CAT = "aten.cat.default"
_LEAST = 2  # tensors of a `cat` that another one begins with


def with_concat_chains(graph: Graph) -> Graph:
    """The graph in which a `cat` reads the longest of the earlier ones that it begins with."""
    known: dict[str, tuple[Node, tuple[str, ...]]] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        parts = _parts(node)
        fit = [own for own in known.values() if parts and _begins_with(node, parts, own)]
        if fit:
            earlier, own = max(fit, key=lambda item: len(item[1]))
            left = (earlier.name, *parts[len(own) :])
            args = (tuple(Ref(ref=name) for name in left), *node.args[1:])
            nodes.append(node.model_copy(update={"args": args}))
        else:
            nodes.append(node)
        if len(parts) >= _LEAST:
            known[node.name] = node, parts
    return graph.model_copy(update={"nodes": tuple(nodes)}) if known else graph


def _parts(node: Node) -> tuple[str, ...]:
    """What a `cat` concatenates; nothing for other nodes."""
    if node.op != _CAT or not node.args or not isinstance(node.args[0], tuple):
        return ()
    return tuple(item.ref for item in node.args[0] if isinstance(item, Ref))


def _begins_with(node: Node, parts: tuple[str, ...], earlier: tuple[Node, tuple[str, ...]]) -> bool:
    other, own = earlier
    same = other.dtype == node.dtype and _axis(other) == _axis(node)
    return same and len(own) < len(parts) and parts[: len(own)] == own


def _axis(node: Node) -> int:
    axis = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    assert isinstance(axis, int)
    return axis % len(node.shape)
