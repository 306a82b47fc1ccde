"""The deterministic writer, where a suite judges a task at smaller shapes than its own."""

from __future__ import annotations

from pathlib import Path

from npusmith.bench.model import Brief, Candidate, Item, Limits, Record
from npusmith.bench.suites.times import add_own_times
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
