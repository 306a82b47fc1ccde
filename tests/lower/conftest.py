"""The test kernels, inputs for them, and a way to lower a piece of text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Atomic, Const, Program, Store
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.walk import statements
from npusmith.lang import check, interpret, parse
from npusmith.lower import lower, write_project
from npusmith.target.chips import Chip, find_chip
from npusmith.twin import build, read_project, run
from npusmith.twin.launch import LaunchOptions
from npusmith.twin.watch import Watch

KERNELS = Path(__file__).parents[1] / "kernels"
Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]

# Shapes of inputs and outputs: more than one tile, and a tail that is no multiple of 32 B.
SHAPES: dict[str, list[tuple[list[Shape], list[Shape]]]] = {
    "add": [([(3, 5003), (3, 5003)], [(3, 5003)]), ([(1,), (1,)], [(1,)])],
    "add_int32": [([(2, 9001), (2, 9001)], [(2, 9001)])],
    "cast_chain_bf16": [([(7, 1501)], [(7, 1501)])],
    "clamp_select": [([(5, 2003)], [(5, 2003)])],
    "column_sum_atomic": [([(5, 4501)], [(4501,)]), ([(61, 3)], [(3,)])],
    "copy": [([(4, 5003)], [(4, 5003)])],
    "either_way_twice": [([(5003,)], [(5003,)]), ([(40_960,)], [(40_960,)])],
    "batch_matmul": [([(3, 50, 205), (3, 205, 131)], [(3, 50, 131)])],
    "block_ranges": [([(3, 1000)], [(3, 125)]), ([(50, 61)], [(50, 8)]), ([(2, 5)], [(2, 1)])],
    "block_sums": [([(3, 1000)], [(3, 125)]), ([(50, 61)], [(50, 8)]), ([(2, 5)], [(2, 1)])],
    "cumprod_reverse": [([(5001,)], [(5001,)]), ([(1,)], [(1,)]), ([(256,)], [(256,)])],
    "cumsum_exclusive": [
        ([(3, 5003)], [(3, 5003)]),
        ([(5, 100)], [(5, 100)]),
        ([(2, 1153)], [(2, 1153)]),
    ],
    "first_columns_rows": [([(37, 50)], [(37, 19)])],
    "greater_bool": [([(3, 3001), (3, 3001)], [(3, 3001)])],
    "launched_thrice": [([(5003,)], [(5003,)]), ([(9,)], [(9,)])],
    "layer_norm": [([(6, 1001), (1001,), (1001,)], [(6, 1001)])],
    "linear_bias": [
        ([(150, 177), (301, 177), (301,)], [(150, 301)]),
        ([(1, 3), (9, 3), (9,)], [(1, 9)]),
    ],
    "linear_gelu": [([(150, 77), (301, 77), (301,)], [(150, 301)])],
    "linear_gelu_beside": [([(150, 77), (301, 77), (301,)], [(150, 301)])],
    "linear_relu_bf16": [([(150, 77), (301, 77)], [(150, 301)])],
    "steps_in_time": [([(5, 5003)], [(5, 5003)]), ([(1, 9)], [(1, 9)]), ([(70, 3)], [(70, 3)])],
    "matmul": [([(150, 77), (77, 301)], [(150, 301)]), ([(1, 1), (1, 1)], [(1, 1)])],
    "matmul_fp32": [([(150, 77), (77, 301)], [(150, 301)])],
    "matmul_int8": [([(150, 177), (301, 177)], [(150, 301)])],
    "matmul_split_k": [([(70, 1501), (1501, 33)], [(70, 33)])],
    "matmul_transposed_a": [([(77, 150), (77, 301)], [(150, 301)])],
    "mean_all": [([(5, 5003)], [(1,)])],
    "middle_axis_prod": [([(3, 4, 2503)], [(3, 2503)])],
    "middle_axis_sum": [([(3, 4, 4503)], [(3, 4503)])],
    "neighbour_scratch": [([(3, 3001)], [(3, 3001)])],
    "pool_rows": [([(5, 12)], [(5, 5)]), ([(50, 1023)], [(50, 511)])],
    "resident_max": [([(6, 4503)], [(4503,)])],
    "row_sum": [([(70, 4099)], [(70,)])],
    "scaled_relu_fp16": [([(3, 3001)], [(3, 3001)])],
    "short_rows": [
        ([(600, 5)], [(600, 5)]),
        ([(70, 64)], [(70, 64)]),
        ([(30, 197)], [(30, 197)]),
        ([(9, 256)], [(9, 256)]),
        ([(20, 1024)], [(20, 1024)]),
        ([(70, 192)], [(70, 192)]),
        ([(7, 2001)], [(7, 2001)]),
        ([(5, 4096)], [(5, 4096)]),
    ],
    "softmax_online": [([(5, 4099)], [(5, 4099)]), ([(3, 1)], [(3, 1)])],
    "softmax_three_pass": [([(5, 4099)], [(5, 4099)])],
    "sort_rows": [([(3, 1000)],) * 2, ([(50, 5)],) * 2, ([(2, 2048)],) * 2, ([(2, 161)],) * 2],
    "two_kernels": [([(5003,)], [(5003,)]), ([(9,)], [(9,)])],
    "where_bool": [([(2, 3001)] * 3, [(2, 3001)])],
}

CORPUS = sorted(path.name.removesuffix(".tile.py") for path in KERNELS.glob("*.tile.py"))


class Samples:
    """The test kernels with inputs and operator specs for them."""

    names = CORPUS

    @staticmethod
    def program(name: str) -> Program:
        path = KERNELS / f"{name}.tile.py"
        return parse(path.read_text(encoding="utf-8"), path.name)

    @staticmethod
    def shapes(name: str) -> list[tuple[list[Shape], list[Shape]]]:
        """A kernel without shapes here is a mistake in this file, not a reason to skip it."""
        return SHAPES[name]

    @staticmethod
    def inputs(program: Program, shapes: list[Shape]) -> list[Array]:
        """Values of either sign, the same in every run."""
        rng = np.random.default_rng(7)
        return [
            _values(tensor.dtype, shape, rng)
            for tensor, shape in zip(program.inputs, shapes, strict=True)
        ]

    @staticmethod
    def spec(program: Program, inputs: list[Shape], outputs: list[Shape]) -> OpSpec:
        """Ports with these shapes, fixed."""
        ports_in = zip(program.inputs, inputs, strict=True)
        ports_out = zip(program.outputs, outputs, strict=True)
        return OpSpec(
            f"{program.kernels[0].name}_custom",
            tuple(
                Port(item.name, item.dtype, shape, position=at)
                for at, (item, shape) in enumerate(ports_in)
            ),
            tuple(
                Port(item.name, item.dtype, shape, dims=tuple(Const(size) for size in shape))
                for item, shape in ports_out
            ),
        )

    @classmethod
    def compare(
        cls, program: Program, shapes: Any, out_shapes: Any, chip: Chip, folder: Path
    ) -> None:
        """On the twin the same bits; almost so where cores add floats atomically in any order."""
        check(program, chip)
        spec = cls.spec(program, shapes, out_shapes)
        write_project(lower(program, chip), chip, folder, spec)
        dtypes = tuple(item.dtype for item in (*program.inputs, *program.outputs))
        built = build(read_project(folder), chip, dtypes)
        inputs = cls.inputs(program, shapes)
        outputs = [
            (shape, item.dtype) for shape, item in zip(out_shapes, program.outputs, strict=True)
        ]
        result = run(built, inputs, outputs, options=LaunchOptions(watch=Watch(auto_sync=False)))
        assert [finding.render() for finding in result.findings] == []
        assert result.completed
        wanted = interpret(program, chip, inputs, outputs)
        for got, want in zip(result.outputs, wanted, strict=True):
            if _adds_in_any_order(program):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
            else:
                assert got.dtype == want.dtype and got.shape == want.shape
                assert got.tobytes() == want.tobytes()


def _adds_in_any_order(program: Program) -> bool:
    return any(
        isinstance(item, Store) and item.atomic is Atomic.ADD
        for kernel in program.kernels
        for item in statements(kernel.body)
    )


def _values(dtype: DType, shape: Shape, rng: np.random.Generator) -> Array:
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    return rng.integers(-1000, 1000, shape).astype(dtype.numpy)


@pytest.fixture(scope="session")
def samples() -> type[Samples]:
    return Samples


@pytest.fixture(scope="session")
def chip() -> Chip:
    return find_chip("910B2")


@pytest.fixture(params=CORPUS)
def kernel_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kernel_text() -> Callable[..., str]:
    """A program around the body of a kernel `k(x, y, n)` with buffers of 64 float32."""

    def build(
        body: str, *, buffers: str = "xt yt et", params: str = "n: int", launch: str = "n=x.size"
    ) -> str:
        lines = [f"    {name} = ub(64, float32)" for name in buffers.split()]
        lines += [f"    {line}" if line else "" for line in body.strip("\n").splitlines()]
        return "\n".join(
            [
                "TILE = 64",
                "@host",
                "def host(x, y):",
                f"    launch(k, 1, {launch})",
                "@kernel",
                f"def k(x: input(float32), y: output(float32), {params}):",
                *lines,
                "",
            ]
        )

    return build
