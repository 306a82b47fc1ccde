"""`composition.json` in a project of several operators: how they and PyTorch make up the module.

It holds a graph in which each operator is one node, `npusmith.<name>.default`. Nothing of it is
executed as it stands: what judges or calls the module writes its forward anew from the graph.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from pydantic import ValidationError

from npusmith.errors import NpusmithError, Place
from npusmith.task.graph import Graph, GraphInput, Node, is_free, references

COMPOSITION = "composition.json"
OPERATOR = "npusmith"  # where the operations of a graph are operators of the project
_MOST_BYTES = 64 << 20
_OP = re.compile(r"(aten|prims|npusmith)(\.[A-Za-z_]\w{0,100}){2}", re.ASCII)
_TAKEN = "aten.getitem"
_NO_WORK = (_TAKEN, "aten.view_as_real.default", "aten.view_as_complex.default")


def is_operator(node: Node) -> bool:
    """Whether a node calls an operator of the project."""
    return node.op.startswith(f"{OPERATOR}.")


def left_nodes(graph: Graph) -> list[Node]:
    """What PyTorch computes: calls that are no operators, views and constants left out."""
    return [
        node for node in graph.nodes
        if not (is_operator(node) or node.op in _NO_WORK or is_free(node))
    ]  # fmt: skip


def left_graph(graph: Graph) -> Graph:
    """The calls that PyTorch makes, as a graph: what operators give are inputs of it."""
    left = left_nodes(graph)
    mine = {node.name for node in left}
    given = [
        GraphInput(name=node.name, shape=node.shape, dtype=node.dtype, kind="user")
        for node in graph.nodes
        if node.name not in mine and node.dtype is not None
    ]
    return Graph(inputs=(*graph.inputs, *given), nodes=tuple(left), outputs=())


def composition_text(graph: Graph) -> str:
    return graph.model_dump_json(indent=1, exclude_defaults=True) + "\n"


def read_composition(project: Path) -> Graph | None:
    """The graph of that project; None where it is one operator.

    Raises project-unreadable for a file that is not what `generate` leaves.
    """
    path = project / COMPOSITION
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"{path.stat().st_size} bytes")
        graph = Graph.model_validate_json(path.read_text(encoding="utf-8"))
        check_composition(graph)
    except (OSError, ValueError, ValidationError) as error:
        raise NpusmithError(
            "project-unreadable", f"{COMPOSITION} is not what `generate` leaves", Place(str(path)),
            seen=str(error)[:300],
        ) from error  # fmt: skip
    return graph


def check_composition(graph: Graph) -> None:
    """ValueError for names that are no Python names, operations of no known kind, and values that
    are used before they are there."""
    known: set[str] = set()
    for item in graph.inputs:
        _check_name(item.name)
        known.add(item.name)
    for node in graph.nodes:
        _check_name(node.name)
        if node.op != _TAKEN and not _OP.fullmatch(node.op):
            raise ValueError(f"{node.op!r} is no operation")
        for name in node.kwargs:
            _check_name(name)
        if missing := [name for name in references(node) if name not in known]:
            raise ValueError(f"{node.name} reads {missing[0]}, which is not there")
        known.add(node.name)
    if missing := [name for name in graph.outputs if name not in known]:
        raise ValueError(f"the output {missing[0]} is not there")


def _check_name(name: str) -> None:
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is no name")
