"""Tasks by name and by pattern; a name that no task has is told, not left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npusmith.bench.suites.selection import check_patterns, matches
from npusmith.cli.main import call
from npusmith.errors import NpusmithError

TASKS = (("pooling/max_pooling_2d", "max_pooling_2d"), ("activation/softmax", "softmax"))


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [("softmax", True), ("activation/softmax", True), ("*MAX", True), ("soft*", True),
     ("activation/*", True), ("soft", False), ("softmax?", False), ("[s]oftmax", True)],
)  # fmt: skip
def test_a_pattern_fits_a_whole_name_in_any_case(pattern: str, fits: bool) -> None:
    assert matches((pattern,), TASKS[1]) is fits


def test_a_name_with_brackets_is_also_a_name() -> None:
    assert matches(("sum[0]",), ("sum[0]",))
    assert matches((), TASKS[0])


def test_a_misspelt_name_gets_those_that_are_near() -> None:
    check_patterns(("softmax", "*pool*"), TASKS)
    with pytest.raises(NpusmithError, match="no task is called sofmax") as error:
        check_patterns(("softmax", "sofmax"), TASKS)
    assert error.value.code == "run-empty"
    assert error.value.legal == "names like activation/softmax"


def test_a_list_names_what_would_run_and_opens_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "tasks"
    root.mkdir()
    for name in ("relu", "gelu", "softmax"):
        (root / f"{name}.py").write_text("class Model: pass\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    args = ["bench", "folder", "--root", str(root), "--list", "--tasks"]
    assert call([*args, "*elu"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["gelu", "relu", "2 tasks, 1 categories"]
    assert call([*args, "rellu"]) == 2
    assert "no task is called rellu" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [root]
    file = tmp_path / "list.json"
    assert call([*args, "soft*", "--json", str(file)]) == 0
    assert [row["name"] for row in json.loads(file.read_text())["tasks"]] == ["softmax"]
