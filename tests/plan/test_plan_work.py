"""What the writer does only once: programs of parts, and versions of loops that would be alike."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, capture

from npusmith.errors import PlanError
from npusmith.ir.nodes import Binary, BinOp, Const, Name
from npusmith.plan import split_loops
from npusmith.plan.decisions import Decisions
from npusmith.plan.index import steps
from npusmith.plan.lane_space import Split
from npusmith.plan.partition import Kernels, partition
from npusmith.plan.read import read
from npusmith.plan.write_kernel import Plan, write_kernel
from npusmith.target.chips import find_chip
from npusmith.task.graph import Graph

UNITS = 40  # operations of a chain


@pytest.mark.parametrize("longest", [3, 7])
def test_a_part_is_looked_for_where_the_one_before_it_ended(longest: int) -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(UNITS):
            x = torch.sin(x)
        return x

    made: list[int] = []

    def make(graph: Graph, _: Kernels) -> Plan:
        made.append(len(graph.nodes))
        if len(graph.nodes) > longest:
            raise PlanError("plan-ub", "too long")
        return write_kernel(graph, "op", CHIP)

    parts = partition(capture(chain, torch.ones(8, 8)), Kernels(make, CHIP))
    assert [len(part.graph.nodes) for part in parts[:-1]] == [longest] * (len(parts) - 1)
    assert len(made) <= 3 * len(parts) + 6


VERSIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], set[Split]]] = {
    "an element is compared": (
        lambda x: torch.where(x.flip(0) > 0, x, 0.5),
        (40, 50),
        {Split.NOWHERE},
    ),
    "inside of tiles": (
        lambda x: F.pad(x, (1, 1)),
        (40, 50),
        {Split.NOWHERE, Split.ANYWHERE},
    ),
    "outside of tiles": (
        lambda x: F.pad(x, (0, 0, 1, 1)),
        (40, 50),
        {Split.NOWHERE, Split.ANYWHERE},
    ),
    "both": (lambda x: F.pad(x, (1, 1, 1, 1)), (40, 50), set(Split)),
}


@pytest.mark.parametrize("name", VERSIONS)
def test_loops_that_would_be_alike_are_written_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fn, shape, wanted = VERSIONS[name]
    tried: set[Split] = set()
    write_with = split_loops.write_with

    def counted(*args: Any) -> Any:
        tried.add(args[4].where)
        return write_with(*args)

    monkeypatch.setattr(split_loops, "write_with", counted)
    split_loops.write_lanes(
        read(capture(fn, torch.ones(shape))), "op", find_chip("910B2"), Decisions()
    )
    assert tried == wanted


def test_steps_come_in_the_order_of_the_axes_that_are_asked_for() -> None:
    names = [Name(f"~{i}") for i in range(4)]
    expr: Any = Const(0)
    for name in names:
        expr = Binary(BinOp.ADD, expr, name)
    for order in permutations(name.id for name in names):
        found = steps(expr, order)
        assert found is not None and tuple(found[1]) == order


def test_a_hash_that_is_kept_is_that_of_what_is_inside() -> None:
    one, two = (Binary(BinOp.ADD, Name("x"), Const(i)) for i in (1, 2))
    again = Binary(BinOp.ADD, Name("x"), Const(1))
    assert hash(one) == hash(again) and one == again and len({one, two, again}) == 2
