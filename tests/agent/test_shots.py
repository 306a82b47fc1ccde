"""The examples of a prompt: they are legal today, and the nearest ones are picked."""

from __future__ import annotations

import pytest

from npusmith.agent.ports import find_ports
from npusmith.agent.shots import Features, Shot, features, pick, read_shots
from npusmith.ir.nodes import Dim
from npusmith.lang import check, parse
from npusmith.target.chips import find_chip
from npusmith.task.prepared import Prepared

SHOTS = read_shots()


@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot.name)
def test_an_example_is_a_legal_program(shot: Shot) -> None:
    check(parse(shot.program), find_chip("910B2"))


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
    ],
)
def test_the_nearest_examples_are_picked(wanted: Features, names: set[str]) -> None:
    picked = [shot.name for shot in pick(wanted, SHOTS)]
    assert picked[0] in names
    assert picked == [shot.name for shot in pick(wanted, list(reversed(SHOTS)))]


def test_a_graph_is_described_and_its_outputs_follow_its_inputs(tiny: Prepared) -> None:
    found = features(tiny.graph)
    assert (found.category, found.axis, found.row) == ("elementwise", "none", 100)
    ports = find_ports(tiny)
    assert ports.outputs[0].dims == (Dim("x", 0), Dim("x", 1))  # on both sets of inputs
    assert ports.dynamic
    assert ports.lines()[0] == "- x: input(float32), shape [64, 100]"
