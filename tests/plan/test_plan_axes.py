"""Axes that run along the same loops."""

from __future__ import annotations

from npusmith.plan.axes import Atom, leaves, unify


def test_an_axis_that_meets_itself_behind_one_of_size_1_leaves_no_cycle() -> None:
    one, row = Atom(1), Atom(6)
    unify((one, row), (row,))
    assert leaves((one, row)) == (row,)
    assert one.pinned and row.pieces is None
