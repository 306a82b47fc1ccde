"""C-style names of instructions: the same results as the class-style names they stand for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Runtime, Tensor, build_kernels

SOURCE = Path(__file__).parent / "cnames.cpp"
RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, SOURCE.read_text(), "cnames")


@pytest.mark.parametrize(
    ("entry", "pairs", "dtype"),
    [
        ("floats", 21, np.float32),
        ("shorts", 5, np.int16),
        ("folds", 6, np.float32),
        ("compares", 3, np.float32),
        ("casts", 2, np.float32),
        ("turns", 1, np.int32),
        ("bytes", 1, np.int8),
    ],
)
def test_a_c_style_name_computes_what_its_class_name_does(
    kernels: Kernels, entry: str, pairs: int, dtype: type
) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    a, b = (RNG.uniform(0.25, 30, (2, lanes))).astype(dtype)
    out = np.zeros((pairs, 2, lanes), dtype)
    outcome = kernels.launch(entry, [Tensor(out, "y"), Tensor(a, "a"), Tensor(b, "b")])
    assert outcome.finished
    assert [item for item in outcome.findings if item.level == "error"] == []
    for low, high in out:
        assert low.tobytes() == high.tobytes()
        assert low.tobytes() != b.tobytes()  # something was computed


def test_byte_copies_move_bytes(kernels: Kernels) -> None:
    a, b = RNG.integers(1, 99, (2, 256)).astype(np.int8)
    out = np.zeros(32, np.int8)
    kernels.launch("byte_copies", [Tensor(out, "y"), Tensor(a, "a"), Tensor(b, "b")])
    assert out.tolist() == [*a[:3], *[0] * 29]
