"""mHC: residual mix, its gradients and Sinkhorn's normalization, at many sizes from one program."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import modules
import pytest
import torch
from modules import agrees, plan

from npusmith.ir.nodes import Const, For, Note, Stage, StageKind
from npusmith.ir.text import show_expr
from npusmith.lang.memory import GlobalTensor
from npusmith.plan import Plan
from npusmith.plan.repeats import rolled
from npusmith.target.chips import find_chip

# Few cores, so that each has several jobs; all of the unified buffer, where the rows stay.
CHIP = replace(find_chip("910B2"), vector_cores=3, cube_cores=1)
EXAMPLES = Path(__file__).parents[2] / "examples"
BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TASKS = {name: _example(name) for name in ("mhc_post", "mhc_post_grad", "mhc_sinkhorn")}


@pytest.fixture(autouse=True)
def chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "CHIP", CHIP)


def _quick(made: Plan) -> bool:
    """Whether the program has the form in which rows stay on chip."""
    names = (scalar.name for kernel in made.program.kernels for scalar in kernel.scalars)
    return "brief" in names


def _interleaved(made: Plan) -> bool:
    """Whether an element of a matrix is a row of lanes on chip."""
    return any(scalar.name == "pitch_0" for scalar in made.program.kernel.scalars)


# Streams, type, convention; then batch, tokens, width: rows off 32 bytes, of several strips, one
# element, more tokens than cores take at once, none.
KINDS = [(4, BF16, True), (4, F16, False), (5, BF16, False), (8, F16, True), (4, F32, True)]
SHAPES = [(2, 3, 200), (1, 1, 1), (1, 2, 3601), (2, 20, 24), (2, 0, 8)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", ["mhc_post", "mhc_post_grad"])
def test_a_mix_of_streams_gives_pytorchs_values_at_every_size(
    name: str, kind: tuple[int, torch.dtype, bool]
) -> None:
    torch.manual_seed(3)
    streams, dtype, transposed = kind
    task = TASKS[name]
    model = task.Model(streams, transposed)
    made = plan(model, *task.get_inputs(2, 3, streams, 96, dtype))
    assert _quick(made)
    for batch, tokens, width in SHAPES:
        agrees(made, model, *task.get_inputs(batch, tokens, streams, width, dtype), loose=4)


@pytest.mark.parametrize("name", ["mhc_post", "mhc_post_grad"])
def test_another_number_of_streams_than_the_captured_one_is_right_as_well(name: str) -> None:
    torch.manual_seed(4)
    task = TASKS[name]
    made = plan(task.Model(4, True), *task.get_inputs(2, 3, 4, 96))
    agrees(made, task.Model(3, True), *task.get_inputs(2, 3, 3, 70), loose=4)


def _traffic(
    monkeypatch: pytest.MonkeyPatch, made: Plan, model: torch.nn.Module, inputs: list[torch.Tensor]
) -> dict[str, int]:
    """Bytes that cross global memory for each tensor, over all cores."""
    moved: dict[str, int] = {}

    read, write = GlobalTensor.read, GlobalTensor.write

    def reads(tensor: GlobalTensor, *args: Any) -> Any:
        values = read(tensor, *args)
        moved[tensor.name] = moved.get(tensor.name, 0) + values.nbytes
        return values

    def writes(tensor: GlobalTensor, index: Any, values: Any, *args: Any) -> None:
        moved[tensor.name] = moved.get(tensor.name, 0) + values.nbytes
        write(tensor, index, values, *args)

    with monkeypatch.context() as patch:
        patch.setattr(GlobalTensor, "read", reads)
        patch.setattr(GlobalTensor, "write", writes)
        agrees(made, model, *inputs, loose=4)
    return moved


@pytest.mark.parametrize(
    ("name", "rows"),
    [("mhc_post", lambda n: 2 * n + 1), ("mhc_post_grad", lambda n: 3 * n + 2)],
)
def test_every_row_crosses_memory_once(
    monkeypatch: pytest.MonkeyPatch, name: str, rows: Callable[[int], int]
) -> None:
    torch.manual_seed(5)
    task, streams, width, tokens = TASKS[name], 4, 700, 11
    inputs = task.get_inputs(1, tokens, streams, width)
    model = task.Model(streams, True)
    moved = _traffic(monkeypatch, plan(model, *inputs), model, inputs)
    small = {"h_res", "h_post", "y1", "y3"}
    wide = sum(size for name, size in moved.items() if name not in small)
    assert wide == 2 * rows(streams) * width * tokens
    numbers = sum(size for name, size in moved.items() if name in small)
    assert numbers <= 2 * 2 * 4 * (streams * streams + streams) * tokens


@pytest.mark.parametrize(("streams", "dtype"), [(4, F32), (5, F32), (3, F16)])
def test_sinkhorn_runs_with_tokens_as_lanes(streams: int, dtype: torch.dtype) -> None:
    torch.manual_seed(6)
    task = TASKS["mhc_sinkhorn"]
    model = task.Model(streams, 4)
    made = plan(model, *(x.to(dtype) for x in task.get_inputs(2, 3, streams)))
    assert _interleaved(made)
    for batch, tokens in ((1, 1), (2, 150), (3, 43), (1, 0)):
        agrees(made, model, *(x.to(dtype) for x in task.get_inputs(batch, tokens, streams)))


def test_other_small_matrices_have_tokens_as_lanes_too() -> None:
    torch.manual_seed(7)

    def fn(x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        square = x.view(-1, 3, 4)
        soft = torch.softmax(square + bias.view(-1, 3, 4), -1) + 1e-6
        return soft / (soft.sum(-2, keepdim=True) + 1e-6), square.amax((1, 2))

    x, bias = torch.randn(70, 12), torch.randn(70, 12)
    made = plan(fn, x, bias)
    assert _interleaved(made)
    agrees(made, fn, x, bias)


def test_matrices_of_which_the_model_says_one_side_are_right_at_other_sizes() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.view(x.shape[0], -1, 4), -1)

    made = plan(fn, torch.randn(7, 28))
    assert _interleaved(made)
    for cols in (28, 8, 40):
        agrees(made, fn, torch.randn(7, cols))


def test_where_no_other_program_exists_the_operator_refuses_other_sizes() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        square = x.view(x.shape[0], -1, 4).softmax(-1)
        return square / square.sum(1, keepdim=True)

    made = plan(fn, torch.randn(7, 28))
    agrees(made, fn, torch.randn(9, 28))
    assert "args_0.shape[1] // 4 == 7" in [show_expr(expr) for expr in made.spec.legal or ()]


def test_turns_that_repeat_become_a_loop() -> None:
    def stage(words: str) -> Stage:
        return Stage(StageKind.COMPUTE, tuple(Note(word) for word in words.split()))

    (found,) = rolled((stage("a b c d b"), stage("c d b c d e")))
    turns = For("turn", Const(0), Const(3), Const(1), stage("b c d").body)
    assert found == Stage(StageKind.COMPUTE, (Note("a"), turns, Note("e")))
    assert rolled((stage("a b"),)) == (stage("a b"),)


def test_products_with_two_long_axes_are_left_to_the_cube_unit() -> None:
    made = plan(torch.bmm, torch.randn(2, 20, 30), torch.randn(2, 30, 4))
    assert made.program.kernel.is_cube
