"""Running a suite: what its tables say, what its records say, what survives a kill."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from npusmith.bench.model import Limits, Record
from npusmith.bench.suites import open_suite
from npusmith.bench.suites.judging import case_records
from npusmith.bench.suites.npucases import read_cases, read_suite
from npusmith.errors import NpusmithError
from npusmith.open_writer import open_writer

ADD = "level1/Math/AddCustom"
CHEAT = "level2/Odd/AddCustom_2"


def run(checkout: Path, cases: str, seeds: int, **more: str) -> dict[str, Record]:
    """Every case, judged once."""
    options = {"shapes": "dynamic", "cases": cases, "answered": "true", "input_mb": "100", **more}
    suite = open_suite("npukernelbench", checkout, options)
    writer = open_writer(f"answers:{checkout}")
    found = {}
    for item in suite.items():
        candidate = writer.write(suite.brief(item), 0, 0)
        record = suite.evaluate(item, candidate, Limits(seconds=120, trials=seeds))
        found |= {part.item: part for part in case_records(record)}
    return found


@pytest.fixture(scope="session")
def rows(checkout: Path) -> dict[str, Record]:
    """Every case of the checkout, run once."""
    return run(checkout, "0", 1)


def test_an_honest_answer_passes_both_rules_and_is_clean(rows: dict[str, Record]) -> None:
    for case in (0, 2):
        row = rows[f"{ADD}/case{case}"]
        assert (row.compiled, row.official, row.strict, row.clean) == (True, True, True, True)
        assert row.findings == {}
        assert row.error == "" and row.seconds["run"] > 0


def test_other_values_fail_both_rules_and_say_where(rows: dict[str, Record]) -> None:
    row = rows[f"{ADD}/case1"]
    assert (row.compiled, row.official, row.strict, row.clean) == (True, False, False, True)
    assert "1e-3" in row.error or "0.001" in row.error
    assert row.precise is False


def test_every_seed_must_pass_the_strict_rule(checkout: Path) -> None:
    row = run(checkout, "1", 3, names="AddCustom")[f"{ADD}/case0"]
    own = [note for note in row.trials if note.own]
    assert [note.seed for note in own] == [0, 1, 2]
    assert all(note.strict for note in own)
    assert {note.kind for note in row.trials} > {note.kind for note in own}  # edge values as well
    assert (row.official, row.strict, row.precise) == (True, True, True)


def test_inputs_that_are_too_large_are_left_out_with_their_size(rows: dict[str, Record]) -> None:
    row = rows[f"{ADD}/case3"]
    assert row.skipped == "648 MB of inputs"
    assert (row.official, row.strict, row.clean) == (None, None, None)


def test_a_binding_that_computes_passes_the_suites_rule_alone(rows: dict[str, Record]) -> None:
    row = rows[f"{CHEAT}/case0"]
    assert (row.official, row.strict, row.clean) == (True, False, False)
    assert row.cheating == ["cheat-binding", "cheat-compute"]  # no operator ran, either


def test_a_task_without_an_answer_is_not_among_the_tasks(checkout: Path) -> None:
    assert [task.name for task in read_suite(checkout)] == ["AddCustom", "AddCustom_2"]
    assert [task.name for task in read_suite(checkout, ["Odd"])] == ["AddCustom_2"]
    assert [task.name for task in read_suite(checkout, [], [1])] == ["AddCustom"]


@pytest.mark.parametrize("names", [(), ("Missing",)])
def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(NpusmithError) as caught:
        read_suite(tmp_path, names)
    assert caught.value.code == "file-missing"


# ---- tables of cases


def table(tmp_path: Path, text: str) -> Path:
    (tmp_path / "validation").mkdir()
    (tmp_path / "validation" / "test_cases.csv").write_text(text)
    return tmp_path


def test_a_table_reads_as_the_suite_reads_it(tmp_path: Path) -> None:
    text = "case_id;shape;scale;eps;flag;hole\n0;[2, 3];1.0;1e-5;true;\n1;[4];2.0;1;false;3\n"
    first, second = read_cases(table(tmp_path, text))
    assert first["shape"] == "[2, 3]" and first["scale"] == 1 and isinstance(first["scale"], int)
    assert first["eps"] == 1e-5 and second["eps"] == 1.0 and isinstance(second["eps"], float)
    assert (first["flag"], second["flag"]) == (1, 0)
    assert math.isnan(float(first["hole"])) and second["hole"] == 3.0


def test_a_row_of_another_length_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="3 values for 2 columns"):
        read_cases(table(tmp_path, "case_id;shape\n0;[1];7\n"))


# ---- a run


def read_rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_that_was_killed_goes_on_where_it_was(checkout: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    command = [sys.executable, "-m", "npusmith", "conformance", "npukernelbench", "--cases", "all"]
    command += ["--root", str(checkout), "--json", str(path), "--jobs", "1"]
    command += ["--max-input-mb", "100"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    limit = time.monotonic() + 240
    while not (path.exists() and path.read_text().count("\n")) and time.monotonic() < limit:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    first = read_rows(path)
    assert 1 <= len(first) < 5
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr  # case 1 and the cheat fail
    said = json.loads(done.stdout)
    figures = said["figures"]["all"]
    assert (figures["cases"], figures["strict"], figures["clean"]) == (4, 2, 3)
    assert [item["item"] for item in said["failed"]] == [f"{ADD}/case1", f"{CHEAT}/case0"]
    assert said["unclean"] == []
    after = read_rows(path)
    assert all(row in after for row in first) and len(after) == 5
