"""What is changed in published text so that it compiles: little, in a copy, and said."""

from __future__ import annotations

import pytest

from npusmith.bench.suites.repairs import REPAIRS, Repair, repair


@pytest.mark.parametrize("item", REPAIRS, ids=[item.task for item in REPAIRS])
def test_a_broken_comment_is_repaired_in_a_copy(item: Repair) -> None:
    answer = {item.file: f"before {item.old} behind", "other.h": item.old}
    files, notes = repair(item.task, answer)
    assert files == {item.file: f"before {item.new} behind", "other.h": item.old}
    assert answer[item.file] == f"before {item.old} behind"
    assert notes == [f"{item.file}: {item.note}"]


def test_an_answer_without_the_fault_is_taken_as_it_is() -> None:
    item = REPAIRS[0]
    assert repair(item.task, {item.file: "sound"}) == ({item.file: "sound"}, [])
    assert repair("AnotherTask", {item.file: item.old}) == ({item.file: item.old}, [])


@pytest.mark.parametrize("item", REPAIRS, ids=[item.task for item in REPAIRS])
def test_only_comments_are_touched(item: Repair) -> None:
    def code(text: str) -> str:
        lines = (line.strip() for line in text.replace("/* Implementation", "//").splitlines())
        return "\n".join(line for line in lines if line and not line.startswith("//"))

    assert code(item.old) == code(item.new)
