"""The captured graph: what it keeps of the model, and what it refuses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from npusmith.errors import TaskError
from npusmith.ir.dtypes import DType
from npusmith.task import compare
from npusmith.task.capture import capture, listing, main
from npusmith.task.core_aten import decompose
from npusmith.task.decompositions import table
from npusmith.task.graph import Graph, Ref

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def graph_of(write_task, prepare_here):
    return lambda **task: prepare_here(write_task(**task)).graph


def test_a_sandboxed_capture_gives_nodes_with_their_lines(capsys):
    graph = capture(EXAMPLES / "layer_norm.py")
    kinds = {item.name: (item.kind, item.target) for item in graph.inputs}
    assert kinds["p_norm_weight"] == ("parameter", "norm.weight")
    assert kinds["x"] == ("user", "")
    assert [node.op for node in graph.nodes] == ["aten.native_layer_norm.default", "aten.getitem"]
    assert graph.nodes[0].source == "layer_norm.py:15 forward"
    assert graph.spec(graph.outputs[0]).shape == (256, 1024)
    assert "p_norm_weight, p_norm_bias" in listing(graph)


def test_the_command_prints_an_error_and_fails(capsys, tmp_path):
    assert main([str(tmp_path / "none.py")]) == 1
    assert "error[file-missing]" in capsys.readouterr().err


def test_a_graph_survives_json_with_infinities(graph_of):
    graph = graph_of(forward="return torch.where(x > 0, x, float('-inf')).clamp(max=float('inf'))")
    again = Graph.model_validate_json(graph.model_dump_json())
    assert again == graph
    numbers = [arg for node in again.nodes for arg in node.args if isinstance(arg, float)]
    assert -math.inf in numbers and math.inf in numbers


def test_dtypes_lists_and_keywords_become_plain_literals(graph_of):
    graph = graph_of(forward="return x.half().sum(dim=(0, 1), keepdim=True)")
    cast, total = graph.nodes
    assert cast.kwargs["dtype"] == "float16" and cast.dtype is DType.FLOAT16
    assert total.args == (Ref(ref=cast.name), (0, 1), True)


def test_checks_that_compute_nothing_are_left_out(graph_of):
    ops = {node.op for node in graph_of(forward="return x.half().float()").nodes}
    assert ops == {"aten._to_copy.default"}


def test_numbers_are_fixed_and_tensors_keep_their_position(graph_of):
    graph = graph_of(forward="return y + x * z", inputs="[3.0, torch.randn(4), torch.randn(4)]")
    assert [(item.name, item.position) for item in graph.inputs] == [("y", 0), ("z", 1)]
    assert any(3.0 in node.args for node in graph.nodes)


def test_lists_of_tensors_are_flattened(graph_of):
    graph = graph_of(forward="return torch.cat(x)", inputs="[[torch.randn(4), torch.randn(3)]]")
    assert [item.shape for item in graph.inputs] == [(4,), (3,)]
    assert graph.nodes[-1].args[0] == tuple(Ref(ref=item.name) for item in graph.inputs)


def test_constants_and_buffers_are_inputs_and_unused_ones_are_not(graph_of):
    graph = graph_of(
        init=(
            "self.register_buffer('used', torch.ones(8))\n"
            "self.register_buffer('spare', torch.ones(3))"
        ),
        forward="return x + self.used + torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8])",
    )
    kinds = sorted(item.kind for item in graph.inputs)
    assert kinds == ["buffer", "constant", "user"]
    assert all(item.target for item in graph.inputs if item.kind != "user")


def test_many_outputs_an_input_and_a_parameter_may_be_returned(graph_of):
    graph = graph_of(
        init="self.weight = nn.Parameter(torch.randn(3))",
        forward="return x, (x + 1, [x.sum()]), self.weight",
    )
    shapes = [graph.spec(name).shape for name in graph.outputs]
    assert shapes == [(4, 8), (4, 8), (), (3,)]


def test_changes_in_place_are_noted(write_task, prepare_here):
    manifest = prepare_here(write_task(forward="x.add_(1)\nreturn x * 2"))
    assert any("in place" in note for note in manifest.notes)
    assert len(manifest.graph.outputs) == 1


def test_training_modules_are_noted(write_task, prepare_here):
    manifest = prepare_here(
        write_task(init="self.norm = nn.BatchNorm1d(8)", forward="return self.norm(x)")
    )
    assert any("BatchNorm1d" in note for note in manifest.notes)


@pytest.mark.parametrize(("how", "differs"), [("", False), ("track_running_stats=True", True)])
def test_a_norm_of_the_batch_alone_is_the_same_in_training(write_task, prepare_here, how, differs):
    task = write_task(
        init=f"self.norm = nn.InstanceNorm1d(4, {how})", forward="return self.norm(x[None])[0]"
    )
    notes = prepare_here(task).notes
    assert any("would differ in training" in note for note in notes) == differs


@pytest.mark.parametrize(
    ("forward", "code"),
    [
        ("return x * 2 if x.sum() > 0 else x", "task-export"),
        ("return x[x > 0]", "task-export"),
        ("return F.dropout(x)", "task-random"),
        ("return x + torch.randn_like(x)", "task-random"),
        ("return {'a': 3}", "task-outputs"),
        ("return None", "task-outputs"),
        ("return ()", "task-outputs"),
        ("return x, 3", "task-outputs"),
        ("return x.double()", "task-dtype"),
        ("return torch.fft.fft(x)", "task-dtype"),
        ("return x[:0]", "task-empty"),
        ("return x @ x", "task-raised"),
        ("return x + torch.ones(4, 8, dtype=torch.float64)", "task-dtype"),
        ("return torch.linalg.lu_factor(x[:, :4])[0]", "task-export"),
    ],
)
def test_what_cannot_be_captured_has_its_code(graph_of, forward, code):
    with pytest.raises(TaskError) as caught:
        graph_of(forward=forward)
    assert caught.value.code == code, caught.value


def test_an_output_that_is_a_buffer_which_counts_calls_is_no_function_of_the_inputs(graph_of):
    with pytest.raises(TaskError, match="other values when it is called again") as caught:
        graph_of(
            init="self.register_buffer('calls', torch.zeros((), dtype=torch.int64))",
            forward="self.calls.add_(1)\nreturn x + 1, self.calls",
        )
    assert caught.value.code == "task-random"


def test_a_factorisation_is_refused_for_the_error_that_it_raises(graph_of):
    with pytest.raises(TaskError, match="an error that depends on values"):
        graph_of(forward="return torch.linalg.lu_factor(x[:, :4])[0]")


def test_a_name_that_a_captured_module_has_itself_is_told(graph_of):
    with pytest.raises(TaskError, match="an attribute code of its own") as caught:
        graph_of(init="self.code = nn.Parameter(torch.ones(8))", forward="return x + self.code")
    assert caught.value.seen == "code"


def test_control_flow_on_values_is_blamed_on_its_line(graph_of):
    with pytest.raises(TaskError, match="what this line does depends on values") as caught:
        graph_of(forward="y = x + 1\nif y.sum() > 0:\n    y = -y\nreturn y")
    assert caught.value.place.function == "forward"
    assert caught.value.place.line > 0


@pytest.mark.parametrize("what", ["x[x > 0]", "x.nonzero()", "torch.unique(x)"])
def test_a_shape_that_depends_on_values_is_blamed_on_its_line(graph_of, what):
    with pytest.raises(TaskError, match="depends on values") as caught:
        graph_of(forward=f"y = x + 1\nreturn {what.replace('x', 'y')}")
    assert caught.value.place.line > 0 and caught.value.seen.startswith("return")


def test_the_same_program_at_other_sizes_is_no_difference(graph_of):
    forward = "n, c = x.shape\nreturn torch.softmax(x.reshape(n * c), 0).view(n, c)"
    base = graph_of(forward=forward)
    other = graph_of(forward=forward, inputs="[torch.randn(5, 3)]")
    assert compare.difference(base, other) == ""


@pytest.mark.parametrize(
    ("forward", "word"),
    [
        ("return x.sum(dim=1) / x.shape[1]", "baked in"),
        ("return x[:, : x.shape[1] // 2]", "baked in"),
        ("return x if x.shape[1] > 4 else x + 1", "nodes"),
        ("return x + 1 if x.shape[1] > 4 else x - 1", "stands where"),
    ],
)
def test_a_size_in_a_number_is_a_difference(graph_of, forward, word):
    base = graph_of(forward=forward)
    other = graph_of(forward=forward, inputs="[torch.randn(5, 3)]")
    assert word in compare.difference(base, other)


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: F.linear(F.interpolate(x, scale_factor=2), x[0].flatten(1)[:, :8]),
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear").flatten(1).log_softmax(-1),
        lambda x: F.rms_norm(F.silu(x) @ x.transpose(2, 3), (6,)).std(-1),
        lambda x: F.conv2d(F.pad(x, (1, 1, 0, 1), mode="circular"), x[:, :, :3, :3]).std(1),
        lambda x: torch.stft(x.flatten(), 16, return_complex=True).abs(),
        lambda x: F.scaled_dot_product_attention(x, x, x.sigmoid()).unflatten(-1, (2, 2)),
    ],
)
def test_the_decomposition_is_the_one_that_pytorch_makes_with_all_its_rules(forward):
    class Model(torch.nn.Module):
        def forward(self, x):
            return forward(x)

    with torch.no_grad():
        program = torch.export.export(Model(), (torch.randn(2, 3, 6, 4),), strict=False)
        ours, theirs = decompose(program, table()), program.run_decompositions(table())
    assert str(ours.graph_module.graph) == str(theirs.graph_module.graph)
    assert ours.graph_signature == theirs.graph_signature


OWN_TYPES = """from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import NamedTuple
class Pair(NamedTuple):
    low: torch.Tensor
    high: object
@dataclass
class Held:
    low: torch.Tensor
    rest: object = None
class Named(OrderedDict):
    pass
class Model(nn.Module):
    def forward(self, x):
        return {returned}
def get_inputs():
    return [torch.randn(4, 8)]
"""


@pytest.mark.parametrize(
    ("returned", "form", "count"),
    [
        ("Pair(x + 1, (x * 2, None))", "Pair(low=0, high=(1, None,))", 2),
        ("Held(x + 1)", "Held(low=0, rest=None)", 1),
        ("Held(x + 1, Held(x - 1, [x * 2]))", "Held(low=0, rest=Held(low=1, rest=[2]))", 3),
        ("Named(a=x + 1, b=None, c=x * 2)", "Named(a=0, b=None, c=1)", 2),
        ("Named({3: x + 1})", "{3: 0}", 1),
        ("OrderedDict(b=x + 1, a=x * 2)", "{'b': 0, 'a': 1}", 2),
        ("defaultdict(list, b=x + 1)", "{'b': 0}", 1),
        ("(x + 1, None)", "(0, None,)", 1),
        ("x.max(-1)", "(0, 1,)", 2),
    ],
)
def test_containers_that_forward_returns(graph_of, returned, form, count):
    text = OWN_TYPES.replace("{returned}", returned)
    graph = graph_of(text=text)
    assert (graph.returns, len(graph.outputs)) == (form, count)


@pytest.mark.parametrize("returned", ["{(0, 1): x}", "{2.5: x + 1}", "Named({True: x + 1})"])
def test_keys_that_no_text_holds_are_refused(graph_of, returned):
    with pytest.raises(TaskError, match="a dict with a key that is a") as caught:
        graph_of(text=OWN_TYPES.replace("{returned}", returned))
    assert caught.value.code == "task-outputs"


def test_nothing_but_none_is_no_output(graph_of):
    with pytest.raises(TaskError, match="did not return tensors"):
        graph_of(forward="return (None, None)")
