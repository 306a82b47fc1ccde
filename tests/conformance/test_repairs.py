"""What is changed in published text so that it compiles: little, in a copy, and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.conformance.repairs import REPAIRS, Repair, repair


@pytest.mark.parametrize("item", REPAIRS, ids=[item.task for item in REPAIRS])
def test_a_broken_comment_is_repaired_in_a_copy(item: Repair, tmp_path: Path) -> None:
    answer = tmp_path / "published"
    file = answer / item.file
    file.parent.mkdir(parents=True)
    file.write_text(f"before {item.old} behind")
    home, notes = repair(item.task, answer, tmp_path / "copy")
    assert (home / item.file).read_text() == f"before {item.new} behind"
    assert file.read_text() == f"before {item.old} behind"
    assert notes == [f"{item.file}: {item.note}"]


def test_an_answer_without_the_fault_is_taken_as_it_is(tmp_path: Path) -> None:
    item = REPAIRS[0]
    file = tmp_path / item.file
    file.parent.mkdir(parents=True)
    file.write_text("sound")
    assert repair(item.task, tmp_path, tmp_path / "copy") == (tmp_path, [])
    file.write_text(item.old)
    assert repair("AnotherTask", tmp_path, tmp_path / "copy") == (tmp_path, [])


@pytest.mark.parametrize("item", REPAIRS, ids=[item.task for item in REPAIRS])
def test_only_comments_are_touched(item: Repair) -> None:
    def code(text: str) -> str:
        lines = (line.strip() for line in text.replace("/* Implementation", "//").splitlines())
        return "\n".join(line for line in lines if line and not line.startswith("//"))

    assert code(item.old) == code(item.new)
