"""What a newcomer reads first is short: sentences, and pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_blocks import sentences, words

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
FIRST = [ROOT / "README.md", *TUTORIALS]


@pytest.mark.parametrize("page", FIRST, ids=lambda page: page.name)
def test_no_sentence_is_over_40_words_and_the_mean_is_below_18(page: Path) -> None:
    counts = {sentence: words(sentence) for sentence in sentences(page)}
    assert len(counts) > 10
    assert [sentence for sentence, count in counts.items() if count > 40] == []
    assert sum(counts.values()) / len(counts) < 18


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_a_tutorial_is_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) < 150


def test_a_long_sentence_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long = "word " * 41
    page.write_text(f"# {long}\n\nOne [link](a.md) of `a b c`. {long.capitalize()}\n\n- {long}\n")
    assert [words(sentence) for sentence in sentences(page)] == [4, 41, 41]
