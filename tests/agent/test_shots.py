"""The examples of a prompt: they are what the writer writes today, and the nearest are picked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from npusmith.agent.ports import find_ports
from npusmith.agent.prompt import tile_reference
from npusmith.agent.shots import Features, features, pick, read_shots
from npusmith.agent.written import find_start, in_order, port_names, written
from npusmith.ir.nodes import Dim
from npusmith.ir.text import show
from npusmith.lang import check, parse
from npusmith.lower import plain_spec
from npusmith.target.chips import find_chip
from npusmith.task.graph import Graph
from npusmith.task.prepared import Prepared

RUNS = Path(__file__).parents[2] / "runs"
SHOTS = {shot.name: shot for shot in read_shots()}
CHIP = find_chip("910B2")


@pytest.fixture(scope="module")
def graphs() -> dict[str, Graph]:
    """The graphs of the examples, as runs/shots.py captured them."""
    sys.path.insert(0, str(RUNS))
    import replay_frozen

    sys.path.remove(str(RUNS))
    cases: dict[str, Any] = replay_frozen.read_cases(RUNS / "shots" / "graphs.jsonl.xz")
    return {name: case.graph for name, case in cases.items()}


def test_there_is_an_example_for_each_task_and_none_besides(graphs: dict[str, Graph]) -> None:
    tasks = [*(RUNS.parent / "examples").glob("*.py"), *(RUNS / "shots").glob("*.py")]
    assert {path.stem for path in tasks} - {"mhc_sinkhorn"} == set(SHOTS) == set(graphs)
    files = (RUNS.parent / "src/npusmith/agent/texts/shots").glob("*.tile")
    assert {path.stem for path in files} == set(SHOTS)


@pytest.mark.parametrize("name", SHOTS)
def test_an_example_is_what_the_writer_writes_today(name: str, graphs: dict[str, Graph]) -> None:
    shot = SHOTS[name]
    check(parse(shot.program), CHIP)
    assert shot.features == features(graphs[name])
    made = show(written(graphs[name], f"{name}_custom", CHIP))
    assert made == shot.program, "python runs/shots.py writes and judges the examples again"


def looks(category: str, axis: str, *ops: str) -> Features:
    return Features(
        category=category, axis=axis, rank=2, row=1000, dtypes=("float32",), ops=ops
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (looks("softmax", "last", "_softmax"), {"softmax", "log_softmax"}),
        (looks("scan", "middle", "cumsum"), {"cumprod_middle", "cumsum_exclusive"}),
        (looks("reduction", "middle", "sum"), {"sum_middle"}),
        (looks("loss", "all", "sub", "mean"), {"huber_loss", "hinge_loss", "mse_loss"}),
        (looks("matmul", "none", "permute", "mm", "add", "gelu"), {"linear_gelu"}),
        (looks("matmul", "last", "bmm", "_softmax", "div"), {"attention"}),
        (looks("matmul", "none", "unfold", "view", "bmm", "add"), {"conv1d"}),
        (looks("matmul", "none", "scan", "mm", "tanh"), {"recurrence"}),
    ],
)
def test_the_nearest_examples_are_picked(wanted: Features, names: set[str]) -> None:
    shots = list(SHOTS.values())
    picked = [shot.name for shot in pick(wanted, shots)]
    assert picked[0] in names
    assert picked == [shot.name for shot in pick(wanted, shots[::-1])]
    assert sum(len(SHOTS[name].program) for name in picked) <= 20_000


def test_the_second_example_shows_what_the_first_does_not() -> None:
    shots = list(SHOTS.values())
    wanted = looks("matmul", "none", "view", "mm", "gelu", "_softmax")
    picked = pick(wanted, shots)
    assert len(picked) == 2 and "_softmax" in {op for shot in picked for op in shot.features.ops}
    assert [shot.name for shot in pick(SHOTS["attention"].features, shots)] == ["attention"]


def test_cards_about_products_and_steps_stand_where_they_are_needed() -> None:
    plain, cube = tile_reference(()), tile_reference(("cube",))
    assert "mmad" not in plain and "launch(step" not in plain
    assert "`mmad(c0, a0, b0, m, n, k, accumulate), also with bias=v0`" in cube
    assert "## Products on cube cores" in cube
    for name, cards in (
        ("softmax", ()),
        ("attention", ("cube",)),
        ("recurrence", ("cube", "loops")),
    ):
        assert SHOTS[name].features.cards == cards


def test_an_example_takes_inputs_in_the_order_of_a_tasks_list(graphs: dict[str, Graph]) -> None:
    program = parse(SHOTS["linear_gelu"].program)
    assert program.host.tensors == ("x", "p_layer_weight", "p_layer_bias", "y")
    assert [item.name for item in program.kernels[0].tensors][:2] == ["x", "p_layer_weight"]
    assert in_order(program, port_names(graphs["linear_gelu"])) == program


def test_an_operator_of_several_kernels_has_one_name() -> None:
    spec = plain_spec(parse(SHOTS["linear_gelu"].program))
    assert spec.name == "linear_gelu_custom"
    assert plain_spec(parse(SHOTS["softmax"].program)).name == "softmax_custom"


def test_a_refused_task_begins_with_the_parts_that_can_be_written(tiny: Prepared) -> None:
    graph = tiny.graph
    odd = graph.nodes[0].model_copy(update={"op": "aten.igamma.default"})
    refused = graph.model_copy(update={"nodes": (odd, *graph.nodes[1:])})
    start = find_start(refused, "tiny_custom", CHIP, "parts")
    assert start is not None and len(start.programs) == 1
    check(parse(start.programs[0]), CHIP)
    assert start.left and start.left[0].startswith("igamma.default: ")
    assert (
        find_start(graph, "tiny_custom", CHIP, "parts") is None
    )  # the writer does without a model
    whole = find_start(graph, "tiny_custom", CHIP, "whole")
    assert whole is not None and "def tiny_custom" in whole.programs[0]
    assert find_start(refused, "tiny_custom", CHIP, "none") is None


def test_a_graph_is_described_and_its_outputs_follow_its_inputs(tiny: Prepared) -> None:
    found = features(tiny.graph)
    assert (found.category, found.axis, found.row) == ("elementwise", "none", 100)
    ports = find_ports(tiny)
    assert ports.outputs[0].dims == (Dim("x", 0), Dim("x", 1))  # on both sets of inputs
    assert ports.dynamic
    assert ports.lines()[0] == "- x: input(float32), shape [64, 100]"
