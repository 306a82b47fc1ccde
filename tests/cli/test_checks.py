"""`npusmith checks` and its page."""

from __future__ import annotations

from npusmith.cli.checks import checked, checks_page, list_checks
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
