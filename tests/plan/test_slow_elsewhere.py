"""What is quick as captured is not left to take hundreds of times as long at other sizes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, capture, capture_at, capture_free

from npusmith.plan import write
from npusmith.plan.cube_products import with_cube_products
from npusmith.plan.estimate import estimate
from npusmith.plan.node_kinds import CUBE_PRODUCT
from npusmith.plan.shrink import output_shapes
from npusmith.plan.size_regimes import largest_tried, regimes, takes, tried_sizes
from npusmith.target.chips import find_chip

Tensor = torch.Tensor
Shapes = tuple[tuple[int, ...], ...]
CHIP = find_chip("910B2")


def pooled(x: Tensor) -> Tensor:
    return F.group_norm(F.max_pool2d(x, 3, 2, 1), 3)


def trimmed(x: Tensor) -> Tensor:
    mean = x.sort(-1).values[:, 1:-1].mean(-1, keepdim=True)
    return (x - mean) / (((x - mean) ** 2).mean(-1, keepdim=True).sqrt() + 1e-3)


def apart(x: Tensor, y: Tensor) -> Tensor:
    return ((x - y.mean(-1, keepdim=True)) ** 2).mean(-1)


def channels_last(x: Tensor, w: Tensor) -> Tensor:
    y = F.conv2d(x, w, padding=3, groups=w.shape[0]).permute(0, 2, 3, 1)
    return F.layer_norm(y, y.shape[-1:])


def shrunk(x: Tensor, w: Tensor) -> Tensor:
    return channels_last(F.max_pool2d(x, 4, 4), w)


# A module, captured shapes, others at which its first form was slow, and some to compute there
CASES: dict[str, tuple[Callable[..., Any], Shapes, Shapes, Shapes]] = {
    "pool and norm": (pooled, ((2, 6, 17, 23),), ((5, 6, 2, 4123),), ((2, 6, 2, 323),)),
    "sort and norm": (trimmed, ((2011, 5),), ((3, 4099),), ((3, 2099),)),
    "convolution, channels last": (
        channels_last,
        ((2, 24, 16, 16), (24, 1, 7, 7)), ((2, 24, 16, 300), (24, 1, 7, 7)),
        ((2, 24, 3, 165), (24, 1, 7, 7)),
    ),
    "the same of a quarter of rows": (
        shrunk,
        ((2, 24, 64, 64), (24, 1, 7, 7)), ((2, 24, 66, 1201), (24, 1, 7, 7)),
        ((2, 24, 17, 205), (24, 1, 7, 7)),
    ),
    "two axes": (apart, ((2011, 5), (2011, 3)), ((2, 66_913), (2, 66_911)), ((2, 2313), (2, 2311))),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_other_sizes_take_a_time_that_goes_with_their_bytes(case: str) -> None:
    model, own, slow, small = CASES[case]
    plan = write(capture(model, *map(torch.ones, own)), "op_custom", CHIP)
    ports = (*plan.spec.inputs, *plan.spec.outputs)
    shapes = (*slow, *output_shapes(plan.spec, slow))
    us = estimate(plan.program, dict(zip((port.name for port in ports), shapes, strict=True)), CHIP)
    assert us < 500  # 5,000 to 200,000 before; a sort alone takes 200
    generator = torch.Generator().manual_seed(5)
    agrees(plan, model, *(torch.randn(shape, generator=generator) for shape in small))


@pytest.mark.parametrize("case", CASES)
def test_captured_sizes_are_computed_as_before(case: str) -> None:
    model, own, _, _ = CASES[case]
    given = [torch.randn(shape) for shape in own]
    agrees(write(capture(model, *given), "op_custom", CHIP), model, *given)


def weighted(x: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    loss = F.cross_entropy(x, target, weight=weight, label_smoothing=0.1)
    chance = x.softmax(-1).gather(-1, target[:, None]).squeeze(-1)
    return loss + ((1 - chance) ** 2 * -torch.log(chance + 1e-9)).mean()


def losses(rows: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows)
    target = torch.randint(0, 19, (rows,), generator=generator)
    return torch.randn(rows, 19, generator=generator), target, torch.linspace(0.5, 2, 19)


def test_many_rows_are_not_gone_through_as_few_were() -> None:
    plan = write(capture(weighted, *losses(127)), "op_custom", CHIP)
    shapes = ((32_768, 19), (32_768,), (19,), ())
    names = (port.name for port in (*plan.spec.inputs, *plan.spec.outputs))
    assert estimate(plan.program, dict(zip(names, shapes, strict=True)), CHIP) < 500  # 390,000
    for rows in (127, 800):
        agrees(plan, weighted, *losses(rows))


def test_sizes_of_captures_are_those_of_all_tensors_of_a_part() -> None:
    """Inside of a model the length of one tensor follows from others in ways a part cannot see."""
    cases = ((3, 4, 6), (5, 7, 6), (2, 9, 6))
    graph = capture_at(
        lambda x: x.reshape(-1, x.shape[2]).sum(1) * 2, *[(torch.ones(case),) for case in cases]
    )
    plan = write(graph, "op_custom", CHIP)
    found = list(tried_sizes(graph, plan.spec))
    assert [shapes["args_0"] for shapes, _ in found] == [(5, 7, 6), (2, 9, 6)]
    assert [outputs for _, outputs in found] == [[(35,)], [(18,)]]
    assert [item.shapes["y"] for item in largest_tried(graph, plan.spec)] == [(35,), (18,)]


def heads(y: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Attention of two heads that hands over its weights, too."""
    n, t, c = y.shape
    parts = (y.transpose(0, 1).reshape(t * n, c) @ w).view(t, n, 3, c).unbind(2)
    q, k, v = (item.reshape(t, n * 2, c // 2).transpose(0, 1) for item in parts)
    weights = torch.softmax(q @ k.transpose(1, 2) * 0.3, -1)
    out = (weights @ v).transpose(0, 1).reshape(t, n, c)
    return out.max(0).values, weights.view(n, 2, t, t).mean(1)


def test_products_that_captures_have_large_are_the_cube_units() -> None:
    """Seven rows of nine are too few for it; as sums of vectors 1,129 rows would take half a
    minute."""

    def given(n: int, t: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(t)
        return tuple(torch.randn(shape, generator=generator) for shape in ((n, t, 18), (18, 54)))

    graph = capture_at(heads, given(3, 7), given(5, 9), given(26, 1129))
    plan = write(graph, "op_custom", CHIP)
    shapes = ((26, 1129, 18), (18, 54))
    names = [port.name for port in (*plan.spec.inputs, *plan.spec.outputs)]
    sized = dict(zip(names, (*shapes, *output_shapes(plan.spec, shapes)), strict=True))
    assert estimate(plan.program, sized, CHIP) < 10_000  # 32,000,000
    for n, t in ((3, 7), (2, 33)):
        agrees(plan, heads, *given(n, t))


def test_what_refuses_sizes_is_no_way_out_of_being_slow_there() -> None:
    """A softmax behind a product block by block takes rows of 768: it was no slower at 4,124."""

    def given(n: int, t: int, s: int) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(s)
        shapes = ((n, t, 36), (n, s, 21), (n, s, 10))
        padding = torch.arange(s) >= torch.randint(1, s + 1, (n, 1), generator=generator)
        return (*(torch.randn(shape, generator=generator) for shape in shapes), padding)

    class Padded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(36)
            self.attention = torch.nn.MultiheadAttention(
                36, 3, kdim=21, vdim=10, batch_first=True, add_bias_kv=True
            )

        def forward(self, x: Tensor, k: Tensor, v: Tensor, padding: Tensor) -> Any:
            y, weights = self.attention(self.norm(x), k, v, key_padding_mask=padding)
            return x + y, weights

    torch.manual_seed(3)
    model = Padded().eval()
    sizes = (
        (3, 13, 29), (23, 11, 137), (54, 2, 81), (4129, 3, 24), (7, 13, 29), (29, 13, 29),
        (3, 7, 29), (3, 29, 29), (3, 13, 7), (3, 13, 34), (5, 2, 4123),
    )  # fmt: skip
    graph = capture_at(model, *itertools.starmap(given, sizes))
    plan = write(graph, "op_custom", CHIP)
    inputs, outputs = [*tried_sizes(graph, plan.spec)][-1]
    assert takes(plan.spec, inputs)
    names = [port.name for port in plan.spec.outputs]
    sized = {**inputs, **dict(zip(names, outputs, strict=True))}
    assert estimate(plan.program, sized, CHIP) < 1_000  # 529,000
    for case in ((3, 13, 29), (2, 2, 57)):
        agrees(plan, model, *given(*case))


def test_a_product_is_given_to_the_cube_unit_where_it_grows_alone() -> None:
    def fn(x: Tensor, y: Tensor) -> Tensor:
        return (x @ y).exp() @ y.T

    graph = capture_at(
        fn,
        *[(torch.ones(n, 9), torch.ones(9, 5)) for n in (7, 40)],
        (torch.ones(3, 9), torch.ones(9, 90)),
    )
    products = [node.name for node in graph.nodes if node.op == "aten.mm.default"]
    asked = with_cube_products(graph, products)
    assert [node.name for node in asked.nodes if node.op == CUBE_PRODUCT] == []
    graph = capture_at(
        fn, (torch.ones(7, 9), torch.ones(9, 5)), (torch.ones(40, 9), torch.ones(9, 90))
    )
    asked = with_cube_products(graph, products)
    assert [node.name for node in asked.nodes if node.op == CUBE_PRODUCT] == products
    assert with_cube_products(graph, ()) is graph


def test_regimes_have_one_size_where_all_captures_do() -> None:
    def mixed(x: Tensor, h: Tensor) -> Tensor:
        return (h[..., None] * x[:, :, None]).sum(1)

    cases = [(torch.ones(b, n, 40), torch.ones(b, n, n)) for b, n in ((3, 4), (5, 4), (2, 7))]
    graph = capture_at(mixed, *cases)
    plan = write(graph, "op_custom", CHIP)
    own = {port.name: port.shape for port in (*plan.spec.inputs, *plan.spec.outputs)}
    found = [item.shapes for item in regimes(graph, plan.spec, own, CHIP)]
    assert found
    for shapes in found:
        (batch, n, cols), (other, rows, columns) = shapes["args_0"], shapes["args_1"]
        assert (batch, n, n) == (other, rows, columns)
        assert cols == 40  # in all captures


def test_a_product_of_nothing_is_no_reason_to_hang() -> None:
    """One kernel takes a depth of 0, too; as one kernel 12,387 small products took 25 ms."""

    def scores(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        s = (q @ k.transpose(-1, -2)).float() * 0.25
        return s.softmax(-1).to(v.dtype) @ v, s.logsumexp(-1)

    def given(*shape: int) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(shape[0])
        return tuple(torch.randn(shape, generator=generator).half() for _ in range(3))

    graph = capture_at(scores, given(2, 3, 6, 10), given(29, 11, 33, 157))
    plan = write(graph, "op_custom", CHIP)
    shapes = ((4129, 3, 3, 28),) * 3
    names = [port.name for port in (*plan.spec.inputs, *plan.spec.outputs)]
    sized = dict(zip(names, (*shapes, *output_shapes(plan.spec, shapes)), strict=True))
    assert estimate(plan.program, sized, CHIP) < 2_000
    for shape in ((2, 3, 6, 10), (3, 1, 7, 33)):  # PyTorch rounds scores to halves: 5e-4
        agrees(plan, scores, *given(*shape), loose=25)


def test_long_programs_are_looked_at_elsewhere_as_well() -> None:
    """A loss and two products of rows, in one kernel at nine rows: 88,000 us at 2,064 of them."""

    def model(x: Tensor, t: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        loss = F.gaussian_nll_loss(x, t, v.abs(), full=True, eps=1e-4)
        return loss, torch.corrcoef(x), torch.cov(t)

    def drawn(rows: int, columns: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(7)
        return [torch.randn(rows, columns, generator=generator) for _ in range(3)]

    plan = write(capture_free(model, *drawn(9, 40)), "op_custom", CHIP)
    shapes = (*[(2064, 26)] * 3, (), *[(2064, 2064)] * 2)
    ports = (*plan.spec.inputs, *plan.spec.outputs)
    us = estimate(plan.program, dict(zip((port.name for port in ports), shapes, strict=True)), CHIP)
    assert us < 4_000
    agrees(plan, model, *drawn(9, 40))
