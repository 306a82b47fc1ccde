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


def test_the_suite_s_rule_does_not_see_short_lists() -> None:
    assert official([ONES, ONES], [ONES])


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
