"""Results are computed where they are stored, and scratch may be there before."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from modules import agrees, capture, plan

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Load, Op, Stage, StageKind, Store
from npusmith.ir.walk import statements
from npusmith.lang import interpret
from npusmith.plan import Plan, write
from npusmith.target.chips import find_chip


def copies(made: Plan) -> int:
    body = made.program.kernel.body
    stored = {stmt.src.buffer for stmt in statements(body) if isinstance(stmt, Store)}
    return sum(
        isinstance(stmt, Op)
        and stmt.name == "muls"
        and stmt.scalars == (Const(1.0),)
        and stmt.views[0].buffer in stored
        for stmt in statements(body)
    )


def test_what_is_gathered_is_stored_from_where_it_is() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, 2)

    x = torch.randn(3, 4, 12, 16)
    made = plan(fn, x)
    assert copies(made) == 0
    agrees(made, fn, x)
    agrees(made, fn, torch.randn(2, 4, 10, 24))


def test_a_value_that_is_stored_and_read_again_keeps_its_buffer() -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.flip(-1)
        return y, y.exp()

    x = torch.randn(37, 24)
    agrees(plan(fn, x), fn, x)


def test_scratch_is_where_a_tile_is_stored_later() -> None:
    x, chip = torch.randn(5, 4001), find_chip("910B2")
    made = write(capture(F.gelu, x), "op_custom", chip)
    assert len(made.program.kernel.buffers) == 4
    (y,) = interpret(made.program, chip, [x.numpy()], [((5, 4001), DType.FLOAT32)])
    torch.testing.assert_close(torch.from_numpy(y), F.gelu(x))


def test_weights_are_loaded_where_rows_are_loaded_later() -> None:
    def fn(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (96,), w, b)

    args = torch.randn(800, 96), torch.randn(96), torch.randn(96)
    made = plan(fn, *args)
    agrees(made, fn, *args)


def test_numbers_of_rows_are_stored_from_the_tile_that_they_are_made_in() -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean = x.mean(-1, keepdim=True)
        scale = torch.rsqrt((x - mean).square().mean(-1, keepdim=True) + 1e-5)
        return mean, (x - mean) * scale, scale

    x = torch.randn(800, 24)
    made = plan(fn, x)
    stages = [
        [item.src.tensor for item in stmt.body if isinstance(item, Load)]
        for stmt in statements(made.program.kernel.body)
        if isinstance(stmt, Stage) and stmt.kind is StageKind.COPY_IN
    ]
    outputs = [
        len([item for item in stmt.body if isinstance(item, Store)])
        for stmt in statements(made.program.kernel.body)
        if isinstance(stmt, Stage) and stmt.kind is StageKind.COPY_OUT
    ]
    assert stages[0] == ["args_0"] and outputs[0] == 3
    agrees(made, fn, x)
