"""The deterministic writer, where a suite judges a task at smaller shapes than its own."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from npusmith.bench.model import Brief, Candidate, Item, Limits, Record
from npusmith.bench.suites import open_suite
from npusmith.bench.suites.times import add_own_times
from npusmith.errors import PlanError
from npusmith.lang import parse
from npusmith.target.chips import find_chip
from npusmith.writers.plan import PlanWriter

TASK = """
import torch

ROWS = {rows}


class Model(torch.nn.Module):
    def forward(self, x):
        return x{view}.sum(1)


def get_inputs():
    return [torch.rand(ROWS, 5)]


def get_init_inputs():
    return []
"""


def _written(tmp_path: Path, view: str, own_rows: int = 64) -> Candidate:
    """What is written for a task of 16 rows that was reduced from 64."""
    for name, rows in (("own", own_rows), ("reduced", 16)):
        (tmp_path / f"{name}.py").write_text(TASK.format(rows=rows, view=view))
    brief = Brief(
        item=Item(suite="s", name="n", category="c", level="1", dtype="float32", source="own.py",
                  digest="0"),
        reference="", path=tmp_path / "reduced.py", original=tmp_path / "own.py",
    )  # fmt: skip
    made = PlanWriter(find_chip("910B2"), search=0).write(brief, sample=0, seed=0)
    (text,) = (text for name, text in made.files.items() if name.endswith(".tile.py"))
    assert parse(text)
    return made


def test_it_writes_for_the_tasks_own_shapes(tmp_path: Path) -> None:
    made = _written(tmp_path, "")
    assert "== 16" not in made.files["op_host/reduced_custom.cpp"]
    assert made.origin["search_policy"] == "none tried of at most 0"


def _record(official: bool) -> Record:
    return Record(
        key="k", suite="s", item="n@1MB", category="c", writer="plan", sample=0, candidate="0",
        official=official,
    )  # fmt: skip


def test_its_estimate_is_of_the_tasks_own_shapes(tmp_path: Path) -> None:
    """Five gigabytes take milliseconds; 320 bytes are what is judged."""
    made = _written(tmp_path, "", 1 << 28)
    assert made.own_us is not None and 1e3 < made.own_us < 1e5
    record = _record(True)
    limits = Limits(timing=True)
    add_own_times(record, made, tmp_path / "own.py", limits)
    assert record.own_us == round(made.own_us, 3)
    assert record.own_eager_us is not None and record.own_eager_us > 1e3
    for other in (made.model_copy(update={"own_us": None}), made):
        wrong = _record(other is not made)
        add_own_times(wrong, other, tmp_path / "own.py", limits)
        assert wrong.own_us is None and wrong.own_eager_us is None


def test_it_writes_for_the_smaller_ones_where_the_others_are_numbers(tmp_path: Path) -> None:
    """A kernel for x.view(16, 4, 5) alone would refuse what it is judged on."""
    made = _written(tmp_path, ".view(ROWS // 4, 4, 5)")
    host = made.files["op_host/reduced_custom.cpp"]
    assert made.own_us is None
    assert "x.shape[0] == 16" in host and "x.shape[0] == 64" not in host


LAYERS = """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.one, self.two = nn.Linear(wide, 40), nn.Linear(40, 24)
    def forward(self, x):
        y = torch.softmax(self.one(x), -1)
        return torch.tanh(self.two(y)).view(-1, 2, 12)
def get_inputs():
    return [torch.randn(70, 32)]
def get_init_inputs():
    return [32]
"""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator is too long from its second kernel on."""
    module = importlib.import_module("npusmith.plan.write_kernel")
    monkeypatch.setattr(module, "_MOST_NUMBERS", 30)


@pytest.mark.usefixtures("short")
def test_what_is_too_long_for_an_operator_is_judged_as_several(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text(LAYERS)
    suite = open_suite("folder", tmp_path)
    (item,) = suite.items()
    made = PlanWriter(find_chip("910B2"), search=0).write(suite.brief(item), sample=0, seed=0)
    assert "composition.json" in made.files
    limits = Limits(seconds=60, memory_mb=4096, trials=2, timing=True)
    record = suite.evaluate(item, made, limits)
    assert (record.official, record.strict, record.cheating) == (True, True, []), record.error
    assert record.time_us is not None and record.time_us > 0

    kernel = "op_kernel/layers1_custom.cpp"
    assert "Exp(" in made.files[kernel]
    wrong = {**made.files, kernel: made.files[kernel].replace("Exp(", "Abs(")}
    record = suite.evaluate(item, made.model_copy(update={"files": wrong}), limits)
    assert record.compiled and not record.official

    graph = json.loads(made.files["composition.json"])
    called = next(node for node in graph["nodes"] if node["op"].startswith("npusmith."))
    called["op"] = "aten.tanh.default"
    called["args"] = called["args"][:1]
    lazy = {**made.files, "composition.json": json.dumps(graph)}
    record = suite.evaluate(item, made.model_copy(update={"files": lazy}), limits)
    assert not record.official and record.error.startswith("left-to-pytorch")

    graph = json.loads(made.files["composition.json"])
    graph["nodes"] = [
        {"name": "view", "op": "aten.view.default", "args": [{"ref": "x"}, [70, 2, 16]],
         "shape": [70, 2, 16], "dtype": "float32"},
    ]  # fmt: skip
    back = {**made.files, "composition.json": json.dumps(graph)}
    record = suite.evaluate(item, made.model_copy(update={"files": back}), limits)
    assert not record.official and record.error.startswith("left-to-pytorch")


@pytest.mark.usefixtures("short")
def test_what_is_too_long_and_left_to_pytorch_is_refused(tmp_path: Path) -> None:
    values = "* torch.linalg.eigvalsh(y[:24, :24] @ y[:24, :24].t())"
    text = LAYERS.replace("self.two(y))", f"self.two(y) {values})")
    (tmp_path / "layers.py").write_text(text)
    suite = open_suite("folder", tmp_path)
    (item,) = suite.items()
    with pytest.raises(PlanError):
        PlanWriter(find_chip("910B2"), search=0).write(suite.brief(item), sample=0, seed=0)
