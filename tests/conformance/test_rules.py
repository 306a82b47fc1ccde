"""The two rules, and the stand-ins for packages that the suite's files import."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from npusmith.task import rules, stubs

ONES = torch.ones(4)


def official(wanted: object, found: object) -> bool:
    return not rules.npukernelbench(wanted, found)


def test_the_suite_s_rule_needs_both_errors_to_be_large() -> None:
    assert official(ONES, ONES + 9e-4) and not official(ONES, ONES + 2e-3)
    assert official(1000 * ONES, 1000 * ONES + 0.9)
    assert official(1e-4 * ONES, 0 * ONES)


def test_the_suite_s_rule_accepts_nothing_infinite() -> None:
    assert not official(ONES * torch.inf, ONES * torch.inf)


def test_the_suite_s_rule_does_not_see_short_lists_and_ours_does() -> None:
    assert official([ONES, ONES], [ONES])
    assert "1 tensors" in rules.form([ONES, ONES], [ONES])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ONES, ""),
        (ONES[:3], "float32[3] instead of float32[4]"),
        (ONES.half(), ""),
        (ONES.double(), ""),
        (ONES.double() + 0.1, "output 0"),
        (ONES.int(), "int32[4] instead of float32[4]"),
        ([ONES], ""),
        ([ONES, ONES], "returns 2 tensors, the reference 1"),
        (ONES * torch.nan, "NaN on one side alone"),
        (ONES * torch.inf, "inf where 1.0 is expected"),
    ],
)
def test_the_precise_rule_compares_kind_shape_type_and_values(found: object, said: str) -> None:
    found_fault = rules.precise(ONES, found, None)
    assert said in found_fault and bool(said) == bool(found_fault)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ONES + 0.1, ""),  # values are the suite's part
        (ONES.half(), ""),
        (ONES[:3], "float32[3] instead of float32[4]"),
        (ONES.int(), "int32[4] instead of float32[4]"),
        ([ONES, ONES], "returns 2 tensors, the reference 1"),
        (ONES * torch.nan, "4 elements are NaN on one side alone"),
        (3.0, "float instead of Tensor"),
    ],
)
def test_the_strict_rule_compares_the_form_alone(found: object, said: str) -> None:
    found_fault = rules.form(ONES, found)
    assert said in found_fault and bool(said) == bool(found_fault)


def test_integers_are_drawn_as_floats_and_cast() -> None:
    drawn = stubs._whole(torch.randn)
    torch.manual_seed(0)
    found = drawn([1000], dtype=torch.int32)
    assert found.dtype == torch.int32 and set(found.tolist()) >= {-1, 0, 1}
    assert drawn(3, dtype=torch.float16).dtype == torch.float16


def test_spence_has_the_values_of_the_dilogarithm() -> None:
    z = np.array([1e-3, 0.25, 0.5, 0.9, 1.25, 2.0, 30.0])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    for at, value in zip(z, stubs.spence(z), strict=True):
        t = (nodes + 1) / 2  # from 1 to z: the integral of ln t / (1 - t)
        power = 4 if at < 1 else 1  # the logarithm's end at 0 wants narrow steps
        path = 1 + (at - 1) * (1 - (1 - t) ** power)
        slope = (at - 1) * power * (1 - t) ** (power - 1)
        want = np.sum(weights / 2 * np.log(path) / (1 - path) * slope)
        assert abs(value - want) < 1e-7
    assert stubs.spence(1.0) == 0
    assert stubs.spence(0.0) == pytest.approx(np.pi**2 / 6)
    assert np.isnan(stubs.spence(-1.0))


def test_a_nan_that_float64_does_not_have_is_left_out_and_one_that_it_has_is_not() -> None:
    nan = float("nan")
    wanted, found = torch.tensor([nan, 1.0, nan]).half(), torch.tensor([2.0, 1.0, nan]).half()
    assert rules.form(wanted, found) == "output 0: 1 elements are NaN on one side alone"
    assert rules.precise(wanted, found, [torch.tensor([2.0, 1.0, nan]).double()]) == ""
    assert rules.form(wanted, found, [torch.tensor([2.0, 1.0, nan]).double()]) == ""
    assert "NaN on one side" in rules.form(wanted, found, [torch.tensor([nan, 1.0, nan]).double()])
