"""The deterministic writer, where a suite judges a task at smaller shapes than its own."""

from __future__ import annotations

from pathlib import Path

from npusmith.bench.model import Brief, Item
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


def _written(tmp_path: Path, view: str) -> str:
    """The program that is written for a task of 16 rows that was reduced from 64."""
    for name, rows in (("own", 64), ("reduced", 16)):
        (tmp_path / f"{name}.py").write_text(TASK.format(rows=rows, view=view))
    brief = Brief(
        item=Item(suite="s", name="n", category="c", level="1", dtype="float32", source="own.py",
                  digest="0"),
        reference="", path=tmp_path / "reduced.py", original=tmp_path / "own.py",
    )  # fmt: skip
    made = PlanWriter(find_chip("910B2")).write(brief, sample=0, seed=0)
    (text,) = (text for name, text in made.files.items() if name.endswith(".tile.py"))
    assert parse(text)
    return made.files["op_host/reduced_custom.cpp"]


def test_it_writes_for_the_tasks_own_shapes(tmp_path: Path) -> None:
    assert "== 16" not in _written(tmp_path, "")


def test_it_writes_for_the_smaller_ones_where_the_others_are_numbers(tmp_path: Path) -> None:
    """A kernel for x.view(16, 4, 5) alone would refuse what it is judged on."""
    host = _written(tmp_path, ".view(ROWS // 4, 4, 5)")
    assert "x.shape[0] == 16" in host and "x.shape[0] == 64" not in host
