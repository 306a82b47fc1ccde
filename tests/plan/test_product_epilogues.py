"""What a product's kernel does behind it: a bias from the bias table, a relu on the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan
from torch import Tensor, nn

from npusmith.ir.nodes import Mmad, Store
from npusmith.ir.walk import statements
from npusmith.plan import Plan


def done(made: Plan) -> tuple[int, bool, bool]:
    """Launches, whether a product begins from a bias, and whether one is stored through a relu."""
    everything = [stmt for kernel in made.program.kernels for stmt in statements(kernel.body)]
    biased = any(isinstance(stmt, Mmad) and stmt.bias is not None for stmt in everything)
    cut = any(isinstance(stmt, Store) and stmt.relu for stmt in everything)
    return len(made.program.host.launches), biased, cut


def whole(*shape: int) -> Tensor:
    """Of such numbers every order of a sum gives the same."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-4, 5, shape, generator=generator).float()


def linear(inner: int, outer: int) -> nn.Linear:
    made = nn.Linear(inner, outer)
    made.load_state_dict({"weight": whole(outer, inner), "bias": whole(outer)})
    return made


def halves(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(whole(*shape).half() for shape in shapes)


ONE: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], tuple[bool, bool]]] = {
    "linear and relu": (
        nn.Sequential(linear(70, 33), nn.ReLU()), (whole(20, 70),), (True, True)),
    "a bias alone": (linear(70, 33), (whole(3, 20, 70),), (True, False)),
    "a relu alone": (
        lambda x, y: F.relu(x @ y), (whole(20, 70), whole(70, 33)), (False, True)),
    "the other way round": (
        lambda x, y, b: b + x @ y, (whole(20, 70), whole(70, 33), whole(33)),
        (True, False)),
    "a relu of 16 bits": (
        lambda x, y: F.relu(x @ y), halves((20, 70), (70, 33)), (False, True)),
    "products of a batch": (
        lambda x, y, b: F.relu(torch.bmm(x, y) + b),
        (whole(3, 20, 70), whole(3, 70, 33), whole(33)), (True, True)),
}  # fmt: skip
APART: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "a column": (
        lambda x, y, b: x @ y + b, (whole(20, 70), whole(70, 33), whole(20, 1))),
    "a bias of each product": (
        lambda x, y, b: torch.baddbmm(b, x, y),
        (whole(3, 20, 70), whole(3, 70, 33), whole(3, 1, 33))),
    "a bias of 16 bits": (linear(70, 33).half(), halves((20, 70))),
    "not above 6": (
        lambda x, y: F.relu6(x @ y), (whole(20, 70), whole(70, 33))),
    "sums as the bias": (
        lambda x, y: x @ y + y.sum(0), (whole(20, 70), whole(70, 33))),
    "a relu of integers": (
        lambda x, y: F.relu(torch._int_mm(x, y)),
        (whole(32, 64).to(torch.int8), whole(64, 32).to(torch.int8))),
    "one number": (
        lambda x, y, b: x @ y + b, (whole(20, 70), whole(70, 33), whole(1))),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_it_is_one_kernel(name: str) -> None:
    model, args, wanted = ONE[name]
    made = plan(model, *args)
    assert done(made) == (1, *wanted)
    agrees(made, model, *args)
    few = (args[0][..., :5, :], *args[1:])
    agrees(made, model, *few)
    lost = args[0].clone()
    lost[..., 2, 3], lost[..., 4, 5] = float("nan"), float("inf")
    agrees(made, model, lost, *args[1:])


@pytest.mark.parametrize("name", APART)
def test_what_the_cube_unit_cannot_do_is_another_kernel(name: str) -> None:
    model, args = APART[name]
    made = plan(model, *args)
    assert done(made)[0] > 1 and not done(made)[1]
    agrees(made, model, *args)


def test_a_wide_block_leaves_room_for_its_bias() -> None:
    """The bias table has 256 numbers, L1 no more than its panels and the row."""
    x, w, b = whole(40, 1500), whole(1500, 2000), whole(2000)

    def model(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return x @ w + b

    made = plan(model, x, w, b)
    assert done(made) == (1, True, False) and dict(made.program.consts)["BLOCK_COLS"] <= 256
