"""Running a suite: what its tables say, what its rows say, what survives a kill."""

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

from npusmith.conformance.npukernelbench import Options, run
from npusmith.conformance.rows import Row, RowFile, read_rows
from npusmith.conformance.suite import read_cases, read_suite
from npusmith.errors import NpusmithError


@pytest.fixture(scope="session")
def rows(checkout: Path) -> dict[tuple[str, int], Row]:
    """Every case of the checkout, run once."""
    found = run(checkout, Options(every_case=True, most_mb=100))
    return {(row.task, row.case): row for row in found}


def test_an_honest_answer_passes_both_rules_and_is_clean(rows: dict[tuple[str, int], Row]) -> None:
    for case in (0, 2):
        row = rows["AddCustom", case]
        assert (row.compiled, row.official, row.strict, row.clean) == (True, True, True, True)
        assert row.findings == []
        assert row.error == "" and row.seconds > 0


def test_other_values_fail_both_rules_and_say_where(rows: dict[tuple[str, int], Row]) -> None:
    row = rows["AddCustom", 1]
    assert (row.compiled, row.official, row.strict, row.clean) == (True, False, False, True)
    assert "output 0" in row.error and row.precise is False


def test_every_seed_must_pass_the_strict_rule(checkout: Path) -> None:
    chosen = Options(names=("AddCustom",), seeds=3, most_mb=100)
    (row,) = run(checkout, chosen)
    assert (row.seeds, row.official, row.strict, row.precise) == (3, True, True, True)


def test_inputs_that_are_too_large_are_left_out_with_their_size(
    rows: dict[tuple[str, int], Row],
) -> None:
    row = rows["AddCustom", 3]
    assert row.skipped == "648 MB of inputs"
    assert (row.official, row.strict, row.clean) == (None, None, None)


def test_a_binding_that_computes_passes_the_suites_rule_alone(
    rows: dict[tuple[str, int], Row],
) -> None:
    row = rows["AddCustom_2", 0]
    assert (row.official, row.strict, row.clean) == (True, False, False)
    assert row.findings == ["cheat-binding"]


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


# ---- the file of rows


def row(task: str, case: int) -> Row:
    return Row(level=1, category="Math", task=task, case=case, precise=None)


def test_lines_that_are_no_rows_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [
        row("A", 0).model_dump_json(),
        "{",
        "[]",
        '{"task": "B"}',
        row("A", 1).model_dump_json(),
    ]
    path.write_text("\n".join(lines) + '\n{"level": 1, "cat')  # the last one was cut off by a kill
    assert [found.case for found in read_rows(path)] == [0, 1]
    with RowFile(path, resume=True) as file:
        file.add(row("A", 2))
    assert [json.loads(line)["case"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_rows_of_the_time_when_strict_meant_more_are_run_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"level": 1, "category": "Math", "task": "A", "case": 0, "strict": true}\n')
    assert read_rows(path) == []


def test_without_resume_a_file_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(row("A", 0).model_dump_json() + "\n")
    with RowFile(path, resume=False):
        pass
    assert path.read_text() == ""


def test_a_run_that_was_killed_goes_on_where_it_was(
    checkout: Path, tmp_path: Path, rows: dict[tuple[str, int], Row]
) -> None:
    path = tmp_path / "rows.jsonl"
    command = [sys.executable, "-m", "npusmith", "conformance", "npukernelbench", "--cases", "all"]
    command += [
        "--root",
        str(checkout),
        "--json",
        str(path),
        "--jobs",
        "1",
        "--max-input-mb",
        "100",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    limit = time.monotonic() + 120
    while not (path.exists() and path.read_text().count("\n")) and time.monotonic() < limit:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    first = read_rows(path)
    assert 1 <= len(first) < 5
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 1  # case 1 and the cheat fail
    said = json.loads(done.stdout)
    figures = said["figures"]["all"]
    assert (figures["cases"], figures["strict"], figures["clean"]) == (4, 2, 3)
    assert {(item["task"], item["case"]) for item in said["failed"]} == {
        ("AddCustom", 1),
        ("AddCustom_2", 0),
    }
    assert said["unclean"] == []
    after = read_rows(path)
    assert after[: len(first)] == first
    assert {(found.task, found.case) for found in after} == set(rows)
