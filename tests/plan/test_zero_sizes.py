"""Tensors with axes of no elements: programs captured there run at other sizes, and the reverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import agrees, plan

from npusmith.lang.extents import serves

Tensor = torch.Tensor


def R(*shape: int) -> Tensor:
    return torch.randn(shape)


def places(*shape: int) -> Tensor:
    return torch.randint(0, 6, shape)


def outer(a: Tensor, b: Tensor) -> Tensor:
    return a[:, :, None] + b[:, None, :]


OUTER = [(R(11, 4), R(11, 3)), (R(11, 3000), R(11, 0)), (R(11, 0), R(11, 3000))]
CASES: dict[str, tuple[Callable[..., Any], list[tuple[Tensor, ...]]]] = {
    "rows that places of places name": (
        lambda x, i, j: x.index_select(0, i)[j],
        [(R(6, 3, 0), places(6), places(2, 2)), (R(6, 3, 0), places(6), places(3, 79)),
         (R(6, 1, 1), places(6), places(2, 79))],
    ),
    "rows that places name": (
        lambda x, i: (x[i] + i[..., None]).softmax(-1),
        [(R(11, 4), places(20, 20)), (R(11, 0), places(2, 3000)), (R(11, 0), places(300, 2))],
    ),
    "elements that places name": (
        lambda x, i: x.gather(1, i),
        [(R(5, 40), places(5, 30)), (R(5, 40), places(5, 0)), (R(5, 0), places(5, 0))],
    ),
    "a few of the rows' elements that places name, again": (
        lambda x, i: x.take_along_dim(i, 1).diagonal(1)[1:-1].repeat(2),
        [(R(6, 16), places(6, 5)), (R(3, 2054), places(3, 2048)), (R(9, 6), places(9, 5))],
    ),
    "numbers of rows besides": (
        lambda x: (x.flip(1), x.flip(1).sum(-1)),
        [(R(11, 4, 3),), (R(11, 3000, 0),), (R(3000, 0, 2),), (R(0, 3, 2),)],
    ),
    "tensors one after another": (
        lambda a, b: torch.cat([a, b], 1) * 2,
        [(R(11, 4, 3), R(11, 2, 3)), (R(11, 1000, 0), R(11, 900, 0)), (R(99, 0, 8), R(99, 0, 8))],
    ),
    "a transpose": (
        lambda x: x.permute(2, 0, 1).contiguous(),
        [(R(5, 40, 7),), (R(5, 4000, 0),), (R(400, 7, 0),), (R(400, 0, 7),)],
    ),
    "an outer sum": (outer, OUTER),
    "an outer sum, turned round": (lambda a, b: outer(a, b).mT.contiguous(), OUTER),
    "an outer sum in order": (lambda a, b: outer(a, b).sort(-1).values, OUTER),
}  # fmt: skip


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("name", CASES)
def test_a_program_is_right_whether_axes_have_elements_or_not(name: str, at: int) -> None:
    fn, sets = CASES[name]
    made = plan(fn, *sets[at])
    for args in sets:
        shapes = {port.name: tuple(args[port.position].shape) for port in made.spec.inputs}
        if serves(made.spec, shapes):
            agrees(made, fn, *args)
