"""A matrix product and what stands behind it, in two kernels that run side by side."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, as_array, capture, capture_at, module
from torch import Tensor, nn

from npusmith.errors import PlanError
from npusmith.ir.spec import Source
from npusmith.ir.text import show
from npusmith.lang import check, interpret, parse
from npusmith.lang.extents import extent
from npusmith.plan import Plan, write
from npusmith.plan.axes import Atom
from npusmith.plan.estimate import time_of
from npusmith.plan.paired_kernels import write_paired
from npusmith.plan.product_blocks import spans_of
from npusmith.plan.schedule import Schedule, Structure
from npusmith.plan.search import search_plan
from npusmith.plan.wide_products import with_wide_products
from npusmith.target.chips import find_chip
from npusmith.train.modules.on_twin import OnTwin

TRUE = find_chip("910B2")
HALF, BRAIN = torch.float16, torch.bfloat16
Call = Callable[..., Any]


def drawn(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return tuple(torch.randn(shape, generator=generator).to(dtype) for shape in shapes)


def is_paired(made: Plan) -> bool:
    return [item.beside for item in made.program.host.launches] == [False, True]


def paired(model: Call, *cases: tuple[Tensor, ...]) -> Plan:
    """The pair of a model, whether it is quicker than two kernels or not."""
    graph = capture_at(model, *cases) if len(cases) > 1 else capture(model, *cases[0])
    made = write_paired(with_wide_products(graph), "pair", CHIP, Schedule(), None)
    assert is_paired(made)
    check(made.program, CHIP)
    assert parse(show(made.program)) == made.program
    return made


def operands(made: Plan, model: Call, args: Sequence[Tensor]) -> list[Any]:
    held = dict(module(model).named_parameters()) | dict(module(model).named_buffers())
    own = (
        args[port.position] if port.source is Source.USER else held[port.target]
        for port in made.spec.inputs
    )
    return [as_array(item.detach()) for item in own]


def outputs_of(made: Plan, arrays: Sequence[Any]) -> list[tuple[tuple[int, ...], Any]]:
    pairs = zip(made.spec.inputs, arrays, strict=True)
    shapes = {port.name: item.shape for port, item in pairs}
    return [
        (tuple(extent(dim, shapes) for dim in port.dims), port.dtype) for port in made.spec.outputs
    ]


def near(results: Sequence[Any], model: Call, args: Sequence[Tensor]) -> None:
    """No farther from the result in float64 than PyTorch, but for the last rounding."""
    with torch.no_grad():
        known = module(model)(*args)
        wide = copy.deepcopy(module(model)).double()(*(arg.double() for arg in args))
    several = isinstance(known, tuple)
    for result, own, wanted in zip(
        results, known if several else (known,), wide if several else (wide,), strict=True
    ):
        assert result.shape == tuple(wanted.shape)
        error = (torch.from_numpy(result.astype(np.float64)) - wanted).abs().max()
        room = 4 * torch.finfo(args[0].dtype).eps * wanted.abs().max()
        assert error <= 2 * (own.double() - wanted).abs().max() + room


def of_rows(inner: int, outer: int, *behind: nn.Module) -> nn.Module:
    """A layer whose rows are as long as the model says."""
    torch.manual_seed(inner + outer)
    return nn.Sequential(nn.Linear(inner, outer, bias=False), *behind)


class Convolution(nn.Module):
    """With a normalisation of channels behind it, which a block has as rows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer, self.norm = nn.Conv2d(32, 40, 1, bias=False), nn.BatchNorm2d(40)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2.0)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.layer(x)))


class Scores(nn.Module):
    """A number of each row behind the product, and the rows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.layer = nn.Linear(33, 49, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.layer(x) * 0.5
        return torch.logsumexp(scores, -1), scores


CASES: dict[str, tuple[Call, tuple[Tensor, ...], tuple[Tensor, ...]]] = {
    "a bias of 16 bits and an activation": (
        lambda x, w, b: F.gelu(F.linear(x, w, b)),
        drawn((150, 40), (200, 40), (200,), dtype=HALF),
        drawn((37, 33), (1001, 33), (1001,), dtype=HALF)),
    "a residual": (
        lambda x, w, r: x @ w * 0.3 + r, drawn((70, 33), (33, 160), (70, 160)),
        drawn((131, 17), (17, 53), (131, 53))),
    "a column": (
        lambda x, w, c: torch.sigmoid(x @ w) * c, drawn((70, 33), (33, 96), (70, 1), dtype=BRAIN),
        drawn((1, 20), (20, 7), (1, 1), dtype=BRAIN)),
    "matrices of a batch": (
        lambda x, w, r: torch.tanh(torch.bmm(x, w) + r),
        drawn((3, 40, 33), (3, 33, 48), (3, 40, 48)),
        drawn((2, 67, 18), (2, 18, 131), (2, 67, 131)),
    ),
    "rows of sequences": (
        lambda x, w, r: F.silu(F.linear(x, w)) + r,
        drawn((3, 37, 33), (80, 33), (3, 37, 80)), drawn((2, 13, 20), (47, 20), (2, 13, 47))),
    "softmax": (of_rows(33, 96, nn.Softmax(-1)), drawn((70, 33)), drawn((7, 33))),
    "rows that are filled up": (
        of_rows(20, 67, nn.LayerNorm(67)), drawn((2, 33, 20)), drawn((3, 5, 20))),
    "a number of each row": (Scores(), drawn((70, 33)), drawn((131, 33))),
    "a convolution": (Convolution(), drawn((2, 32, 6, 20)), drawn((3, 32, 5, 7))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_blocks_are_handed_over_and_right_at_two_shapes(name: str) -> None:
    model, first, second = CASES[name]
    made = paired(model, first, second)
    for args in (first, second):
        arrays = operands(made, model, args)
        near(interpret(made.program, CHIP, arrays, outputs_of(made, arrays)), model, args)


APART: dict[str, tuple[Call, str]] = {
    "a sum down the columns": (lambda x, w: (x @ w).sum(0), "an output has other axes"),
    "rows and columns exchanged": (
        lambda x, w: torch.tanh(x @ w).t().contiguous(), "do not lie together"),
    "rows that are turned round": (lambda x, w: (x @ w).flip(0) * 2.0, "of other blocks"),
    "rows that the caller makes longer": (
        lambda x, w: (x @ w).softmax(-1), "rows of other sizes would have no kernel"),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_what_needs_more_than_its_block_is_a_kernel_of_its_own(name: str) -> None:
    model, why = APART[name]
    with pytest.raises(PlanError, match=why):
        paired(model, drawn((70, 33), (33, 96)))


def test_a_product_that_is_an_output_is_not_handed_over() -> None:
    def both(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return (y := x @ w), torch.tanh(y)

    with pytest.raises(PlanError):
        paired(both, drawn((70, 33), (33, 96)))


def test_the_partition_takes_a_pair_where_it_is_quicker() -> None:
    def gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.gelu(F.linear(x, w, b))

    graph = capture(gelu, *drawn((1024, 512), (2048, 512), (2048,), dtype=HALF))
    made = write(graph, "pair", TRUE)
    assert is_paired(made)
    ((part, plan),) = made.parts
    assert plan.schedule.structure is Structure.PRODUCT_BESIDE
    us = time_of(made.program, made.spec, graph, TRUE)
    assert us < 0.8 * sum(time_of(p.program, p.spec, g, TRUE) for g, p in _apart(part))
    again = write(graph, "pair", TRUE, made.schedule, own=made)
    assert show(again.program) == show(made.program)


def test_a_pair_is_searched_as_a_kernel_is() -> None:
    def gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.gelu(F.linear(x, w, b))

    graph = capture(gelu, *drawn((1024, 512), (2048, 512), (2048,), dtype=HALF))
    made = write(graph, "pair", TRUE)
    plan, found = search_plan(made, graph, "pair", TRUE, 3)
    assert len(found.trials) > 1 and all(trial.us is not None for trial in found.trials)
    assert is_paired(plan) and found.us <= found.first_us


def test_a_part_that_cannot_be_searched_stays_and_the_record_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> Plan:
        raise PlanError("plan-cube", "not for a search")

    def two(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        return x @ w @ v

    graph = capture(two, *drawn((33, 40), (40, 50), (50, 33)))
    made = write(graph, "op", TRUE)
    monkeypatch.setattr("npusmith.plan.search._search_kernel", refused)
    plan, found = search_plan(made, graph, "op", TRUE, 6)
    assert show(plan.program) == show(made.program)
    assert any("not for a search" in trial.why for trial in found.trials)


def _apart(graph: Any) -> list[tuple[Any, Plan]]:
    """The product, and what is behind it."""
    from npusmith.plan.subgraphs import Cutter
    from npusmith.plan.write_kernel import write_kernel

    cutter = Cutter(graph)
    parts = cutter.part(0, 1), cutter.part(1, len(cutter.units))
    return [(part, write_kernel(part, "part", TRUE)) for part in parts]


def test_a_pair_runs_on_the_twin_without_a_finding() -> None:
    model, args, _ = CASES["a bias of 16 bits and an activation"]
    made = write_paired(with_wide_products(capture(model, *args)), "pair", TRUE, Schedule(), None)
    arrays = operands(made, model, args)
    near(OnTwin(made, TRUE).run(arrays, outputs_of(made, arrays)), model, args)


def axes(*sizes: int) -> list[Atom]:
    return [Atom(size) for size in sizes]


def test_axes_are_told_from_runs_by_their_sizes() -> None:
    own = axes(3, 56, 8)
    assert [(s.axes, s.runs) for s in spans_of(own, [(168, 8), (8, 1)])] == [
        ((own[0], own[1]), (0,)), ((own[2],), (1,)),
    ]  # fmt: skip
    own = axes(2, 64, 3136)  # a row of an image is a matrix of the batch
    assert [s.runs for s in spans_of(own, [(2, 200704), (56, 56), (64, 3136), (56, 1)])] == [
        (0,), (2,), (1, 3),
    ]  # fmt: skip
    with pytest.raises(PlanError, match="cut elsewhere"):
        spans_of(axes(4, 4), [(2, 8), (8, 1)])
