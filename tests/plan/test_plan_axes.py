"""Axes that run along the same loops."""

from __future__ import annotations

import pytest

from npusmith.plan.axes import Atom, fresh, leaves, regroup, unify


def test_an_axis_that_meets_itself_behind_one_of_size_1_leaves_no_cycle() -> None:
    one, row = Atom(1), Atom(6)
    unify((one, row), (row,))
    assert leaves((one, row)) == (row,)
    assert one.pinned and row.pieces is None


@pytest.mark.parametrize("follows", [(), (0,), (1,)])
def test_of_a_split_axis_the_piece_that_follows_from_sizes_is_no_number(
    follows: tuple[int, ...],
) -> None:
    """Rows, batch x heads and width as (rows batch) x (heads width): heads are the model's."""
    dims = fresh((17, 6, 16))
    pieces = leaves(regroup(dims, (34, 48), follows)[0])[1], leaves(dims[1])[1]
    assert [leaf.size for leaf in pieces] == [2, 3]
    assert [leaf.model for leaf in pieces] == ([False, True] if follows == (0,) else [True, False])
