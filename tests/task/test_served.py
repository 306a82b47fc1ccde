"""An operator may say that it serves some sizes alone: others it refuses, and is right at these."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.lower import read_bindings
from npusmith.target.chips import find_chip
from npusmith.task.judge import judge
from npusmith.task.prepared import Prepared
from npusmith.task.verdict import REFUSED, Verdict

CHIP = find_chip("910B2")
PROJECT = Path(__file__).parents[1] / "projects" / "rowsum"
SERVES = ["x.shape[1] == 70"]


@pytest.fixture(scope="module")
def rooted(
    tmp_path_factory: pytest.TempPathFactory,
    write_task: Callable[..., object],
    prepare_quickly: Callable[..., Prepared],
) -> Prepared:
    task = write_task(forward="return torch.sqrt(x.sum(-1))", inputs="[torch.rand(8, 70)]")
    made = prepare_quickly(task, tmp_path_factory.mktemp("served"), seeds=(11,), edges=False)
    short = tuple(item for item in made.trials if item.skipped or item.shapes[0][1] < 9000)
    return replace(made, trials=short)


def bound(project: Path, serves: list[str] | None) -> None:
    """The project's folder with a bindings.json that says what it serves."""
    shutil.copytree(PROJECT, project)
    row = {"name": "x", "dtype": "float32", "source": "user", "position": 0, "target": ""}
    said = {"operator": "sqrt", "inputs": [row]} | ({} if serves is None else {"serves": serves})
    (project / "bindings.json").write_text(json.dumps(said))


def judged(prepared: Prepared, project: Path, refuses: str, serves: list[str] | None) -> Verdict:
    bound(project, serves)
    host = project / "op_host" / "sqrt.cpp"
    old = "shape.GetDimNum() != 2"
    assert old in host.read_text()
    host.write_text(host.read_text().replace(old, f"{old}{refuses}"))
    return judge(project, prepared, CHIP, "strict", spec=read_bindings(project))


def test_sizes_that_it_says_it_refuses_count_for_nothing(rooted: Prepared, tmp_path: Path) -> None:
    verdict = judged(rooted, tmp_path / "p", " || shape[1] != 70", SERVES)
    assert (verdict.verdict, verdict.findings) == ("pass", [])
    assert verdict.provenance["serves"] == SERVES
    refused = [trial for trial in verdict.trials if trial.result == REFUSED]
    assert refused and all(trial.shapes[0][1] != 70 for trial in refused)
    assert {trial.skipped for trial in refused} == {f"refused: the operator serves {SERVES[0]}"}
    instead = [trial for trial in verdict.trials if trial.name.startswith("branch")]
    assert instead and all(trial.passed and trial.shapes[0][1] == 70 for trial in instead)
    assert all(trial.shapes[0][0] != 8 for trial in instead)


def test_it_has_to_be_right_at_the_sizes_that_it_serves(rooted: Prepared, tmp_path: Path) -> None:
    verdict = judged(rooted, tmp_path / "p", " || shape[1] != 70 || shape[0] != 8", SERVES)
    assert verdict.verdict == "fail"


def test_the_condition_is_named_where_the_tasks_own_sizes_break_it(
    rooted: Prepared, tmp_path: Path
) -> None:
    verdict = judged(rooted, tmp_path / "p", " || shape[1] != 71", ["x.shape[1] == 71"])
    first = verdict.trials[0]
    assert verdict.verdict == "fail" and [item.code for item in first.findings] == ["size-refused"]
    assert "serves x.shape[1] == 71 alone" in first.findings[0].message


@pytest.mark.parametrize("serves", [None, [], ["x.shape[0] == 8"], ["y.shape[0] == 8"]])
def test_a_refusal_that_it_does_not_say_is_a_failure(
    rooted: Prepared, tmp_path: Path, serves: list[str] | None
) -> None:
    first = [item for item in rooted.trials if item.kind != "shape" or item.shapes[0][0] == 8]
    few = replace(rooted, trials=tuple(first))
    assert any(item.kind == "shape" and not item.skipped for item in few.trials)
    assert judged(few, tmp_path / "p", " || shape[1] != 70", serves).verdict == "fail"


@pytest.mark.parametrize("text", ["import os", "x.shape[", "a = 1", "(" * 1000])
def test_a_condition_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    bound(tmp_path / "p", [text])
    with pytest.raises(NpusmithError) as caught:
        read_bindings(tmp_path / "p")
    assert caught.value.code == "binding-unknown"
