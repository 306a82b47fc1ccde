"""Inputs of another rank: refused or served is well, answered wrongly is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npusmith.target.chips import find_chip
from npusmith.task import shapes, wire
from npusmith.task.judge import judge
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.prepared import Prepared
from npusmith.task.verdict import Verdict

CHIP = find_chip("910B2")
PROJECTS = Path(__file__).parents[1] / "projects"
ROOT = "return torch.sqrt(x.sum(-1))"


@pytest.fixture(scope="module")
def rooted(
    tmp_path_factory: pytest.TempPathFactory,
    write_task: Callable[..., object],
    prepare_quickly: Callable[..., Prepared],
) -> Prepared:
    """Row sums of a matrix: the model itself takes any rank."""
    task = write_task(forward=ROOT, inputs="[torch.rand(8, 70)]")
    made = prepare_quickly(task, tmp_path_factory.mktemp("ranks"), seeds=(11, 23))
    return replace(made, trials=tuple(item for item in made.trials if item.kind == "random"))


def judge_rows(prepared: Prepared, project: Path, old: str, new: str) -> Verdict:
    shutil.copytree(PROJECTS / "rowsum", project)
    host = project / "op_host" / "sqrt.cpp"
    assert old in host.read_text()
    host.write_text(host.read_text().replace(old, new))
    return judge(project, prepared, CHIP, "strict")


def test_an_operator_that_refuses_another_rank_passes(rooted: Prepared, tmp_path: Path) -> None:
    assert [len(trial.shapes[0]) for trial in rooted.ranks] == [3, 1]
    verdict = judge_rows(rooted, tmp_path / "p", "!= 2", "!= 2")
    assert (verdict.verdict, verdict.findings) == ("pass", [])


def test_an_operator_that_reads_the_first_two_dimensions_fails(
    rooted: Prepared, tmp_path: Path
) -> None:
    verdict = judge_rows(rooted, tmp_path / "p", "GetDimNum() != 2", "GetDimNum() == 9")
    assert (verdict.verdict, verdict.correct) == ("fail", False)
    assert {finding.code for finding in verdict.findings} == {"rank-answered"}
    more = rooted.ranks[0].shapes[0]
    assert verdict.findings[0].seen == f"inputs of {more[0]}x{more[1]}x{more[2]}"
    assert all(trial.passed for trial in verdict.trials)


def test_a_project_for_one_shape_is_not_asked(rooted: Prepared, tmp_path: Path) -> None:
    shutil.copytree(PROJECTS / "rowsum", tmp_path / "p")
    host = tmp_path / "p" / "op_host" / "sqrt.cpp"
    host.write_text(host.read_text().replace("GetDimNum() != 2", "GetDimNum() == 9"))
    assert (
        judge(tmp_path / "p", rooted, CHIP, "strict", options=JudgeOptions(dynamic=False)).verdict
        == "pass"
    )


def test_an_elementwise_operator_serves_every_rank(
    tmp_path: Path,
    write_task: Callable[..., object],
    prepare_quickly: Callable[..., Prepared],
) -> None:
    task = write_task(inputs="[torch.randn(8, 70)]")
    prepared = prepare_quickly(task, tmp_path, seeds=(11, 23), edges=False)
    assert len(prepared.ranks) == 2
    verdict = judge(PROJECTS / "scale", prepared, CHIP, "strict", attrs={"alpha": 2.0})
    assert (verdict.verdict, verdict.findings) == ("pass", [])


def test_what_the_model_refuses_is_not_tried(
    prepare_here: Callable[..., wire.Manifest], write_task: Callable[..., object]
) -> None:
    task = write_task(forward="rows, cols = x.shape\nreturn x * rows", inputs="[torch.rand(4, 8)]")
    assert prepare_here(task, seeds=(11,), shapes=True).ranks == ()


def test_a_label_for_each_row_gets_the_new_axis_with_the_rows() -> None:
    (size, *_), _ = shapes.raise_rank([(8, 70), (8,), (70,)], 11)[0][:2]
    assert 2 <= size <= 8
    first, second = shapes.raise_rank([(8, 70), (8,), (70,)], 11)
    assert first == [(size, 8, 70), (size, 8), (70,)]
    assert second == [(size, 8, 70), (8,), (70,)]
    assert shapes.lower_rank([(8, 70), (70,)]) == [[(70,), (70,)]]
    assert shapes.lower_rank([(70,)]) == []
    assert len({shapes.raise_rank([(8, 70)], seed)[0][0][0] for seed in range(40)}) == 7


def test_a_set_in_which_an_axis_shrank_to_one_is_not_the_smallest() -> None:
    assert shapes.smallest([(8, 70)], [[(1, 1)], [(3, 5)], [(3, 7)]]) == [(3, 5)]
