"""What the search over schedules tried, beside the profile's advice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.plan.schedule import Schedule
from npusmith.plan.search import Trial as Searched
from npusmith.timing.advice import RULES, advise
from npusmith.timing.model import Timing
from npusmith.timing.search_trials import Trial, read_trials, tried


def folder(tmp_path: Path) -> Path:
    """As generate leaves it: 48 cores were best, 36 slower, 24 refused."""
    rows = [
        Searched(Schedule(tile=4096, cores=48), 7.5, 11000.0),
        Searched(Schedule(tile=4096, cores=36), 7.85, 11900.0),
        Searched(Schedule(tile=4096, cores=24), None, None, "no room"),
    ]
    data = {"provenance": {"search": [row.record() for row in rows]}}
    (tmp_path / "result.json").write_text(json.dumps(data), encoding="utf-8")
    return tmp_path


def test_other_values_of_a_decision_are_told_with_their_times(tmp_path: Path) -> None:
    trials = read_trials(folder(tmp_path))
    assert trials is not None
    words = tried(("cores", "lines"), trials)
    assert words == "the search tried cores 36 (7.85 us), cores 24 (refused), and kept the quickest"
    assert tried(("tile",), trials) == "the search (3 schedules) tried no other tile"
    assert tried((), trials) == "the search (3 schedules) decides nothing of this"


def test_kernels_are_compared_with_themselves() -> None:
    rows = [Trial(us=9.0, kernel=1, decisions={"cores": 48}),
            Trial(us=2.0, kernel=2, decisions={"cores": 8})]  # fmt: skip
    assert tried(("cores",), rows) == "the search (2 schedules) tried no other cores"


@pytest.mark.parametrize("text", ["{}", "[", '{"provenance": {"search": [1]}}', "[" * 100_000])
def test_a_folder_without_a_search_says_nothing(tmp_path: Path, text: str) -> None:
    assert read_trials(tmp_path) is None
    (tmp_path / "result.json").write_text(text, encoding="utf-8")
    assert read_trials(tmp_path) is None
    assert read_trials(tmp_path / "result.json") is None


def test_decisions_of_rules_are_those_of_schedules(made: Callable[..., Timing]) -> None:
    named = {name for rule in RULES for name in rule.decisions}
    assert named <= set(Schedule.model_fields)
    trials = [Trial(us=7.5, decisions={"cores": 48})]
    assert all(item.tried for item in advise(made(), trials=trials, most=99))
    assert not any(item.tried for item in advise(made(), most=99))
