"""The interpreter against NumPy, on every program of the corpus."""

from __future__ import annotations

import numpy as np
import pytest
from tile_cases import CASES, Case, names

from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.lang import check, interpret, parse
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


TURNS = """LONG = 8

@host
def host(x, y):
    n = x.shape[0]
    launch(k, 2, n=n, part=n)

@kernel
def k(x: input(float32), y: output(float32), part: scratch(float32), n: int):
    held = ub(64, float32)
    back = ub(64, float32)
    if n > 1000:
        wrong = 3 // (n - 32)
    for i in range({first}, n, 16):
        with copy_in:
            load(held, x[i], LONG)
        with copy_out:
            store(part[i], held, LONG)
    sync_cores()
    for i in range(8 - core_id() * 8, n, 16):
        with copy_in:
            load(back, part[i], LONG)
        with copy_out:
            store(y[i], back, LONG)
"""


def test_cores_that_take_turns_in_a_tensor_do_not_meet() -> None:
    program, x = parse(TURNS.format(first="core_id() * 8")), np.arange(32, dtype=np.float32)
    (got,) = interpret(program, CHIP, [x], [((32,), DType.FLOAT32)])
    np.testing.assert_array_equal(got, x)


def test_cores_that_store_the_same_elements_race() -> None:
    program, x = parse(TURNS.format(first="0")), np.arange(32, dtype=np.float32)
    with pytest.raises(LangError) as caught:
        interpret(program, CHIP, [x], [((32,), DType.FLOAT32)])
    assert caught.value.code == "lang-race"


def test_what_has_no_value_is_an_error_where_it_runs_only() -> None:
    text, x = TURNS.format(first="core_id() * 8"), np.arange(32, dtype=np.float32)
    program = parse(text.replace("n > 1000", "n < 1000"))
    with pytest.raises(LangError) as caught:
        interpret(program, CHIP, [x], [((32,), DType.FLOAT32)])
    assert caught.value.code == "lang-divide"
    assert caught.value.place.line == 1 + text[: text.index("wrong")].count("\n")
