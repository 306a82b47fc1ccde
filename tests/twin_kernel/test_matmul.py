"""The Matmul object against NumPy in float64, over types, shapes, layouts and ways to call it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from native import INCLUDE, Kernels, Outcome, Runtime, Tensor, build_kernels, compile_errors

from npusmith.errors import CODES

TEXT = (Path(__file__).parent / "matmul.cpp").read_text()
FIELDS = re.findall(r"X\((\w+)\)", (INCLUDE / "twin" / "matmulfields.h").read_text())
WORKSPACE = np.zeros((1 << 24) + (1 << 20), np.uint8)


def tiling(m: int, n: int, k: int, base: tuple[int, int, int], **more: int) -> dict[str, int]:
    """A legal TCubeTiling of one core."""
    rows = dict.fromkeys(FIELDS, 0)
    rows |= {"usedCoreNum": 1, "M": m, "N": n, "Ka": k, "Kb": k}
    rows |= {"singleCoreM": m, "singleCoreN": n, "singleCoreK": k}
    rows |= dict(zip(("baseM", "baseN", "baseK"), base, strict=True))
    rows |= dict.fromkeys(("depthA1", "depthB1", "stepM", "stepN", "stepKa", "stepKb"), 1)
    rows |= dict.fromkeys(("dbL0A", "dbL0B", "dbL0C"), 1)
    return rows | more


@dataclass
class Ask:
    """What the kernel is asked to do, in the layout of its struct."""

    tiling: dict[str, int]
    trans: tuple[int, int] = (0, 0)
    atomic: int = 0
    sequential: int = 0
    way: int = 0
    org: Sequence[int] = (-1, 0, 0, 0, 0)
    single: Sequence[int] = (-1, 0, 0)
    offset: Sequence[int] = (0, 0, 0)
    quant: int = 0
    batch: Sequence[int] = (1, 1)
    bias: int = 0
    hf32: int = 0

    def bytes(self) -> np.ndarray:
        words = [*self.trans, self.atomic, self.sequential, self.way, *self.org, *self.single]
        words += [*self.offset, self.quant, *self.batch, self.bias, self.hf32]
        cube = np.array([self.tiling[name] for name in FIELDS], np.int32)
        return np.concatenate([cube.view(np.uint8), np.array(words, np.int64).view(np.uint8)])


def bf16(values: np.ndarray) -> np.ndarray:
    """float32 -> bfloat16 bits, to nearest even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def wide(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def nz(matrix: np.ndarray) -> np.ndarray:
    """Columns of fractals, each of 16 rows of 32 bytes."""
    c0 = 32 // matrix.itemsize
    rows, cols = matrix.shape
    return np.ascontiguousarray(matrix.reshape(rows, cols // c0, c0).transpose(1, 0, 2))


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, TEXT, "matmul")


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


def launch(
    kernels: Kernels,
    entry: str,
    tensors: Sequence[np.ndarray],
    ask: Ask,
    blocks: int = 1,
) -> Outcome:
    a, b, bias, c = tensors
    args = [
        Tensor(a, "a", writable=False),
        Tensor(b, "b", writable=False),
        Tensor(bias, "bias", writable=False),
        Tensor(c, "c"),
        Tensor(WORKSPACE, "workspace"),
        Tensor(ask.bytes(), "tiling", writable=False),
    ]
    return kernels.launch(entry, args, blocks=blocks)


def clean(outcome: Outcome) -> None:
    assert outcome.findings == ()
    assert outcome.finished


NOTHING = np.zeros(16, np.float32)


@pytest.mark.parametrize("way", [0, 1, 3, 6])
@pytest.mark.parametrize("trans", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("shape", [(48, 64, 32), (33, 17, 50), (1, 100, 16), (70, 40, 130)])
def test_half_products_are_those_of_float64(
    kernels: Kernels,
    random: np.random.Generator,
    shape: tuple[int, int, int],
    trans: tuple[int, int],
    way: int,
) -> None:
    m, n, k = shape
    a, b = random.uniform(-1, 1, (m, k)), random.uniform(-1, 1, (k, n))
    a, b = a.astype(np.float16), b.astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    stored = [np.ascontiguousarray(x.T if t else x) for x, t in zip((a, b), trans, strict=True)]
    ask = Ask(tiling(m, n, k, (32, 32, 16), dbL0A=2), trans, way=way)
    clean(launch(kernels, "half_float", [*stored, NOTHING, c], ask))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=2e-5)


@pytest.mark.parametrize("way", [0, 1])
def test_other_types_round_once_at_the_end(
    kernels: Kernels, random: np.random.Generator, way: int
) -> None:
    m, n, k = 40, 48, 96
    a, b = random.uniform(-1, 1, (m, k)), random.uniform(-1, 1, (k, n))
    ask = Ask(tiling(m, n, k, (16, 32, 32)), way=way)
    exact = a.astype(np.float16).astype(np.float64) @ b.astype(np.float16).astype(np.float64)
    c16 = np.zeros((m, n), np.float16)
    halves = [a.astype(np.float16), b.astype(np.float16), NOTHING, c16]
    clean(launch(kernels, "half_half", halves, ask))
    np.testing.assert_allclose(c16, exact, rtol=1e-3, atol=1e-4)

    ab, bb = bf16(a), bf16(b)
    cb = np.zeros((m, n), np.uint16)
    clean(launch(kernels, "bf16_bf16", [ab, bb, NOTHING, cb], ask))
    exact = wide(ab).astype(np.float64) @ wide(bb).astype(np.float64)
    np.testing.assert_allclose(wide(cb), exact, rtol=4e-3, atol=1e-5)

    a32, b32 = a.astype(np.float32), b.astype(np.float32)
    c32 = np.zeros((m, n), np.float32)
    clean(launch(kernels, "float_float", [a32, b32, NOTHING, c32], ask))
    np.testing.assert_allclose(c32, a32.astype(np.float64) @ b32.astype(np.float64), atol=2e-5)


def test_hf32_drops_twelve_bits_of_each_float(
    kernels: Kernels, random: np.random.Generator
) -> None:
    m, n, k = 32, 32, 64
    a = random.uniform(1, 2, (m, k)).astype(np.float32)
    b = random.uniform(1, 2, (k, n)).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    ask = Ask(tiling(m, n, k, (32, 32, 16)), hf32=1)
    clean(launch(kernels, "float_float", [a, b, NOTHING, c], ask))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, exact, rtol=2.0**-11)
    assert np.abs(c / exact - 1).max() > 2.0**-20


def test_int8_products_are_exact(kernels: Kernels, random: np.random.Generator) -> None:
    m, n, k = 33, 40, 200
    a = random.integers(-128, 128, (m, k)).astype(np.int8)
    b = random.integers(-128, 128, (k, n)).astype(np.int8)
    bias = random.integers(-1000, 1000, n).astype(np.int32)
    c = np.zeros((m, n), np.int32)
    ask = Ask(tiling(m, n, k, (32, 32, 32), isBias=1), bias=1)
    clean(launch(kernels, "int8_int32", [a, b, bias, c], ask))
    exact = a.astype(np.int64) @ b.astype(np.int64) + bias
    np.testing.assert_array_equal(c, exact)


@pytest.mark.parametrize("trans", [(0, 0), (0, 1), (1, 0)])
def test_int4_products_are_exact(
    kernels: Kernels, random: np.random.Generator, trans: tuple[int, int]
) -> None:
    m, n, k = 34, 40, 202
    a, b = (random.integers(-8, 8, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    bias = random.integers(-1000, 1000, n).astype(np.int32)
    c = np.zeros((m, n), np.int32)
    stored = [x.T if t else x for x, t in zip((a, b), trans, strict=True)]
    pairs = [np.ascontiguousarray(x[:, ::2] & 15 | x[:, 1::2] << 4) for x in stored]
    ask = Ask(tiling(m, n, k, (32, 32, 64), isBias=1), trans, bias=1)
    clean(launch(kernels, "int4_int32", [*pairs, bias, c], ask))
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64) + bias)


def test_odd_rows_of_int4_are_refused(kernels: Kernels) -> None:
    a, b, c = np.zeros((4, 32), np.int8), np.zeros((64, 9), np.int8), np.zeros((4, 17), np.int32)
    ask = Ask(tiling(4, 17, 64, (16, 32, 64)))
    outcome = launch(kernels, "int4_int32", [a, b, NOTHING, c], ask)
    assert {finding.code for finding in outcome.findings} == {"matmul-operand"}


def test_a_scale_brings_int8_products_to_half_without_its_low_bits(
    kernels: Kernels, random: np.random.Generator
) -> None:
    m, n, k = 32, 32, 64
    a = random.integers(-20, 20, (m, k)).astype(np.int8)
    b = random.integers(-20, 20, (k, n)).astype(np.int8)
    c = np.zeros((m, n), np.float16)
    scale = np.float32(0.0123)
    bits = int(scale.view(np.uint32))
    ask = Ask(tiling(m, n, k, (32, 32, 32)), quant=bits)
    clean(launch(kernels, "int8_half", [a, b, NOTHING, c], ask))
    kept = np.uint32(bits & ~0x1FFF).view(np.float32)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, (exact * kept).astype(np.float16))


def test_each_column_may_have_its_own_scale(kernels: Kernels, random: np.random.Generator) -> None:
    m, n, k = 32, 48, 64
    a = random.integers(-20, 20, (m, k)).astype(np.int8)
    b = random.integers(-20, 20, (k, n)).astype(np.int8)
    scales = (2.0 ** random.integers(-8, 2, n)).astype(np.float32)
    for way in (0, 1):
        c = np.zeros((m, n), np.float16)
        ask = Ask(tiling(m, n, k, (16, 16, 32)), quant=-1, way=way)
        words = scales.view(np.uint32).astype(np.uint64)
        clean(launch(kernels, "int8_half", [a, b, words, c], ask))
        exact = a.astype(np.float32) @ b.astype(np.float32)
        np.testing.assert_array_equal(c, (exact * scales).astype(np.float16))


def test_a_scale_brings_half_products_to_int8_with_saturation(
    kernels: Kernels, random: np.random.Generator
) -> None:
    m, n, k = 32, 32, 16
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.zeros((m, n), np.int8)
    ask = Ask(tiling(m, n, k, (32, 32, 16)), quant=int(np.float32(8).view(np.uint32)))
    clean(launch(kernels, "half_int8", [a, b, NOTHING, c], ask))
    exact = 8 * (a.astype(np.int64) @ b.astype(np.int64))
    np.testing.assert_array_equal(c, exact.clip(-128, 127))
    assert (np.abs(exact) > 128).any()


def test_bias_is_added_to_each_row(kernels: Kernels, random: np.random.Generator) -> None:
    m, n, k = 40, 50, 30
    a = random.uniform(-1, 1, (m, k)).astype(np.float16)
    b = random.uniform(-1, 1, (k, n)).astype(np.float16)
    bias = random.uniform(-9, 9, n).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    for way in (0, 1):
        ask = Ask(tiling(m, n, k, (16, 16, 16), isBias=1), bias=1, way=way)
        clean(launch(kernels, "half_float", [a, b, bias, c], ask))
        np.testing.assert_allclose(c, a.astype(float) @ b.astype(float) + bias, atol=1e-5)


@pytest.mark.parametrize(("atomic", "fold"), [(1, np.add), (2, np.maximum), (3, np.minimum)])
def test_results_combine_with_what_lies_in_global_memory(
    kernels: Kernels, random: np.random.Generator, atomic: int, fold: np.ufunc
) -> None:
    m, n, k = 32, 48, 32
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (k, n)).astype(np.float16)
    old = random.integers(-50, 50, (m, n)).astype(np.float32)
    c = old.copy()
    ask = Ask(tiling(m, n, k, (16, 16, 16)), atomic=atomic)
    clean(launch(kernels, "half_float", [a, b, NOTHING, c], ask))
    np.testing.assert_array_equal(c, fold(old, a.astype(np.float32) @ b.astype(np.float32)))


def test_k_in_two_calls_adds_up_by_atomics_and_in_the_cube_core(
    kernels: Kernels, random: np.random.Generator
) -> None:
    m, n, k = 32, 32, 64
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (k, n)).astype(np.float16)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    c = np.zeros((m, n), np.float32)
    for half in range(2):
        offset = (half * k // 2, half * k // 2 * n, 0)
        ask = Ask(tiling(m, n, k, (32, 32, 16)), atomic=1, single=(m, n, k // 2), offset=offset)
        clean(launch(kernels, "half_float", [a, b, NOTHING, c], ask))
    np.testing.assert_array_equal(c, exact)
    c[:] = 0
    clean(
        launch(kernels, "half_float", [a, b, NOTHING, c], Ask(tiling(m, n, k, (32, 32, 16)), way=5))
    )
    np.testing.assert_array_equal(c, exact)


@pytest.mark.parametrize("trans", [(0, 0), (1, 1)])
def test_fractal_operands(
    kernels: Kernels, random: np.random.Generator, trans: tuple[int, int]
) -> None:
    m, n, k = 48, 32, 64
    a = random.integers(-3, 4, (m, k))
    b = random.integers(-3, 4, (k, n))
    exact = a @ b
    stored = [x.T if t else x for x, t in zip((a, b), trans, strict=True)]
    c = np.zeros((m, n), np.float32)
    ask = Ask(tiling(m, n, k, (16, 32, 16)), trans)
    halves = [nz(x.astype(np.float16)) for x in stored]
    clean(launch(kernels, "nz_half", [*halves, NOTHING, c], ask))
    np.testing.assert_array_equal(c, exact)
    m = 64
    a = random.integers(-3, 4, (m, k))
    stored = [x.T if t else x for x, t in zip((a, b), trans, strict=True)]
    c8 = np.zeros((m, n), np.int32)
    ask = Ask(tiling(m, n, k, (32, 32, 32)), trans)
    bytes_ = [nz(x.astype(np.int8)) for x in stored]
    clean(launch(kernels, "nz_int8", [*bytes_, NOTHING, c8], ask))
    np.testing.assert_array_equal(c8, a @ b)


@pytest.mark.parametrize("way", [0, 1])
def test_a_fractal_result_has_zeros_in_its_padding(
    kernels: Kernels, random: np.random.Generator, way: int
) -> None:
    m, n, k = 32, 40, 16
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.full((m, 48), 99, np.float16)
    ask = Ask(tiling(m, n, k, (16, 16, 16)), way=way)
    clean(launch(kernels, "nd_nz", [a, b, NOTHING, c], ask))
    padded = np.pad(a.astype(np.float32) @ b.astype(np.float32), ((0, 0), (0, 8)))
    np.testing.assert_array_equal(c.reshape(3, 32, 16), nz(padded.astype(np.float16)))


def test_blocks_come_along_m_first_and_follow_each_other_when_sequential(
    kernels: Kernels, random: np.random.Generator
) -> None:
    m, n, k = 64, 32, 16
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (k, n)).astype(np.float16)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    for order in (0, 1):
        down = exact.reshape(4, 16, 2, 16).transpose((2, 0, 1, 3) if order == 0 else (0, 2, 1, 3))
        for way, sequential in ((0, 1), (2, 0)):
            c = np.zeros((m, n), np.float32)
            ask = Ask(
                tiling(m, n, k, (16, 16, 16), iterateOrder=order), sequential=sequential, way=way
            )
            clean(launch(kernels, "half_float", [a, b, NOTHING, c], ask))
            np.testing.assert_array_equal(c.reshape(2 if order == 0 else 4, -1, 16, 16), down)


def test_a_part_of_larger_matrices(kernels: Kernels, random: np.random.Generator) -> None:
    a = random.integers(-3, 4, (40, 80)).astype(np.float16)
    b = random.integers(-3, 4, (90, 70)).astype(np.float16)
    c = np.zeros((40, 100), np.float32)
    ask = Ask(
        tiling(16, 16, 16, (16, 16, 16)),
        org=(40, 70, 80, 90, 100),
        single=(20, 30, 50),
        offset=(80 * 8 + 4, 70 * 10 + 3, 100 * 5 + 7),
    )
    clean(launch(kernels, "half_float", [a, b, NOTHING, c], ask))
    part = a[8:28, 4:54].astype(np.float32) @ b[10:60, 3:33].astype(np.float32)
    np.testing.assert_array_equal(c[5:25, 7:37], part)
    c[5:25, 7:37] = 0
    assert not c.any()


def test_local_tensors_as_operand_and_result(kernels: Kernels, random: np.random.Generator) -> None:
    m, n, k = 32, 48, 64
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    ask = Ask(tiling(m, n, k, (32, 16, 16)))
    clean(launch(kernels, "ub_to_ub", [a, b, NOTHING, c], ask))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_two_objects_on_several_cores_with_tails(
    kernels: Kernels, random: np.random.Generator
) -> None:
    m, n, k = 100, 90, 48
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.zeros((2, m, n), np.float32)
    shape = tiling(m, n, k, (16, 32, 16), usedCoreNum=8, singleCoreM=32, singleCoreN=48)
    clean(launch(kernels, "cores", [a, b, NOTHING, c], Ask(shape), blocks=8))
    exact = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, np.stack([exact, exact]))


def test_constant_tiling_needs_none_at_run_time(
    kernels: Kernels, random: np.random.Generator
) -> None:
    a = random.integers(-3, 4, (96, 64)).astype(np.float16)
    b = random.integers(-3, 4, (64, 80)).astype(np.float16)
    bias = random.integers(-3, 4, 80).astype(np.float32)
    c = np.zeros((96, 80), np.float32)
    clean(launch(kernels, "constant", [a, b, bias, c], Ask(tiling(1, 1, 1, (16, 16, 16)))))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32) + bias)


@pytest.mark.parametrize("many", [(4, 4), (4, 2), (1, 4)])
def test_batches_of_matrices(
    kernels: Kernels, random: np.random.Generator, many: tuple[int, int]
) -> None:
    m, n, k = 24, 32, 16
    a = random.integers(-3, 4, (many[0], m, k)).astype(np.float16)
    b = random.integers(-3, 4, (many[1], k, n)).astype(np.float16)
    c = np.zeros((max(many), m, n), np.float32)
    ask = Ask(tiling(m, n, k, (16, 16, 16)), way=4, batch=many)
    clean(launch(kernels, "normal", [a, b, NOTHING, c], ask))
    full = [np.repeat(x, max(many) // len(x), axis=0).astype(np.float32) for x in (a, b)]
    np.testing.assert_array_equal(c, full[0] @ full[1])


def test_batches_in_rounds_are_fetched_one_by_one(
    kernels: Kernels, random: np.random.Generator
) -> None:
    m, n, k = 16, 32, 16
    a = random.integers(-3, 4, (6, m, k)).astype(np.float16)
    b = random.integers(-3, 4, (6, k, n)).astype(np.float16)
    c = np.zeros((6, m, n), np.float32)
    ask = Ask(tiling(m, n, k, (16, 16, 16)), batch=(3, 2))
    clean(launch(kernels, "rounds", [a, b, NOTHING, c], ask))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_batches_in_rounds_are_in_the_workspace_when_the_call_returns(
    kernels: Kernels, random: np.random.Generator
) -> None:
    a = random.uniform(-1, 1, (6, 32, 16)).astype(np.float16)
    b = random.uniform(-1, 1, (6, 16, 48)).astype(np.float16)
    c = np.zeros((6, 32, 48), np.float32)
    ask = Ask(tiling(32, 48, 16, (32, 48, 16), BatchNum=2), batch=(3, 2))
    clean(launch(kernels, "rounds_in_workspace", [a, b, NOTHING, c], ask))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=2e-5)


def test_each_part_of_k_is_a_result_by_itself(
    kernels: Kernels, random: np.random.Generator
) -> None:
    m, n, k = 32, 64, 48
    a, b = random.uniform(-1, 1, (m, k)), random.uniform(-1, 1, (k, n))
    a, b = a.astype(np.float16), b.astype(np.float16)
    bias = random.uniform(-1, 1, n).astype(np.float32)
    c = np.zeros((2, 3, 32, 32), np.float32)  # blocks, parts
    ask = Ask(tiling(m, n, k, (32, 32, 16), isBias=1))
    clean(launch(kernels, "parts_of_k", [a, b, bias, c], ask))
    for block in range(2):
        cols = slice(32 * block, 32 * block + 32)
        for part in range(3):
            depth = slice(16 * part, 16 * part + 16)
            exact = a[:, depth].astype(np.float64) @ b[depth, cols].astype(np.float64)
            exact += bias[cols] if part == 0 else 0
            np.testing.assert_allclose(c[block, part], exact, atol=2e-5)


@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_blocks_off_the_triangle_are_left_as_they_were(
    kernels: Kernels, random: np.random.Generator, side: str, way: int
) -> None:
    m, n, k = 70, 100, 32
    a, b = random.uniform(-1, 1, (m, k)), random.uniform(-1, 1, (k, n))
    a, b = a.astype(np.float16), b.astype(np.float16)
    c = np.full((m, n), 7, np.float32)
    clean(launch(kernels, side, [a, b, NOTHING, c], Ask(tiling(m, n, k, (32, 16, 16)), way=way)))
    row, col = np.arange(m)[:, None] // 32, np.arange(n)[None] // 16
    wanted = row <= col if side == "upper" else row >= col
    exact = np.where(wanted, a.astype(np.float64) @ b.astype(np.float64), 7)
    np.testing.assert_allclose(c, exact, atol=2e-5)


def test_batches_whose_rows_are_interleaved(kernels: Kernels, random: np.random.Generator) -> None:
    heads, m, n, k = 3, 16, 48, 32
    a = random.integers(-3, 4, (m, heads, k)).astype(np.float16)
    b = random.integers(-3, 4, (n, heads, k)).astype(np.float16)
    c = np.zeros((m, heads, n), np.float32)
    axes = {
        f"{side}LayoutInfo{axis}": value
        for side, s, d in (("A", m, k), ("B", n, k))
        for axis, value in (("B", 1), ("S", s), ("N", heads), ("G", 1), ("D", d))
    }
    axes |= {"CLayoutInfoB": 1, "CLayoutInfoS1": m, "CLayoutInfoN": heads, "CLayoutInfoG": 1}
    shape = tiling(m, n, k, (16, 16, 16), CLayoutInfoS2=n, BatchNum=heads, **axes)
    ask = Ask(shape, (0, 1), way=4, batch=(heads, heads))
    clean(launch(kernels, "bsngd", [a, b, NOTHING, c], ask))
    exact = np.einsum("mhk,nhk->mhn", a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(c, exact)


def test_a_block_may_be_any_legal_size_without_changing_a_bit(
    kernels: Kernels, random: np.random.Generator
) -> None:
    m, n, k = 130, 270, 100
    a = random.uniform(-1, 1, (m, k)).astype(np.float16)
    b = random.uniform(-1, 1, (k, n)).astype(np.float16)
    results = []
    for base in ((128, 256, 64), (16, 16, 16), (64, 128, 32)):
        for way in (0, 1):
            c = np.zeros((m, n), np.float32)
            clean(
                launch(
                    kernels, "half_float", [a, b, NOTHING, c], Ask(tiling(m, n, k, base), way=way)
                )
            )
            results.append(c)
    assert all((c == results[0]).all() for c in results)


MATMUL = """#include "lib/matmul_intf.h"
template <typename T, typename C> using One = Matmul<MatmulType<TPosition::GM, CubeFormat::ND, T>,
  MatmulType<TPosition::GM, CubeFormat::ND, T>, MatmulType<TPosition::GM, CubeFormat::ND, C>>;
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("One<double, float> mm;", "half, bfloat16_t, float, int8_t or int4b_t"),
        ("One<half, std::int32_t> mm;", "int32_t only when A and B are int8_t"),
        ("One<std::int8_t, bfloat16_t> mm;", "int32_t, half, int8_t or uint8_t"),
        ("One<half, float> mm; mm.IterateNBatch(2, 1, 1, false);", "isNBatch"),
    ],
)
def test_what_the_object_cannot_do_does_not_compile(runtime: Runtime, body: str, said: str) -> None:
    assert said in compile_errors(runtime, f"{MATMUL}void f() {{ {body} }}")


def test_documented_forms_compile(runtime: Runtime) -> None:
    body = """
    constexpr MatmulConfig kWide = GetNormalConfig(true);
    constexpr const MatmulConfig &Config() { return kWide; }
    using A = matmul::MatmulType<TPosition::GM, CubeFormat::ND, half, true, LayoutMode::NONE,
                                 false>;
    using C = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
    template <const MatmulConfig &MM_CFG>
    void Go(matmul::Matmul<A, A, C, C, MM_CFG> &mm) {
      mm.template IterateAll<false>(GlobalTensor<float>(), 0, false, true);
    }
    void f(TPipe *pipe, const TCubeTiling *__restrict tiling) {
      matmul::Matmul<A, A, C, C, Config()> first, second;
      MatmulImpl<A, A, C, C, CFG_IBSHARE_NORM> own;
      REGIST_MATMUL_OBJ(pipe, GetSysWorkSpacePtr(), first, tiling, second, tiling);
      REGIST_MATMUL_OBJ(pipe, GetSysWorkSpacePtr(), first);
      REGISTER_MATMUL_OBJ(pipe, GetSysWorkSpacePtr(), first, nullptr);
      first.Init(tiling);
      own.Init(tiling, pipe);
      own.SetSubBlockIdx(0);
      own.SetUserDefInfo(1);
      Go(first);
    }
    constexpr MatmulConfig kSpecial = GetSpecialMDLConfig(), kShared = GetIBShareNormConfig(),
        kBasic = GetBasicConfig(128, 256, 64), kMulti = GetMDLConfig(),
        kSpecialBasic = GetSpecialBasicConfig(128, 256, 64, 1024, 512, 256, 1, 1);
    static_assert(kMulti.doMultiDataLoad && kSpecial.doSpecialMDL && kShared.doIBShareNorm);
    static_assert(kBasic.basicN == 256 && kSpecialBasic.singleCoreM == 1024);
    void seldom(One<half, float> &mm, const GlobalTensor<half> &gm, const LocalTensor<half> &ub,
                const LocalTensor<uint8_t> &work, const LocalTensor<float> &out) {
      mm.SetTensorAWithCopy(gm, ub);
      mm.SetTensorBWithCopy(gm, ub, true);
      mm.SetLocalWorkspace(work);
      mm.SetSelfDefineData(GlobalTensor<float>());
      mm.AsyncGetTensorC(out);
      mm.WaitGetTensorC();
      mm.WaitIterateBatch();
      SetMMColumnMajor();
      SetMMRowMajor();
      SetFixpipePreQuantFlag(uint64_t(1));
    }
    template <uint8_t mode> void events() {
      NotifyEvent<PIPE_FIX>(1);
      NotifyEvent<mode, PIPE_MTE3>(2);
      WaitEvent(2);
    }
    void both() { events<2>(); }"""
    assert compile_errors(runtime, MATMUL + body) == ""


# ---- each code: a kernel that must be caught, and a near twin that must pass

FAULTS = (Path(__file__).parent / "faults_matmul.cpp").read_text()
PAIRS = re.findall(r"^(?:BOTH|TILING)\((\w+)", FAULTS, re.MULTILINE)


def _code(name: str) -> str:
    words = name.replace("_", "-")
    return max((code for code in CODES if words.startswith(code)), key=len)


def _line(name: str) -> int:
    start = re.search(rf"^(BOTH|TILING)\({name}\b", FAULTS, re.MULTILINE)
    assert start is not None
    until = start.start() if start.group(1) == "TILING" else FAULTS.index("// caught", start.end())
    return FAULTS[:until].count("\n") + 1


@pytest.fixture(scope="session")
def faults(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, FAULTS, "faults_matmul")


def _launch(faults: Kernels, entry: str) -> Outcome:
    tensors = [
        Tensor(np.ones((64, 64), np.float16), "a", writable=False),
        Tensor(np.ones((64, 64), np.float16), "b", writable=False),
        Tensor(np.zeros(64, np.float32), "bias", writable=False),
        Tensor(np.zeros((64, 64), np.float32), "c"),
        Tensor(WORKSPACE, "workspace"),
        Tensor(np.zeros(65600 * 64, np.float16), "long", writable=False),
    ]
    return faults.launch(entry, tensors)


@pytest.mark.parametrize("name", PAIRS)
def test_a_faulty_use_is_caught_on_its_line(faults: Kernels, name: str) -> None:
    outcome = _launch(faults, f"bad_{name}")
    assert {item.code for item in outcome.findings} == {_code(name)}
    assert outcome.findings[0].line == _line(name)


@pytest.mark.parametrize("name", PAIRS)
def test_its_near_twin_passes(faults: Kernels, name: str) -> None:
    clean(_launch(faults, f"good_{name}"))
