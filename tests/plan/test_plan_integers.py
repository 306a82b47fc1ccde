"""Every pointwise operation on every integer type is equal to PyTorch's, edge values included."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from modules import plan

from npusmith.device.tensors import array
from npusmith.ir.dtypes import DType
from npusmith.lang import interpret
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")
Fn = Callable[..., Any]

WIDE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
ALL = (*WIDE, torch.bool)


def edges(dtype: torch.dtype) -> list[int]:
    """The ends of a type, what lies around 0 and around the ends of narrower types."""
    if dtype is torch.bool:
        return [0, 1]
    info = torch.iinfo(dtype)
    near = [
        0,
        1,
        2,
        3,
        7,
        100,
        255,
        256,
        1000,
        2**15,
        2**24,
        2**24 + 1,
        2**31,
        2**31 - 1,
        2**40 + 3,
    ]
    both = [info.min, info.min + 1, info.max - 1, info.max, *near, *(-item for item in near)]
    return sorted({item for item in both if info.min <= item <= info.max})


def pairs(one: torch.dtype, two: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Every edge of one type with every edge of another."""
    both = list(product(edges(one), edges(two)))
    return torch.tensor([a for a, _ in both], dtype=one), torch.tensor(
        [b for _, b in both], dtype=two
    )


def same(fn: Fn, *inputs: torch.Tensor) -> None:
    """The program's outputs are PyTorch's, every element of them."""
    made = plan(fn, *inputs)
    results = fn(*inputs)
    wanted = [array(item) for item in (results if isinstance(results, tuple) else (results,))]
    given = [array(inputs[port.position]) for port in made.spec.inputs]
    outputs = [(item.shape, DType.of(item.dtype)) for item in wanted]
    found = interpret(made.program, CHIP, given, outputs)
    for number, (got, expected) in enumerate(zip(found, wanted, strict=True)):
        both_nan = (got != got) & (expected != expected)
        wrong = np.flatnonzero((got != expected) & ~both_nan)[:4]
        seen = f"output {number}, elements {wrong}: {got.flat[wrong]}, not {expected.flat[wrong]}"
        assert not wrong.size, seen


UNARY: dict[str, Fn] = {
    "neg": lambda x: -x,
    "abs": lambda x: x.abs(),
    "sign": lambda x: torch.sign(x),
    "not": lambda x: ~x,
    "relu": lambda x: torch.relu(x),
    "square": lambda x: x * x,
    "cube": lambda x: x**3,
    "power 0": lambda x: x**0,
    "power 100": lambda x: x**100,
    "2 to the power": lambda x: 2**x,
    "3 to the power": lambda x: 3 ** (x % 11),
    "power of positions": lambda x: 2 ** torch.arange(x.shape[-1]) + x,
    "clamp": lambda x: x.clamp(-3, 5) if x.dtype is not torch.uint8 else x.clamp(3, 5),
    "clamp below": lambda x: x.clamp(min=2),
    "clamp above": lambda x: x.clamp(max=100),
    "times 3 plus 1": lambda x: x * 3 + 1,
    "from 5": lambda x: 5 - x,
    "floor by 3": lambda x: x // 3,
    "floor by a negative": lambda x: x // -2 if x.dtype is not torch.uint8 else x // 2,
    "remainder of 5": lambda x: x % 5,
    "floor by 8": lambda x: x // 8,
    "remainder of 64": lambda x: x % 64,
    "and 7": lambda x: x & 7,
    "and 6": lambda x: x & 6,
    "left by 3": lambda x: x << 3,
    "right by 2": lambda x: x >> 2,
    "halves": lambda x: x / 2,
    "thirds": lambda x: x / 3,
    "times a float": lambda x: x * 0.5,
    "plus a float": lambda x: x + 1.5,
    "below 3": lambda x: x < 3,
    "is not 0": lambda x: x != 0,
    "logical not": lambda x: torch.logical_not(x),
    "masked fill": lambda x: x.masked_fill(x > 1, 7),
    "as floats": lambda x: x.abs().float() * 0.25 + 1.0,  # torch rounds sqrt by the processor
}
ON_BOOL = {
    "not",
    "times 3 plus 1",
    "halves",
    "times a float",
    "plus a float",
    "logical not",
    "is not 0",
}
CONVERSIONS = (*ALL, torch.float32, torch.float16, torch.bfloat16)

BINARY: dict[str, Fn] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "add scaled": lambda x, y: torch.add(x, y, alpha=3),
    "mul": lambda x, y: x * y,
    "maximum": lambda x, y: torch.maximum(x, y),
    "minimum": lambda x, y: torch.minimum(x, y),
    "lt": lambda x, y: x < y,
    "gt": lambda x, y: x > y,
    "le": lambda x, y: x <= y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "left": lambda x, y: x << y,
    "right": lambda x, y: x >> y,
    "where": lambda x, y: torch.where(x > y, x, y),
    "logical and": lambda x, y: torch.logical_and(x, y),
    "true division": lambda x, y: x / torch.where(y == 0, 1, y),
}
BITS = {"add", "mul", "maximum", "minimum", "and", "or", "xor", "lt", "ge", "eq", "ne", "where"}
DIVISIONS: dict[str, Fn] = {
    "floor": lambda x, y: x // y,
    "truncated": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": lambda x, y: x % y,
    "fmod": lambda x, y: torch.fmod(x, y),
}


@pytest.mark.parametrize("name", UNARY)
def test_an_operation_of_one_tensor(name: str) -> None:
    types = ALL if name in ON_BOOL else WIDE
    tensors = [torch.tensor(edges(dtype), dtype=dtype) for dtype in types]
    same(lambda *xs: tuple(UNARY[name](x) for x in xs), *tensors)


@pytest.mark.parametrize("dtype", CONVERSIONS, ids=str)
def test_conversions(dtype: torch.dtype) -> None:
    if dtype.is_floating_point:
        given = torch.tensor([1.5, 0.5, 2.999, 100.25, 0.0, -1.5, -0.5, -2.75, -99.0], dtype=dtype)
    else:
        given = torch.tensor(edges(dtype), dtype=dtype)
    same(lambda x: tuple(x.to(to) for to in CONVERSIONS if to is not dtype), given)


def of_pairs(fn: Fn, tensors: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    flat = [item for pair in tensors for item in pair]
    same(lambda *xs: tuple(fn(xs[i], xs[i + 1]) for i in range(0, len(xs), 2)), *flat)


@pytest.mark.parametrize("name", BINARY)
def test_an_operation_of_two_tensors(name: str) -> None:
    types = ALL if name in BITS else WIDE
    of_pairs(BINARY[name], [pairs(dtype, dtype) for dtype in types])


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_powers(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that the type does not hold, and of exponents below 0."""
    monkeypatch.setattr("modules.CHIP", CHIP)  # 64 bits in pairs take more room than others
    of_pairs(lambda x, y: x ** (y & 7), [pairs(dtype, dtype)])
    of_pairs(lambda x, y: x**y, [pairs(dtype, dtype)])


@pytest.mark.parametrize("name", DIVISIONS)
def test_a_division(name: str) -> None:
    """Not by 0, and not of the lowest number by -1: PyTorch has no answer on every machine."""
    tensors = []
    for dtype in WIDE:
        one, two = pairs(dtype, dtype)
        lowest = torch.iinfo(dtype).min
        kept = (two != 0) & ~((one == lowest) & (two == -1) & (lowest < 0))
        tensors.append((one[kept], two[kept]))
    of_pairs(DIVISIONS[name], tensors)


@pytest.mark.parametrize("name", ["add", "mul", "lt", "where", "xor"])
def test_an_operation_of_two_types(name: str) -> None:
    types = [
        (torch.int64, torch.int32), (torch.int32, torch.int16), (torch.uint8, torch.int8),
        (torch.int64, torch.bool), (torch.int16, torch.uint8), (torch.bool, torch.int32),
    ]  # fmt: skip
    of_pairs(BINARY[name], [pairs(*both) for both in types])


def test_an_integer_and_a_float_are_computed_in_float() -> None:
    x, y = torch.tensor(edges(torch.int64)), torch.linspace(-2, 2, len(edges(torch.int64)))
    same(lambda a, b: a + b, x, y)
    same(lambda a, b: a < b, x, y)


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_numbers_that_move_are_computed_with(dtype: torch.dtype) -> None:
    """The kernels of index maps: a transposition, a join and a padding."""
    given = torch.tensor((edges(dtype) * 3)[:24], dtype=dtype).reshape(4, 6)
    same(
        lambda x: (
            x.T * 3 + 1, torch.cat([x, x + 1], 1)[:, 1:], F.pad(x, (1, 1), value=2),
        ),
        given,
    )  # fmt: skip


def test_a_number_is_true_among_truth_values() -> None:
    x = torch.arange(45).reshape(5, 9) % 3 == 0
    index = torch.tensor([[1, 3]] * 5)
    same(
        lambda x: (
            torch.full_like(x.all(-1), 2), torch.full_like(x, 0.5), F.pad(x, (1, 2), value=2),
            x.masked_fill(x, 3),
        ),
        x,
    )  # fmt: skip
    same(lambda x, at: x.scatter(1, at, 7), x, index)
    wide = torch.tensor([[7, -(2**40), 3]])
    same(lambda x: (F.pad(x, (2, 1), value=2**53 + 1), torch.full_like(x, 2**62 + 1)), wide)
    same(lambda x: F.pad(x, (2, 1), value=-7), wide.to(torch.int8))
