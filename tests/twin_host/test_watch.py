"""What the sanitizer assumes of a project, read from its build files."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.errors import CODES
from npusmith.twin.checklist import CHECKLIST
from npusmith.twin.watch import Watch, has_auto_sync


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("", True),
        ("add_ops_compile_options(ALL OPTIONS --cce-auto-sync=off)", False),
        ("add_ops_compile_options(ALL OPTIONS --cce-auto-sync=on)", True),
        ("# add_ops_compile_options(ALL OPTIONS --cce-auto-sync=off)", True),
    ],
)
def test_auto_sync_is_on_unless_the_build_file_turns_it_off(
    tmp_path: Path, text: str, on: bool
) -> None:
    (tmp_path / "op_kernel").mkdir()
    (tmp_path / "op_kernel" / "CMakeLists.txt").write_text(text)
    assert has_auto_sync(tmp_path) is on
    assert Watch().line(tmp_path) == f"check {int(on)} 0 0"


def test_an_option_overrules_the_build_file(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("--cce-auto-sync=off")
    assert Watch(auto_sync=True, notes=True, shuffle=7).line(tmp_path) == "check 1 1 7"


def test_every_code_of_the_checklist_is_in_the_table_and_gaps_are_named() -> None:
    assert {code for item in CHECKLIST for code in item.codes} <= set(CODES)
    assert [item.name for item in CHECKLIST if not item.codes and not item.open] == []
