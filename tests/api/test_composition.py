"""A module of which a part cannot be written: operators and PyTorch, judged as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import npusmith as ns
from npusmith.bench.model import Brief, Candidate
from npusmith.errors import NpusmithError, TwinError
from npusmith.target.chips import find_chip
from npusmith.task.composition import COMPOSITION
from npusmith.task.verdict import Verdict
from npusmith.timing.eager import pytorch_us
from npusmith.writers.folder import read_project_files

LEFT = ("aten._fft_r2c.default", "aten.abs.default", "aten._fft_c2r.default")
TASK = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((1,), 0.7))

    def forward(self, x):
        y = torch.relu(x) * self.weight
        spectrum = torch.fft.rfft(y)
        power = torch.softmax(spectrum.abs(), -1)
        return {"power": power, "signals": [torch.fft.irfft(spectrum, n=x.shape[1]) + y]}


def get_inputs():
    return [torch.randn(6, 24)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("composition") / "spectrum.py"
    file.write_text(TASK)
    return file


@pytest.fixture(scope="module")
def made(task: Path) -> Any:
    return ns.generate(task, out=task.parent / "out", search=0, timed=True)


def codes(verdict: Verdict) -> list[str]:
    return [item.code for item in verdict.findings]


def test_the_whole_is_judged_and_says_what_pytorch_computes(made: Any) -> None:
    verdict = made.verdict
    assert made.passed
    assert codes(verdict) == ["left-to-pytorch"] * 3
    assert verdict.provenance["composition"] == {"operators": 2, "left": dict.fromkeys(LEFT, 1)}
    assert any(item.kind == "shape" and item.passed for item in verdict.trials)
    report = made.report.read_text(encoding="utf-8")
    assert "PyTorch computes 3 calls between them" in report
    readme = (made.folder / "README.md").read_text(encoding="utf-8")
    assert "**PyTorch computes a part of this module**: 3 calls" in readme
    assert "has no rule" in report or "no rule for this operation" in report
    # PyTorch's part counts as time of the whole
    left = pytorch_us(made.composition, find_chip("910B2"))
    assert left > 1
    assert verdict.task_us > verdict.kernel_us + left


def test_it_can_be_called_at_other_sizes(made: Any) -> None:
    space: dict[str, Any] = {}
    exec(TASK, space)
    for shape in ((6, 24), (11, 25)):
        x = torch.randn(*shape)
        with torch.no_grad():
            wanted = space["Model"]()(x)
        torch.testing.assert_close(made(x), wanted)  # nested alike
    with pytest.raises(TwinError, match="other inputs"):
        made(torch.randn(11, 25, 1))


def test_the_project_is_judged_from_its_data_not_from_its_class(made: Any, task: Path) -> None:
    """Whatever stands in model_new.py: the class is written anew."""
    (made.folder / "model_new.py").write_text("raise SystemExit('not this')\n")
    verdict = ns.judge(made.folder, task)
    assert verdict.verdict == "pass"
    assert codes(verdict) == ["left-to-pytorch"] * 3


def test_a_wrong_composition_fails(made: Any, task: Path) -> None:
    file = made.folder / COMPOSITION
    text = file.read_text()
    data = json.loads(text)
    data["outputs"] = data["outputs"][::-1]
    file.write_text(json.dumps(data))
    try:
        assert ns.judge(made.folder, task).verdict == "fail"
    finally:
        file.write_text(text)


def test_whole_refuses(task: Path) -> None:
    with pytest.raises(NpusmithError, match="_fft_r2c"):
        ns.generate(task, out=task.parent / "whole", search=0, whole=True)


def test_only_the_compiler_may_leave_something_to_pytorch(made: Any, task: Path) -> None:
    """A model that hands in such a project is judged by its operators, of which there is one."""

    class Copied:
        name, version = "model", "1"

        def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
            files = read_project_files(made.folder)
            return Candidate(format="project", files=files, writer="model")

    found = ns.generate(task, out=task.parent / "copied", writer=Copied())
    assert not found.passed
    assert found.verdict.error is not None
    assert found.verdict.error["code"] == "project-two-ops"
