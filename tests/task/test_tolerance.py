"""Tolerance profiles: what passes, what does not, and how torch's own error is allowed for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from npusmith.errors import TaskError
from npusmith.ir.dtypes import DType
from npusmith.task.tolerance import CHUNK, Chunk, as_near, check_profile, compare, rules_of

RNG = np.random.default_rng(7)
X = RNG.standard_normal(1000).astype(np.float32)
G = X.astype(np.float64)


@pytest.mark.parametrize("profile", ["strict", "multikernelbench", "npukernelbench", "cann-bench"])
def test_an_equal_output_passes_every_profile(profile: str) -> None:
    result = compare(X.copy(), X, G, profile)
    assert result.passed and result.mismatched == 0 and result.max_abs == 0


def test_one_wrong_element_fails_and_is_named() -> None:
    bad = X.copy()
    bad[417] += 1
    result = compare(bad, X, G, "strict")
    assert not result.passed
    assert "flat index 417" in result.message


def test_a_wrong_element_in_a_later_chunk_is_named_by_its_flat_index() -> None:
    native = np.ones(CHUNK + 10, np.float32)
    bad = native.copy()
    bad[CHUNK + 3] = 2
    result = compare(bad, native, None, "multikernelbench")
    assert f"flat index {CHUNK + 3}" in result.message


def test_shape_and_dtype_must_match_exactly() -> None:
    assert not compare(X.reshape(10, 100), X, G, "strict").passed
    assert not compare(X.astype(np.float16), X, G, "strict").passed


def test_npukernelbench_needs_both_errors_to_be_large() -> None:
    native = np.array([100.0, 1e-5], np.float32)
    assert compare(native + np.float32(0.05), native, None, "npukernelbench").passed is False
    assert compare(native * np.float32(1.0005), native, None, "npukernelbench").passed
    near_zero = np.array([100.0, 9e-4], np.float32)
    assert compare(near_zero, native, None, "npukernelbench").passed
    assert not compare(near_zero, native, None, "multikernelbench").passed


def test_multikernelbench_is_allclose_with_1e_4() -> None:
    native = np.array([0.0, 10.0], np.float32)
    assert compare(native + np.float32(0.99e-4), native, None, "multikernelbench").passed
    assert not compare(native + np.float32(1.2e-4), native, None, "multikernelbench").passed


def test_cann_bench_fails_a_small_bias_on_all_elements_that_allclose_forgives() -> None:
    native = np.full(1000, 100.0, np.float32)
    biased = native * np.float32(1 + 1.5 * 2.0**-13)
    assert not compare(biased, native, None, "cann-bench").passed


def test_cann_bench_counts_small_values_against_torch() -> None:
    golden = np.full(1000, 1e-5)
    native = golden.astype(np.float32)
    off = native + np.float32(1e-8)
    assert not compare(off, native, golden, "cann-bench").passed
    assert compare(off, off, golden, "cann-bench").passed


def test_where_torch_itself_is_off_strict_allows_twice_as_much_and_no_more() -> None:
    golden = np.full(100, 1.0)
    native = np.full(100, 1.01, np.float32)
    assert compare(np.full(100, 1.015, np.float32), native, golden, "strict").passed
    assert not compare(np.full(100, 1.05, np.float32), native, golden, "strict").passed
    assert not compare(np.full(100, 1.015, np.float32), native, golden, "cann-bench").passed


def test_nan_and_infinities_must_stand_where_the_reference_has_them() -> None:
    native = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    assert compare(native.copy(), native, None, "strict").passed
    for index, value in ((0, np.nan), (1, 0.0), (2, -np.inf), (3, np.nan)):
        bad = native.copy()
        bad[index] = value
        assert not compare(bad, native, None, "strict").passed


def test_an_element_on_which_torch_and_float64_disagree_in_kind_is_left_out() -> None:
    native = np.array([np.inf, 1.0], np.float32)
    golden = np.array([2.0, 1.0])
    assert compare(np.array([5.0, 1.0], np.float32), native, golden, "strict").passed


def test_half_and_bfloat16_use_their_own_limits() -> None:
    golden = RNG.standard_normal(4096)
    for dtype, ulp in ((np.float16, 2.0**-10), (ml_dtypes.bfloat16, 2.0**-7)):
        native = golden.astype(dtype)
        assert compare(native.copy(), native, golden, "strict").passed
        off = (golden * (1 + 3 * ulp)).astype(dtype)
        assert not compare(off, native, golden, "strict").passed


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.int64])
def test_whole_numbers_must_be_equal(dtype: type) -> None:
    native = np.array([0, 1, 1], dtype)
    assert compare(native.copy(), native, None, "strict").passed
    result = compare(np.array([0, 1, 0], dtype), native, None, "strict")
    assert not result.passed and result.mismatched == 1


def test_a_bool_is_the_byte_0_or_1_and_nothing_else() -> None:
    native = np.array([False, True])
    assert compare(native.copy(), native, None, "strict").passed
    for byte in (0x7F, 0xFF, 2):
        assert not compare(
            np.array([0, byte], np.uint8).view(np.bool_), native, None, "strict"
        ).passed


def test_empty_and_zero_dimensional_outputs_are_judged() -> None:
    empty = np.zeros((0, 4), np.float32)
    assert compare(empty, empty, empty.astype(np.float64), "strict").passed
    scalar = np.float32(3).reshape(())
    assert compare(scalar, scalar, None, "strict").passed
    assert not compare(np.asarray(np.float32(4)), scalar, None, "strict").passed


def test_an_output_of_poison_never_passes() -> None:
    poison = np.full(X.size * 2, 0x7FFF, np.uint16).view(np.float32)
    assert not compare(poison, X, G, "strict").passed


def test_profiles_have_names_and_others_are_refused() -> None:
    assert check_profile("default") == "strict"
    with pytest.raises(TaskError, match="tolerance-unknown"):
        check_profile("loose")
    assert rules_of("strict", DType.FLOAT32) == ("multikernelbench", "cann-bench")


def test_what_pytorch_gives_bit_for_bit_is_never_wrong() -> None:
    x = np.linspace(-1e4, 1e4, 6400, dtype=np.float32)
    native = np.remainder(x, np.float32(0.7))
    golden = np.remainder(x.astype(np.float64), 0.7)  # of another number
    assert compare(native, native, golden, "strict").passed
    other = native.copy()
    other[:3000] += np.float32(0.01)
    assert not compare(other, native, golden, "strict").passed


def test_a_step_from_pytorchs_towards_golden_is_right_and_one_away_from_it_is_not() -> None:
    """A bfloat16 sum whose terms cancel: 0.1318 in float64, 0.1138 by PyTorch."""
    bf16 = np.dtype(ml_dtypes.bfloat16)
    native, golden = np.full(100, 0.11377, bf16), np.full(100, 0.1318)
    bound = np.zeros(100)
    for value, right in ((0.1143, True), (0.1152, False), (0.1133, False)):
        actual = native.copy()
        actual[7] = value
        assert compare(actual, native, golden, "strict", bound).passed is right
        assert not compare(actual, native, golden, "cann-bench", bound).passed


def test_a_step_from_zero_is_as_small_as_the_smallest_number() -> None:
    native, golden = np.zeros(3), np.full(3, 0.005)
    least = float(ml_dtypes.finfo(ml_dtypes.bfloat16).smallest_subnormal)
    chunk = Chunk(np.array([0.0, 2 * least, 0.004]), native, golden, np.arange(3), None)
    assert as_near(chunk, np.dtype(ml_dtypes.bfloat16)).tolist() == [True, True, False]


def test_an_element_that_is_float64s_where_pytorchs_is_not_is_right() -> None:
    """Squares of 16-bit values that PyTorch rounds to 0 before it adds them up."""
    golden = np.full(1000, 115.4)
    native = golden.astype(np.float32)
    native[3] = 0
    found = golden.astype(np.float32) * np.float32(1 + 1e-6)
    found[3] = 115.39
    assert compare(found, native, golden, "strict").passed
    assert compare(found, native, golden, "strict", np.zeros(1000)).passed
    assert not compare(found, native, golden, "multikernelbench").passed
    found[3] = 116  # neither PyTorch's nor float64's
    assert not compare(found, native, golden, "strict", np.zeros(1000)).passed
    found[3], found[4] = 115.39, 115.42  # where PyTorch's is right, it is the yardstick
    assert not compare(found, native, golden, "strict", np.zeros(1000)).passed


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_whole_numbers_within_their_bound_are_right_of_any_shape(shape: tuple[int, ...]) -> None:
    native, found = np.full(shape, 7), np.full(shape, 8)
    assert compare(found, native, None, "strict", np.ones(shape)).passed
    assert not compare(found, native, None, "strict", np.zeros(shape)).passed
    assert not compare(found, native, None, "multikernelbench", np.ones(shape)).passed
