"""The one comparison: form, a suite's rule, and a profile's values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from npusmith.task import files
from npusmith.task.isolated.arrays import Value, read_all
from npusmith.task.isolated.values import take_apart
from npusmith.task.prepared import TrialData, map_tensor
from npusmith.task.verdict import Trial
from npusmith.task.weighing import Criterion, Pair, form, reject, weigh
from npusmith.task.wire import Kind, TrialRecord

ONES = torch.ones(4)
NAN = float("nan")
EXACT, LENIENT = Criterion(undefined=False), Criterion(undefined=False, lenient=True)


def pair(folder: Path, wanted: Any, found: Any, golden: Any = None, kind: Kind = "random") -> Pair:
    """A set that should have given `wanted`, and gave `found`."""
    want = files.put(wanted, folder, "want")
    wide = want if golden is None else files.put(golden, folder, "wide")
    record = TrialRecord(
        name="random 0", kind=kind, seed=1, references=want.tensors, goldens=wide.tensors,
        result=want.tree,
    )  # fmt: skip
    tree, _ = take_apart(found)
    given = files.put(found, folder, "got").tensors
    arrays = [map_tensor(folder, item) for item in given]
    return Pair(TrialData(record, folder), Value(tree, arrays))


def weighed(item: Pair, criterion: Criterion, said: str | None = None) -> Trial:
    record = Trial(name="random 0")
    weigh(record, item, criterion, said)
    return record


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ONES, ""),
        (ONES + 0.1, ""),  # values are another part
        (ONES[:3], "output 0 is float32[3], the reference float32[4]"),
        (ONES.half(), "output 0 is float16[4], the reference float32[4]"),
        (ONES.int(), "int32[4]"),
        ([ONES], ""),
        ((ONES,), ""),
        ([ONES, ONES], "returns 2 tensors, the reference 1"),
        ([ONES, 3.0], "nested in another way"),
        ({"a": ONES}, "nested in another way"),
        (ONES * NAN, "4 elements are NaN on one side alone"),
        (3.0, "returns 0 tensors, the reference 1"),
    ],
)
def test_the_form_is_number_nesting_shape_type_and_nan(
    tmp_path: Path, found: object, said: str
) -> None:
    wrong = form(pair(tmp_path, ONES, found), EXACT)
    assert said in wrong and bool(said) == bool(wrong)


@pytest.mark.parametrize(
    ("wanted", "found", "said"),
    [
        (ONES, ONES.half(), ""),
        (ONES, ONES.double(), ""),
        (ONES, ONES.double() + 0.1, "output 0: 4 of 4 elements break"),
        (ONES, ONES * torch.inf, "inf where 1.0 is expected"),
        (ONES, ONES.int(), "int32[4]"),
        (torch.ones(()), ONES[:1], ""),
        (torch.ones(1), torch.ones(()), ""),
        (torch.ones(1, 1), torch.ones(1), "the reference float32[1, 1]"),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 2j]), ""),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 3j]), "output 0"),
        (ONES.double(), ONES.double() + 1e-9, "first at [0]"),  # the chip has no such type
    ],
)
def test_what_a_binding_cannot_do_otherwise_passes_where_the_suite_binds(
    tmp_path: Path, wanted: Any, found: Any, said: str
) -> None:
    record = weighed(pair(tmp_path, wanted, found), LENIENT)
    assert said in record.message and bool(said) == bool(record.message)
    assert record.precise is not bool(said)


def test_a_suites_rule_decides_alone_what_is_official(tmp_path: Path) -> None:
    suite = Criterion(official=lambda pairs: [""] * len(pairs), undefined=False)
    off = weighed(pair(tmp_path, ONES, ONES + 0.1), suite, "")
    assert (off.passed, off.strict, off.precise, off.mismatched) == (True, True, False, 4)
    bent = weighed(pair(tmp_path, [ONES, ONES], [ONES]), suite, "")
    assert (bent.passed, bent.strict) == (True, False)
    wrong = weighed(pair(tmp_path, ONES, ONES), suite, "no")
    assert (wrong.passed, wrong.strict, wrong.precise, wrong.message) == (False, False, False, "no")
    right = weighed(pair(tmp_path, ONES, ONES), suite, "")
    reject(right, "an input was overwritten", suite)
    assert (right.passed, right.strict, right.message) == (True, False, "an input was overwritten")


def test_values_that_the_suite_does_not_have_are_judged_by_a_profile(tmp_path: Path) -> None:
    def fail(pairs: Sequence[Pair]) -> list[str]:
        raise AssertionError("the suite's rule may not take such values")

    suite = Criterion(official=fail, ours="npukernelbench")
    item = pair(tmp_path, ONES, ONES + 5e-4, kind="more")
    assert suite.says([item]) == [None]
    record = weighed(item, suite)
    assert (record.passed, record.strict, record.precise) == (True, True, False)


def test_a_nan_that_float64_does_not_have_is_left_out_where_that_is_asked(tmp_path: Path) -> None:
    wanted, found = torch.tensor([NAN, 1.0, NAN]).half(), torch.tensor([2.0, 1.0, NAN]).half()
    wide = torch.tensor([2.0, 1.0, NAN]).double()
    excused = pair(tmp_path, wanted, found, wide)
    assert form(excused, EXACT).startswith("output 0: 1 elements are NaN on one side alone: ")
    assert form(excused) == "" and weighed(excused, Criterion()).precise
    assert "NaN on one side" in form(pair(tmp_path, wanted, found, wanted.double()))


@pytest.mark.parametrize(
    "tree", [{"dict": [1]}, {"dict": [["a"]]}, {"list": 3}, {"tuple": {"a": 1}}, [], None]
)
def test_what_a_process_calls_a_value_and_is_none_is_an_error_of_its(tree: Any) -> None:
    with pytest.raises(ValueError, match="no value"):
        read_all(tree, [])
