"""Rows in order: sort, topk, median and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import agrees, capture, plan

from npusmith.errors import PlanError

INF, NAN = float("inf"), float("nan")


def R(*shape: int) -> torch.Tensor:
    torch.manual_seed(sum(shape))
    return torch.randn(shape)


def special() -> torch.Tensor:
    x = R(4, 50)
    x[0, 3], x[0, 20], x[0, 9], x[1, 5] = NAN, NAN, INF, -INF
    x[2, ::3] = NAN
    x[3] = 1.0
    return x


def integers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    torch.manual_seed(sum(shape))
    limits = torch.iinfo(dtype)
    return torch.randint(limits.min, limits.max, shape, dtype=torch.int64).to(dtype)


def both(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: tuple(fn(*args))


CASES: dict[str, tuple[Callable[..., Any], list[torch.Tensor]]] = {
    "sort, also of rows that do not fit": (
        both(lambda x: x.sort(stable=True)),
        [R(5, 37), R(2, 3001), torch.randint(0, 9, (3, 1777)).float()],
    ),
    "numbers that are none": (both(lambda x: x.sort(stable=True)), [special()]),
    "downwards": (both(lambda x: x.sort(stable=True, descending=True)), [special()]),
    "another dimension": (both(lambda x: x.sort(1, descending=True)), [R(5, 37, 3), R(2, 40, 5)]),
    "between others": (lambda x: (x * 2).sort().values + 1, [R(5, 37)]),
    "int32": (both(lambda x: x.sort()), [integers(torch.int32, 5, 37)]),
    "int64": (both(lambda x: x.sort(descending=True)), [integers(torch.int64, 3, 19)]),
    "int8": (both(lambda x: x.sort(stable=True)), [integers(torch.int8, 5, 37)]),
    "float16": (both(lambda x: x.sort()), [torch.randperm(100).half().view(2, 50)]),
    "topk": (both(lambda x: x.topk(5)), [R(5, 37), R(3, 3000), R(2, 5)]),
    "topk, the smallest": (both(lambda x: x.topk(5, largest=False)), [R(5, 37), R(3, 3000)]),
    "topk of bfloat16": (both(lambda x: x.topk(4)), [torch.randperm(100).bfloat16().view(2, 50)]),
    "topk of int32": (both(lambda x: x.topk(4)), [integers(torch.int32, 5, 37)]),
    "median of all": (lambda x: x.median(), [R(5, 37), R(4, 5)]),
    "median, with places": (both(lambda x: x.median(1)), [R(5, 37), R(4, 6)]),
    "median of numbers that are none": (lambda x: x.median(1).values, [special()]),
    "nanmedian": (lambda x: x.nanmedian(1).values, [special()]),
    "kthvalue": (both(lambda x: x.kthvalue(3, 0)), [R(5, 37)]),
    "quantile": (lambda x: torch.quantile(x, 0.3, dim=1), [R(5, 37)]),
    "a router": (
        lambda x: torch.zeros_like(x).scatter(1, *reversed(x.softmax(-1).topk(2, 1))),
        [R(50, 8)],
    ),
    "one number": (both(lambda x: x.sort()), [torch.tensor(3.0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_in_pytorchs_order_at_every_size(name: str) -> None:
    model, sets = CASES[name]
    made = plan(model, sets[0])
    for x in sets:
        agrees(made, model, x)


def test_only_what_is_asked_for_is_stored() -> None:
    made = plan(lambda x: x.argsort(-1, descending=True), R(5, 37))
    assert [port.dtype.value for port in made.spec.outputs] == ["int64"]
    assert not any(buffer.name == "y_out" for buffer in made.program.kernel.buffers)


def test_long_rows_of_integers_are_refused() -> None:
    with pytest.raises(PlanError, match="do not fit on chip to be sorted"):
        plan(lambda x: x.sort().values, integers(torch.int32, 2, 9000))


def test_a_sort_along_any_dimension_is_one_along_the_last() -> None:
    graph = capture(both(lambda x: x.sort(0)), R(3, 4))
    assert [node.op for node in graph.nodes][:2] == ["aten.permute.default", "aten.sort.stable"]


def test_no_buffer_of_a_later_kernel_has_the_name_of_an_output() -> None:
    """What an output is converted by on its way is no buffer of its name."""

    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ordered = x.sort(-3)[0]
        return torch.topk(ordered.to(torch.int32), 1, -3)[0].to(torch.uint8), ordered

    x = torch.arange(60.0).reshape(3, 4, 5)
    agrees(plan(model, x), model, x)


def test_a_value_between_kernels_that_is_counted_only_is_no_tensor_of_the_next() -> None:
    def gates(logits: torch.Tensor) -> Any:
        p = torch.softmax(logits, dim=-1)
        w, index = torch.topk(p, 2, dim=-1)
        return torch.zeros_like(p).scatter(-1, index, w / w.sum(-1, keepdim=True)), index

    made = plan(gates, torch.randn(101, 13))
    agrees(made, gates, torch.randn(7, 5))
