"""Compound instructions, dequantisation, int4, and the saturating mode, against NumPy."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels

SOURCE = Path(__file__).parent / "compound.cpp"
RNG = np.random.default_rng(7)
HALF_MAX = np.float16(65504)


@pytest.fixture(scope="module")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, SOURCE.read_text(), "compound")


def _run(kernels: Kernels, entry: str, out: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    inputs = [Tensor(item, f"x{i}", writable=False) for i, item in enumerate(sources)]
    outcome: Outcome = kernels.launch(entry, [Tensor(out, "y"), *inputs])
    assert outcome.codes == [], outcome.findings
    return out


def _near(x: np.ndarray, kind: type) -> np.ndarray:
    limits = np.iinfo(kind)
    return np.clip(np.rint(np.nan_to_num(x, nan=0.0)), limits.min, limits.max).astype(kind)


@pytest.mark.parametrize(("entry", "sign"), [("add_relu_cast", 1), ("sub_relu_cast", -1)])
def test_add_relu_cast_rounds_after_relu(kernels: Kernels, entry: str, sign: int) -> None:
    a = RNG.normal(0, 60, 256).astype(np.float16)
    b = RNG.normal(0, 60, 256).astype(np.float16)
    a[:3] = [np.nan, np.inf, -np.inf]
    got = _run(kernels, f"{entry}_h8", np.zeros(256, np.int8), a, b)
    with np.errstate(invalid="ignore"):
        summed = (a + np.float16(sign) * b).astype(np.float64)
    want = _near(np.where(summed > 0, summed, 0), np.int8)
    assert (got == want).all()
    f, g = RNG.normal(size=(2, 256)).astype(np.float32) * 100
    half = _run(kernels, f"{entry}_fh", np.zeros(256, np.float16), f, g)
    assert (half == np.maximum(f + np.float32(sign) * g, 0).astype(np.float16)).all()
    i, j = RNG.integers(-200, 200, (2, 256)).astype(np.int16)
    small = _run(kernels, f"{entry}_i8", np.zeros(256, np.int8), i, j)
    assert (small == np.clip(i + sign * j, 0, 127)).all()


def test_mul_cast_rounds_the_product_and_stops_at_the_limits(kernels: Kernels) -> None:
    a, b = RNG.normal(0, 12, (2, 256)).astype(np.float16)
    product = (a * b).astype(np.float64)
    got = _run(kernels, "mul_cast_i8", np.zeros(256, np.int8), a, b)
    assert (got == _near(product, np.int8)).all()
    bytes_ = _run(kernels, "mul_cast_u8", np.zeros(256, np.uint8), a, b)
    assert (bytes_ == _near(product, np.uint8)).all()


def test_add_deq_relu_scales_the_sum_of_integers(kernels: Kernels) -> None:
    a, b = RNG.integers(-40000, 40000, (2, 256)).astype(np.int32)
    got = _run(kernels, "add_deq_relu", np.zeros(256, np.float16), a, b)
    scale = np.float64(np.float16(0.37))
    assert (got == np.maximum((a + b) * scale, 0).astype(np.float32).astype(np.float16)).all()


def test_cast_dequant_fills_one_half_of_each_block(kernels: Kernels) -> None:
    a = RNG.integers(-300, 300, 256).astype(np.int16)
    got = _run(kernels, "dequant_lower", np.zeros(512, np.int8), a).reshape(16, 2, 16)
    scale = np.float32(0.5)
    want = _near(a.astype(np.float32) * scale + np.float32(-3), np.int8).reshape(16, 16)
    assert (got[:, 1] == want).all()
    assert (got[:, 0] == 0).all()
    upper = _run(kernels, "dequant_upper", np.zeros(512, np.int8), a).reshape(16, 2, 16)
    assert (upper[:, 0] == want).all()


def test_cast_dequant_with_a_table_has_a_scale_for_each_lane(kernels: Kernels) -> None:
    a = RNG.integers(0, 100, 256).astype(np.int16)
    got = _run(kernels, "dequant_table", np.zeros(512, np.uint8), a).reshape(16, 2, 16)
    lanes = np.arange(16, dtype=np.float32)
    want = _near(a.reshape(16, 16) * (lanes + 1) * np.float32(0.25) + lanes, np.uint8)
    assert (got[:, 1] == want).all()


def test_int4_is_packed_low_nibble_first(kernels: Kernels) -> None:
    packed = np.arange(128, dtype=np.uint8) * 2 + 1
    got = _run(kernels, "int4_to_half", np.zeros(256, np.float16), packed)
    nibbles = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1).astype(np.int8)
    assert (got == np.where(nibbles > 7, nibbles - 16, nibbles)).all()
    x = RNG.normal(0, 6, 256).astype(np.float16)
    back = _run(kernels, "half_to_int4", np.zeros(128, np.uint8), x)
    want = np.clip(np.rint(x), -8, 7).astype(np.int8).view(np.uint8) & 15
    assert (back == (want[0::2] | want[1::2] << 4)).all()


def test_bilinear_interpolation_matches_the_documented_example(kernels: Kernels) -> None:
    data = np.arange(1, 513).astype(np.float16)
    weights = np.arange(2, 34).astype(np.float16)
    offsets = np.arange(0, 1024, 32).astype(np.uint32)
    got = _run(kernels, "bilinear", np.zeros(256, np.float16), data, weights, offsets)
    rounds = data.reshape(4, 128)
    products = rounds * weights[:4, None]
    want = np.concatenate([products[0] + products[1], products[2] + products[3]])
    assert (got == want).all()
    assert list(got[:4]) == [389, 394, 399, 404]


# ---- the saturating mode; the numbers are the vendor's boundary values


def _sat(kernels: Kernels, entry: str, out: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    return _run(kernels, f"sat_{entry}", out, *sources)


SPECIALS = np.array([np.inf, -np.inf, np.nan, 65504, -65504, 1, -1, 0], np.float16)


def test_half_arithmetic_saturates_and_forgets_nan(kernels: Kernels) -> None:
    a = np.repeat(SPECIALS, 8).astype(np.float16)
    b = np.tile(SPECIALS, 8).astype(np.float16)
    a, b = np.resize(a, 128), np.resize(b, 128)
    for entry, op in (("add", np.add), ("mul", np.multiply), ("max", np.maximum)):
        with np.errstate(all="ignore"):
            exact = op(a, b)
        want = np.nan_to_num(exact, nan=0.0, posinf=HALF_MAX, neginf=-HALF_MAX)
        assert (_sat(kernels, entry, np.zeros(128, np.float16), a, b) == want).all(), entry
        plain = _run(kernels, f"inf_{entry}", np.zeros(128, np.float16), a, b)
        assert np.array_equal(plain, exact, equal_nan=True), entry


def test_a_fused_product_saturates_before_it_is_added(kernels: Kernels) -> None:
    big, ninf = np.full(128, HALF_MAX), np.full(128, -np.inf, np.float16)
    # MAX * MAX stops at MAX, and MAX + -inf is -MAX
    got = _sat(kernels, "madd", ninf.copy(), big, big)
    assert (got == -HALF_MAX).all()
    plain = _run(kernels, "inf_madd", ninf.copy(), big, big)
    assert np.isnan(plain).all()


def test_int16_arithmetic_wraps_or_saturates(kernels: Kernels) -> None:
    least = np.full(128, -32768, np.int16)
    assert (_run(kernels, "inf_add_i16", np.zeros(128, np.int16), least, least) == 0).all()
    assert (_sat(kernels, "add_i16", np.zeros(128, np.int16), least, least) == -32768).all()
    assert (_run(kernels, "inf_mul_i16", np.zeros(128, np.int16), least, least) == 0).all()
    assert (_sat(kernels, "mul_i16", np.zeros(128, np.int16), least, least) == 32767).all()
    word = np.full(64, -(2**31), np.int32)
    assert (_sat(kernels, "mul_i32", np.zeros(64, np.int32), word, word) == 2**31 - 1).all()


@pytest.mark.parametrize(
    ("specials", "sum_"),
    [
        ([-np.inf], -65248),
        ([np.inf, -np.inf, np.nan], 252),
        ([np.inf, np.nan], 254),
        ([np.nan], 254),
    ],
)
def test_saturating_reduce_sum_gives_the_published_numbers(
    kernels: Kernels, specials: list[float], sum_: float
) -> None:
    x = np.array([*specials, *[1.0] * (256 - len(specials))], np.float16)
    assert _sat(kernels, "reduce_sum", np.zeros(16, np.float16), x)[0] == sum_


def test_saturating_reduce_max_forgets_nan(kernels: Kernels) -> None:
    x = np.array([np.nan, *[1.0] * 255], np.float16)
    assert _sat(kernels, "reduce_max", np.zeros(16, np.float16), x)[0] == 1
    assert np.isnan(_run(kernels, "inf_reduce_max", np.zeros(16, np.float16), x)[0])


def test_casts_to_sixteen_bit_floats_saturate(kernels: Kernels) -> None:
    x = np.resize(np.array([np.inf, -np.inf, np.nan, 1e6, -1e6, 3.5], np.float32), 64)
    got = _sat(kernels, "cast", np.zeros(64, np.float16), x)
    want = np.nan_to_num(np.clip(x, -65504, 65504), nan=0.0)
    assert (got == want).all()


def test_with_the_saturation_of_casts_off_the_low_bits_stay(kernels: Kernels) -> None:
    x = np.resize(np.array([70000, -70000, 3.6, 2.0**33, np.nan], np.float32), 64)
    got = _run(kernels, "cast_low", np.zeros(64, np.int16), x)
    whole = np.trunc(np.nan_to_num(x, nan=0.0)).astype(np.int64)
    assert (got == whole.astype(np.int16)).all()


def test_moves_keep_infinities_in_saturating_mode(kernels: Kernels) -> None:
    got = _sat(kernels, "duplicate", np.zeros(128, np.float16))
    assert np.isinf(got).all()


def test_ctrl_bit_48_and_the_flag_are_one(kernels: Kernels) -> None:
    assert list(_run(kernels, "ctrl", np.zeros(8, np.int32))[:6]) == [1, 0, 1, 0, 1, 1]


def test_the_launch_says_how_floats_saturate_at_first(runtime: Runtime, kernels: Kernels) -> None:
    big = np.full(128, HALF_MAX)
    library = ctypes.CDLL(str(runtime.library))
    library.shim_saturate(1)
    try:
        got = _run(kernels, "inf_add", np.zeros(128, np.float16), big, big)
    finally:
        library.shim_saturate(0)
    assert (got == HALF_MAX).all()
    assert np.isinf(_run(kernels, "inf_add", np.zeros(128, np.float16), big, big)).all()
