"""Pad, Transpose, TransData, Broadcast, Select by a mask of elements, DropOut, Arange."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels, compile_errors

F32, F16 = np.float32, np.float16
HERE = Path(__file__).parent
TEXT = (HERE / "library.h").read_text() + (HERE / "layouts.cpp").read_text()


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, TEXT, "layouts")


def _launch(kernels: Kernels, entry: str, *arrays: np.ndarray) -> Outcome:
    return kernels.launch(entry, [Tensor(item, f"arg{i}") for i, item in enumerate(arrays)])


def _run(kernels: Kernels, entry: str, out: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    """Launches with the output before the numbers, and expects no finding."""
    outcome = _launch(kernels, entry, *arrays[:-1], out, arrays[-1])
    assert outcome.codes == []
    return out


def _numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _count(dtype: type, *shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize(("entry", "dtype", "width"), [
    ("pad_half", F16, 15), ("pad_half", F16, 3), ("pad_int", np.int32, 13),
])  # fmt: skip
def test_ragged_rows_are_padded_on_both_sides(
    kernels: Kernels, entry: str, dtype: type, width: int
) -> None:
    per_block = 32 // np.dtype(dtype).itemsize
    pitch = -(-width // per_block) * per_block
    left = min(1, pitch - width)
    source, out = _count(dtype, 4, width), np.full((4, pitch), 9, dtype)
    numbers = _numbers(4, width, width, left, pitch - width - left)
    _run(kernels, entry, out, source, numbers)
    want = np.full((4, pitch), -5, dtype)
    want[:, left : left + width] = source
    np.testing.assert_array_equal(out, want)


def test_full_rows_have_their_last_columns_replaced(kernels: Kernels) -> None:
    source, out = _count(F16, 3, 16), np.zeros((3, 16), F16)
    _run(kernels, "pad_half", out, source, _numbers(3, 16, 14, 0, 2))
    np.testing.assert_array_equal(out[:, :14], source[:, :14])
    assert (out[:, 14:] == -5).all()


def test_unpad_drops_columns_on_the_right(kernels: Kernels) -> None:
    source, out = _count(F16, 5, 32), np.zeros((5, 29), F16)
    _run(kernels, "unpad_half", out, source, _numbers(5, 32, 3))
    np.testing.assert_array_equal(out, source[:, :29])


@pytest.mark.parametrize(("entry", "dtype"), [("image_float", F32), ("image_byte", np.uint8)])
@pytest.mark.parametrize("channels", [1, 3, 16])
def test_images_change_between_nchw_and_nhwc(
    kernels: Kernels, entry: str, dtype: type, channels: int
) -> None:
    source = _count(dtype, 2, channels, 8, 4)
    out = np.zeros((2, 8, 4, channels), dtype)
    _run(kernels, entry, out, source, _numbers(2, channels, 8, 4, 1))
    np.testing.assert_array_equal(out, source.transpose(0, 2, 3, 1))
    back = np.zeros_like(source)
    _run(kernels, entry, back, out, _numbers(2, channels, 8, 4, 0))
    np.testing.assert_array_equal(back, source)


def _fractal(plane: np.ndarray) -> np.ndarray:
    """[.., rows, columns] as 16 x 16 squares, down each column of squares (NZ)."""
    rows, columns = plane.shape[-2:]
    padding = [(0, 0)] * (plane.ndim - 2) + [(0, -rows % 16), (0, -columns % 16)]
    whole = np.pad(plane, padding)
    down, across = whole.shape[-2] // 16, whole.shape[-1] // 16
    squares = whole.reshape(*plane.shape[:-2], down, 16, across, 16)
    return np.ascontiguousarray(np.moveaxis(squares, -2, -4))


@pytest.mark.parametrize(("entry", "dtype"), [("scene_half", F16), ("scene_float", F32)])
@pytest.mark.parametrize("scene", [1, 2, 3, 4, 5, 6])
def test_scenes_of_the_library_transpose(
    kernels: Kernels, entry: str, dtype: type, scene: int
) -> None:
    b, n, s, h = 2, 3, 16, 32
    tensor = np.random.default_rng(scene).standard_normal((b, n, s, h)).astype(dtype)
    joined = tensor.transpose(0, 2, 1, 3).reshape(b, s, n * h)
    source = _fractal(joined if scene in (3, 4) else tensor)
    want = {
        1: tensor.transpose(0, 2, 1, 3),
        2: _fractal(tensor.transpose(0, 2, 1, 3)),
        3: _fractal(tensor),
        4: tensor,
        5: joined,
        6: _fractal(joined),
    }[scene]
    out = np.full(want.shape, 9, dtype)
    _run(kernels, entry, out, source, _numbers(scene, b, n, s, h, source.size, want.size))
    got, expect = (out, want) if scene != 2 else (out[..., :n, :], want[..., :n, :])
    np.testing.assert_array_equal(got, expect)  # of scene 2 rows n to 15 of a square are unset


def test_a_matrix_is_transposed(kernels: Kernels) -> None:
    source, out = _count(F16, 32, 48), np.zeros((48, 32), F16)
    _run(kernels, "scene_half", out, source, _numbers(7, 32, 48, 1, 1, source.size, out.size))
    np.testing.assert_array_equal(out, source.T)


@pytest.mark.parametrize("kind", ["fractal", "split"])
@pytest.mark.parametrize("shape", [(16, 16, 2, 4, 4), (3, 20, 1, 2, 5)])
def test_volumes_go_to_squares_and_back(
    kernels: Kernels, kind: str, shape: tuple[int, ...]
) -> None:
    n, c, d, h, w = shape
    volume = _count(F16, *shape)
    pitch = -(-h * w // 16) * 16
    flat = np.full((n, c, d, pitch), 9, F16)
    flat[..., : h * w] = volume.reshape(n, c, d, h * w)
    n1, c1 = -(-n // 16), -(-c // 16)
    padded = np.zeros((16 * n1, 16 * c1, d, h, w), F16)
    padded[:n, :c] = volume
    cells = padded.reshape(n1, 16, c1, 16, d, h, w)
    want = cells.transpose(4, 2, 5, 6, 0, 1, 3)  # d c1 h w n1 n0 c0
    if kind == "split":
        want = padded[:n].reshape(n, c1, 16, d, h, w).transpose(0, 3, 1, 4, 5, 2)
    out = np.full(want.shape, 9, F16)
    numbers = _numbers(*shape, flat.size, want.size)
    _run(kernels, f"to_{kind}", out, flat, numbers)
    np.testing.assert_array_equal(out, want)
    back = np.full(flat.shape, 9, F16)
    numbers = _numbers(*shape, want.size, flat.size)
    _run(kernels, f"from_{kind}", back, np.ascontiguousarray(want), numbers)
    np.testing.assert_array_equal(back, flat)


@pytest.mark.parametrize(("entry", "dtype"), [("grow_float", F32), ("grow_byte", np.int8)])
@pytest.mark.parametrize("columns", [8, 13, 32])
def test_columns_grow_to_any_width(kernels: Kernels, entry: str, dtype: type, columns: int) -> None:
    source, out = _count(dtype, 5, 1), np.zeros((5, columns), dtype)
    _run(kernels, entry, out, source, _numbers(5, columns))
    np.testing.assert_array_equal(out, np.tile(source, columns))


@pytest.mark.parametrize(("entry", "dtype", "bits"), [
    ("choose_float", F32, np.uint8), ("choose_half", F16, np.int32),
])  # fmt: skip
@pytest.mark.parametrize("first", [0, 1])
def test_a_mask_of_elements_chooses_tensor_or_scalar(
    kernels: Kernels, entry: str, dtype: type, bits: type, first: int
) -> None:
    source, out = _count(dtype, 3, 16), np.zeros((3, 16), dtype)
    mask = np.random.default_rng(first).integers(0, 3, (3, 32)).astype(bits)
    _run(kernels, entry, out, source, mask, _numbers(3, 16, 32, first))
    tensor = (mask[:, :16] == 0) == bool(first)
    np.testing.assert_array_equal(out, np.where(tensor, source, dtype(-1)))


@pytest.mark.parametrize(("entry", "width"), [
    ("drop_by_shape", 32), ("drop_bytes", 64), ("drop_bits", 32), ("drop_by_shape", 4),
])  # fmt: skip
def test_dropout_keeps_by_bytes_or_bits_and_divides(
    kernels: Kernels, entry: str, width: int
) -> None:
    source, out = _count(F32, 2, 32), np.zeros((2, 32), F32)
    bits = entry == "drop_bits" or width == 4
    high = 256 if bits else 2
    mask = np.random.default_rng(width).integers(0, high, (2, width)).astype(np.uint8)
    _run(kernels, entry, out, source, mask, _numbers(2, 32, width))
    kept = mask[:, :32]
    if bits:
        kept = np.unpackbits(mask[:, :4], axis=1, bitorder="little")
    np.testing.assert_array_equal(out, np.where(kept != 0, source * 4, 0))


def test_arange_counts_on_from_the_first_value(kernels: Kernels) -> None:
    out = np.zeros(200, np.int32)
    assert _launch(kernels, "steps", out).codes == []
    np.testing.assert_array_equal(out, 5 + 3 * np.arange(200))


WRONG = {
    "BroadCast on dav-2201 takes 8-bit types, half, bfloat16_t, int16_t, int32_t, float": (
        "void f(LocalTensor<uint32_t> x, uint32_t *s) { BroadCast<uint32_t, 2, 1>(x, x, s, s); }"
    ),
    "Pad on dav-2201 takes 16- and 32-bit integers, half or float": (
        "void f(LocalTensor<int8_t> x, PadParams p, PadTiling t) { Pad(x, x, p, t); }"
    ),
    "the mask of this Select is bool or an integer of 8, 16 or 32 bits": (
        "void f(LocalTensor<float> x, LocalTensor<uint8_t> t, SelectWithBytesMaskShapeInfo i)"
        " { SelectWithBytesMask(x, x, 1.0f, x, t, i); }"
    ),
    "DropOut on dav-2201 takes half or float": (
        "void f(LocalTensor<int32_t> x, LocalTensor<uint8_t> m) { DropOut(x, x, m, 0.5f, {}); }"
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_other_types_do_not_compile(runtime: Runtime, message: str) -> None:
    assert message in compile_errors(runtime, WRONG[message])
