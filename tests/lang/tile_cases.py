"""Inputs, output shapes and NumPy references of the tile programs in tests/kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Program
from npusmith.lang import parse

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).parents[1] / "kernels"
BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True)
class Case:
    """One program on one set of shapes: `make` draws inputs, `want` computes the answer."""

    program: str
    name: str
    make: Callable[[np.random.Generator], list[Array]]
    want: Callable[..., Array]
    out: Callable[..., tuple[int, ...]]
    dtype: DType
    rtol: float = 0.0
    atol: float = 0.0

    def __str__(self) -> str:
        return f"{self.program}-{self.name}"

    def load(self) -> Program:
        return read(self.program)

    def arrays(self, seed: int = 0) -> list[Array]:
        return self.make(np.random.default_rng(seed))

    def outputs(self, inputs: list[Array]) -> list[tuple[tuple[int, ...], DType]]:
        return [(self.out(*inputs), self.dtype)]


def read(name: str) -> Program:
    """A program of this folder by name."""
    path = FOLDER / f"{name}.tile.py"
    return parse(path.read_text(), path.name)


def names() -> list[str]:
    """All programs of this folder."""
    return sorted(path.name.removesuffix(".tile.py") for path in FOLDER.glob("*.tile.py"))


def _floats(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Callable[..., list[Array]]:
    return lambda rng: [
        rng.standard_normal(shape).astype(np.float32).astype(dtype) for shape in shapes
    ]


def _orders(x: Array) -> Array:
    """Equal elements in their order, whichever way a row is sorted."""
    signs = np.where(np.arange(x.shape[0]) % 2 == 0, -1, 1)
    return np.argsort(x * signs[:, None], axis=1, kind="stable").astype(np.int32)


def _same(first: Array, *rest: Array) -> tuple[int, ...]:
    return tuple(first.shape)


def _softmax(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True, initial=-np.inf))
    return np.asarray(e / e.sum(-1, keepdims=True))


def _norm(x: Array, weight: Array, bias: Array) -> Array:
    wide = x.astype(np.float64)
    mean = wide.mean(-1, keepdims=True)
    scale = np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    return np.asarray((wide - mean) / scale * weight + bias)


def _neighbour(x: Array) -> Array:
    """Twice x plus one; 0 or -1 instead of 1 where a tile starts the tensor or has one element."""
    tile = 2048
    cores = max(1, min(-(-x.size // tile), 48))
    share = -(-x.size // cores)
    want = np.empty_like(x)
    for core in range(cores):
        first, last = core * share, min(core * share + share, x.size)
        for at in range(first, last, tile):
            n = min(tile, last - at)
            extra = (0.0 if at == 0 else 1.0) if n > 1 else (0.0 if at == 0 else -1.0)
            want[at : at + n] = x[at : at + n] * np.float32(2) + np.float32(extra)
    return want


def _flat(
    program: str, want: Callable[..., Array], count: int, dtype: DType, **more: Any
) -> list[Case]:
    """An element-wise program on lengths around blocks, tiles and cores."""
    source = more.pop("source", dtype)
    sizes = ((1,), (7,), (33, 3), (8193,), (0,), (48, 8200 // 4))
    return [
        Case(
            program, "x".join(map(str, shape)), _floats(*[shape] * count, dtype=source.numpy), want,
            _same, dtype, **more,
        )
        for shape in sizes
    ]  # fmt: skip


F32, F16 = DType.FLOAT32, DType.FLOAT16


def _ints(*shapes: tuple[int, ...]) -> Callable[..., list[Array]]:
    return lambda rng: [
        rng.integers(-(2**31), 2**31, shape, dtype=np.int64).astype(np.int32) for shape in shapes
    ]


def _bools(rng: np.random.Generator) -> list[Array]:
    shape = (5, 1003)
    pair = [rng.standard_normal(shape).astype(np.float32) for _ in range(2)]
    return [rng.random(shape) < 0.5, *pair]


def _scaled(x: Array) -> Array:
    wide = x.astype(np.float32) * np.float32(0.3)
    return np.maximum(wide, np.float32(0)).astype(np.float16)


def _chain(x: Array) -> Array:
    wide = np.exp(x.astype(np.float64)).astype(np.float32) + np.float32(1)
    return wide.astype(BF16)


def _rows(program: str, want: Callable[..., Array], **more: Any) -> list[Case]:
    shapes = ((1, 1), (3, 5), (50, 33), (2, 4096), (2, 9001), (0, 7))
    return [
        Case(program, "x".join(map(str, shape)), _floats(shape), want, _same, F32, **more)
        for shape in shapes
    ]


def _before(x: Array) -> Array:
    """The sum of what stands before every element."""
    return np.asarray(np.cumsum(x.astype(np.float64), -1) - x)


def _behind(x: Array) -> Array:
    """The product of every element and what stands behind it."""
    return np.asarray(np.cumprod(x.astype(np.float64)[::-1])[::-1])


def _ranges(x: Array) -> Array:
    starts = np.arange(0, x.shape[1], 8)
    return np.maximum.reduceat(x, starts, axis=1) - np.minimum.reduceat(x, starts, axis=1)


def _row_numbers(x: Array) -> Array:
    """x * largest - sum - smallest, of every row."""
    wide = x.astype(np.float64)
    largest, total, smallest = (
        wide.max(-1, keepdims=True), wide.sum(-1, keepdims=True), wide.min(-1, keepdims=True)
    )  # fmt: skip
    return np.asarray(wide * largest - total - smallest)


def _near_one(size: int) -> Callable[..., list[Array]]:
    return lambda rng: [(1 + rng.standard_normal(size) / 100).astype(np.float32)]


def _there_and_back(x: Array) -> Array:
    """Half of what was before, and the next row; then the same from the last one backwards."""
    state, forwards = np.zeros_like(x[0]), np.empty_like(x)
    for t, row in enumerate(x):
        state = forwards[t] = state * np.float32(0.5) + row
    state, backwards = np.zeros_like(x[0]), np.empty_like(x)
    for t in reversed(range(len(x))):
        state = backwards[t] = state * np.float32(0.5) + forwards[t]
    return backwards


def _turned(x: Array) -> Array:
    """exp, in tiles of 1,024 from the last to the first."""
    blocks = [x[at : at + 1024] for at in range(0, x.size, 1024)]
    return np.exp(np.concatenate(blocks[::-1]) if blocks else x)


def _product(a: Array, b: Array) -> Array:
    return np.asarray(a.astype(np.float64) @ b.astype(np.float64))


def _gelu(x: Array, w: Array, b: Array) -> Array:
    t = _product(x, w.T) + b
    return np.asarray(t * 0.5 * (1 + np.vectorize(math.erf)(t / math.sqrt(2))))


def _bytes(*shapes: tuple[int, ...]) -> Callable[..., list[Array]]:
    return lambda rng: [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes]


def _products(
    program: str, want: Callable[..., Array], dtype: DType, *sides: str, **more: Any
) -> list[Case]:
    """A product of m x k and k x n, around fractals and tiles; `sides` spell shapes of inputs."""
    sizes = ((1, 1, 1), (16, 16, 16), (17, 33, 5), (130, 259, 65), (257, 120, 131))
    return [
        Case(
            program, f"{m}x{n}x{k}",
            _floats(*[tuple({"m": m, "n": n, "k": k, "i": 2}[s] for s in side) for side in sides],
                    dtype=more.get("source", F16).numpy),
            want, lambda *inputs, **_: want(*inputs).shape, dtype,
            more.get("rtol", 1e-5), more.get("atol", 1e-4),
        )
        for m, n, k in sizes
    ]  # fmt: skip


CASES: tuple[Case, ...] = (
    *_products("matmul", _product, F32, "mk", "kn"),
    *_products("matmul_fp32", _product, F32, "mk", "kn", source=F32),
    *_products("matmul_transposed_a", lambda a, b: _product(a.T, b), F16, "km", "kn",
               rtol=1e-3, atol=1e-3),
    *_products("linear_relu_bf16", lambda x, w: np.maximum(_product(x, w.T), 0), DType.BFLOAT16,
               "mk", "nk", source=DType.BFLOAT16, rtol=8e-3, atol=8e-3),
    *_products("batch_matmul", _product, F32, "imk", "ikn"),
    *(
        Case(
            "linear_bias", f"{m}x{n}x{k}",
            lambda rng, m=m, n=n, k=k: [
                *_floats((m, k), (n, k), dtype=np.float16)(rng), *_floats((n,))(rng)
            ],
            lambda x, w, b: _product(x, w.T) + b, lambda x, w, b: (x.shape[0], w.shape[0]),
            F16, 1e-3, 1e-2,
        )
        for m, n, k in ((1, 1, 1), (17, 33, 5), (130, 259, 65))
    ),
    *(
        Case(
            "linear_gelu", f"{m}x{n}x{k}",
            lambda rng, m=m, n=n, k=k: [
                *_floats((m, k), (n, k), dtype=np.float16)(rng), *_floats((n,))(rng)
            ],
            _gelu, lambda x, w, b: (x.shape[0], w.shape[0]), F32, 1e-4, 1e-4,
        )
        for m, n, k in ((1, 1, 1), (17, 33, 5), (130, 259, 65))
    ),
    *(
        Case(
            "linear_gelu_beside", f"{m}x{n}x{k}",
            lambda rng, m=m, n=n, k=k: [
                *_floats((m, k), (n, k), dtype=np.float16)(rng), *_floats((n,))(rng)
            ],
            _gelu, lambda x, w, b: (x.shape[0], w.shape[0]), F32, 1e-4, 1e-4,
        )
        for m, n, k in ((1, 1, 1), (130, 259, 65), (1283, 131, 33))
    ),
    *_products("matmul_split_k", _product, F32, "mk", "kn"),
    Case("matmul_split_k", "3x5x2000", _floats((3, 2000), (2000, 5), dtype=np.float16), _product,
         lambda a, b: (3, 5), F32, 1e-4, 1e-3),
    *(
        Case(
            "matmul_int8", "x".join(map(str, (m, n, k))), _bytes((m, k), (n, k)),
            lambda a, b: a.astype(np.int64) @ b.T.astype(np.int64),
            lambda a, b: (a.shape[0], b.shape[0]), DType.INT32,
        )
        for m, n, k in ((1, 1, 1), (17, 33, 65), (130, 259, 300))
    ),
    *(
        Case("two_kernels", str(n), _floats((n,)), _turned, _same, F32, rtol=1e-6)
        for n in (0, 1, 1024, 4096)
    ),
    *(
        Case("steps_in_time", f"{n}x{m}", _floats((n, m)), _there_and_back, _same, F32)
        for n, m in ((1, 9), (6, 2049), (40, 3))
    ),
    *_flat("launched_thrice", lambda x: x * np.float32(3), 1, F32),
    *_flat("copy", lambda x: x, 1, F32),
    *_flat("either_way_twice", lambda x: x * np.float32(2), 1, F32),
    *_flat("add", lambda x, y: x + y, 2, F32),
    *_flat("scaled_relu_fp16", _scaled, 1, F16),
    *_flat("cast_chain_bf16", _chain, 1, DType.BFLOAT16),
    *_flat("clamp_select", lambda x: np.where(x >= -0.5, x, np.float32(-0.5)), 1, F32),
    *_flat("greater_bool", lambda x, y: x > y, 2, DType.BOOL, source=F32),
    Case("where_bool", "5x1003", _bools, np.where, _same, F32),
    Case("add_int32", "1027", _ints((1027,), (1027,)), lambda x, y: x + y, _same, DType.INT32),
    *_rows("softmax_three_pass", _softmax, rtol=2e-6, atol=1e-7),
    *_rows("softmax_online", _softmax, rtol=2e-5, atol=1e-7),
    *(
        Case(
            "row_sum", "x".join(map(str, shape)), _floats(shape),
            lambda x: x.astype(np.float64).sum(-1), lambda x: x.shape[:-1], F32, 1e-5, 1e-4,
        )
        for shape in ((1, 1), (65, 33), (3, 9001))
    ),
    *(
        Case(
            "middle_axis_sum", "x".join(map(str, shape)), _floats(shape),
            lambda x: x.astype(np.float64).sum(1), lambda x: (x.shape[0], x.shape[2]),
            F32, 1e-5, 1e-5,
        )
        for shape in ((1, 1, 1), (3, 5, 17), (2, 0, 9), (2, 3, 5000))
    ),
    *(
        Case(
            "middle_axis_prod", "x".join(map(str, shape)), _floats(shape, dtype=np.float16),
            lambda x: x.astype(np.float64).prod(1), lambda x: (x.shape[0], x.shape[2]),
            F16, 1e-3, 1e-4,
        )
        for shape in ((1, 1, 1), (3, 4, 17), (2, 3, 2100))
    ),
    *(
        Case(
            "mean_all", "x".join(map(str, shape)), _floats(shape),
            lambda x: x.astype(np.float64).mean(keepdims=False).reshape(()), lambda x: (),
            F32, 1e-5, 1e-6,
        )
        for shape in ((1,), (100, 1000), (8193,))
    ),
    *(
        Case(
            "layer_norm", "x".join(map(str, shape)), _floats(shape, shape[-1:], shape[-1:]),
            _norm, _same, F32, 1e-4, 1e-5,
        )
        for shape in ((3, 5), (50, 33), (2, 4096))
    ),
    *(
        Case(
            "first_columns_rows", "x".join(map(str, shape)), _floats(shape),
            lambda x: np.abs(x[:, :5]), lambda x: (x.shape[0], min(5, x.shape[1])), F32,
        )
        for shape in ((1, 5), (3, 7), (5000, 9))
    ),
    *(
        Case(
            "column_sum_atomic", "x".join(map(str, shape)), _floats(shape),
            lambda x: x.astype(np.float64).sum(0), lambda x: x.shape[1:], F32, 1e-5, 1e-4,
        )
        for shape in ((1, 1), (100, 33), (3, 5000), (0, 5))
    ),
    *(
        Case(
            "resident_max", "x".join(map(str, shape)), _floats(shape, dtype=np.float16),
            lambda x: x.max(0), lambda x: x.shape[1:], F16,
        )
        for shape in ((1, 1), (20, 33), (3, 5000))
    ),
    *(
        Case("neighbour_scratch", str(size), _floats((size,)), _neighbour, _same, F32)
        for size in (1, 5000, 100_000)
    ),
    *(
        Case(
            "pool_rows", "x".join(map(str, shape)), _floats(shape),
            lambda x: np.maximum(np.maximum(x[:, :-2:2], x[:, 1:-1:2]), x[:, 2::2]),
            lambda x: (x.shape[0], (x.shape[1] - 3) // 2 + 1), F32,
        )
        for shape in ((1, 3), (5, 12), (50, 1023))
    ),
    *(
        Case(
            "block_ranges", "x".join(map(str, shape)), _floats(shape), _ranges,
            lambda x: (x.shape[0], -(-x.shape[1] // 8)), F32,
        )
        for shape in ((5, 64), (50, 1001))
    ),
    *(
        Case(
            "block_sums", "x".join(map(str, shape)), _floats(shape),
            lambda x: np.add.reduceat(x, np.arange(0, x.shape[1], 8), axis=1),
            lambda x: (x.shape[0], -(-x.shape[1] // 8)), F32, rtol=1e-5, atol=1e-5,
        )
        for shape in ((1, 3), (5, 64), (50, 1001))
    ),
    *(
        Case(
            "short_rows", "x".join(map(str, shape)), _floats(shape), _row_numbers, _same, F32,
            rtol=1e-5, atol=1e-4,
        )
        for shape in (
            (1, 1), (300, 7), (20, 64), (9, 130), (70, 192), (9, 256), (20, 1024), (5, 4096),
        )
    ),
    *(
        Case(
            "sort_rows", "x".join(map(str, shape)),
            lambda rng, shape=shape: [np.round(rng.standard_normal(shape), 1).astype(np.float32)],
            _orders, _same, DType.INT32,
        )
        for shape in (
            (3, 33), (301, 7), (2, 2048), (19, 512), (9, 130), (16, 64), (80, 32), (5, 4096),
        )
    ),
    *_rows("cumsum_exclusive", _before, rtol=1e-5, atol=1e-4),
    *(
        Case("cumprod_reverse", str(size), _near_one(size), _behind, _same, F32, rtol=1e-4)
        for size in (0, 1, 128, 5001)
    ),
)  # fmt: skip
