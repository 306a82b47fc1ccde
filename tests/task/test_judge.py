"""Somebody else's projects against a task: attributes, absent tensors, kernels that do not end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npusmith.errors import TaskError
from npusmith.target.chips import find_chip
from npusmith.task.judge import judge
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared
from npusmith.task.verdict import Rung

CHIP = find_chip("910B2")
PROJECTS = Path(__file__).parents[1] / "projects"
SCALE = {"alpha": 1.0, "twice": True, "factors": [1.0, 1]}
TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0
def get_inputs():
    return [torch.randn(8, 70)]
def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def prepared(
    tmp_path_factory: pytest.TempPathFactory, prepare_quickly: Callable[..., Prepared]
) -> Prepared:
    folder = tmp_path_factory.mktemp("judge")
    (folder / "twice.py").write_text(TASK)
    task = open_task(folder / "twice.py")
    return prepare_quickly(task, folder / "trials", seeds=(11, 23, 37), edges=False, shapes=False)


def test_attributes_reach_the_operator_and_an_optional_input_is_absent(
    prepared: Prepared,
) -> None:
    verdict = judge(PROJECTS / "scale", prepared, CHIP, "strict", attrs=SCALE)
    assert verdict.verdict == "pass"


def test_an_attribute_that_the_operator_lacks_is_refused(prepared: Prepared) -> None:
    with pytest.raises(TaskError) as caught:
        judge(PROJECTS / "scale", prepared, CHIP, "strict", attrs={"beta": 1})
    assert caught.value.code == "binding-unknown"
    assert "alpha" in caught.value.record()["legal"]  # type: ignore[operator]


def test_a_kernel_that_hangs_is_given_one_set_of_inputs_only(
    prepared: Prepared, tmp_path: Path
) -> None:
    project = Path(shutil.copytree(PROJECTS / "scale", tmp_path / "scale"))
    kernel = project / "op_kernel" / "scale_custom.cpp"
    text = kernel.read_text()
    start = text.index("GET_TILING_DATA")
    kernel.write_text(text[:start] + "for (volatile int on = 1; on == 1;) {}\n  " + text[start:])
    verdict = judge(
        project, prepared, CHIP, "strict", attrs={"alpha": 1.0}, options=JudgeOptions(seconds=2)
    )
    assert [finding.code for finding in verdict.findings] == ["kernel-hang"]
    assert [trial.result for trial in verdict.trials] == ["FAIL", "not run", "not run"]


@pytest.mark.parametrize("stop", [False, True])
def test_what_is_wrong_at_the_second_set_is_judged_no_further_when_asked(
    prepared: Prepared, tmp_path: Path, stop: bool
) -> None:
    """Of the second and third set the references are zeros."""
    moved = Path(shutil.copytree(prepared.folder, tmp_path / "data"))
    for trial in prepared.trials[1:]:
        for item in (*trial.record.references, *trial.record.goldens):
            (moved / item.file).write_bytes(bytes(item.bytes))
    wrong = replace(
        prepared, trials=tuple(replace(trial, folder=moved) for trial in prepared.trials)
    )
    verdict = judge(
        PROJECTS / "scale", wrong, CHIP, "strict", attrs=SCALE, options=JudgeOptions(stop=stop)
    )
    assert (verdict.verdict, verdict.rung) == ("fail", Rung.RAN)
    last = "not run" if stop else "FAIL"
    assert [trial.result for trial in verdict.trials] == ["pass", "FAIL", last]
    said = "not run: random 1 decided the verdict" if stop else ""
    assert verdict.trials[-1].skipped == said
