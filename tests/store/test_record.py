"""result.json: strict text, and the mark of npusmith."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from npusmith.store.record import read_result, to_json, write_result
from npusmith.task.verdict import Rung, Verdict


def test_what_is_written_is_read_back_without_the_mark(tmp_path: Path) -> None:
    write_result(tmp_path, {"verdict": "pass", "trials": [1, 2]})
    assert read_result(tmp_path) == {"verdict": "pass", "trials": [1, 2]}
    assert json.loads((tmp_path / "result.json").read_text())["made_by"].startswith("npusmith ")


def test_a_folder_without_a_result_gives_none(tmp_path: Path) -> None:
    assert read_result(tmp_path) is None
    assert read_result(tmp_path / "nowhere") is None


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_figure_that_json_lacks_survives_a_round_trip_of_a_verdict(
    tmp_path: Path, value: float
) -> None:
    verdict = Verdict(
        verdict="fail", rung=Rung.RAN, compiled=True, correct=False, task="t", tolerance="strict",
        chip="910B2", max_abs_error=value,
    )  # fmt: skip
    write_result(tmp_path, verdict.model_dump(mode="json"))
    data = read_result(tmp_path)
    again = Verdict.model_validate(data).max_abs_error
    assert again is not None
    assert again == value or (math.isnan(again) and math.isnan(value))


def test_the_text_is_strict_json() -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    text = to_json({"a": [math.nan, (math.inf, 1.5)], 3: "ö\x00"})
    assert json.loads(text, parse_constant=refuse) == {
        "a": ["NaN", ["Infinity", 1.5]],
        "3": "ö\x00",
    }
