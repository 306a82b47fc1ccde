"""Sums, extremes, scans and scatters of integers: PyTorch's, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan

from npusmith.ir.dtypes import DType
from npusmith.ir.text import show
from npusmith.plan import integer_folds
from npusmith.plan.dag import Dag, Value

TYPES = {torch.bool: 1, torch.uint8: 8, torch.int8: 8, torch.int16: 16}
TYPES |= {torch.int32: 32, torch.int64: 64}


def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Over the whole range of a type."""
    torch.manual_seed(len(shape) + sum(shape))
    high = 1 << (TYPES[dtype] - 1)
    low = 0 if dtype in (torch.bool, torch.uint8) else -high
    high = 2 * high if low == 0 else high
    return torch.randint(low, high - (dtype is torch.int64), shape, dtype=torch.int64).to(dtype)


def odd(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """The same, half of them odd for certain: not all products are soon 0."""
    torch.manual_seed(1)
    return numbers(dtype, *shape) | torch.randint(0, 2, shape).to(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_and_extremes_of_every_type(dtype: torch.dtype) -> None:
    x, other = numbers(dtype, 5, 37), numbers(dtype, 3, 300)

    def sums(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(-1), x.cumsum(-1), x.sum(0)

    made = plan(sums, x)
    agrees(made, sums, x)
    agrees(made, sums, other)
    if dtype is not torch.bool:

        def extremes(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return x.amax(-1), x.amin(0), x.argmax(-1)

        agrees(plan(extremes, x), extremes, x)


@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_every_type_wrap_as_pytorchs(dtype: torch.dtype) -> None:
    x, other = odd(dtype, 5, 37), odd(dtype, 3, 300)

    def products(x: torch.Tensor) -> torch.Tensor:
        return x.prod(-1)

    made = plan(products, x)
    agrees(made, products, x)
    agrees(made, products, other)
    for model in (
        lambda x: x.cumprod(-1), lambda x: x.cumprod(0),
        lambda x: x.prod(0, keepdim=True), lambda x: x.prod(),
    ):  # fmt: skip
        agrees(plan(model, x), model, x)


FACTORS = [-7, -4, -3, -1, 1, 2, 3, 8, 0, 2**31, 2**32 + 1, 2**62, 2**63 - 1, -(2**63), -5, 6]
PRODUCTS: dict[str, tuple[Callable[..., Any], list[torch.Tensor]]] = {
    "two factors each": (
        lambda x: x.prod(-1), [torch.cartesian_prod(torch.tensor(FACTORS), torch.tensor(FACTORS))]
    ),
    "between other operations": (
        lambda x, y: (x * 2 + 1).prod(1, keepdim=True) // (1 + y.prod(1, keepdim=True).abs()) + x,
        [torch.randint(-3, 4, (4, 9)), torch.randint(1, 4, (4, 9))],
    ),
    "a middle axis of many": (lambda x: x.prod(2) - 1, [torch.randint(-9, 10, (2, 3, 5, 7))]),
    "in int32": (lambda x: x.prod(1, dtype=torch.int32), [torch.randint(-9, 10, (3, 11))]),
    "of no elements": (lambda x: x.prod(1), [torch.zeros(3, 0, dtype=torch.int64)]),
    "of no truths": (lambda x: x.prod(1), [torch.zeros(3, 0, dtype=torch.bool)]),
    "of one number": (lambda x: (x.prod(), x.cumprod(0)), [torch.tensor(-7)]),
    "of a number everywhere": (
        lambda x: torch.full((3, 4), -5, dtype=torch.int64).prod(1) + x.sum(),
        [torch.arange(3)],
    ),
    "from the end": (lambda x: x.flip(1).cumprod(1).flip(1), [torch.randint(-9, 10, (3, 11))]),
    "without the last": (
        lambda x: F.pad(x[:, :-1].cumprod(1), (1, 0), value=1), [torch.randint(-9, 10, (3, 11))]
    ),
    "long rows": (lambda x: x.prod(1), [torch.randint(-9, 10, (2, 1200)) * 2 + 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_integers_are_pytorchs(name: str) -> None:
    model, inputs = PRODUCTS[name]
    agrees(plan(model, *inputs), model, *inputs)


INDEX = torch.tensor([[0, 3, 3, 12, 0, 5], [1, 1, 1, 1, 2, 2]])
CASES: dict[str, tuple[Callable[..., Any], list[torch.Tensor]]] = {
    "a mask's positions": (lambda x: (x > 0).cumsum(-1) * 2 - 1, [torch.randn(5, 37)]),
    "a mean of truths": (lambda x: (x > 0).sum(-1) / x.shape[-1], [torch.randn(5, 37)]),
    "a histogram": (
        lambda i: torch.zeros(13, dtype=torch.int64).scatter_add(0, i, torch.ones_like(i)),
        [INDEX.flatten()],
    ),
    "scatter_add of int32, which wraps": (
        lambda x, i, v: x.scatter_add(1, i, v),
        [numbers(torch.int32, 2, 13), INDEX, numbers(torch.int32, 2, 6)],
    ),
    "scatter of int64": (
        lambda x, i, v: x.scatter(1, i, v),
        [numbers(torch.int64, 2, 13), INDEX[:, :1], numbers(torch.int64, 2, 1)],
    ),
    "the largest of those at a place": (
        lambda x, i, v: x.scatter_reduce(1, i, v, "amax", include_self=False),
        [numbers(torch.int32, 2, 13), INDEX, numbers(torch.int32, 2, 6)],
    ),
    "a pad of integers by a fraction": (
        lambda x: F.pad(x, (1, 2), value=1.5),
        [numbers(torch.int8, 3, 7)],
    ),
    "any of uint8 is uint8": (lambda x: x.any(-1), [numbers(torch.uint8, 3, 7) // 200]),
    "one count of nothing": (lambda x: torch.count_nonzero(x, -3), [torch.rand(2, 13, 0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_integers_are_pytorchs(name: str) -> None:
    model, inputs = CASES[name]
    agrees(plan(model, *inputs), model, *inputs)


def test_a_sum_says_for_how_many_terms_it_is_right() -> None:
    dag = Dag()

    def fold(x: Value) -> Value:
        return dag.reduce("sum", x, ("axis",))

    wide = dag.load("x", DType.INT32)
    digits, most = integer_folds.summed(dag, wide, fold, 1000)
    assert most == 131_071 and digits.op == "scalar"
    few, most = integer_folds.summed(dag, dag.load("b", DType.BOOL), fold, 1000)
    assert most == 2**24 - 1 and few.op == "reduce"


def test_digits_are_put_together_in_one_loop_and_share_a_buffer() -> None:
    made = plan(lambda x: x.sum(0), numbers(torch.int64, 5000, 37))
    assert show(made.program).count("set(") == 3  # both halves of a number, and the sum
    floats = [item for item in made.program.kernel.buffers if item.dtype is DType.FLOAT32]
    assert len(floats) == 8 + 1  # a sum for each digit, and the digit


def test_more_terms_than_are_exact_are_not_served() -> None:
    made = plan(lambda x: x.sum(-1), numbers(torch.int32, 2, 9))
    assert made.spec.legal
    assert "131071" in str(made.spec.legal)


def test_what_only_has_a_shape_to_give_gives_it() -> None:
    def model(b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.full_like(b.permute(2, 0, 1), 2), b * 3

    made = plan(model, torch.ones(3, 2, 2))
    agrees(made, model, torch.ones(5, 3, 4))
