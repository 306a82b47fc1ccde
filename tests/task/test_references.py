"""References that outlive a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npusmith.task.load import open_task
from npusmith.task.references import open_references
from npusmith.task.trials import Sets

TASK = """import json, pathlib, torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * FACTOR
FACTOR = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
def get_inputs():
    return [torch.randn(3, 4)]
def get_init_inputs():
    return []
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NPUSMITH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "double.py"
    path.write_text(TASK)
    path.with_suffix(".json").write_text("2.0")
    return path


def made(task: Path, seed: int = 1) -> tuple[Path, float]:
    """Where the references lie, and the factor that they show."""
    found = open_references(
        open_task(task), task.parent / "aside", sets=Sets(seeds=(seed,), edges=False, shapes=False)
    )
    trial = found.trials[0]
    return found.folder, float(np.median(trial.references[0] / trial.inputs[0]))


def test_references_are_made_once_for_a_task_its_data_and_its_seeds(task: Path) -> None:
    first, factor = made(task)
    written = (first / "manifest.json").stat().st_mtime_ns
    assert factor == 2 and made(task) == (first, factor)
    assert (first / "manifest.json").stat().st_mtime_ns == written
    assert made(task, seed=2)[0] != first
    task.with_suffix(".json").write_text("3.0")
    assert made(task)[1] == 3
    assert not (task.parent / "aside").exists()


def test_references_that_are_not_whole_are_made_again_aside(task: Path) -> None:
    first, factor = made(task)
    next(first.glob("trial_0_reference*")).write_bytes(b"short")
    assert made(task) == (task.parent / "aside" / "data", factor)
