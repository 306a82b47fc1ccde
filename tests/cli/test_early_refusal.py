"""What the compiler refuses is refused before PyTorch computes any reference."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from npusmith.errors import PlanError
from npusmith.pipeline import generate
from npusmith.target.chips import find_chip
from npusmith.twin.cache import cache_root

CHIP = find_chip("910B2")
TASK = """
import time

import torch


class Model(torch.nn.Module):
    calls = 0

    def forward(self, x):
        Model.calls += 1
        if Model.calls > 60:  # by then all sizes were tried, and references are computed
            time.sleep(3600)
        return {forward}


def get_inputs():
    return [torch.rand(16, 32)]


def get_init_inputs():
    return []
"""


class Steps:
    def __init__(self) -> None:
        self.names: list[str] = []

    def step(self, name: str, detail: str = "") -> None:
        self.names.append(name)


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NPUSMITH_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_refused_task_computes_no_reference(cached: Path) -> None:
    (cached / "task.py").write_text(TASK.format(forward="torch.special.bessel_j0(x)"))
    steps = Steps()
    with pytest.raises(PlanError):
        generate(cached / "task.py", cached / "out", CHIP, "strict", steps)
    assert steps.names == ["read", "reference", "write"]
    assert not list((cache_root() / "references").glob("*/data"))
    assert not (cached / "out").exists()
    with pytest.raises(PlanError):  # nothing that was left half-made is taken for a reference
        generate(cached / "task.py", cached / "out", CHIP, "strict", Steps())


def test_a_written_task_is_judged_with_the_references_that_follow(tmp_path: Path) -> None:
    text = TASK.format(forward="torch.xlogy(x, x)")  # its graph has a NaN
    text = text.replace("time.sleep(3600)", "pass")
    text += f"# {uuid4()}\n"  # no reference of it is kept; what was compiled is
    (tmp_path / "task.py").write_text(text)
    for out in ("first", "kept"):
        steps = Steps()
        verdict = generate(tmp_path / "task.py", tmp_path / out, CHIP, "strict", steps)
        wanted = ["read", "reference", "write", "reference", "compile"]
        assert verdict.correct and steps.names[:5] == wanted
        assert verdict.seconds["write"] <= verdict.seconds["reference"]
