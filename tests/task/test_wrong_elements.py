"""What is said of a wrong output: the element, its neighbours, the pattern, what is likely."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from npusmith.task.tolerance import compare
from npusmith.task.wrong_elements import Wrong, describe

Array = np.ndarray
SHAPE = (6, 40)
RIGHT = np.random.default_rng(3).normal(size=SHAPE).astype(np.float32) + 5


def said(change: Callable[[Array], None], writer: Array | None = None) -> Wrong:
    """Of an output that was changed in a place."""
    mine = RIGHT.copy()
    with np.errstate(all="ignore"):
        change(mine)
    found = compare(mine, RIGHT, None, "strict")
    assert not found.passed and found.places is not None
    assert found.places.size == found.mismatched
    return describe(mine, RIGHT, found.places, found.worst, writer)


def put(where: object, value: object) -> Callable[[Array], None]:
    def change(mine: Array) -> None:
        mine[where] = value  # type: ignore[index]

    return change


def scaled(mine: Array) -> None:
    mine *= 2.0


def rounded(mine: Array) -> None:
    mine[2, 7] *= 1.002


def moved(mine: Array) -> None:
    mine.reshape(-1)[:-1] = mine.reshape(-1)[1:].copy()


@pytest.mark.parametrize(
    ("change", "pattern", "likely"),
    [
        (scaled, "every element", "a factor or a constant"),
        (rounded, "one element alone", "rounding"),
        (put((5, slice(33, None)), 0.0), "the last 7 elements", "nothing had been computed"),
        (put((5, slice(33, None)), [1, 2, 3, 4, 5, 6, 9]), "the last 7 elements", "a tail"),
        (put((slice(None), slice(36, None)), 77.0), "the last 4 of 40 elements of every row",
         "a tail"),
        (put(slice(1, None, 2), -3.0), "whole rows along the last axis: every 2nd row from 1 on",
         "the loop over rows"),
        (put((slice(2, 4), 9), 1e9), "column 9 of 40, in rows 2 to 3", "the loop over rows"),
        (put((3, 3), np.nan), "one element alone", "NaN or infinity"),
        (moved, "of 240 elements, nearly all", "an offset or a pitch is wrong"),
    ],
)  # fmt: skip
def test_a_pattern_is_named_and_says_what_to_look_at(
    change: Callable[[Array], None], pattern: str, likely: str
) -> None:
    wrong = said(change)
    assert any(pattern in line for line in wrong.lines), wrong.lines
    assert likely in wrong.likely


def test_the_element_stands_among_its_neighbours_and_wrong_ones_are_marked() -> None:
    first, around, *_ = said(put((2, slice(7, 9)), [100.0, 50.0])).lines
    assert first.startswith("at [2, 7] 100 where ")
    assert around.startswith("elements 84 to 90: ") and "100!, 50!, " in around
    assert around.count("!") == 2 and "; expected " in around


def test_the_core_that_stored_it_is_named_with_what_else_it_stored() -> None:
    writer = np.repeat(np.arange(3), 80)
    wrong = said(put((slice(2, 4), slice(1, None, 3)), [7.5] * 13), writer)
    assert "stored by core 1, whose elements lie from 80 to 159; wrong elements are those of " in (
        "; ".join(wrong.lines)
    )
    assert "core 1 alone, of 3" in "; ".join(wrong.lines)
    assert wrong.likely.startswith("how work is dealt out")


def test_a_scalar_and_whole_numbers_are_described_too() -> None:
    mine, theirs = np.array(3.0, np.float32), np.array(4.0, np.float32)
    assert describe(mine, theirs, np.array([0]), 0).lines[0] == "at [] 3 where 4 is expected"
    found = compare(np.array([1, 2, 3]), np.array([1, 2, 4]), None, "strict")
    assert found.places is not None and found.places.tolist() == [2]
    wrong = describe(np.array([1, 2, 3]), np.array([1, 2, 4]), found.places, found.worst)
    assert wrong.lines[0] == "at [2] 3 where 4 is expected"
