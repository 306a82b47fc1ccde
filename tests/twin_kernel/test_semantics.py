"""Masks, strides, copies, reductions, moves, state and cores, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels

F32, F16 = np.float32, np.float16
KERNELS = Path(__file__).parent / "kernels.cpp"


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, KERNELS.read_text(), "semantics")


def _numbers(dtype: type, seed: int = 0) -> np.ndarray:
    return (
        np.random.default_rng(seed).standard_normal(4096 // np.dtype(dtype).itemsize).astype(dtype)
    )


class Ran:
    """One launch on x and y, whose z is the third argument."""

    def __init__(
        self, kernels: Kernels, entry: str, x: np.ndarray, y: np.ndarray | None = None,
        z: np.ndarray | None = None, blocks: int = 1, key: int = 0,
    ) -> None:  # fmt: skip
        self.x, self.y = x.copy(), (_numbers(x.dtype.type, 1) if y is None else y.copy())
        self.z = np.zeros(x.size, x.dtype) if z is None else z.copy()
        tensors = [Tensor(self.x, "x"), Tensor(self.y, "y"), Tensor(self.z, "z")]
        self.outcome: Outcome = kernels.launch(entry, tensors, blocks=blocks, key=key)

    def expect(self, want: np.ndarray, codes: tuple[str, ...] = ()) -> None:
        assert tuple(self.outcome.codes) == codes
        np.testing.assert_array_equal(self.z, want.astype(self.z.dtype))


def _zeros(dtype: type) -> np.ndarray:
    return np.zeros(4096 // np.dtype(dtype).itemsize, dtype)


# ---- masks, repeats, strides


def test_a_mask_count_leaves_the_other_lanes_of_each_repeat(kernels: Kernels) -> None:
    ran = Ran(kernels, "masked_lanes", _numbers(F32))
    want = _zeros(F32)
    for r in range(3):
        want[64 * r : 64 * r + 10] = (ran.x + ran.y)[64 * r : 64 * r + 10]
    ran.expect(want)


def test_a_mask_bitmap_of_16_bit_lanes_uses_both_words(kernels: Kernels) -> None:
    ran = Ran(kernels, "masked_bits", _numbers(F16))
    lanes = [*range(0, 64, 2), 64, 127]
    want = _zeros(F16)
    for r in range(2):
        at = [128 * r + lane for lane in lanes]
        want[at] = (ran.x * ran.y)[at]
    ran.expect(want)


def test_strides_of_zero_read_the_same_block_again(kernels: Kernels) -> None:
    ran = Ran(kernels, "strided", _numbers(F32))
    want = _zeros(F32)
    for r in range(4):
        for block in range(8):
            to = (r * 16 + block * 2) * 8
            want[to : to + 8] = ran.x[r * 64 + block * 8 :][:8] - ran.y[:8]
    ran.expect(want)


def test_a_source_repeat_stride_of_zero_broadcasts_a_row(kernels: Kernels) -> None:
    ran = Ran(kernels, "row_broadcast", _numbers(F32))
    want = _zeros(F32)
    want[:320] = np.tile(ran.x[:64] + F32(1), 5)
    ran.expect(want)


def test_repeat_stride_zero_accumulates_in_place(kernels: Kernels) -> None:
    ran = Ran(kernels, "accumulated", _numbers(F32))
    want = _zeros(F32)
    for r in range(16):
        want[:64] += ran.x[64 * r : 64 * r + 64]
    ran.expect(want)


def test_the_mask_register_is_used_when_the_call_sets_none(kernels: Kernels) -> None:
    ran = Ran(kernels, "by_register", _numbers(F32))
    want = _zeros(F32)
    for r in range(2):
        want[64 * r + 4 : 64 * r + 8] = (ran.x + ran.y)[64 * r + 4 : 64 * r + 8]
    ran.expect(want)


def test_counter_mode_ignores_repeats_and_cuts_the_tail(kernels: Kernels) -> None:
    ran = Ran(kernels, "by_counter", _numbers(F32))
    ran.expect(np.where(np.arange(1024) < 100, ran.x + ran.y, F32(0)))


def test_a_count_form_leaves_a_full_mask_behind(kernels: Kernels) -> None:
    ran = Ran(kernels, "count_form_resets_the_mask", _numbers(F32))
    want = np.where(np.arange(1024) < 128, ran.x + ran.y, F32(0))
    ran.expect(want, ("mask-lost",))


def test_a_repeat_of_256_does_nothing_and_is_reported(kernels: Kernels) -> None:
    Ran(kernels, "repeat_of_256_wraps_to_0", _numbers(F32)).expect(_zeros(F32), ("param-range",))


def test_a_widening_cast_counts_repeats_in_the_wider_type(kernels: Kernels) -> None:
    ran = Ran(kernels, "widening_repeats", _numbers(F32))
    want = _zeros(F32)
    want[:192] = _numbers(F32).view(F16)[:192]
    assert ran.outcome.codes == []
    np.testing.assert_array_equal(ran.z, want)


def test_axpy_with_half_sources_multiplies_in_float(kernels: Kernels) -> None:
    x = np.zeros(1024, F32)
    x.view(F16)[:] = np.random.default_rng(3).standard_normal(2048)
    ran = Ran(kernels, "mixed_axpy", x)
    want = ran.y.copy()
    want[:100] += x.view(F16)[:100].astype(F32) * F32(0.5)
    ran.expect(want)


def test_copy_moves_the_lanes_of_its_mask(kernels: Kernels) -> None:
    ran = Ran(kernels, "copied_lanes", _numbers(F16))
    want = _zeros(F16)
    for r in range(3):
        want[128 * r : 128 * r + 100] = ran.x[256 * r : 256 * r + 100]
    ran.expect(want)


def test_create_vec_index_counts_on_over_repeats(kernels: Kernels) -> None:
    ran = Ran(kernels, "indexed_lanes", _numbers(F32))
    ran.expect(np.where(np.arange(1024) < 128, np.arange(1024) + 5, 0))


# ---- copies


def _rows(want: np.ndarray, source: np.ndarray, to_pitch: int, from_pitch: int) -> np.ndarray:
    for i in range(4):
        want[i * to_pitch : i * to_pitch + 16] = source[i * from_pitch : i * from_pitch + 16]
    return want


@pytest.mark.parametrize("entry", ["blocks_in", "blocks_out", "blocks_over"])
def test_block_copies_count_gaps_from_end_to_start(kernels: Kernels, entry: str) -> None:
    ran = Ran(kernels, entry, _numbers(F32))
    ran.expect(_rows(_zeros(F32), ran.x, 40, 24))


def test_padded_rows_are_filled_left_right_and_up_to_the_block(kernels: Kernels) -> None:
    ran = Ran(kernels, "padded_in", _numbers(F32))
    want = _zeros(F32)
    for i in range(3):
        want[16 * i : 16 * i + 8] = -7
        want[16 * i + 2 : 16 * i + 7] = ran.x[8 * i : 8 * i + 5]
    ran.expect(want)


@pytest.mark.parametrize("entry", ["padded_in_by_default", "padded_in_by_flag_alone"])
def test_without_padding_the_rest_of_the_block_repeats_the_first_element(
    kernels: Kernels, entry: str
) -> None:
    ran = Ran(kernels, entry, _numbers(F32))
    want = _zeros(F32)
    for i in range(2):
        row = ran.x[3 * i : 3 * i + 3]
        want[8 * i : 8 * i + 8] = [*row, *[row[0]] * 5]
    ran.expect(want, ("padding-read",))  # nobody chose that filler, and it reaches the output


def test_the_older_padded_form_counts_bytes(kernels: Kernels) -> None:
    ran = Ran(kernels, "padded_in_16_bit", _numbers(F16))
    want = _zeros(F16)
    want[:3], want[16:19] = ran.x[:3], ran.x[8:11]
    ran.expect(want)


def test_padded_copies_out_write_exactly_their_bytes(kernels: Kernels) -> None:
    z = np.full(1024, 9, F32)
    ran = Ran(kernels, "padded_out", _numbers(F32), z=z)
    want = z.copy()
    for i in range(3):
        want[8 * i : 8 * i + 5] = ran.x[16 * i : 16 * i + 5]
    ran.expect(want)


def test_slices_collect_bursts_of_a_matrix(kernels: Kernels) -> None:
    ran = Ran(kernels, "sliced_in", _numbers(F32))
    want = _zeros(F32)
    for i, row in enumerate((1, 2)):
        for j, column in enumerate((16, 32, 48)):
            want[24 * i + 8 * j :][:8] = ran.x[64 * row + column :][:8]
    ran.expect(want)


def test_a_copy_of_52_bytes_moves_32_and_is_reported(kernels: Kernels) -> None:
    ran = Ran(kernels, "short_copy_is_cut", _numbers(F32))
    ran.expect(np.where(np.arange(1024) < 8, ran.x, F32(0)), ("copy-length",))


def test_atomic_add_accumulates_in_global_memory(kernels: Kernels) -> None:
    ran = Ran(kernels, "atomic_add", _numbers(F32), z=_numbers(F32, 5))
    want = _numbers(F32, 5)
    want[:64] += ran.x[:64]
    want[:3] += ran.x[:3]
    ran.expect(want)


def test_atomic_max_keeps_the_larger(kernels: Kernels) -> None:
    ran = Ran(kernels, "atomic_max_16", _numbers(F16), z=_numbers(F16, 5))
    want = _numbers(F16, 5)
    want[:64] = np.maximum(want[:64], ran.x[:64])
    ran.expect(want)


def test_init_output_fills_global_memory(kernels: Kernels) -> None:
    ran = Ran(kernels, "filled", _numbers(F32))
    ran.expect(np.where(np.arange(1024) < 100, 3, 0))


# ---- reductions


def _tree(row: np.ndarray) -> np.ndarray:
    padded = np.zeros(1 << (row.size - 1).bit_length(), row.dtype)
    padded[: row.size] = row
    while padded.size > 1:
        padded = padded[0::2] + padded[1::2]
    return padded[0]


def test_whole_reduce_sum_adds_pairs_in_half(kernels: Kernels) -> None:
    ran = Ran(kernels, "whole_sum", _numbers(F16))
    want = _zeros(F16)
    want[:5] = [_tree(np.append(ran.x[128 * r :][:100], np.zeros(28, F16))) for r in range(5)]
    ran.expect(want)


def test_whole_reduce_max_gives_the_first_of_equals_and_its_index(kernels: Kernels) -> None:
    x = np.round(_numbers(F32) * 2)
    ran = Ran(kernels, "whole_max", x)
    rows = x[:320].reshape(5, 64)
    assert ran.outcome.codes == []
    np.testing.assert_array_equal(ran.z[:10:2], rows.max(1))
    np.testing.assert_array_equal(ran.z.view(np.uint32)[1:10:2], rows.argmax(1))
    np.testing.assert_array_equal(ran.z[64:69], rows.min(1))
    np.testing.assert_array_equal(ran.z.view(np.uint32)[128:133], rows.argmax(1))


def test_block_reductions_give_one_result_a_block(kernels: Kernels) -> None:
    ran = Ran(kernels, "block_sum", _numbers(F32))
    blocks = ran.x[:256].reshape(32, 8)
    want = _zeros(F32)
    want[:32] = [_tree(row) for row in blocks]
    want[64:96] = blocks.max(1)
    want[128:160] = [row[: 4 if i % 8 == 7 else 8].min() for i, row in enumerate(blocks)]
    ran.expect(want)


def test_pair_reduce_sum_adds_neighbours(kernels: Kernels) -> None:
    ran = Ran(kernels, "pair_sum", _numbers(F32))
    want = _zeros(F32)
    want[:128] = ran.x[:256:2] + ran.x[1:256:2]
    ran.expect(want)


def test_repeat_reduce_sum_gives_one_result_a_repeat(kernels: Kernels) -> None:
    ran = Ran(kernels, "repeat_sum", _numbers(F32))
    want = _zeros(F32)
    want[:4] = [_tree(row) for row in ran.x[:256].reshape(4, 64)]
    ran.expect(want)


def test_reduce_max_with_index_counts_over_all_repeats(kernels: Kernels) -> None:
    ran = Ran(kernels, "max_with_index", _numbers(F32))
    assert ran.outcome.codes == []
    assert ran.z[0] == ran.x[:200].max()
    assert ran.z.view(np.uint32)[1] == ran.x[:200].argmax()
    assert ran.z[64] == ran.x[:192].min()
    assert ran.z.view(np.uint32)[65] == ran.x[:192].argmin()


def test_the_repeat_form_of_reduce_sum_adds_the_repeats_by_a_tree(kernels: Kernels) -> None:
    ran = Ran(kernels, "sum_of_repeats", _numbers(F32))
    parts = np.array([_tree(row) for row in ran.x[:448].reshape(7, 64)], F32)
    want = _zeros(F32)
    want[0] = _tree(parts)
    ran.expect(want)


def test_sum_and_mean_take_rows_with_padding(kernels: Kernels) -> None:
    ran = Ran(kernels, "sum_rows", _numbers(F32))
    rows = ran.x[:240].reshape(3, 80)
    assert ran.outcome.codes == []
    sums = np.array([_tree(row[:64]) + _tree(row[64:75]) for row in rows], F32)
    np.testing.assert_array_equal(ran.z[:3], sums)
    np.testing.assert_array_equal(ran.z[64:67], sums * (F32(1) / F32(75)))


def test_results_of_the_last_reduction_can_be_read(kernels: Kernels) -> None:
    ran = Ran(kernels, "accumulator", _numbers(F32))
    assert ran.z[8] == _tree(ran.x[:64])
    assert ran.z[24] == ran.x[:64].max()
    assert ran.z.view(np.uint32)[25] == ran.x[:64].argmax()


# Special values: the vendor's table of a saturating sum; without saturation they are IEEE's.
def test_infinities_and_nan_follow_ieee_in_a_half_sum(kernels: Kernels) -> None:
    x = np.ones(2048, F16)
    x[0] = -np.inf
    ran = Ran(kernels, "whole_sum", x)
    np.testing.assert_array_equal(ran.z[:5], np.array([-np.inf, 100, 100, 100, 100], F16))


# ---- moves inside UB


def test_brcb_spreads_eight_elements_over_eight_blocks(kernels: Kernels) -> None:
    ran = Ran(kernels, "brcb", _numbers(F32))
    want = _zeros(F32)
    want[:192] = np.repeat(ran.x[:24], 8)
    ran.expect(want)


def test_gather_takes_byte_offsets_from_a_base(kernels: Kernels) -> None:
    index = np.random.default_rng(2).integers(0, 1000, 1024)
    y = (index * 4).astype(np.uint32).view(F32)
    ran = Ran(kernels, "gathered", _numbers(F32), y)
    want = _zeros(F32)
    want[:100] = ran.x[index[:100] + 2]
    ran.expect(want)


def test_gather_mask_packs_what_its_pattern_takes(kernels: Kernels) -> None:
    bits = np.random.default_rng(2).integers(0, 2, 32768).astype(bool)
    y = np.packbits(bits, bitorder="little").view(F32)
    ran = Ran(kernels, "gathered_mask", _numbers(F32), y)
    assert ran.outcome.codes == []
    np.testing.assert_array_equal(ran.z[:32], ran.x[:128:4])
    assert ran.z[1000] == 32
    kept = np.concatenate([ran.x[:70][bits[:70]], ran.x[128:198][bits[:70]]])
    np.testing.assert_array_equal(ran.z[64 : 64 + kept.size], kept)
    assert ran.z[1001] == kept.size


def test_transposes_swap_rows_and_columns(kernels: Kernels) -> None:
    ran = Ran(kernels, "transposed", _numbers(F16))
    want = _zeros(F16)
    square = ran.x[:256].reshape(16, 16).T.reshape(-1)
    want[:256] = want[256:512] = square
    ran.expect(want)


def test_sort32_orders_descending_with_indices(kernels: Kernels) -> None:
    ran = Ran(kernels, "sorted", np.round(_numbers(F32)))
    assert ran.outcome.codes == []
    for r in range(2):
        row = ran.x[32 * r : 32 * r + 32]
        order = np.argsort(-row, kind="stable")
        items = ran.z[64 * r : 64 * r + 64]
        np.testing.assert_array_equal(items[0::2], row[order])
        np.testing.assert_array_equal(items.view(np.uint32)[1::2], order + 32 * r)


def test_broadcast_grows_the_axis_of_length_one(kernels: Kernels) -> None:
    ran = Ran(kernels, "broadcast", _numbers(F32))
    want = _zeros(F32)
    want[:80] = np.repeat(ran.x[:5], 16)
    want[128:208] = np.tile(ran.x[:16], 5)
    ran.expect(want)


def test_select_by_the_compare_register_uses_the_same_bits_each_repeat(kernels: Kernels) -> None:
    ran = Ran(kernels, "select_by_register", _numbers(F32))
    bits = np.tile(ran.x[:64] < ran.y[:64], 2)
    want = _zeros(F32)
    want[:128] = np.where(bits, ran.x[:128], ran.y[:128])
    ran.expect(want)


def test_int32_to_half_multiplies_with_the_scale(kernels: Kernels) -> None:
    x = np.random.default_rng(4).integers(-100000, 100000, 1024).astype(np.int32)
    ran = Ran(kernels, "dequantised", x, x)
    np.testing.assert_array_equal(ran.z.view(F16)[:100], (x[:100] * 0.25).astype(F16))


# ---- operations as functions, and as symbols


def test_operations_can_be_passed_as_functions(kernels: Kernels) -> None:
    ran = Ran(kernels, "operations_as_functions", _numbers(F32))
    ran.expect(np.floor((np.abs(ran.x) + ran.y) * F32(2)))


def test_symbols_compute_the_whole_destination(kernels: Kernels) -> None:
    ran = Ran(kernels, "symbols", _numbers(F32))
    ran.expect(ran.x * ran.y - ran.y)


def test_symbols_of_comparison_write_bits_of_the_whole_sources(kernels: Kernels) -> None:
    ran = Ran(kernels, "symbols_of_comparison", _numbers(F32))
    assert ran.outcome.codes == []
    bits = ran.z.view(np.uint8).reshape(4, 1024)[:, :128]
    low, same, high, either = (np.unpackbits(row, bitorder="little") for row in bits)
    np.testing.assert_array_equal(low, ran.x < ran.y)
    np.testing.assert_array_equal(high, ran.x >= ran.y)
    assert same.all() and either.all()


def test_vcadd_without_a_destination_fills_the_accumulator(kernels: Kernels) -> None:
    ran = Ran(kernels, "accumulator_register", _numbers(F32))
    first, second, third = (_tree(row) for row in ran.x[:192].reshape(3, 64))
    assert ran.outcome.codes == []
    assert ran.z[0] == (first + second) + third


# ---- scalars, state, cores


def test_scalars_are_read_and_written(kernels: Kernels) -> None:
    ran = Ran(kernels, "scalar_access", _numbers(F32), blocks=1)
    want = _zeros(F32)
    want[:4] = [ran.x[1] + ran.y[2], ran.x[3], 42, 10]
    ran.expect(want)


def test_uninitialised_ub_is_nan(kernels: Kernels) -> None:
    ran = Ran(kernels, "uninitialised", _numbers(F32))
    assert np.isnan(ran.z).all()
    assert np.isnan(ran.z.view(F16)).all()


@pytest.mark.parametrize("key", [7, 8, 9])
def test_the_tiling_key_of_the_launch_chooses_the_branch(kernels: Kernels, key: int) -> None:
    ran = Ran(kernels, "tiling_key", _numbers(F32), key=key)
    assert ran.z[0] == (key if key < 9 else 0)


@pytest.mark.parametrize("blocks", [1, 2, 48])
def test_cores_see_each_other_after_a_barrier(kernels: Kernels, blocks: int) -> None:
    ran = Ran(kernels, "neighbours", _numbers(F32), z=np.zeros(8 * 3 * 48, F32), blocks=blocks)
    assert ran.outcome.codes == [] and ran.outcome.finished
    got = ran.z[: 8 * 3 * blocks].reshape(3, blocks, 8)
    want = (np.arange(blocks) + 1) % blocks
    for turn in range(3):
        np.testing.assert_array_equal(got[turn], np.repeat(want + 100 * turn, 8).reshape(blocks, 8))


def test_a_chain_of_block_flags_runs_backwards(kernels: Kernels) -> None:
    ran = Ran(kernels, "chain", _numbers(F32), y=np.zeros(1024, F32), blocks=4)
    assert ran.outcome.codes == [] and ran.outcome.finished
    np.testing.assert_array_equal(ran.z[:64:16], [4, 3, 2, 1])


@pytest.mark.parametrize("shape", [(5, 1), (7, 257), (3, 600), (1, 256)])
def test_a_softmax_with_rows_longer_than_a_tile_is_right(
    kernels: Kernels, shape: tuple[int, int]
) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(F32) * 5
    z, size = np.zeros_like(x), np.array(shape, np.int64)
    tensors = [Tensor(x, "x", False), Tensor(size, "size", False), Tensor(z, "z")]
    outcome = kernels.launch("softmax", tensors, blocks=4)
    assert outcome.codes == [] and outcome.finished
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    # x - max is rounded to a float, which moves exp by up to an ulp of 32
    np.testing.assert_allclose(z, exact / exact.sum(1, keepdims=True), rtol=1e-5)


def test_a_launch_gives_the_same_bits_each_time(kernels: Kernels) -> None:
    first, second = (Ran(kernels, "accumulated", _numbers(F32)).z for _ in range(2))
    np.testing.assert_array_equal(first, second)
