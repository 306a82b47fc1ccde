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


def all_outputs_from_operators(graph: Graph) -> bool:
    """Whether all outputs are what operators give, or views of that: no input is handed back."""
    nodes = {node.name: node for node in graph.nodes}

    def comes_from_one(name: str) -> bool:
        node = nodes.get(name)
        if node is None or is_operator(node):
            return node is not None
        read = references(node)
        return bool(read) and all(map(comes_from_one, read))

    return all(map(comes_from_one, graph.outputs))


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
    """ValueError for what would be other code than calls of operators and of ATen.

    Names that are no Python names, operations of no known kind, values that are used before they
    are there, sizes that follow from themselves, and calls that read no tensor but a word, such as
    the name of a file.
    """
    known: set[str] = set()
    for item in graph.inputs:
        _check_name(item.name)
        if item.position < 0:
            raise ValueError(f"{item.name} is argument {item.position}")
        known.add(item.name)
    for node in graph.nodes:
        _check_call(node)
        if missing := [name for name in references(node) if name not in known]:
            raise ValueError(f"{node.name} reads {missing[0]}, which is not there")
        known.add(node.name)
    if missing := [name for name in graph.outputs if name not in known]:
        raise ValueError(f"the output {missing[0]} is not there")
    forms = [(at, item.form) for at, item in enumerate(graph.classes) if item.form is not None]
    for most, size in (*forms, *((len(graph.classes), item) for item in graph.symbolic or ())):
        if not all(0 <= at < most for at in size.classes):
            raise ValueError(f"a size follows from {size.classes}")


def _check_call(node: Node) -> None:
    _check_name(node.name)
    for name in node.kwargs:
        _check_name(name)
    if node.op == _TAKEN:
        if len(node.args) != 2 or not isinstance(node.args[1], int):
            raise ValueError(f"{node.name} takes nothing out of a result")
        return
    if not _OP.fullmatch(node.op):
        raise ValueError(f"{node.op!r} is no operation")
    if not references(node) and any(isinstance(item, str) for item in node.args):
        raise ValueError(f"{node.op} reads no tensor")


def _check_name(name: str) -> None:
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is no name")
