"""The basic interface in its breadth: old and C-style names, resources, scalars, debugging."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from native import Kernels, Outcome, Runtime, Tensor, build_kernels

SOURCE = Path(__file__).parent / "breadth.cpp"
RNG = np.random.default_rng(11)


@pytest.fixture(scope="module")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, SOURCE.read_text(), "breadth")


def _launch(kernels: Kernels, entry: str, out: np.ndarray, *sources: np.ndarray) -> Outcome:
    inputs = [Tensor(item, f"x{i}") for i, item in enumerate(sources)]
    return kernels.launch(entry, [Tensor(out, "y"), *inputs])


def _run(kernels: Kernels, entry: str, out: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    outcome = _launch(kernels, entry, out, *sources)
    errors = [item for item in outcome.findings if item.level == "error"]
    assert errors == []
    assert outcome.finished
    return out


def _answers(kernels: Kernels, entry: str, count: int, *sources: np.ndarray) -> list[float]:
    return _run(kernels, entry, np.zeros(64, np.float32), *sources)[:count].tolist()


def test_sums_with_relu(kernels: Kernels) -> None:
    a, b = RNG.integers(-99, 99, (2, 128)).astype(np.int16)
    got = _run(kernels, "relu_sums", np.zeros(256, np.int16), a, b)
    assert (got[:128] == np.maximum(a + b, 0)).all()
    assert (got[128:] == np.maximum(a - b, 0)).all()


def test_gatherb_takes_whole_blocks(kernels: Kernels) -> None:
    x = np.arange(64, dtype=np.uint32)
    offsets = np.array([224, 0, 32, 32, 64, 96, 128, 160], np.uint32)
    got = _run(kernels, "gatherb", np.zeros(64, np.uint32), x, offsets)
    assert (got.reshape(8, 8) == x.reshape(8, 8)[offsets // 32]).all()


def test_the_compare_register_can_be_moved(kernels: Kernels) -> None:
    a, b = RNG.normal(size=(2, 64)).astype(np.float32)
    got = _run(kernels, "compare_register", np.zeros(64, np.float32), a, b)
    assert (got == np.minimum(a, b)).all()


def test_registers_are_reset(kernels: Kernels) -> None:
    assert _answers(kernels, "registers", 5) == [1, 0, 1, 0, 0]


def test_c_style_names_compute_what_their_class_names_do(kernels: Kernels) -> None:
    a, b = RNG.normal(size=(2, 64)).astype(np.float32)
    got = _run(kernels, "c_style", np.zeros(464, np.float32), a, b)
    assert (got[:64] == np.abs((a + b) * 2)).all()
    assert (got[:64] == got[64:128]).all()
    assert (got[128:192] == got[192:256]).all()
    assert (got[256:264] == a.reshape(8, 8).max(axis=1)).all()
    assert got[264] == a.max()
    assert got[265].view(np.uint32) == a.argmax()
    assert (got[272:336] == 7).all()
    assert (got[336:400] == np.minimum(a, b)).all()
    assert (got[400:] == 3).all()
    x = np.arange(256, dtype=np.uint16)
    assert (_run(kernels, "c_transpose", np.zeros(256, np.uint16), x) == x).all()


def test_c_style_copies_count_blocks_or_bytes(kernels: Kernels) -> None:
    x = np.arange(64, dtype=np.float32)
    got = _run(kernels, "c_copies", np.zeros(64, np.float32), x)
    assert (got[:32] == np.concatenate([x[:16], x[32:48]])).all()
    assert (got[32:37] == x[:5]).all()
    assert (got[38:43] == x[8:13]).all()
    assert (got[48:] == x[:16]).all()


def test_the_atomic_mode_can_be_set_in_parts(kernels: Kernels) -> None:
    x, y = RNG.normal(size=(2, 64)).astype(np.float32)
    got = _run(kernels, "atomics", y.copy(), x)
    assert (got[:16] == np.minimum(x, y)[:16]).all()
    assert (got[16:48] == (x + y)[16:48]).all()
    assert (got[48:] == np.minimum(x, y)[48:]).all()


def test_the_pad_value_fills_the_rest_of_the_block(kernels: Kernels) -> None:
    x = np.arange(64, dtype=np.float32)
    got = _run(kernels, "pad_value", np.zeros(8, np.float32), x)
    assert got.tolist() == [0, 1, 2, 5, 5, 5, 5, 5]


def test_fractals_in_ub_become_rows(kernels: Kernels) -> None:
    x = RNG.normal(size=1536).astype(np.float16)
    got = _run(kernels, "fractals", np.zeros((2, 20, 40), np.float16), x)
    matrices = x.reshape(2, 768)[:, :640].reshape(2, 2, 20, 16)
    assert (got[:, :, :32] == matrices.transpose(0, 2, 1, 3).reshape(2, 20, 32)).all()
    assert (got[:, :, 32:] == 0).all()


def test_cache_calls_name_legal_addresses(kernels: Kernels) -> None:
    assert _answers(kernels, "caches", 1, np.zeros(8, np.uint64)) == [0]


def test_a_queue_tells_what_it_holds(kernels: Kernels) -> None:
    assert _answers(kernels, "queues", 8) == [1, 1, 0, 0, 1, 1, 0, 1]


def test_a_pool_of_the_kernels_own_places_its_queues(kernels: Kernels) -> None:
    assert (_run(kernels, "own_pool", np.arange(64, dtype=np.float32)) == np.arange(64) + 7).all()


def test_a_pools_queues_go_on_after_its_reset(kernels: Kernels) -> None:
    assert (_run(kernels, "pool_again", np.arange(64, dtype=np.float32)) == np.arange(64) + 7).all()


def test_pools_that_share_a_piece_take_turns(kernels: Kernels) -> None:
    assert (_run(kernels, "pools", np.zeros(64, np.float32)) == 7).all()


def test_the_spill_buffer_gives_back_what_it_took(kernels: Kernels) -> None:
    x, room = RNG.normal(size=64).astype(np.float32), np.zeros(128, np.float32)
    assert (_run(kernels, "spill", np.zeros(64, np.float32), x, room) == x).all()
    assert (room.reshape(2, 64) == x).all()


def test_tensors_without_a_pipe_lie_one_after_the_other(kernels: Kernels) -> None:
    assert (_run(kernels, "placed", np.zeros(64, np.float32)) == 5).all()


def test_the_documented_part_of_the_library_is_there(kernels: Kernels) -> None:
    assert _answers(kernels, "library", 10) == [3.5, 7, 1, 1, 3, 2, 3, 2, 64, 5]


def test_a_tensor_list_gives_shapes_and_data(kernels: Kernels) -> None:
    # offset of the pointers; then a word of dimensions and index, and the shape, for each tensor
    words = np.array([48, 1, 10, 2 | 1 << 32, 3, 4, 0, 0], np.uint64)
    assert _answers(kernels, "lists", 5, words) == [2, 2, 3, 4, 1]


def test_shapes_know_their_size(kernels: Kernels) -> None:
    assert _answers(kernels, "shapes", 3) == [30, 5, 3]


def test_scalar_bit_operations_count(kernels: Kernels) -> None:
    assert _answers(kernels, "bits", 9) == [8, 56, 63, 64, 62, 63, 3, 3, -1]


def test_scalar_casts_round_as_told(kernels: Kernels) -> None:
    got = _answers(kernels, "casts", 8)
    assert got == [3, 2, -3, -2, 0x3C01, 0x3E00, 3, 2**31]  # told as floats


def test_global_memory_past_the_cache_is_the_same(kernels: Kernels) -> None:
    words = np.array([5, 0], np.int32)
    assert _answers(kernels, "past_cache", 2, words) == [5, 77]
    assert words.tolist() == [5, 77]


def test_system_variables_answer(kernels: Kernels) -> None:
    assert _answers(kernels, "system_variables", 3) == [0x220, 1, 32]


def test_assertions_stand_wherever_the_toolchain_lets_them(kernels: Kernels) -> None:
    assert _answers(kernels, "assertions", 2) == [7, 7]
    outcome = _launch(kernels, "fails", np.zeros(64, np.float32))
    assert outcome.codes == ["kernel-assert"]
    assert "never" in outcome.findings[0].message
    assert not outcome.finished


def test_trap_ends_the_core(kernels: Kernels) -> None:
    assert _launch(kernels, "trapped", np.zeros(64, np.float32)).codes == ["kernel-assert"]


def test_printing_and_dumps_come_out(kernels: Kernels) -> None:
    _answers(kernels, "prints", 1, np.arange(8, dtype=np.int32))
    text = kernels.printed()
    assert "[core 0] one 1 and 2.500000" in text
    assert "two words" in text
    assert "DumpTensor desc=11, 4 elements of half" in text
    assert "  1.5 1.5 1.5 1.5" in text
    assert "  1.5 1.5\n  1.5 1.5\n" in text
    assert "  0 1 2" in text
    assert "DumpAccChkPoint desc=14" in text
    assert "  1 2\n" in text
    assert "asc_dump_ubuf desc=15, 2 elements of half" in text
    assert "asc_dump desc=16, 2 elements of int32_t" in text
    assert "  3 4\n" in text


def test_marks_change_nothing(kernels: Kernels) -> None:
    assert _answers(kernels, "marks", 1) == [1]


@pytest.mark.parametrize("entry", ["new_reductions", "newest_reductions"])
def test_reductions_answer_to_their_new_names(kernels: Kernels, entry: str) -> None:
    x = RNG.integers(-9, 9, 64).astype(np.float32)
    got = _run(kernels, entry, np.zeros(64, np.float32), x)
    assert got[0] == x.sum()
    assert (got[8:16] == x.reshape(8, 8).max(axis=1)).all()
    assert (got[16:48] == x.reshape(32, 2).sum(axis=1)).all()


def test_fractions_and_the_gamma_functions(kernels: Kernels) -> None:
    x = RNG.uniform(0.5, 9, 64).astype(np.float32)
    got = _run(kernels, "gammas", np.zeros(192, np.float32), x).reshape(3, 64)
    wide = torch.from_numpy(x).double()
    wanted = torch.stack([torch.frac(wide), torch.lgamma(wide), torch.digamma(wide)]).numpy()
    assert np.abs(got - wanted).max() < 1e-5


def test_seldom_used_names_work(kernels: Kernels) -> None:
    got = _answers(kernels, "seldom", 9, np.zeros(64, np.float32))
    assert got == [16, 8, 7, 33, 8192, 12, -2, 5, 1]  # the upper half of 2.0f is 2.0 in 16 bits
    assert _answers(kernels, "seldom_library", 6) == [6.5, 2, 1, 6, 6, 2]
