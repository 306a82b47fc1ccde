"""Reductions along an axis, exclusive-or sums, running sums and means, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels, compile_errors

F32, F16, U8 = np.float32, np.float16, np.uint8
HERE = Path(__file__).parent
TEXT = (HERE / "library.h").read_text() + (HERE / "folds.cpp").read_text()


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, TEXT, "folds")


def _launch(kernels: Kernels, entry: str, *arrays: np.ndarray) -> Outcome:
    return kernels.launch(entry, [Tensor(item, f"arg{i}") for i, item in enumerate(arrays)])


def _padded(matrix: np.ndarray) -> np.ndarray:
    """Rows that begin at blocks, with something in the padding that no result may show."""
    width = -(-matrix.shape[1] * matrix.itemsize // 32) * 32 // matrix.itemsize
    out = np.full((matrix.shape[0], width), 77, matrix.dtype)
    out[:, : matrix.shape[1]] = matrix
    return out


AXES = {
    "axis_sum": (F32, np.sum),
    "axis_mean": (F32, np.mean),
    "axis_prod": (F32, np.prod),
    "axis_max": (F32, np.max),
    "axis_min_half": (F16, np.min),
    "axis_any": (U8, np.max),
    "axis_all": (F32, np.min),
}


@pytest.mark.parametrize("entry", AXES)
@pytest.mark.parametrize("shape", [(1, 8), (5, 64), (7, 13), (33, 32)])
@pytest.mark.parametrize("rows", [False, True])
def test_a_reduction_folds_one_axis(
    kernels: Kernels, entry: str, shape: tuple[int, int], rows: bool
) -> None:
    dtype, fold = AXES[entry]
    rng = np.random.default_rng(shape[1])
    logic = entry in ("axis_any", "axis_all")
    values = rng.integers(0, 2, shape) if logic else rng.uniform(0.5, 1.5, shape)
    matrix = values.astype(dtype)
    out = np.zeros(shape[1] if rows else shape[0], dtype)
    numbers = np.array([*shape, int(rows)], np.int64)
    outcome = _launch(kernels, entry, _padded(matrix), out, numbers)
    assert outcome.codes == []
    want = fold(matrix.astype(np.float64), axis=0 if rows else 1)
    np.testing.assert_allclose(out.astype(np.float64), want, rtol=0 if logic else 2e-6)


def test_any_and_all_take_only_0_and_1(kernels: Kernels) -> None:
    matrix, out = np.full((2, 32), 2, U8), np.zeros(2, U8)
    outcome = _launch(kernels, "axis_any", matrix, out, np.array([2, 32, 0], np.int64))
    assert outcome.codes == ["param-range"]


@pytest.mark.parametrize(("count", "high"), [(1, 100), (37, 100), (256, 32767)])
def test_a_xor_sum_stays_inside_16_bits(kernels: Kernels, count: int, high: int) -> None:
    a, b = np.random.default_rng(count).integers(0, high, (2, 256)).astype(np.int16)
    out = np.zeros(1, np.int16)
    outcome = _launch(kernels, "xor_sum", a, b, out, np.array([count], np.int64))
    assert outcome.codes == []
    want = np.bitwise_xor(a, b)[:count].astype(np.int64).sum()
    assert out[0] == np.clip(want, -32768, 32767)


@pytest.mark.parametrize("entry", ["running_rows", "running_columns", "running_half"])
def test_running_sums_go_along_the_axis_of_the_config(kernels: Kernels, entry: str) -> None:
    dtype, axis = (F16 if entry == "running_half" else F32), int(entry != "running_columns")
    matrix = np.random.default_rng(3).standard_normal((6, 16)).astype(dtype)
    out, row = np.zeros_like(matrix), np.zeros(16, dtype)
    outcome = _launch(kernels, entry, matrix, out, row, np.array([6, 16], np.int64))
    assert outcome.codes == []
    want = np.cumsum(matrix.astype(np.float64), axis=axis)
    tolerance = 1e-3 if dtype == F16 else 1e-6
    np.testing.assert_allclose(out, want, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(row, out[-1])


def test_a_mean_of_halves_may_be_added_in_float(kernels: Kernels) -> None:
    rows = np.full((2, 48), 60000, F16)
    rows[:, 40:] = 1
    numbers = np.array([2, 48, 40], np.int64)
    narrow, wide = np.zeros(2, F16), np.zeros(2, F16)
    assert _launch(kernels, "mean_half", rows, narrow, numbers).codes == []
    assert _launch(kernels, "mean_half_in_float", rows, wide, numbers).codes == []
    assert np.isinf(narrow).all()
    np.testing.assert_array_equal(wide, [60000, 60000])


WRONG = {
    "ReduceSum along an axis on dav-2201 takes float": (
        "void f(LocalTensor<half> x, uint32_t *s)"
        " { ReduceSum<half, Pattern::Reduce::AR>(x, x, s, true); }"
    ),
    "ReduceAny along an axis on dav-2201 takes uint8_t or float": (
        "void f(LocalTensor<int32_t> x, uint32_t *s)"
        " { ReduceAny<int32_t, Pattern::Reduce::AR>(x, x, s, true); }"
    ),
    "the pattern is Pattern::Reduce::AR or Pattern::Reduce::RA": (
        "void f(LocalTensor<float> x, uint32_t *s) { ReduceMax<float, int>(x, x, s, true); }"
    ),
    "ReduceXorSum on dav-2201 takes int16_t": (
        "void f(LocalTensor<int32_t> x) { ReduceXorSum(x, x, x, 8u); }"
    ),
    "CumSum on dav-2201 takes half or float": (
        "void f(LocalTensor<int32_t> x) { CumSum(x, x, x, CumSumInfo{1, 8}); }"
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_a_reduction_does_not_take_does_not_compile(runtime: Runtime, message: str) -> None:
    assert message in compile_errors(runtime, WRONG[message])
