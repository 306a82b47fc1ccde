"""`npusmith checks` and its page."""

from __future__ import annotations

import pytest

from npusmith.cli.checks import checked, checks_page, explain_code, list_checks
from npusmith.cli.main import call
from npusmith.errors import CODES, NpusmithError
from npusmith.twin.checklist import CHECKLIST


def test_the_list_holds_every_check_with_its_items() -> None:
    data = list_checks().data
    rows = {row["code"]: row for row in data["checks"]}  # type: ignore[attr-defined]
    assert rows["hazard"]["checklist"] == ["Q04", "S01", "S04"]
    assert rows["padding-read"]["level"] == "warning"


def test_the_page_names_every_code_and_every_item() -> None:
    page = checks_page("")
    assert all(f"`{row.name}`" in page for row in checked())
    assert all(f"| {item.name} |" in page for item in CHECKLIST)


def test_every_code_is_explained() -> None:
    for code, row in CODES.items():
        data = explain_code(code).data
        assert (data["code"], data["meaning"]) == (code, row.meaning)
        assert data["legal"] and data["hint"]


def test_a_finding_is_explained_with_its_items_and_what_is_not_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(["explain", "hazard"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("hazard (error): Two pipes of a core touch the same bytes")
    assert "  checklist S01: " in shown and "  try: " in shown


def test_a_misspelt_code_gets_those_that_are_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["explain", "hazzard"]) == 2
    assert "codes like hazard" in capsys.readouterr().err
    with pytest.raises(NpusmithError, match="no error or finding has the code"):
        explain_code("xxxxxxxxxxxxxxxx")
