"""Text of the tables as Markdown."""

from __future__ import annotations

import pytest

from npusmith.cli.markdown import prose, row


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("plain, with (brackets)", "plain, with (brackets)"),
        ("a * b ** c", "a \\* b \\*\\* c"),
        ("__global__ <mode>", "\\_\\_global\\_\\_ \\<mode\\>"),
        ("run `x_y <z>` now", "run `x_y <z>` now"),
        ("`a` and `b*`", "`a` and `b*`"),
        ("a lone ` sign", "a lone \\` sign"),
        ("", ""),
    ],
)
def test_signs_stay_signs_and_code_stays_code(text: str, made: str) -> None:
    assert prose(text) == made


def test_a_bar_does_not_end_a_cell() -> None:
    assert row("a | b", "c") == "| a \\| b | c |"
