"""The table of APIs: every row is whole, and what it points at exists."""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import Path

import pytest

from npusmith.target.apis import ALL, FAMILIES, Api, Known, find_api
from npusmith.target.intrinsics import INTRINSICS

ROOT = Path(__file__).parents[2]


def test_no_name_has_two_rows() -> None:
    names = Counter(name for row in ALL for name in (row.name, *row.aka))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_family_has_rows() -> None:
    assert FAMILIES
    assert all(FAMILIES.values())


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_a_row_names_its_source_and_a_test_that_exists(row: Api) -> None:
    file, _, test = row.test.partition("::")
    assert row.source
    assert (ROOT / file).is_file(), row.test
    name = test.partition("[")[0]
    assert name in (ROOT / file).read_text(), row.test


@functools.cache
def _texts(folder: Path) -> str:
    """The tests of a folder and the kernels beside them; the table of intrinsics makes more."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix in (".py", ".cpp", ".h")]
    made = (row.ascend for row in INTRINSICS.values())
    return "\n".join([*(path.read_text() for path in files), *made])


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_a_row_is_called_where_it_says(row: Api) -> None:
    names = [row.name.partition(" ")[0].rpartition("::")[2], *row.aka]
    text = _texts((ROOT / row.test.partition("::")[0]).parent)
    assert any(re.search(rf"\b{re.escape(name)}\b", text) for name in names), names


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_a_row_that_is_in_doubt_says_why(row: Api) -> None:
    if row.known in (Known.INFERRED, Known.UNKNOWN):
        assert row.note


def test_an_old_name_finds_the_row_of_the_new_one() -> None:
    old = [(row, name) for row in ALL for name in row.aka]
    assert old
    assert all(find_api(name) is row for row, name in old)
