"""composition.json may come from anywhere: it is read as data and checked before it is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.task.composition import COMPOSITION, composition_text, read_composition
from npusmith.task.graph import Graph, GraphInput, Node, Ref
from npusmith.task.module_forward import write_forward


def _graph(*nodes: Node, outputs: tuple[str, ...] = ("y",)) -> Graph:
    x = GraphInput(name="x", shape=(4,), dtype=DType.FLOAT32, kind="user")
    return Graph(inputs=(x,), nodes=nodes, outputs=outputs)


def _node(name: str = "y", op: str = "aten.relu.default", ref: str = "x", **more: object) -> Node:
    args = (Ref(ref=ref),)
    return Node(name=name, op=op, args=args, shape=(4,), dtype=DType.FLOAT32, **more)  # type: ignore[arg-type]


def _read(tmp_path: Path, graph: Graph) -> Graph | None:
    (tmp_path / COMPOSITION).write_text(composition_text(graph))
    return read_composition(tmp_path)


def test_a_composition_is_read_as_it_was_written(tmp_path: Path) -> None:
    graph = _graph(_node())
    assert _read(tmp_path, graph) == graph
    assert read_composition(tmp_path / "elsewhere") is None


@pytest.mark.parametrize(
    "node",
    [
        _node(op="os.system.default"),
        _node(op="aten.relu.default(x); import os; os.system"),
        _node(name="y = __import__('os')", ref="x"),
        _node(name="lambda"),
        _node(ref="unknown"),
        _node(ref="x.data"),
        _node(kwargs={"a=1, b": 2}),
    ],
)
def test_what_would_be_other_code_is_refused(tmp_path: Path, node: Node) -> None:
    with pytest.raises(NpusmithError) as caught:
        _read(tmp_path, _graph(node, outputs=(node.name,)))
    assert caught.value.code == "project-unreadable"


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"inputs": 1}), "\0" * 40])
def test_what_is_no_graph_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / COMPOSITION).write_text(text)
    with pytest.raises(NpusmithError) as caught:
        read_composition(tmp_path)
    assert caught.value.code == "project-unreadable"


def test_an_output_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NpusmithError):
        _read(tmp_path, _graph(_node(), outputs=("z",)))


def test_words_are_written_as_words() -> None:
    """A string of a call stays one, whatever it holds; types are torch's."""
    said = "float32') or exit('"
    node = Node(
        name="y", op="aten.sum.dim_IntList", args=(Ref(ref="x"), (0,), said), shape=(),
        kwargs={"dtype": "float16", "device": "cpu"}, dtype=DType.FLOAT16,
    )  # fmt: skip
    lines = write_forward(_graph(node), lambda item: f"tensors[{item.position}]")
    assert lines[1] == (
        f"y = torch.ops.aten.sum.dim_IntList(tensors[0], [0], {said!r}, dtype=torch.float16, "
        "device=tensors[0].device)  # left to PyTorch"
    )
