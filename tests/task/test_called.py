"""A task as a suite calls it: its own sets first, then what the judge adds to them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch
from torch.utils import _pytree as pytree

from npusmith.bench.suites.trials import Order
from npusmith.task import edges
from npusmith.task.called import Called
from npusmith.task.files import get
from npusmith.task.prepared import TrialData
from npusmith.task.sort_ties import TIES
from npusmith.task.trials import check_files, make_orders
from npusmith.task.user import Inputs
from npusmith.task.wire import MANIFEST, Manifest, ValueFiles

HEAD = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(6))
        self.norm = torch.nn.BatchNorm1d(6)
    def forward(self, a, b):
        {forward}
def get_init_inputs():
    return []
"""
SETS = "def get_inputs():\n    return [torch.randn(4, 6), torch.randn(4, 6)]\n"
CASES = """def get_cases():
    draw = lambda device: ([], [torch.randn(4, 6, device=device), torch.ones(3, device=device)])
    return [("case 4", 120, draw), ("case 9", 120, lambda device: 1 / 0), ("case 5", 120, draw)]
"""


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The child's work in this very process, checked as its parent checks it."""
    monkeypatch.setattr(Called, "start", lambda self: None)  # nothing global changes here

    def run(forward: str, rest: str = SETS) -> Manifest:
        text = HEAD.replace("{forward}", textwrap.indent(forward, " " * 8).lstrip()) + rest
        order = Order(
            path=str(tmp_path / "task.py"), text=text, seed=3, seeds=(3, 4), training=True,
            most_bytes=1 << 19,
        )  # fmt: skip
        orders = make_orders(
            order.task, tmp_path, seeds=order.seeds, model_seed=3, calling=order.calling
        )
        manifest = Called(orders, tmp_path).run()
        check_files(order.task, tmp_path, manifest)
        (tmp_path / MANIFEST).write_text(manifest.model_dump_json())
        return manifest

    return run


def test_own_sets_come_first_and_edges_and_drawn_parameters_behind_them(called) -> None:
    manifest = called("return a * self.scale")
    kinds = [trial.kind for trial in manifest.trials]
    assert kinds == ["random"] * 2 + ["more"] * 5 + ["drawn"] * 3
    assert [trial.draw for trial in manifest.trials[-3:]] == [1, 2, 3]
    assert manifest.graph is None and manifest.mode == "training"


def test_an_input_that_no_output_follows_is_named(called) -> None:
    assert "input 1" in called("return a * self.scale").idle
    assert not any(name.startswith("input") for name in called("return a * self.scale + b").idle)


def test_sums_have_error_bounds_also_where_running_statistics_go_on(called) -> None:
    manifest = called("return self.norm(a).sum(0)")
    assert [len(trial.bounds) for trial in manifest.trials[:2]] == [1, 1]
    counted = called("self.scale.data += 1\nreturn (a * self.scale).sum(0)")
    assert not any(trial.bounds for trial in counted.trials)  # each call gives something else


def test_outputs_keep_their_nesting_and_what_a_call_did_to_inputs(called, tmp_path: Path) -> None:
    manifest = called("a += 1\nreturn {'sum': [a, b.sum()], 'name': 'x'}")
    first = TrialData(manifest.trials[0], tmp_path)
    value = get(first.wanted, tmp_path)
    assert list(value) == ["sum", "name"] and value["name"] == "x"
    assert value["sum"][0].shape == (4, 6) and value["sum"][1].shape == ()
    assert first.record.alias == (0,) and first.record.writes
    before = get(first.given, tmp_path)[0]
    assert (value["sum"][0] == before + 1).all()


def test_each_case_has_its_model_and_the_first_one_the_further_sets(called) -> None:
    manifest = called("return a * self.scale", CASES)
    rows = [(trial.name, trial.case, bool(trial.skipped)) for trial in manifest.trials]
    assert rows[:3] == [("case 4", 0, False), ("case 9", 1, True), ("case 5", 2, False)]
    assert rows[3][0] == "case 4, seed 4"
    further = [name for name, *_ in rows[6:]]
    assert further[0] == "case 4, signed" and further[-1] == "case 4, drawn 3"
    assert all(trial.init is not None for trial in manifest.trials if not trial.skipped)
    assert manifest.idle == ("input 1",)


def test_an_edge_value_that_the_model_refuses_is_left_out_alone(called) -> None:
    manifest = called("assert a.isfinite().all()\nreturn a + b")
    skipped = {trial.name: trial.skipped for trial in manifest.trials if trial.skipped}
    assert set(skipped) == {"inf", "nan"} and "AssertionError" in skipped["nan"]


def test_edge_values_on_which_the_order_of_equals_decides_are_left_out(called) -> None:
    whole = called("return (a > 0).float().argsort(1)")
    assert {trial.skipped for trial in whole.trials if trial.kind == "more"} == {TIES}
    assert not any(trial.skipped for trial in whole.trials if trial.kind != "more")
    values = called("return (a > 0).float().sort(1).values")
    assert not any(trial.skipped for trial in values.trials)


def test_a_tensor_without_axes_is_a_setting_that_edge_sets_leave_alone() -> None:
    tensors = (torch.rand(3, 5), torch.tensor(2.0))
    inputs = Inputs(tensors, pytree.tree_flatten(list(tensors))[1])
    for _, edge in edges.MORE:
        value, setting = edges.change(inputs, edge, 1, numbers=False).tensors
        assert float(setting) == 2.0 and not torch.equal(value, tensors[0])
    alone = Inputs(tensors[1:], pytree.tree_flatten([tensors[1]])[1])
    assert float(edges.change(alone, edges.negatives, 1, numbers=False).tensors[0]) == -2.0


def test_signed_values_of_a_constant_are_drawn_and_not_all_zero() -> None:
    """A product in place would leave zeros as they came, which looks like no work at all."""
    found = edges.signed(torch.ones(4, 8), 3)
    assert found.min() < 0 < found.max() and torch.equal(found, edges.signed(torch.ones(4, 8), 3))
    assert edges.signed(torch.empty(0), 3).numel() == 0


def test_a_model_that_derives_by_its_input_gets_edge_values_that_it_can_derive_by(called) -> None:
    drawn = "torch.rand(4, 6, requires_grad=True), torch.rand(4, 6)"
    sets = f"def get_inputs():\n    return [{drawn}]\n"
    manifest = called(
        "with torch.enable_grad():\n    return torch.autograd.grad(a.sin() * b, a, b)[0]", sets
    )
    more = [trial for trial in manifest.trials if trial.kind == "more"]
    assert len(more) == len(edges.MORE) and not any(trial.skipped for trial in more)


def test_sparse_inputs_are_their_places_and_values(called, tmp_path: Path):
    """A model may take a sparse tensor: it travels as two dense ones, and edge values fit both."""
    manifest = called(
        "b = a.coalesce() if a.is_sparse else a\nreturn [b.indices(), b.values()]",
        "def get_inputs():\n"
        "    places, values = torch.randint(0, 3, (2, 6)), torch.randn(6)\n"
        "    sparse = torch.sparse_coo_tensor(places, values, (3, 3), check_invariants=False)\n"
        "    return [sparse, values]\n",
    )
    first = manifest.trials[0]
    assert [item.shape for item in first.inputs] == [(2, 6), (6,), (6,)]
    nan = next(item for item in manifest.trials if item.name == "nan")
    values = get(ValueFiles(tree=nan.call, tensors=nan.inputs), tmp_path)
    assert values[0].layout == torch.sparse_coo and values[1].isnan().any()
    assert torch.equal(values[0]._values().isnan(), values[1].isnan())
    places, sums = get(ValueFiles(tree=first.result, tensors=first.references), tmp_path)
    given = get(ValueFiles(tree=first.call, tensors=first.inputs), tmp_path)[0].coalesce()
    assert torch.equal(places, given.indices()) and torch.equal(sums, given.values())
