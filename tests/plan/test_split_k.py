"""Products of few blocks and a long depth: parts of the depth on different cores."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, agrees, capture, capture_free, plan, plan_graph
from torch import Tensor, nn

from npusmith.ir.nodes import Const, Mmad
from npusmith.ir.text import show
from npusmith.ir.walk import statements
from npusmith.lang.extents import evaluate
from npusmith.plan import Plan, split_k, split_k_parts, write
from npusmith.plan.expose_intermediates import expose_intermediates
from npusmith.plan.node_kinds import CUBE_PRODUCT, MATRIX_PRODUCTS
from npusmith.plan.read import read
from npusmith.plan.search import search_plan
from npusmith.plan.split_k_parts import PARTIAL, depth_of_part
from npusmith.target.chips import find_chip

torch.manual_seed(8)
R = torch.randn
Case = tuple[Callable[..., Any], tuple[Tensor, ...], tuple[Tensor, ...]]


def norm_of_product(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(F.linear(x, w, b), (w.shape[0],))


def attention(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ k


CASES: dict[str, Case] = {
    "product": (torch.mm, (R(40, 300), R(300, 50)), (R(19, 33), R(33, 161))),
    "of halves": (
        torch.mm, (R(40, 300).half(), R(300, 50).half()), (R(33, 7).half(), R(7, 40).half())),
    "of bfloat16 with a bias": (
        lambda x, w, b: F.linear(x, w, b).relu(),
        (R(40, 300).bfloat16(), R(50, 300).bfloat16(), R(50).bfloat16()),
        (R(7, 640).bfloat16(), R(33, 640).bfloat16(), R(33).bfloat16()),
    ),
    "of a transposed matrix": (
        lambda a, b: a.t() @ b, (R(300, 40), R(300, 50)), (R(1, 19), R(1, 33))),
    "batches": (torch.bmm, (R(2, 30, 300), R(2, 300, 29)), (R(1, 19, 177), R(1, 177, 33))),
    "a norm behind it": (
        norm_of_product, (R(30, 400), R(60, 400), R(60)), (R(5, 90), R(33, 90), R(33))),
    "attention": (attention, (R(20, 320), R(100, 320)), (R(33, 40), R(70, 40))),
}  # fmt: skip


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts whatever they cost, of 16 elements at least."""
    monkeypatch.setattr(split_k, "WORTH", 1e9)
    monkeypatch.setattr(import_module("npusmith.plan.write"), "WORTH", 1e9)
    monkeypatch.setattr(split_k_parts, "_STEP", Const(16))


def in_parts(made: Plan) -> int:
    return sum(own.nodes[-1].op == split_k_parts.PARTIAL for own, _ in made.parts)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", CASES)
def test_parts_of_a_depth_add_up_to_the_product(name: str) -> None:
    fn, captured, others = CASES[name]
    made = plan(fn, *captured)
    assert in_parts(made)
    agrees(made, fn, *captured, loose=10)
    agrees(made, fn, *others, loose=10)


def windows(x: Tensor, w: Tensor) -> Tensor:
    found = x.unfold(0, 3, 1).unfold(1, 3, 1).permute(0, 1, 3, 4, 2)
    return found.flatten(2).flatten(0, 1) @ w


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("channels", [16, 40])
def test_rows_of_a_window_are_cut_like_one_depth(channels: int) -> None:
    """Parts that begin and end within a row of the kernel."""
    x, w = R(6, 7, channels), R(9 * channels, 20)
    made = plan(windows, x, w)
    assert in_parts(made) and "for tap in range(first // depth" in show(made.program)
    agrees(made, windows, x, w, loose=10)


@pytest.mark.usefixtures("eager")
def test_a_convolution_of_few_places_is_cut() -> None:
    model = nn.Conv2d(40, 20, 3, padding=1)
    made = plan_graph(capture_free(model, R(2, 40, 4, 6)))
    assert in_parts(made)
    for shape in ((2, 40, 4, 6), (3, 40, 9, 7)):
        agrees(made, model, R(*shape), loose=10)


def test_a_short_depth_or_many_blocks_stay_one_product() -> None:
    for rows, depth in ((40, 300), (2000, 4000)):
        made = plan(torch.mm, R(rows, depth), R(depth, rows))
        assert not made.parts
        (kernel,) = made.program.kernels
        assert any(isinstance(stmt, Mmad) for stmt in statements(kernel.body))


def test_a_long_depth_is_cut_where_that_is_quicker() -> None:
    made = write(capture(torch.mm, R(64, 20_000), R(20_000, 64)), "op_custom", find_chip("910B2"))
    assert in_parts(made) == 1
    assert any("the depth in 20 parts" in note for note in made.notes)


@pytest.mark.parametrize("depth", [1, 15, 16, 17, 255, 256, 257, 511, 4096, 100_001])
def test_no_part_is_empty(depth: int) -> None:
    for rows, cols in ((1, 1), (16, 500), (129, 129), (5000, 5000)):
        each = int(evaluate(depth_of_part((Const(rows), Const(cols)), Const(depth)), {}, {}, CHIP))
        parts = -(-depth // each)
        assert (parts - 1) * each < depth and 1 <= parts <= CHIP.cube_cores


@pytest.mark.usefixtures("eager")
def test_the_judge_sees_no_parts_that_the_model_does_not_have() -> None:
    fn, captured, _ = CASES["a norm behind it"]
    exposed = expose_intermediates(plan(fn, *captured), capture(fn, *captured), CHIP)
    assert exposed is None or all(not name.endswith("_parts") for name, _ in exposed.values)


def test_a_search_times_the_parts_alone() -> None:
    """How many parts there are follows from the chip, which no operator's output shape can."""
    graph = capture(torch.mm, R(64, 20_000), R(20_000, 64))
    made = write(graph, "op_custom", find_chip("910B2"))
    better, found = search_plan(made, graph, "op_custom", find_chip("910B2"), 4)
    assert in_parts(better) and {trial.kernel for trial in found.trials} == {1, 2}


def test_a_small_product_of_the_cube_unit_is_cut_as_well() -> None:
    """14 rows of heads of 12,288: on the cube unit for other captures, in parts for this one."""
    graph = capture(lambda x, y: x @ y, torch.randn(14, 12_288), torch.randn(12_288, 14))
    (node,) = (item for item in graph.nodes if item.op in MATRIX_PRODUCTS)
    nodes = tuple(
        item.model_copy(update={"op": CUBE_PRODUCT}) if item is node else item
        for item in graph.nodes
    )
    cut = split_k.with_split_products(graph.model_copy(update={"nodes": nodes}), find_chip("910B2"))
    assert any(item.op == PARTIAL for item in cut.nodes)
    assert read(cut) is not None
