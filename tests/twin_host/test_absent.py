"""What dav-2201 lacks: the message through build(), and users' own functions of that name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.ir.dtypes import DType
from npusmith.target.absent import ABSENT, explain
from npusmith.target.apis import find_api
from npusmith.target.chips import Chip
from npusmith.twin.compile import build
from npusmith.twin.diagnose import CompileError
from npusmith.twin.project import read_project

TYPES = (DType.FLOAT32,) * 3
KERNEL = "op_kernel/add_custom.cpp"
Edit = Callable[..., Path]


def _replaced(edited: Edit, call: str, before: str = "") -> Path:
    """The project add with another call than Add, and something in front of its class."""
    head = "class KernelAdd {"
    changes = [("Add(z, x, y, n);", f"{call};"), (head, f"{before}\n{head}")]
    return edited("add", {KERNEL: changes})


@pytest.mark.parametrize("call", ["Scatter(1, 2)", "Subs<float>(1)", "Truncate<float, 3>(1)"])
def test_a_call_of_what_the_chip_lacks_names_the_chips_that_have_it(
    edited: Edit, chip: Chip, call: str
) -> None:
    root = _replaced(edited, call)
    with pytest.raises(CompileError) as caught:
        build(read_project(root), chip, TYPES)
    name = call.partition("(")[0].partition("<")[0]
    said = [error for error in caught.value.errors if name in error.message]
    assert f"{name} is not available on dav-2201 (Atlas A2)" in said[0].message
    assert "Ascend 950PR/950DT" in said[0].message
    assert said[0].file.endswith(".cpp")
    assert said[0].line > 0


def test_types_of_other_chips_are_explained(edited: Edit, chip: Chip) -> None:
    root = _replaced(edited, "AscendC::MicroAPI::RegTensor<float> r; hifloat8_t h")
    with pytest.raises(CompileError) as caught:
        build(read_project(root), chip, TYPES)
    text = " ".join(error.message for error in caught.value.errors)
    assert "MicroAPI is not available on dav-2201" in text
    assert "hifloat8_t is not available on dav-2201" in text


def test_the_users_own_function_of_that_name_compiles(edited: Edit, chip: Chip) -> None:
    own = "template <typename T> void Divs(T, int) {}\nclass Clamp {};\nvoid Scatter(long) {}"
    build(read_project(_replaced(edited, "Divs(1.0f, 2); Scatter(3); Clamp c", own)), chip, TYPES)


def test_nothing_is_both_absent_and_in_the_table_of_apis() -> None:
    assert [row.name for row in ABSENT if find_api(row.name)] == []
    assert len({row.name for row in ABSENT}) == len(ABSENT)


def test_other_complaints_stay_as_they_are() -> None:
    assert explain("'Foo' was not declared in this scope") == "'Foo' was not declared in this scope"
    assert "chips that have it" in explain("'IsNan' is not a member of 'AscendC'")
