"""Rows that are stored or added where an index says, at several sizes, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import agrees, plan
from torch.nn.functional import silu

Tensor = torch.Tensor
Case = tuple[Callable[..., Any], list[tuple[Tensor, ...]]]


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def places(most: int, *shape: int) -> Tensor:
    return torch.randint(0, most, shape, generator=torch.Generator().manual_seed(most))


def apart(most: int, count: int) -> Tensor:
    """Every place once: which of two values PyTorch keeps depends on its threads."""
    return torch.randperm(most, generator=torch.Generator().manual_seed(most))[:count]


def added(x: Tensor, index: Tensor, values: Tensor) -> Tensor:
    return x.index_add(0, index, values)


def put(x: Tensor, index: Tensor, values: Tensor) -> Tensor:
    return x.index_put((index,), values)


def cast(cases: list[tuple[Tensor, ...]], to: Callable[[Tensor], Tensor]) -> Any:
    return [(to(x), index, to(values)) for x, index, values in cases]


SUMS: list[tuple[Tensor, ...]] = [
    (rows(30, 64), places(30, 200), rows(200, 64)),
    (rows(1, 1), places(1, 1), rows(1, 1)),
    (rows(7, 901), places(7, 20), rows(20, 901)),
    (rows(5, 17), places(5, 0), rows(0, 17)),
    (rows(5, 0), places(5, 7), rows(7, 0)),
    (rows(700, 20), places(700, 1300), rows(1300, 20)),
]
PUTS: list[tuple[Tensor, ...]] = [
    (rows(30, 64), apart(30, 20), rows(20, 64)),
    (rows(1, 1), apart(1, 1), rows(1, 1)),
    (rows(9, 901), apart(9, 7), rows(7, 901)),
    (rows(5, 17), apart(5, 0), rows(0, 17)),
    (rows(1700, 20), apart(1700, 1300), rows(1300, 20)),
]
LINES: list[tuple[Tensor, ...]] = [
    (rows(31), places(31, 500), rows(500)),
    (rows(3000), places(3000, 50), rows(50)),
    (rows(3), places(3, 0), rows(0)),
]

# a model, and inputs at several sizes: those of the first are captured
CASES: dict[str, Case] = {
    "sums": (added, SUMS),
    "sums by int32": (added, [(x, index.int(), values) for x, index, values in SUMS]),
    "sums of a factor": (lambda x, i, v: x.index_add(0, i, v, alpha=2), SUMS),
    "sums of halves": (added, cast(SUMS[:3], lambda x: x.half())),
    "sums of halves that a step of their own would lose": (
        added,
        cast([(rows(3, 40) + 4000, places(1, 300), 0 * rows(300, 40) + 3)], lambda x: x.half()),
    ),
    "sums of expressions": (lambda x, i, v: x.relu().index_add(0, i, silu(v)), SUMS),
    "sums, and another output": (lambda x, i, v: (x.index_add(0, i, v), x * 2), SUMS),
    "sums of numbers": (added, LINES),
    "rows": (put, PUTS),
    "rows from the end": (put, [(x, i - x.shape[0], v) for x, i, v in PUTS]),
    "rows of bfloat16": (put, cast(PUTS, lambda x: x.bfloat16())),
    "rows of int64": (put, cast(PUTS, lambda x: (x * 2**40).long())),
    "rows of bools": (put, cast(PUTS, lambda x: x > 0)),
    "few rows": (
        put,
        [
            (rows(5, 3), torch.tensor([3, -5, 4]), rows(3, 3)),
            (rows(40, 270), torch.arange(39, 0, -2), rows(20, 270)),
        ],
    ),
    "one row for all": (put, [(x, index, values[:1]) for x, index, values in PUTS[:3]]),
    "rows into a softmax": (lambda x, i, v: x.softmax(-1).index_copy(0, i, v), PUTS),
    "an index of two dimensions": (
        put,
        [
            (rows(30, 64), apart(30, 20).view(4, 5), rows(4, 5, 64)),
            (rows(9, 901), apart(9, 6).view(2, 3), rows(2, 3, 901)),
        ],
    ),
    "a middle dimension": (
        lambda x, i, v: x.index_add(1, i, v),
        [
            (rows(3, 30, 64), places(30, 200), rows(3, 200, 64)),
            (rows(1, 1, 1), places(1, 1), rows(1, 1, 1)),
            (rows(2, 7, 901), places(7, 20), rows(2, 20, 901)),
        ],
    ),
    "slices": (
        lambda x, i, v: x[1:].index_add(0, i, v[:, 1:]),
        [
            (rows(31, 64), places(30, 200), rows(200, 65)),
            (rows(8, 901), places(7, 20), rows(20, 902)),
        ],
    ),
    "rows of itself": (
        lambda x, i: x.index_add(0, i, x),
        [(rows(31, 64), places(31, 31)), (rows(8, 901), places(8, 8))],
    ),
    "few rows of itself": (
        lambda x, i: x.index_add(0, i, x) * 2,
        [(rows(9, 5), places(9, 9)), (rows(8, 3), places(8, 8))],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_where_pytorch_has_them(name: str) -> None:
    model, cases = CASES[name]
    made = plan(model, *cases[0])
    assert len(made.program.kernels) == 1
    for given in cases:
        agrees(made, model, *given, loose=20)


def test_what_is_computed_from_the_result_is_a_kernel_of_its_own() -> None:
    def model(x: Tensor, index: Tensor, values: Tensor) -> Tensor:
        return x.index_add(0, index, values.softmax(-1)).relu()

    made = plan(model, *SUMS[0])
    assert len(made.program.kernels) == 3
    for given in SUMS:
        agrees(made, model, *given, loose=20)
