"""The interpreter against NumPy, on every program of the corpus."""

from __future__ import annotations

import numpy as np
import pytest
from tile_cases import CASES, Case, names

from npusmith.lang import check, interpret
from npusmith.target.chips import DEFAULT_CHIP, find_chip

CHIP = find_chip(DEFAULT_CHIP)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_program_computes_what_numpy_computes(case: Case) -> None:
    program = case.load()
    check(program, CHIP)
    inputs = case.arrays()
    (got,) = interpret(program, CHIP, inputs, case.outputs(inputs))
    want = case.want(*inputs)
    assert got.shape == want.shape
    assert got.dtype == case.dtype.numpy
    if case.rtol == 0.0:
        np.testing.assert_array_equal(got, want.astype(got.dtype))
    else:
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), case.rtol, case.atol
        )


def test_every_program_of_the_corpus_has_a_case() -> None:
    assert {case.program for case in CASES} == set(names())
