"""Cube cores, alone and beside vector cores, against NumPy in float64."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from cores import Cores, build_cores
from native import Outcome, Runtime, Tensor

from npusmith.errors import CODES
from npusmith.twin.kind import Kind

TEXT = (Path(__file__).parent / "cube.cpp").read_text()
NO_QUANT, F16, BF16, DEQ, VDEQ, QB8, VQB8, REQ8, VREQ8 = range(9)
RNG = np.random.default_rng(7)


@pytest.fixture(scope="session")
def cores(runtime: Runtime) -> Cores:
    return build_cores(runtime, TEXT, "cube")


def bf16(values: np.ndarray) -> np.ndarray:
    """float32 rounded to bfloat16, as the bits of it."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def wide(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def sample(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "int8":
        return RNG.integers(-9, 10, shape).astype(np.int8)
    values = RNG.uniform(-1, 1, shape).astype(np.float32)
    return {"half": values.astype(np.float16), "bf16": bf16(values), "float": values}[dtype]


def packed(values: np.ndarray) -> np.ndarray:
    """Pairs of int4 in bytes, the first in the low half."""
    return (values[..., ::2] & 15 | values[..., 1::2] << 4).astype(np.int8)


def number(values: np.ndarray, dtype: str) -> np.ndarray:
    return (wide(values) if dtype == "bf16" else values).astype(np.float64)


def run(
    cores: Cores,
    entry: str,
    a: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
    sizes: tuple[int, ...],
    extra: np.ndarray | None = None,
) -> np.ndarray:
    params = np.zeros(8, np.int64)
    params[: len(sizes)] = np.array(sizes, np.uint64).view(np.int64) if sizes else 0
    tensors = [Tensor(a, "a", False), Tensor(b, "b", False), Tensor(out, "out")]
    tensors.append(Tensor(params, "sizes", False))
    if extra is not None:
        tensors.append(Tensor(extra, "extra", False))
    outcome = cores.launch(entry, tensors, Kind.AIC_ONLY)
    assert outcome.findings == ()
    assert outcome.finished
    return out


# ---- products and loads


@pytest.mark.parametrize("dtype", ["half", "bf16", "float", "int8"])
@pytest.mark.parametrize("shape", [(16, 16, 32), (30, 40, 70), (64, 16, 96)])
def test_product_of_two_matrices(cores: Cores, dtype: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = sample(dtype, (m, k)), sample(dtype, (n, k))
    out = np.zeros((m, n), np.int32 if dtype == "int8" else np.float32)
    run(cores, f"product_{dtype}", a, b, out, (m, n, k))
    want = number(a, dtype) @ number(b, dtype).T
    np.testing.assert_allclose(out, want, rtol=0, atol=0 if dtype == "int8" else 2e-5)


@pytest.mark.parametrize("entry", ["product_int4", "image_int4"])
def test_pairs_in_bytes_are_products_of_int4(cores: Cores, entry: str) -> None:
    a, b = (RNG.integers(-8, 8, (rows, 70)).astype(np.int8) for rows in (30, 40))
    out = run(cores, entry, packed(a), packed(b), np.zeros((30, 40), np.int32), (30, 40, 70))
    np.testing.assert_array_equal(out, a.astype(np.int64) @ b.T.astype(np.int64))


def test_hf32_rounds_its_operands_first(cores: Cores) -> None:
    a, b = sample("float", (16, 32)), sample("float", (16, 32))

    def short(values: np.ndarray) -> np.ndarray:
        bits = values.view(np.uint32)
        return ((bits + 0x7FF + (bits >> 12 & 1)) & np.uint32(0xFFFFF000)).view(np.float32)

    out = run(cores, "product_hf32", a, b, np.zeros((16, 16), np.float32), (16, 16, 32))
    want = short(a).astype(np.float64) @ short(b).astype(np.float64).T
    np.testing.assert_allclose(out, want, atol=1e-5)
    assert np.abs(out - a.astype(np.float64) @ b.astype(np.float64).T).max() > 1e-5


def test_load_that_transposes_each_fractal_of_b(cores: Cores) -> None:
    a, b = sample("half", (30, 70)), sample("half", (70, 40))
    out = run(cores, "transposed_half", a, b, np.zeros((30, 40), np.float32), (30, 40, 70))
    np.testing.assert_allclose(out, number(a, "half") @ number(b, "half"), atol=2e-5)


def nz(matrix: np.ndarray, c0: int) -> np.ndarray:
    """Columns of fractals of 16 x c0, each row after row."""
    rows, columns = matrix.shape
    return np.ascontiguousarray(matrix.reshape(rows, columns // c0, c0).transpose(1, 0, 2))


def zz(matrix: np.ndarray, c0: int) -> np.ndarray:
    rows, columns = matrix.shape
    blocks = matrix.reshape(rows // 16, 16, columns // c0, c0).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(blocks)


def test_squares_of_8_bit_fractals_are_transposed(cores: Cores) -> None:
    a, b = sample("int8", (16, 64)), sample("int8", (64, 96))
    out = run(cores, "squares_int8", a, nz(b, 32), np.zeros((16, 96), np.int32), (16, 96, 64))
    assert (out == number(a, "int8") @ number(b, "int8")).all()


def test_squares_of_4_bit_fractals_are_transposed(cores: Cores) -> None:
    a, b = (RNG.integers(-8, 8, shape).astype(np.int8) for shape in ((16, 128), (128, 192)))
    out = np.zeros((16, 192), np.int32)
    run(cores, "squares_int4", packed(a), packed(nz(b, 64)), out, (16, 192, 128))
    np.testing.assert_array_equal(out, a.astype(np.int64) @ b.astype(np.int64))


def test_squares_of_32_bit_fractals_are_transposed(cores: Cores) -> None:
    a, b = sample("float", (16, 32)), sample("float", (32, 48))
    out = run(cores, "squares_float", a, zz(b, 8), np.zeros((16, 48), np.float32), (16, 48, 32))
    np.testing.assert_allclose(out, number(a, "float") @ number(b, "float"), atol=2e-5)


def columns_of(image: np.ndarray, f: int, stride: int, dilation: int, pad: int) -> np.ndarray:
    """im2col of [c1][h][w][c0], padded with 0.5: a row for each output pixel."""
    c1, height, width, c0 = image.shape
    padded = np.full((c1, height + 2 * pad, width + 2 * pad, c0), 0.5)
    padded[:, pad : pad + height, pad : pad + width] = image
    tall = (height + 2 * pad - ((f - 1) * dilation + 1)) // stride + 1
    broad = (width + 2 * pad - ((f - 1) * dilation + 1)) // stride + 1
    rows = []
    for y in range(tall):
        for x in range(broad):
            row = [
                padded[c, y * stride + i * dilation, x * stride + j * dilation]
                for c in range(c1)
                for i in range(f)
                for j in range(f)
            ]
            rows.append(np.concatenate(row))
    return np.array(rows)


@pytest.mark.parametrize("form", [(3, 1, 1, 1), (3, 2, 1, 1), (2, 1, 2, 0), (1, 1, 1, 0)])
def test_image_to_column_is_what_a_convolution_multiplies(
    cores: Cores, form: tuple[int, int, int, int]
) -> None:
    f, stride, dilation, pad = form
    image = sample("half", (2, 7, 9, 16))
    matrix = columns_of(image.astype(np.float64), f, stride, dilation, pad)
    m, k = matrix.shape
    weights = sample("half", (16, k))
    extra = np.array([7, 9, 32, f, stride, dilation, pad], np.int64)
    out = run(
        cores, "convolution", image, weights, np.zeros((m, 16), np.float32), (m, 16, k), extra
    )
    np.testing.assert_allclose(out, matrix @ number(weights, "half").T, atol=1e-3)


@pytest.mark.parametrize("dtype", ["half", "float"])
def test_the_3d_load_transposes_a_on_demand_and_b_always(cores: Cores, dtype: str) -> None:
    k = 36 if dtype == "float" else 40
    a, b = sample(dtype, (k, 32)), sample(dtype, (k, 48))
    out = run(cores, f"image_{dtype}", a, b, np.zeros((32, 48), np.float32), (32, 48, k))
    np.testing.assert_allclose(out, number(a, dtype).T @ number(b, dtype), atol=2e-5)


def test_one_row_is_read_as_it_lies(cores: Cores) -> None:
    a, b = sample("half", (1, 256)), sample("half", (50, 256))
    out = run(cores, "vector_times_matrix", a, b, np.zeros((1, 50), np.float32), (1, 50, 256))
    np.testing.assert_allclose(out, number(a, "half") @ number(b, "half").T, atol=5e-5)


def test_fill_writes_whole_fractals(cores: Cores) -> None:
    b = sample("half", (32, 64))
    out = run(cores, "filled", b, b, np.zeros((16, 32), np.float32), (16, 32, 64))
    np.testing.assert_allclose(out, np.tile(b.astype(np.float64).sum(1), (16, 1)), atol=2e-5)


def test_a_tscm_that_is_filled_from_global_memory_lies_in_l1(cores: Cores) -> None:
    a, out = sample("half", (16, 16)), np.zeros(8, np.int32)
    run(cores, "scm", a, a, out, ())
    assert out[0] == 14  # TPosition::TSCM


def test_bias_of_the_table_then_a_second_product_on_top(cores: Cores) -> None:
    a, b, bias = sample("half", (20, 32)), sample("half", (48, 32)), sample("half", (64,))
    out = np.zeros((20, 48), np.float32)
    run(cores, "biased", a, b, out, (20, 48, 32), bias)
    want = 2 * (number(a, "half") @ number(b, "half").T) + bias[:48].astype(np.float64)
    np.testing.assert_allclose(out, want, atol=2e-5)


def test_products_add_up_in_the_order_of_k(cores: Cores) -> None:
    a, b = sample("half", (16, 64)), sample("half", (16, 64))
    out = run(cores, "product_half", a, b, np.zeros((16, 16), np.float32), (16, 16, 64))
    want = np.zeros((16, 16), np.float32)
    for i in range(64):
        want += a[:, i, None].astype(np.float32) * b[None, :, i].astype(np.float32)
    assert (out == want).all()


def sparse(k: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix of k x n, what is kept of it as n x k / 2, and its index as n x k / 8 bytes."""
    full = np.zeros((k, n), np.int8)
    dense, index = np.zeros((n, k // 2), np.int8), np.zeros((n, k // 2), np.uint8)
    for column in range(n):
        for group in range(k // 4):
            first, second = sorted(RNG.choice(4, 2, replace=False))
            dense[column, 2 * group : 2 * group + 2] = RNG.integers(1, 9, 2)
            full[4 * group + first, column] = dense[column, 2 * group]
            full[4 * group + second, column] = dense[column, 2 * group + 1]
            index[column, 2 * group : 2 * group + 2] = first, second - 1
    bits = (index.reshape(n, -1, 4) << np.array([0, 2, 4, 6], np.uint8)).sum(2).astype(np.uint8)
    return full, dense, bits


def test_sparse_weights_meet_the_elements_that_their_index_names(cores: Cores) -> None:
    a, (full, dense, index) = sample("int8", (16, 64)), sparse(64, 16)
    out = run(cores, "sparse", a, dense, np.zeros((16, 16), np.int32), (16, 16, 64), index)
    assert (out == number(a, "int8") @ number(full, "int8")).all()


def test_a_sparse_b_is_whole_where_its_index_says(cores: Cores) -> None:
    a, (full, dense, index) = sample("int8", (40, 128)), sparse(128, 48)
    blocks = np.ascontiguousarray(index.reshape(48, 2, 8).transpose(1, 0, 2))
    out = run(cores, "sparse_b", a, dense, np.zeros((40, 48), np.int32), (40, 48, 128), blocks)
    assert (out == number(a, "int8") @ number(full, "int8")).all()


def test_a_callback_brings_the_blocks_of_b(cores: Cores) -> None:
    a, b = sample("half", (40, 70)), sample("half", (71, 48))
    out = np.zeros((40, 48), np.float32)
    run(cores, "callback", a, b, out, (40, 48, 70, 0, 0, 0, 0, 48))
    np.testing.assert_allclose(out, number(a, "half") @ number(b[1:], "half"), atol=2e-5)


def test_a_callback_may_leave_b_in_l1_for_the_next_product(cores: Cores) -> None:
    a, b = sample("half", (2, 40, 64)), sample("half", (64, 64))
    out = run(cores, "callback_once", a, b, np.zeros((2, 40, 64), np.float32), (40, 64, 64))
    np.testing.assert_allclose(out, number(a, "half") @ number(b, "half"), atol=2e-5)


def test_blocks_wait_in_l0c_until_the_kernel_takes_them(cores: Cores) -> None:
    a, b = sample("half", (32, 64)), sample("half", (64, 96))
    out = run(cores, "own_l0c", a, b, np.zeros((32, 96), np.float32), (32, 96, 64))
    np.testing.assert_allclose(out, number(a, "half") @ number(b, "half"), atol=2e-5)


def test_a_second_product_is_added_in_l0c(cores: Cores) -> None:
    a, b = sample("half", (32, 64)), sample("half", (64, 32))
    sizes = (32, 32, 64, 0, 0, 0, 0, 1)
    out = run(cores, "own_l0c", a, b, np.zeros((32, 32), np.float32), sizes)
    np.testing.assert_allclose(out, 2 * number(a, "half") @ number(b, "half"), atol=4e-5)


def test_queues_of_all_positions_carry_a_product(cores: Cores) -> None:
    a, b = sample("half", (16, 64)), sample("half", (16, 64))
    out = run(cores, "queues", a, b, np.zeros((16, 16), np.float32), (16, 16, 64))
    np.testing.assert_allclose(out, number(a, "half") @ number(b, "half").T, atol=2e-5)


# ---- ways out of L0C


def product(dtype: str, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = sample(dtype, (m, k)), sample(dtype, (n, k))
    return a, b, number(a, dtype) @ number(b, dtype).T


def scale_bits(scale: float, offset: int = 0, signed: bool = False) -> int:
    bits = int(np.array(scale, np.float32).view(np.uint32))
    return bits | (offset & 511) << 37 | int(signed) << 46


def ten_bits(scale: float) -> float:
    bits = np.array(scale, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return float(bits.view(np.float32))


def test_fixpipe_rounds_to_half_and_clips_at_zero(cores: Cores) -> None:
    a, b, want = product("half", 30, 40, 32)
    out = run(cores, "out_half", a, b, np.zeros((30, 40), np.float16), (30, 40, 32, F16, 1))
    np.testing.assert_allclose(out, np.maximum(want, 0), rtol=1e-3, atol=1e-4)


def test_fixpipe_rounds_to_bfloat16(cores: Cores) -> None:
    a, b, want = product("half", 16, 32, 32)
    out = run(cores, "out_bf16", a, b, np.zeros((16, 32), np.uint16), (16, 32, 32, BF16, 0))
    np.testing.assert_allclose(wide(out), want, rtol=8e-3, atol=1e-3)


def test_fixpipe_keeps_nz_with_16_columns_a_block(cores: Cores) -> None:
    a, b, want = product("half", 20, 48, 32)
    out = np.zeros((3, 24, 16), np.float16)  # blocks 24 rows apart: 24 x 32 bytes
    run(cores, "out_half", a, b, out, (20, 48, 32, F16, 0, 1, 0, 24))
    blocks = want.reshape(20, 3, 16).transpose(1, 0, 2)
    np.testing.assert_allclose(out[:, :20], blocks, rtol=1e-3, atol=1e-3)
    assert (out[:, 20:] == 0).all()


def test_channel_split_gives_blocks_of_8_floats(cores: Cores) -> None:
    a, b, want = product("half", 16, 32, 32)
    out = np.zeros((4, 16, 8), np.float32)
    run(cores, "out_float", a, b, out, (16, 32, 32, NO_QUANT, 0, 2, 0, 16))
    np.testing.assert_allclose(out, want.reshape(16, 4, 8).transpose(1, 0, 2), atol=2e-5)


def test_8_bit_channels_merge_to_blocks_of_32(cores: Cores) -> None:
    a, b, want = product("half", 16, 64, 32)
    out = np.zeros((2, 16, 32), np.int8)
    bits = scale_bits(3.0, offset=-5, signed=True)
    run(cores, "out_byte", a, b, out, (16, 64, 32, QB8, 0, 1, bits, 16))
    quant = np.clip(np.rint(want.astype(np.float32) * np.float32(3)) - 5, -128, 127)
    assert np.abs(out - quant.reshape(16, 2, 32).transpose(1, 0, 2)).max() <= 1


def test_int32_is_scaled_with_10_bits_of_mantissa(cores: Cores) -> None:
    a, b, want = product("int8", 16, 32, 64)
    bits = scale_bits(0.123456)
    out = np.zeros((16, 32), np.float16)
    run(cores, "out_int_half", a, b, out, (16, 32, 64, DEQ, 0, 0, bits))
    exact = (want.astype(np.float32) * np.float32(ten_bits(0.123456))).astype(np.float16)
    assert (out == exact).all()


def test_each_column_has_its_own_scale(cores: Cores) -> None:
    a, b, want = product("int8", 16, 32, 64)
    scales = RNG.uniform(0.01, 0.1, 32)
    table = np.array([scale_bits(value) for value in scales], np.uint64)
    out = np.zeros((16, 32), np.float16)
    run(cores, "out_int_half", a, b, out, (16, 32, 64, VDEQ), table)
    exact = want.astype(np.float32) * np.array([ten_bits(v) for v in scales], np.float32)
    assert (out == exact.astype(np.float16)).all()


def test_requantisation_saturates_to_unsigned_bytes(cores: Cores) -> None:
    a, b, want = product("int8", 16, 32, 64)
    bits = scale_bits(0.5, offset=100)
    out = np.zeros((16, 32), np.uint8)
    run(cores, "out_int_byte", a, b, out, (16, 32, 64, REQ8, 0, 0, bits))
    assert (out == np.clip(np.rint(want * 0.5) + 100, 0, 255)).all()


def test_data_copy_out_of_l0c_takes_its_scales_from_the_fixpipe_buffer(cores: Cores) -> None:
    a, b, want = product("int8", 16, 32, 64)
    table = np.zeros(64, np.uint64)
    table[:32] = [scale_bits(0.25) for _ in range(32)]
    out = np.zeros((16, 32), np.float16)
    run(cores, "out_by_registers", a, b, out, (16, 32, 64), table)
    assert (out == (want * 0.25).astype(np.float16)).all()


def test_c_goes_through_l1_into_a_second_product(cores: Cores) -> None:
    a, b, first = product("half", 32, 32, 32)
    other = sample("half", (32, 32))
    out = np.zeros((32, 32), np.float32)
    run(cores, "out_through_l1", a, b, out, (32, 32, 32), other)
    want = first.astype(np.float16).astype(np.float64) @ number(other, "half").T
    np.testing.assert_allclose(out, want, atol=2e-2)


# ---- both kinds of core


def _lines(count: int) -> np.ndarray:
    """A cache line of int64 for each core: two of them never write into one line."""
    raw = np.zeros(count * 64 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * 64].view(np.int64).reshape(count, 8)


@pytest.mark.parametrize(
    ("kind", "vectors"), [(Kind.MIX_AIC_1_1, 1), (Kind.MIX_AIC_1_2, 2), (Kind.AIV_ONLY, 1)]
)
def test_every_core_knows_who_it_is(cores: Cores, kind: Kind, vectors: int) -> None:
    out = _lines(128)
    out[:] = -1
    assert cores.launch("who", [Tensor(out, "out")], kind, blocks=3).findings == ()
    for block in range(3):
        if kind.cube:
            assert list(out[block, :7]) == [block, 0, 3, 1, 1, block, 0]
        for sub in range(vectors):
            me = block * vectors + sub
            assert list(out[64 + me, :7]) == [me, sub, 3, vectors, vectors, block, sub]
    assert (out[64 + 3 * vectors :] == -1).all()


@pytest.mark.parametrize("kind", [Kind.MIX_AIC_1_1, Kind.MIX_AIC_1_2])
def test_flags_hand_data_from_vector_to_cube_cores_and_back(cores: Cores, kind: Kind) -> None:
    a, b = sample("half", (32, 32)), sample("half", (32, 32))
    out = np.zeros((32, 32), np.float32)
    tensors = [Tensor(a, "a", False), Tensor(b, "b", False), Tensor(out, "out")]
    tensors += [Tensor(np.zeros(8, np.int64), "sizes", False), Tensor(np.zeros_like(a), "work")]
    outcome = cores.launch("mixed", tensors, kind)
    assert outcome.findings == ()
    raised = (a + np.float16(1)).astype(np.float64)
    np.testing.assert_allclose(out, 2 * (raised @ b.astype(np.float64).T), rtol=1e-5, atol=1e-4)


def test_everybody_meets_everybody(cores: Cores) -> None:
    numbers, sums = _lines(12), _lines(12)
    tensors = [Tensor(numbers, "numbers"), Tensor(sums, "sums")]
    outcome = cores.launch("all_meet", tensors, Kind.MIX_AIC_1_2, blocks=4)
    assert outcome.finished
    assert list(sums[:, 0]) == [78] * 12


def test_vector_cores_meet_in_their_block_and_in_all(cores: Cores) -> None:
    numbers, sums = _lines(6), _lines(6)
    tensors = [Tensor(numbers, "numbers"), Tensor(sums, "sums")]
    outcome = cores.launch("vectors_meet", tensors, Kind.MIX_AIC_1_2, blocks=3)
    assert outcome.finished
    assert list(sums[:, 0]) == [3, 3, 7, 7, 11, 11]
    assert list(numbers[:, 0]) == [42] * 6


def test_vector_cores_take_turns_in_order(cores: Cores) -> None:
    order = np.zeros(16, np.int64)
    tensors = [Tensor(order, "list"), Tensor(np.zeros(64, np.int32), "work")]
    assert cores.launch("in_turn", tensors, Kind.AIV_ONLY, blocks=4).finished
    assert list(order[:9]) == [8, 0, 1, 2, 3, 0, 1, 2, 3]


def test_a_core_that_runs_ahead_waits_for_room_in_the_counter(cores: Cores) -> None:
    outcome = cores.launch("many_flags", [], Kind.MIX_AIC_1_2, blocks=2)
    assert outcome.findings == ()
    assert outcome.finished


def test_a_deadlock_says_which_core_waits_for_what(cores: Cores) -> None:
    outcome = cores.launch("stuck", [], Kind.MIX_AIC_1_2, blocks=2)
    assert not outcome.finished
    (finding,) = outcome.findings
    assert finding.code == "deadlock"
    assert "AIC 1 in CrossCoreWaitFlag at cube.cpp" in finding.seen
    assert finding.seen.endswith("for flag 2")


def test_two_runs_of_a_mixed_kernel_give_the_same_bits(cores: Cores) -> None:
    a, b = sample("half", (32, 32)), sample("half", (32, 32))
    results = []
    for _ in range(2):
        out, work = np.zeros((32, 32), np.float32), np.zeros_like(a)
        sizes = np.zeros(8, np.int64)
        tensors = [Tensor(x, "x") for x in (a, b, out, sizes, work)]
        cores.launch("mixed", tensors, Kind.MIX_AIC_1_2)
        results.append(out.tobytes())
    assert results[0] == results[1]


# ---- faults

FAULTS = (Path(__file__).parent / "faults_cube.cpp").read_text()
NAMES = re.findall(r"^BOTH\((\w+)\)", FAULTS, re.MULTILINE)
BLOCKS = {"sync_cores": (25, 24)}


@pytest.fixture(scope="session")
def faults(runtime: Runtime) -> Cores:
    return build_cores(runtime, FAULTS, "faults_cube")


def _launch(faults: Cores, entry: str, blocks: int) -> Outcome:
    tensors = [Tensor(np.ones(1024, np.float32), "x", False), Tensor(np.zeros(1024, np.float32))]
    return faults.launch(entry, tensors, Kind.MIX_AIC_1_2, blocks=blocks)


@pytest.mark.parametrize("name", NAMES)
def test_the_fault_is_caught_on_its_line_and_its_near_twin_passes(faults: Cores, name: str) -> None:
    code = max((code for code in CODES if name.replace("_", "-").startswith(code)), key=len)
    bad = _launch(faults, f"bad_{name}", BLOCKS.get(name, (1, 1))[0])
    assert {item.code for item in bad.findings} == {code}
    start = FAULTS.index(f"BOTH({name})")
    assert bad.findings[0].line == FAULTS[: FAULTS.index("// caught", start)].count("\n") + 1
    assert bad.findings[0].level is CODES[code].level
    good = _launch(faults, f"good_{name}", BLOCKS.get(name, (1, 1))[1])
    assert good.findings == ()
    assert good.finished
