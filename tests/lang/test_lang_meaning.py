"""The NumPy meanings against the documented special values, and against slower, plainer code."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusmith.ir.dtypes import DType
from npusmith.lang.apply import apply
from npusmith.target import meaning as m
from npusmith.target.intrinsics import CASTS, INTRINSICS, Form, Operand

F32, F16 = np.float32, np.float16
INF, NAN = np.inf, np.nan


def one(name: str, *values: float, mode: str = "", dtype: DType = DType.FLOAT32) -> float:
    """An operation on single elements; the last value is the scalar where the row has one."""
    row = INTRINSICS[name]
    sources = row.operands.count(Operand.SRC)
    arrays = [np.asarray([value], dtype.numpy) for value in values]
    with np.errstate(all="ignore"):
        old = arrays.pop(0) if row.reads_dst else None
        given = arrays[:sources], [np.float32(item[0]) for item in arrays[sources:]]
        return apply(row, dtype, 1, *given, mode, old)[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "values", "want"),
    [
        ("max", (0.0, -0.0), 0.0),
        ("max", (-0.0, 0.0), 0.0),
        ("max", (-0.0, -0.0), -0.0),
        ("min", (0.0, -0.0), -0.0),
        ("min", (-0.0, 0.0), -0.0),
        ("max", (NAN, 1.0), NAN),
        ("min", (1.0, NAN), NAN),
        ("maxs", (-0.0, 0.0), 0.0),
        ("relu", (NAN,), NAN),
        ("relu", (-0.0,), 0.0),
        ("relu", (INF,), INF),
        ("leaky_relu", (2.0, NAN), 2.0),
        ("leaky_relu", (-0.0, NAN), NAN),
        ("leaky_relu", (-2.0, 0.5), -1.0),
        ("leaky_relu", (NAN, 0.5), NAN),
        ("exp", (-INF,), 0.0),
        ("ln", (0.0,), -INF),
        ("ln", (-1.0,), NAN),
        ("sqrt", (-0.0,), -0.0),
        ("sqrt", (-1.0,), NAN),
        ("rsqrt", (-0.0,), -INF),
        ("reciprocal", (float(np.finfo(F32).max),), 2.938736e-39),
        ("div", (1.0, 0.0), INF),
        ("axpy", (-INF, 3.4e38, 3.4e38), NAN),
        ("mul_add_dst", (-INF, 3.4e38, 3.4e38), NAN),
        ("erf", (INF,), 1.0),
        ("sigmoid", (-INF,), 0.0),
        ("tanh", (INF,), 1.0),
        ("sign", (-3.0,), -1.0),
        ("floor", (-0.5,), -1.0),
        ("round", (2.5,), 2.0),
        ("trunc", (-1.5,), -1.0),
    ],
)
def test_special_values_are_the_documented_ones(
    name: str, values: tuple[float, ...], want: float
) -> None:
    got = one(name, *values)
    np.testing.assert_array_equal(got, F32(want))
    if want == 0.0:
        assert math.copysign(1, got) == math.copysign(1, want)


def test_a_product_is_rounded_before_it_is_added() -> None:
    a = F32(1 + 2**-12)
    assert one("axpy", -1.0, float(a), float(a)) == F32(a * a) - F32(1)


def test_half_is_rounded_after_every_operation() -> None:
    assert one("add", 2048.0, 1.0, dtype=DType.FLOAT16) == 2048.0
    assert one("mul_add_dst", 1.0, 2048.0, 1.0, dtype=DType.FLOAT16) == 2048.0


@pytest.mark.parametrize(
    ("values", "want"), [((32767, 1), -32768), ((-32768, -1), 32767), ((-32768, 0), -32768)]
)
def test_ints_wrap(values: tuple[int, int], want: int) -> None:
    a, b = (np.asarray([value], np.int16) for value in values)
    assert m.add(a, b)[0] == want


def test_comparing_with_nan_is_false_for_not_equal_too() -> None:
    a, b = np.asarray([NAN, 1.0, NAN, 1.0], F32), np.asarray([1.0, NAN, NAN, 2.0], F32)
    assert m.compare(a, b, "ne")[0] == 0b1000
    assert m.compare(a, np.float32(1), "eq")[0] == 0b1010
    assert m.compare(a, b, "ge")[0] == 0


def test_mask_bits_count_from_the_least_significant_one() -> None:
    a = np.arange(10, dtype=F32)
    mask = m.compare(a, np.float32(3), "lt")
    assert mask.tolist() == [0b111, 0]
    assert m.select(mask, a, np.float32(-1)).tolist() == [0.0, 1.0, 2.0, *[-1.0] * 7]


@pytest.mark.parametrize(
    ("special", "want"),
    [([INF, -INF, NAN], NAN), ([INF], INF), ([-INF], -INF), ([], 256.0)],
)
def test_a_sum_with_special_values_is_what_ieee_says(special: list[float], want: float) -> None:
    a = np.asarray([*special, *[1.0] * (256 - len(special))], F16)
    np.testing.assert_array_equal(m.reduce_sum(a)[0], F16(want))


@pytest.mark.parametrize("count", [1, 8, 9, 127, 128, 129, 1153, 8192])
@pytest.mark.parametrize("mode", ["forward", "reverse", "exclusive"])
def test_a_running_sum_adds_whole_numbers_as_one_after_another_does(mode: str, count: int) -> None:
    a = np.random.default_rng(3).integers(-50, 50, count).astype(F32)
    turned = a[::-1] if mode == "reverse" else a
    want = np.cumsum(turned) - (a if mode == "exclusive" else 0) + 5
    got = m.running_sum(a, F32(5), mode)
    np.testing.assert_array_equal(got[::-1] if mode == "reverse" else got, want)


def test_a_running_sum_of_a_tile_is_right_to_a_few_units_in_the_last_place() -> None:
    a = np.random.default_rng(3).random(8192).astype(F32)
    exact = np.cumsum(a.astype(np.float64))
    assert np.abs(m.running_sum(a, F32(0), "forward") / exact - 1).max() < 5e-7


def test_a_running_product_keeps_what_a_zero_and_a_nan_leave() -> None:
    a = np.asarray([2, 3, 0, 5, INF, 7], F32)
    want = np.asarray([2, 6, 0, 0, NAN, NAN], F32)
    np.testing.assert_array_equal(m.running_prod(a, F32(1), "forward"), want)


def test_a_sum_is_a_tree_in_each_repeat_and_then_one_repeat_after_another() -> None:
    a = np.random.default_rng(0).standard_normal(200).astype(F32)
    want = F32(0)
    for start in range(0, 200, 64):
        lanes = np.zeros(64, F32)
        lanes[: len(a[start : start + 64])] = a[start : start + 64]
        while lanes.size > 1:
            lanes = np.asarray([lanes[i] + lanes[i + 1] for i in range(0, lanes.size, 2)], F32)
        want = lanes[0] if start == 0 else want + lanes[0]
    assert m.reduce_sum(a)[0] == want


# ------------------------------------------------------------------------------------------- cast


def _rounded(value: Fraction, mode: str, low: Fraction, high: Fraction, even: bool) -> Fraction:
    """`value` between two neighbours; `even` says that the lower one has an even last digit."""
    if value in (low, high):
        return value
    match mode:
        case "floor":
            return low
        case "ceil":
            return high
        case "trunc":
            return low if value > 0 else high
    below, above = value - low, high - value
    if below != above:
        return low if below < above else high
    if mode == "round":
        return high if value > 0 else low
    return low if even else high


MODES = ("none", "rint", "floor", "ceil", "round", "trunc")
SINGLES = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6),
    st.integers(-4000, 4000).map(lambda k: k / 2),
)


@settings(max_examples=200, deadline=None)
@given(
    SINGLES, st.sampled_from([DType.INT16, DType.INT32, DType.INT64]), st.sampled_from(MODES[1:])
)
def test_a_float_becomes_the_int_that_exact_arithmetic_gives(
    value: float, dtype: DType, mode: str
) -> None:
    exact, low = Fraction(value), Fraction(math.floor(value))
    want = int(_rounded(exact, mode, low, low + 1, low % 2 == 0))
    smallest, largest = m.integer_limits(dtype)
    got = m.cast(np.asarray([value], F32), mode, dtype)[0]
    assert int(got) == min(max(want, smallest), largest)


@settings(max_examples=200, deadline=None)
@given(
    st.floats(width=32, allow_nan=False, min_value=-6e4, max_value=6e4),
    st.sampled_from([DType.FLOAT16, DType.BFLOAT16]),
    st.sampled_from(MODES),
)
def test_a_float_becomes_the_narrow_float_that_exact_arithmetic_gives(
    value: float, dtype: DType, mode: str
) -> None:
    near = np.asarray([value], F32).astype(dtype.numpy)
    bits = int(near.view(np.uint16)[0]) & 0x7FFF
    around = np.asarray([max(bits - 1, 0), bits, bits + 1], np.uint16).view(dtype.numpy)
    sizes = [Fraction(float(item)) for item in around]
    exact = Fraction(value)
    below = max(at for at, size in enumerate(sizes) if size <= abs(exact))
    small, large = sizes[below], sizes[min(below + 1, 2)]
    even = int(around[below : below + 1].view(np.uint16)[0]) % 2 == 0
    if exact >= 0:
        want = _rounded(exact, mode, small, large, even)
    else:
        want = _rounded(exact, mode, -large, -small, not even)
    got = m.cast(np.asarray([value], F32), mode, dtype)[0]
    assert Fraction(float(got)) == want


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.builds(lambda a, b: a * 2**b, st.integers(-(2**26), 2**26), st.integers(0, 36)),
    ),
    st.sampled_from(MODES[1:]),
)
def test_an_int_becomes_the_float_that_exact_arithmetic_gives(value: int, mode: str) -> None:
    step = max(1, 2 ** (abs(value).bit_length() - 24))
    low = value // step * step
    want = _rounded(
        Fraction(value), mode, Fraction(low), Fraction(low + step), low // step % 2 == 0
    )
    got = m.cast(np.asarray([value], np.int64), mode, DType.FLOAT32)[0]
    assert Fraction(float(got)) == want


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64])
def test_a_float_saturates_and_nan_becomes_zero(dtype: DType) -> None:
    source = np.float16 if dtype in (DType.INT8, DType.UINT8) else np.float32
    smallest, largest = m.integer_limits(dtype)
    got = m.cast(np.asarray([INF, -INF, NAN], source), "rint", dtype)
    assert got.tolist() == [largest, smallest, 0]


def test_an_int_saturates() -> None:
    assert m.cast(np.asarray([70000, -70000], np.int32), "none", DType.INT16).tolist() == [
        32767,
        -32768,
    ]
    assert m.cast(np.asarray([2**40], np.int64), "none", DType.INT32).tolist() == [2**31 - 1]


def test_rounding_a_float_to_a_whole_number_loses_the_sign_of_zero() -> None:
    got = m.cast(np.asarray([-0.0, -0.25], F32), "rint", DType.FLOAT32)
    assert not np.signbit(got).any()


def test_rounding_to_odd_keeps_what_was_cut_off_visible() -> None:
    tiny = np.asarray([1 + 2**-20, 1 + 2**-10, 1.0], F32)
    got = m.cast(tiny, "odd", DType.FLOAT16)
    assert got.view(np.uint16).tolist() == [0x3C01, 0x3C01, 0x3C00]


@pytest.mark.parametrize("pair", CASTS, ids=lambda pair: f"{pair[0].value}-{pair[1].value}")
def test_every_conversion_keeps_small_whole_numbers(pair: tuple[DType, DType]) -> None:
    source, target = pair
    values = np.arange(0, 100).astype(source.numpy)
    for mode in CASTS[pair]:
        got = m.cast(values, mode, target)
        assert got.dtype == target.numpy
        assert got.astype(np.int64).tolist() == list(range(100))


# ------------------------------------------------------------------------------------- every row


@pytest.mark.parametrize("name", [name for name in INTRINSICS if name != "cast"])
def test_an_operation_returns_the_type_and_length_that_its_row_promises(name: str) -> None:
    row = INTRINSICS[name]
    for dtype in row.dtypes:
        for count in (1, 7, 130):
            source = row.src_dtypes[0] if row.src_dtypes else dtype
            padded = row.form in (Form.FOLD_ROWS, Form.SORT_ROWS)
            whole = count * 8 if padded else count  # rows of one element
            arrays = [
                np.ones(-(-count // 8), np.uint8)
                if kind is Operand.MASK
                else np.zeros(count, np.int32)
                if kind is Operand.INDEX
                else np.ones(whole).astype(source.numpy)
                for kind in row.operands
                if kind in (Operand.SRC, Operand.MASK, Operand.INDEX)
            ]
            scalars = [
                0 if row.form is Form.GATHER else 1 if row.int_scalar else source.numpy.type(1)
            ] * row.operands.count(Operand.SCALAR)
            old = np.ones(count).astype(dtype.numpy) if row.reads_dst else None
            got = apply(row, dtype, count, arrays, scalars, (*row.modes, "")[0], old)
            lengths = {
                Form.LANES: 1,
                Form.BLOCKS: -(-count // 8),
                Form.SPREAD_ROWS: count * 8,
                Form.SORT_ROWS: count * 8,
            }
            length = lengths.get(row.form, count)
            assert got.size == (-(-count // 8) if row.whole_repeats else length)
            assert got.dtype == dtype.numpy
