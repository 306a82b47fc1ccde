"""References that outlive a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npusmith.errors import TaskError
from npusmith.task.load import open_task
from npusmith.task.references import open_references, with_bounds
from npusmith.task.trials import Sets, prepare

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


def test_of_a_long_loop_one_set_has_bounds_and_the_others_when_they_need_them(
    task: Path,
) -> None:
    """Each bound takes two runs of thousands of operations, most of which nobody would look at."""
    text = TASK.replace("def forward(self, x):", "def __init__(self):")
    text = text.replace("return x * FACTOR", "super().__init__(); self.lstm = torch.nn.LSTM(4, 4)")
    text = text.replace(
        "FACTOR =", "    def forward(self, x):\n        return self.lstm(x)[0]\nA ="
    )
    task.write_text(text.replace("randn(3, 4)", "randn(700, 2, 4)"))
    sets = Sets(seeds=(1, 2), edges=False, shapes=False)
    first, second = (found := open_references(open_task(task), task.parent, sets=sets)).trials[:2]
    assert (first.record.heavy, first.bounds[0] is None) == (False, False)
    assert (second.record.heavy, second.bounds[0] is None) == (True, True)
    late = with_bounds(found, [second.name])[second.name]
    assert (late.name, late.seed) == (second.name, second.seed)
    assert np.array_equal(late.references[0], second.references[0])
    bound = late.bounds[0]
    assert bound is not None and 0 < float(np.median(bound)) < 1e-5


def test_a_link_beside_a_task_leads_nowhere(tmp_path: Path) -> None:
    """A downloaded folder may have a link to anything that its reader can read."""
    secret, folder = tmp_path / "secret.txt", tmp_path / "task"
    secret.write_text("obsidian")
    folder.mkdir()
    path, beside = folder / "told.py", folder / "told.json"
    reads = "open(__file__.removesuffix('.py') + '.json').read()"
    path.write_text(TASK.replace("FACTOR = ", f"raise RuntimeError({reads})\nFACTOR = "))
    beside.symlink_to(secret)
    with pytest.raises(TaskError) as caught:
        prepare(open_task(path), tmp_path / "one", Sets(seeds=(), edges=False, shapes=False))
    assert caught.value.code == "task-denied"
    assert "obsidian" not in f"{caught.value} {caught.value.seen}"
    beside.unlink()
    beside.write_text("a file of its own")
    with pytest.raises(TaskError, match="a file of its own"):
        prepare(open_task(path), tmp_path / "two", Sets(seeds=(), edges=False, shapes=False))
