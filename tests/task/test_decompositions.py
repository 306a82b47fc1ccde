"""Operations as the capture takes them apart, against PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from npusmith.task import decompositions, special_functions

INF, NAN = float("inf"), float("nan")
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.5, -7.25, 1e10, 1e-10, 5.0, 0.5])


def pairs() -> tuple[torch.Tensor, torch.Tensor]:
    """Special values with each other, whole numbers, and numbers of many sizes."""
    torch.manual_seed(0)
    count, size = len(SPECIAL), 500
    wide = [torch.randn(size) * torch.exp2(torch.randint(-40, 40, (size,)).float()) for _ in "xy"]
    whole = [torch.randint(-9, 9, (size,)).float() for _ in "xy"]
    x = torch.cat([SPECIAL.repeat_interleave(count), wide[0], whole[0]])
    y = torch.cat([SPECIAL.repeat(count), wide[1], whole[1]])
    few = ((x / y).abs() < 2.0**40) | ~torch.isfinite(x / y)  # beyond, PyTorch's own is not exact
    return x[few], y[few]


@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_remainders_of_floats_are_exact(name: str) -> None:
    x, y = pairs()
    found, wanted = getattr(special_functions, name)(x, y), getattr(torch, name)(x, y)
    usual = (x / y).abs() < 2.0**23
    torch.testing.assert_close(found[usual], wanted[usual], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_rounded_quotients_are_pytorchs(mode: str) -> None:
    x, y = pairs()
    found = special_functions.divided(x, y, rounding_mode=mode)
    wanted = torch.div(x, y, rounding_mode=mode)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)


BOTH: dict[str, Callable[..., Any]] = {
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "copysign": torch.copysign,
}


@pytest.mark.parametrize("name", BOTH)
def test_functions_of_two_numbers(name: str) -> None:
    x, y = pairs()
    keep = ~(torch.isnan(x) | torch.isnan(y))  # of NaN, only that it is one
    found = getattr(special_functions, name)(x[keep], y[keep])
    wanted = BOTH[name](x[keep], y[keep])
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6, equal_nan=True)


ONE: dict[str, tuple[Callable[..., Any], torch.Tensor]] = {
    "erfinv": (torch.erfinv, torch.cat([torch.linspace(-1, 1, 2001), torch.tensor([2.0])])),
    "lgamma": (torch.lgamma, torch.cat([torch.linspace(-8.03, 30, 2001), SPECIAL])),
    "digamma": (torch.digamma, torch.cat([torch.linspace(-8.03, 30, 2001), SPECIAL])),
    "signbit": (torch.signbit, SPECIAL),
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name: str) -> None:
    fn, x = ONE[name]
    found, wanted = getattr(special_functions, name)(x), fn(x)
    torch.testing.assert_close(found, wanted, rtol=2e-5, atol=4e-6, equal_nan=True)


def test_integers_are_left_as_they_are() -> None:
    x = torch.tensor([5, -5])
    rule = decompositions._OURS[torch.ops.aten.remainder.Scalar]
    assert rule(x, 3) is NotImplemented
    half = decompositions._OURS[torch.ops.aten.remainder.Tensor](x.half(), x.half() + 0.5)
    assert half.dtype is torch.float16


def test_elements_from_elsewhere() -> None:
    torch.manual_seed(0)
    x, mask = torch.randn(3, 4), torch.randn(3, 4) > 0
    wanted = x.masked_scatter(mask, x.flip(1))
    assert torch.equal(decompositions._masked_scatter(x, mask, x.flip(1)), wanted)
    at, values = torch.tensor([1, 7, 1]), torch.tensor([1.0, 2.0, 3.0])
    assert torch.equal(decompositions._put(x, at, values, True), x.put(at, values, True))
    assert torch.equal(
        decompositions._as_strided(x, (2, 3), (1, 2), 3), x.as_strided((2, 3), (1, 2), 3)
    )
    edges = torch.tensor([-1.0, 0.0, 0.5])
    for right in (False, True):
        found = decompositions._bucketize(x, edges, right=right)
        assert torch.equal(found, torch.bucketize(x, edges, right=right))
    whole = torch.randint(-9, 9, (3, 7))
    found = decompositions._running_extreme("amax")(whole, 1)
    assert torch.equal(found[0], whole.cummax(1)[0]) and torch.equal(found[1], whole.cummax(1)[1])


def test_a_diagonal_is_replaced() -> None:
    for shape, offset, dims in (((5, 7), 1, (0, 1)), ((5, 3, 6), -2, (0, 2)), ((4, 4), 0, (1, 0))):
        x = torch.randn(shape)
        src = torch.randn(torch.diagonal(x, offset, *dims).shape)
        found = decompositions._diagonal_scatter(x, src, offset, *dims)
        assert torch.equal(found, torch.diagonal_scatter(x, src, offset, *dims))


def test_decimals_are_rounded_as_pytorch_does() -> None:
    x = torch.randn(400) * 50
    for decimals in (-1, 1, 3):
        found = decompositions._rounded(x, decimals=decimals)
        assert torch.equal(found, torch.round(x, decimals=decimals))


@pytest.mark.parametrize("padding", [-1, 3])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_are_pytorchs_with_padding_and_without(mode: str, padding: int) -> None:
    weight, rows = torch.randn(7, 5), torch.tensor([3, 1, 3, 3, 0, 6, 3, 2, 3])
    offsets = torch.tensor([0, 2, 2, 4, 8])  # an empty bag, and one of padding alone
    given = None if padding < 0 else padding
    wanted = torch.nn.functional.embedding_bag(rows, weight, offsets, mode=mode, padding_idx=given)
    number = ["sum", "mean", "max"].index(mode)
    found = decompositions._embedding_bag(weight, rows, offsets, mode=number, padding_idx=padding)
    assert torch.allclose(found[0], wanted)
