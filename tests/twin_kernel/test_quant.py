"""AscendQuant, AscendDequant, AscendAntiQuant and the library forms of math, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels, compile_errors

F32, F16 = np.float32, np.float16
HERE = Path(__file__).parent
TEXT = (HERE / "library.h").read_text() + (HERE / "quants.cpp").read_text()


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, TEXT, "quants")


def _launch(kernels: Kernels, entry: str, *arrays: np.ndarray) -> Outcome:
    return kernels.launch(entry, [Tensor(item, f"arg{i}") for i, item in enumerate(arrays)])


def _numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values.astype(F32)), -128, 127).astype(np.int8)


@pytest.mark.parametrize(("entry", "dtype"), [("quant_float", F32), ("quant_half", F16)])
@pytest.mark.parametrize("channels", [0, 32, 64])
def test_quantisation_computes_in_half_and_rounds_to_even(
    kernels: Kernels, entry: str, dtype: type, channels: int
) -> None:
    rng = np.random.default_rng(channels)
    source = rng.uniform(-20, 20, 192).astype(dtype)
    source[:4] = [0.5, 1.5, 1000, -1000]
    scale, offset = rng.uniform(0.5, 4, 64).astype(dtype), rng.uniform(-3, 3, 64).astype(dtype)
    if channels == 0:
        scale[0], offset[0] = 1, 0
    out = np.zeros(192, np.int8)
    outcome = _launch(kernels, entry, source, scale, offset, out, _numbers(192, channels))
    assert outcome.codes == []
    each = np.arange(192) % channels if channels else np.zeros(192, int)
    product = source.astype(F16) * scale.astype(F16)[each]
    np.testing.assert_array_equal(out, _bytes(product + offset.astype(F16)[each]))


def test_counts_of_channels_must_fit_each_other(kernels: Kernels) -> None:
    zeros, out = np.zeros(192, F32), np.zeros(192, np.int8)
    outcome = _launch(kernels, "quant_float", zeros, zeros, zeros, out, _numbers(192, 48))
    assert outcome.codes == ["param-range"]


@pytest.mark.parametrize("used", [5, 16])
def test_dequantisation_takes_the_float_in_the_low_half_of_a_scale(
    kernels: Kernels, used: int
) -> None:
    rng = np.random.default_rng(used)
    source = rng.integers(-3000, 3000, (4, 24)).astype(np.int32)
    factors = rng.uniform(0.1, 2, 64).astype(F32)
    scale = factors.view(np.uint32).astype(np.uint64) | (np.uint64(0xABC) << np.uint64(40))
    out = np.full((4, 32), 9, F16)
    outcome = _launch(kernels, "dequant_half", source, scale, out, _numbers(4, 24, used))
    assert outcome.codes == []
    want = np.full((4, 32), 9, F16)
    want[:, :used] = (source[:, :used].astype(F32) * factors[:used]).astype(F16)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize(("entry", "rows"), [("dequant_float", 3), ("dequant_float_rows", 1)])
def test_one_row_stands_for_several_in_single_row_mode(
    kernels: Kernels, entry: str, rows: int
) -> None:
    source = np.arange(24, dtype=np.int32)
    scale, out = np.full(64, 2, F32), np.full(24, 9, F32)
    scale[1] = 10
    assert _launch(kernels, entry, source, scale, out, _numbers(1, 24, 8)).codes == []
    want = np.full(24, 9, F32)
    want[: 8 * rows] = (source * np.tile(scale[:8], 3))[: 8 * rows]
    np.testing.assert_array_equal(out, want)


def _restored(
    kernels: Kernels, entry: str, source: np.ndarray, plate: tuple[int, int], k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    scale = rng.uniform(0.5, 2, plate).astype(F16)
    offset = rng.integers(-5, 5, plate).astype(F16)
    out = np.zeros(source.shape, F16)
    sent = source
    if entry == "anti_packed":
        flat = source.ravel().astype(np.uint8) & 15
        sent = flat[::2] | flat[1::2] << 4
    outcome = _launch(kernels, entry, sent, scale, offset, out, _numbers(source.size, k, *plate))
    assert outcome.codes == []
    return out, scale, offset


@pytest.mark.parametrize(
    ("entry", "high"), [("anti_half", 128), ("anti_by_offset", 128), ("anti_packed", 8)]
)
def test_antiquantisation_shares_scales_along_k(kernels: Kernels, entry: str, high: int) -> None:
    source = np.random.default_rng(2).integers(-high, high, (8, 64)).astype(np.int8)
    out, scale, offset = _restored(kernels, entry, source, (2, 64), 8)
    scale, offset = scale.repeat(4, axis=0), offset.repeat(4, axis=0)
    np.testing.assert_array_equal(out, (source.astype(F16) + offset) * scale)


def test_antiquantisation_of_a_transposed_source(kernels: Kernels) -> None:
    source = np.random.default_rng(3).integers(-128, 128, (6, 64)).astype(np.int8)
    out, scale, offset = _restored(kernels, "anti_turned", source, (6, 2), 64)
    scale, offset = scale.repeat(32, axis=1), offset.repeat(32, axis=1)
    np.testing.assert_array_equal(out, (source.astype(F16) + offset) * scale)


# ---- math


def _series(x: np.ndarray, terms: int) -> np.ndarray:
    rest, total, term = x - np.floor(x), np.zeros_like(x), np.ones_like(x)
    for i in range(terms + 1):
        total = total + term
        term = term * rest / (i + 1)
    return np.exp(np.floor(x)) * total


FORMS = [
    lambda a, b, d: _series(a, 15),
    lambda a, b, d: _series(a, 2),
    lambda a, b, d: np.exp(a),
    lambda a, b, d: d + 2.5 * a,
    lambda a, b, d: a**b,
    lambda a, b, d: a**2,
    lambda a, b, d: 2**a,
    lambda a, b, d: np.fmod(a, b),
    lambda a, b, d: np.fmod(a, b),
    lambda a, b, d: np.minimum(a, 1),
    lambda a, b, d: np.maximum(a, 1),
]


@pytest.mark.parametrize("which", range(len(FORMS)))
def test_library_forms_of_math(kernels: Kernels, which: int) -> None:
    rng = np.random.default_rng(which)
    a, b, d = rng.uniform(0.1, 5, (3, 72)).astype(F32)
    if which < 3:
        a = (a - 3).astype(F32)
    out = d.copy()
    assert _launch(kernels, "math_forms", a, b, out, _numbers(which, 72)).codes == []
    want = FORMS[which](*(item.astype(np.float64) for item in (a, b, d)))
    np.testing.assert_allclose(out, want, rtol=3e-7)


def test_xor_of_a_whole_tensor(kernels: Kernels) -> None:
    a, b = np.random.default_rng(8).integers(-9999, 9999, (2, 144)).astype(np.int16)
    out = np.zeros(72, F32)
    assert _launch(kernels, "math_forms", a, b, out, _numbers(11, 72)).codes == []
    np.testing.assert_array_equal(out.view(np.int16), a ^ b)


def test_exp_of_halves_by_its_series(kernels: Kernels) -> None:
    a, out = np.linspace(-9, 9, 64).astype(F16), np.zeros(64, F16)
    assert _launch(kernels, "exp_of_halves", a, out).codes == []
    np.testing.assert_allclose(out, np.exp(a.astype(np.float64)), rtol=1e-3)


WRONG = {
    "AscendQuant on dav-2201 takes half or float": (
        "void f(LocalTensor<int8_t> d, LocalTensor<int32_t> x) { AscendQuant(d, x, 1.0f, 0.0f); }"
    ),
    "AscendDequant on dav-2201 gives half from a uint64_t scale tensor": (
        "void f(LocalTensor<half> d, LocalTensor<int32_t> x, DequantParams p)"
        " { AscendDequant(d, x, 1.0f, p); }"
    ),
    "AscendAntiQuant on dav-2201 takes int8_t or int4b_t": (
        "void f(LocalTensor<half> d, LocalTensor<int16_t> x)"
        " { AscendAntiQuant<int16_t, half, false>(d, x, half(1), half(1), 8u); }"
    ),
    "Xor on dav-2201 takes int16_t or uint16_t": (
        "void f(LocalTensor<int32_t> x) { Xor(x, x, x); }"
    ),
    "0 to 255 terms": "void f(LocalTensor<float> x) { Exp<float, 256>(x, x, 8u); }",
}


@pytest.mark.parametrize("message", WRONG)
def test_other_types_and_terms_do_not_compile(runtime: Runtime, message: str) -> None:
    assert message in compile_errors(runtime, WRONG[message])
