"""Experts' kernels against ours (runs/experts.py): which cases, which ratios, which table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import experts
import pytest

Row = dict[str, Any]


def side(us: float | None = 10.0, cores: int = 48, written: int = 8000) -> Row:
    """One side of a row; without a time it was wrong."""
    why = "" if us else "wrong, values"
    return {"us": us, "cores": cores, "written_bytes": written, "why": why}


def row(operator: str, size: int, expert: Row, ours: Row) -> Row:
    why = "; ".join(item["why"] for item in (expert, ours) if item["why"])
    ratio = None if why else expert["us"] / ours["us"]
    return {
        "operator": operator, "case": f"{operator}/case{size}", "bytes": size,
        "expert": expert, "ours": ours, "why": why, "ratio": ratio,
    }  # fmt: skip


def test_three_cases_are_the_smallest_the_middle_and_the_largest_by_bytes() -> None:
    sizes = {0: 9_000_000, 1: 5_000, 2: 6_000, 3: 80_000, 4: 100_000}
    assert experts.spread(sizes, 3) == [1, 3, 0]
    assert experts.spread(sizes, 1) == [0]
    assert experts.spread(dict.fromkeys(range(5), 8192), 3) == [0, 2, 4]


def test_cases_of_a_few_elements_are_taken_only_where_larger_ones_are_lacking() -> None:
    assert experts.spread({0: 2, 1: 100, 2: 8_000, 3: 9_000}, 3) == [1, 2, 3]
    assert experts.spread({0: 2, 1: 100}, 3) == [0, 1]
    assert experts.spread({}, 3) == []


def test_an_operators_ratio_is_the_geometric_mean_of_the_sizes_that_were_compared() -> None:
    rows = [
        row("norm", 9, side(40.0), side(10.0)),
        row("norm", 1, side(10.0), side(10.0)),
        row("norm", 5, side(10.0), side(None)),
    ]
    groups = experts.by_operator(rows)
    assert [item["bytes"] for item in groups["norm"]] == [1, 5, 9]
    assert experts.ratio_of(groups["norm"]) == pytest.approx(2.0)
    assert experts.ratio_of([rows[2]]) is None


def test_totals_count_operators_and_not_cases() -> None:
    rows = [row("a", size, side(20.0), side(10.0)) for size in (1, 2, 3)]
    rows.append(row("b", 1, side(9.7), side(10.0)))
    told = experts.totals(experts.by_operator(rows))
    assert told.startswith("2 operators: geometric mean 1.39") and "0.98: 1, 50.0%" in told
    assert experts.totals({}) == "no operator compared"


def test_naive_and_partial_answers_have_tables_of_their_own_and_count_nowhere_else() -> None:
    rows = [
        row("whole", 1, side(11.0), side(10.0)),
        row("one core", 1, side(90.0, cores=1), side(10.0)),
        row("half results", 1, side(6.0, written=4000), side(10.0)),
        row("small", 1, side(2.0, cores=1), side(2.0, cores=1)),
        row("wrong", 1, side(None), side(10.0)),
    ]
    told = experts.report(rows)
    assert "4 of 5 operators compared, 5 cases" in told
    assert f"{experts.KIND}: 2 operators" in told
    assert f"{experts.ONE_CORE}: 1 operators: geometric mean 9.00" in told
    assert f"{experts.PARTIAL}: 1 operators: geometric mean 0.60" in told
    assert "- wrong/case1: wrong, values" in told


def test_the_slowest_of_ours_stands_first_in_a_table() -> None:
    rows = [row("fast", 1, side(30.0), side(10.0)), row("slow", 1, side(5.0), side(10.0))]
    names = [line.split(" | ")[0] for line in experts.table(experts.by_operator(rows))[2:]]
    assert names == ["| slow", "| fast"]


def test_a_line_that_a_kill_has_cut_is_measured_again(tmp_path: Path) -> None:
    kept = row("a", 1, side(), side())
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(kept) + "\n" + json.dumps(kept)[:40])
    assert experts.read_rows(path) == [kept]
    assert experts.read_rows(tmp_path / "none") == experts.read_rows(None) == []


def test_a_case_is_measured_again_where_a_kernel_is_not_the_one_of_its_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    def measured(suite: object, item: object, given: str, *_: object, **__: object) -> Row:
        calls.append(given)
        return side()

    monkeypatch.setattr(experts, "written", lambda suite, item, writer: writer)
    monkeypatch.setattr(experts, "side_of", measured)
    item = experts.Item(suite="s", name="Op/case1", category="c", source="Op", digest="")
    first, new = experts.compare(None, item, 8, ("expert", "ours"), {})
    assert new and calls == ["expert", "ours"] and first["ratio"] == 1.0
    again = experts.compare(None, item, 8, ("expert", "ours"), {item.name: first})
    assert again == (first, False) and len(calls) == 2
    _, new = experts.compare(None, item, 8, ("expert", "another"), {item.name: first})
    assert new and calls[2:] == ["expert", "another"]
