"""composition.json may come from anywhere: it is read as data and checked before it is used."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.task.composition import COMPOSITION, composition_text, read_composition
from npusmith.task.graph import Graph, GraphInput, Node, Ref, SizeClass, SymbolicSize
from npusmith.task.module_forward import composed_file, write_forward


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
    lines, _ = write_forward(_graph(node), lambda item: f"tensors[{item.position}]")
    assert lines[1] == (
        f"y = torch.ops.aten.sum.dim_IntList(tensors[0], [0], {said!r}, dtype=torch.float16, "
        "device=tensors[0].device)  # left to PyTorch"
    )


@pytest.mark.parametrize("target", ["w if x else exec('')", "net.0.w; import os", "params.0", ""])
def test_an_attribute_stays_one(target: str) -> None:
    """It stands in the text of the class, where more than a name would compute without a word."""
    held = GraphInput(name="w", shape=(4,), dtype=DType.FLOAT32, kind="parameter", target=target)
    graph = _graph(_node(ref="w"))
    graph = graph.model_copy(update={"inputs": (*graph.inputs, held)})
    source = "class Model:\n    def forward(self, x):\n        pass\n"
    tree = ast.parse(composed_file(graph, source))
    (call,) = (
        node for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.ops.aten.relu.default"
    )  # fmt: skip
    assert ast.unparse(call.args[0]).startswith("getattr(self")


def test_a_parameter_of_forward_does_not_hide_torch() -> None:
    source = "class Model:\n    def forward(self, torch):\n        pass\n"
    text = composed_file(_graph(_node()), source)
    assert "torch.ops.aten.relu.default(tensors[0])" in text


def test_a_call_that_opens_a_file_is_refused(tmp_path: Path) -> None:
    node = Node(
        name="y", op="aten.from_file.default", args=("kept", True, 4), shape=(4,),
        dtype=DType.FLOAT32,
    )  # fmt: skip
    with pytest.raises(NpusmithError):
        _read(tmp_path, _graph(node))


def test_sizes_do_not_follow_from_themselves(tmp_path: Path) -> None:
    form = SymbolicSize(node="", argument=0, classes=(0,))
    classes = (SizeClass(sizes=(4,), axes=(), form=form),)
    with pytest.raises(NpusmithError):
        _read(tmp_path, _graph(_node()).model_copy(update={"classes": classes}))


def test_a_result_is_taken_out_by_a_number(tmp_path: Path) -> None:
    node = Node(name="y", op="aten.getitem", args=(Ref(ref="x"),), shape=(4,), dtype=None)
    with pytest.raises(NpusmithError):
        _read(tmp_path, _graph(node))
