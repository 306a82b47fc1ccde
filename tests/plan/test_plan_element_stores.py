"""Elements that are stored or combined where an index says, at several sizes, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import agrees, plan

from npusmith.errors import PlanError
from npusmith.ir.text import show_expr
from npusmith.plan import Plan

Tensor = torch.Tensor
Case = tuple[Callable[..., Any], list[tuple[Tensor, ...]]]


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape) + 1))


def below(most: int, *shape: int) -> Tensor:
    return torch.randint(0, most, shape, generator=torch.Generator().manual_seed(most + sum(shape)))


def apart(count: int, *sizes: int) -> tuple[Tensor, ...]:
    """Indices of so many different elements of a tensor of these sizes."""
    flat = torch.randperm(int(torch.tensor(sizes).prod()), generator=torch.Generator())[:count]
    return torch.unravel_index(flat, sizes)


LAST: list[tuple[Tensor, ...]] = [
    (drawn(3, 9), below(9, 3, 4), drawn(3, 4)),
    (drawn(1, 1), below(1, 1, 1), drawn(1, 1)),
    (drawn(2, 3000), below(3000, 2, 1000), drawn(2, 1000)),
    (drawn(150, 7), below(7, 150, 3), drawn(150, 3)),
    (drawn(3, 9), below(9, 3, 0), drawn(3, 0)),
    (drawn(0, 9), below(9, 0, 4), drawn(0, 4)),
]
FIRST: list[tuple[Tensor, ...]] = [
    (drawn(9, 40), below(9, 14, 40), drawn(14, 40)),
    (drawn(2, 3), below(2, 400, 3), drawn(400, 3)),
    (drawn(300, 131), below(300, 20, 131), drawn(20, 131)),
    (drawn(300, 33), below(300, 0, 33), drawn(0, 33)),
    (drawn(300, 0), below(300, 20, 0), drawn(20, 0)),
]
MIDDLE: list[tuple[Tensor, ...]] = [
    (drawn(3, 9, 5), below(9, 3, 14, 5), drawn(3, 14, 5)),
    (drawn(1, 90, 70), below(90, 1, 140, 70), drawn(1, 140, 70)),
]
PAIRS: list[tuple[Tensor, ...]] = [
    (drawn(5, 7), below(5, 300), below(7, 300), drawn(300)),
    (drawn(1, 1), below(1, 3), below(1, 3), drawn(3)),
    (drawn(90, 300), below(90, 5), below(300, 5), drawn(5)),
    (drawn(5, 7), below(5, 0), below(7, 0), drawn(0)),
]


def cast(cases: list[tuple[Tensor, ...]], to: Callable[[Tensor], Tensor]) -> Any:
    """The same with tensors of another type in place of floats."""
    return [
        tuple(to(item) if item.dtype.is_floating_point else item for item in given)
        for given in cases
    ]


def added(dim: int) -> Callable[..., Tensor]:
    return lambda x, i, v: x.scatter_add(dim, i, v)


def whole(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda x: (x * 50).to(dtype)


# a model, and inputs at several sizes: those of the first are captured
CASES: dict[str, Case] = {
    "stored in rows": (lambda x, i, v: x.scatter(1, i, v), LAST),
    "stored in columns": (lambda x, i, v: x.scatter(0, i, v), FIRST),
    "sums in rows": (added(1), LAST),
    "sums in columns": (added(0), FIRST),
    "sums along a middle axis": (added(1), MIDDLE),
    "sums along a first axis of three": (
        added(0),
        [(drawn(4, 5, 6), below(4, 9, 5, 6), drawn(9, 5, 6))],
    ),
    "sums of halves": (added(1), cast(LAST, Tensor.half)),
    "sums of halves in columns": (added(0), cast(FIRST, Tensor.half)),
    "sums of bfloat16 in columns": (added(0), cast(FIRST, Tensor.bfloat16)),
    "sums of int32 in columns": (added(0), cast(FIRST, whole(torch.int32))),
    "sums of int64": (added(1), cast(LAST, lambda x: (x * 2**61).long())),
    "sums of int8, which wrap": (added(1), cast(LAST, whole(torch.int8))),
    "sums of int16 in columns": (added(0), cast(FIRST[:2], whole(torch.int16))),
    "sums of uint8": (added(1), cast(LAST[:3], lambda x: whole(torch.uint8)(x.abs()))),
    "stored bools": (lambda x, i, v: x.scatter(1, i, v), cast(LAST[:3], lambda x: x > 0)),
    "one number": (lambda x, i: x.scatter(1, i, 2.5), [(x, i) for x, i, _ in LAST]),
    "one number of int64": (
        lambda x, i: x.scatter(0, i, 7),
        [(x.long(), i) for x, i, _ in FIRST[:2]],
    ),
    "by int32": (added(1), [(x, i.int(), v) for x, i, v in LAST]),
    "counts": (
        lambda i, v: torch.zeros(60).scatter_add(0, i, v),
        [(below(60, 300), drawn(300)), (below(60, 0), drawn(0))],
    ),
    "counts of int64": (
        lambda i: torch.zeros(60, dtype=torch.int64).scatter_add(0, i, torch.ones_like(i)),
        [(below(60, 300),), (below(60, 2000),)],
    ),
    "fewer indices and more values than places": (
        lambda x, i, v: x.scatter_add(0, i, v),
        [(drawn(5, 7), below(5, 3, 4), drawn(6, 6))],
    ),
    "expressions": (
        lambda x, i, v: x.exp().scatter_add(1, (i + 1) % 9, v[:, 1:] * 2),
        [
            (drawn(3, 9), below(9, 3, 200), drawn(3, 201)),
            (drawn(2, 9), below(9, 2, 3), drawn(2, 4)),
        ],
    ),
    "expressions in columns": (
        lambda x, i, v: x.exp().half().scatter_add(0, i.flip(0), v.half().relu()),
        [(drawn(9, 40), below(9, 214, 40), drawn(214, 40)), FIRST[1]],
    ),
    "at places of its own": (
        lambda x: x.scatter(1, x.argmax(1, keepdim=True), 0.0),
        [(drawn(3, 9),), (drawn(2, 900),)],
    ),
    "of itself": (lambda x, i: x.scatter_add(1, i, x), [(drawn(3, 9), below(9, 3, 9))]),
    "several outputs": (
        lambda x, i, v: (x * 2, x.scatter_add(1, i, v), x.scatter(1, i, v)),
        [(drawn(3, 9), below(9, 3, 200), drawn(3, 200)), LAST[1]],
    ),
    "sums at pairs": (lambda x, i, j, v: x.index_put((i, j), v, True), PAIRS),
    "sums at pairs from the end": (
        lambda x, i, j, v: x.index_put((i - x.shape[0], j - 7), v, True),
        [PAIRS[0], PAIRS[3]],
    ),
    "at different pairs": (
        lambda x, i, j, v: x.index_put((i, j), v),
        [
            (drawn(5, 7), *apart(20, 5, 7), drawn(20)),
            (drawn(90, 30), *apart(1000, 90, 30), drawn(1000)),
        ],
    ),
    "sums of rows at pairs": (
        lambda x, i, j, v: x.index_put((i, j), v, True),
        [(drawn(5, 7, 20), below(5, 300), below(7, 300), drawn(300, 20))],
    ),
    "at pairs that broadcast": (
        lambda x, i, j, v: x.index_put((i[:, None], j), v, True),
        [(drawn(5, 7), below(5, 12), below(7, 14), drawn(12, 14))],
    ),
    "the first and the last of three axes": (
        lambda x, i, j, v: torch.ops.aten.index_put(x, [i, None, j], v, True),
        [(drawn(5, 6, 7), below(5, 30), below(7, 30), drawn(30, 6))],
    ),
    "the last axis": (
        lambda x, i, v: torch.ops.aten.index_put(x, [None, i], v, True),
        [
            (drawn(5, 7), below(7, 300) - 7, drawn(5, 300)),
            (drawn(50, 70), below(70, 30), drawn(50, 30)),
        ],
    ),
    "one value for all": (
        lambda x, i, v: x.index_put((i,), v, True),
        [(drawn(70), below(70, 300) - 35, drawn(1)), (drawn(5000), below(5000, 3), drawn(1))],
    ),
    "few columns": (
        lambda x, i, v: x.index_add(0, i, v),
        [(drawn(30, 3), below(30, 200), drawn(200, 3)), (drawn(3, 1), below(3, 5), drawn(5, 1))],
    ),
    "an index for whole rows": (
        lambda x, i, v: x.scatter_add(0, i[:, None].expand(-1, 20), v),
        [
            (drawn(30, 20), below(30, 200), drawn(200, 20)),
            (drawn(3, 20), below(3, 5), drawn(5, 20)),
        ],
    ),
    "sums of rows of bfloat16": (
        lambda x, i, v: x.index_add(0, i, v),
        cast([(drawn(30, 64), below(30, 200), drawn(200, 64))], Tensor.bfloat16),
    ),
    "sums of rows of int64": (
        lambda x, i, v: x.index_add(0, i, v),
        cast([(drawn(30, 20), below(30, 20), drawn(20, 20))], whole(torch.int64)),
    ),
}  # fmt: skip


def check(model: Callable[..., Any], cases: list[tuple[Tensor, ...]], kernels: int = 1) -> Plan:
    made = plan(model, *cases[0])
    assert len(made.program.kernels) == kernels
    for given in cases:
        agrees(made, model, *given, loose=20)
    return made


@pytest.mark.parametrize("name", CASES)
def test_elements_are_where_pytorch_has_them(name: str) -> None:
    check(*CASES[name])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("word", ["sum", "prod", "amax", "amin", "mean"])
def test_what_comes_to_one_place_is_combined_as_asked(word: str, own: bool, dim: int) -> None:
    def model(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        return x.scatter_reduce(dim, i, v, word, include_self=own)

    cases = [LAST, FIRST][1 - dim][:3]
    check(model, cases)
    check(model, cast(cases, Tensor.half)[:2])
    if word != "mean":
        check(model, cast(cases, whole(torch.int32))[:2])


def test_nan_stays_where_it_comes() -> None:
    nan = float("nan")
    x, v = torch.tensor([[1.0, nan, 2.0, 3.0]]), torch.tensor([[nan, 5.0, float("inf"), 1.0, 2.0]])
    index = torch.tensor([[0, 1, 2, 3, 3]])
    for word in ("amax", "amin", "sum", "mean"):

        def model(x: Tensor, i: Tensor, v: Tensor, word: str = word) -> Tensor:
            return x.scatter_reduce(1, i, v, word)

        check(model, [(x, index, v)])


def test_the_last_of_equal_places_is_stored() -> None:
    index, v = torch.zeros(2, 5000, dtype=torch.int64), drawn(2, 5000)
    check(lambda x, i, v: x.scatter(1, i, v), [(drawn(2, 3), index, v)])


def test_more_places_than_a_float_tells_apart_are_refused() -> None:
    def model(x: Tensor, i: Tensor, j: Tensor, v: Tensor) -> Tensor:
        return x.index_put((i, j), v, True)

    index, v = below(4, 300), drawn(300)
    made = plan(model, drawn(5, 7), index, index, v)
    assert "args_0.shape[0] * args_0.shape[1] <= 16777216" in [
        show_expr(expr) for expr in made.spec.legal or ()
    ]
    with pytest.raises(PlanError, match="plan-data-movement"):
        plan(model, torch.zeros(1 << 13, (1 << 11) + 1), index, index, v)


def test_what_is_computed_from_the_result_is_a_kernel_of_its_own() -> None:
    given = drawn(3, 9), below(9, 3, 200), drawn(3, 200)
    check(lambda x, i, v: x.scatter_add(1, i, v).softmax(-1), [given], kernels=2)
    check(lambda x, i, v: x.softmax(1).scatter_add(1, i, v.cumsum(1)).relu(), [given], kernels=3)


def one_place(x: Tensor, values: Tensor) -> Tensor:
    """All values of a row at its first place: the place is a number, no tensor."""
    return x.scatter_add(1, torch.zeros(values.shape, dtype=torch.int64), values // 30)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32])
def test_a_place_that_is_a_number_of_the_model(dtype: torch.dtype) -> None:
    given = below(1 << 30, 4, 30).to(dtype), below(1 << 30, 4, 30).to(dtype)
    agrees(plan(one_place, *given), one_place, *given)


def test_a_scatter_may_fill_what_was_empty() -> None:
    """Back in the old order: every element is written, whatever stood there."""

    def unsorted(x: torch.Tensor) -> torch.Tensor:
        values, places = torch.sort(x, dim=-1, descending=True)
        return torch.empty_like(x).scatter(1, places, values * 2)

    x = torch.randn(5, 47)
    agrees(plan(unsorted, x), unsorted, x)


def edge_softmax(
    message: torch.Tensor, score: torch.Tensor, to: torch.Tensor, node: torch.Tensor
) -> torch.Tensor:
    most = torch.full((node.shape[0],), -1e30).scatter_reduce(0, to, score, "amax")
    weight = torch.exp(score - most[to])
    total = torch.zeros(node.shape[0]).index_add(0, to, weight)
    part = weight / (total[to] + 1e-9)
    return node + torch.zeros_like(node).index_add(0, to, message * part[:, None])


def test_what_was_combined_by_an_index_is_read_at_the_same_index() -> None:
    """The index of the reading is not that of the combining, though both run along one axis."""
    for edges, nodes in ((67, 19), (5, 3)):
        args = (
            torch.randn(edges, 12), torch.randn(edges), torch.randint(0, nodes, (edges,)),
            torch.randn(nodes, 12),
        )  # fmt: skip
        agrees(plan(edge_softmax, *args), edge_softmax, *args, loose=10.0)


@pytest.mark.parametrize("reduce", ["amax", "sum"])
def test_a_combined_row_is_picked_by_its_own_index(reduce: str) -> None:
    def picked(x: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
        return x - torch.zeros(9).scatter_reduce(0, to, x, reduce)[to]

    x, to = torch.rand(40), torch.randint(0, 9, (40,))
    agrees(plan(picked, x, to), picked, x, to, loose=10.0)
