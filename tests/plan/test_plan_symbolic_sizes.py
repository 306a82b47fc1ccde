"""Numbers of a graph that follow from sizes of inputs are no numbers of the operator."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, capture_at, plan_graph
from torch import nn

from npusmith.ir.nodes import Binary, BinOp, Const, Expr, Name
from npusmith.ir.spec import Source
from npusmith.ir.text import show_expr
from npusmith.lang.extents import serves
from npusmith.plan.index import is_positive


def causal(x: torch.Tensor) -> torch.Tensor:
    mask = torch.triu(torch.ones(x.shape[-1], x.shape[-1]), 1).bool()
    return x.masked_fill(mask, -1e9).softmax(-1)


def halves(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def places(x: torch.Tensor) -> torch.Tensor:
    at = torch.arange(x.shape[-1], dtype=x.dtype)
    return x * torch.cos(at * 0.1) + at / x.shape[-1]


def outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x[:, None].expand(x.shape[0], y.shape[0]) * y


def folded(x: torch.Tensor) -> torch.Tensor:
    n, c, h, w = x.shape
    return x.view(n, c // 4, 4, h * w).sum(2)


def windows(x: torch.Tensor) -> torch.Tensor:
    """Attention in windows of four by four, of an image that is rolled."""
    n, h, w, c = x.shape
    y = x.roll((-2, -2), (1, 2)).view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5)
    y = y.reshape(-1, 16, c)
    y = torch.softmax(y @ y.transpose(1, 2), -1) @ y
    y = y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
    return y.roll((2, 2), (1, 2)) + x


def spectra(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Frames of 18 samples, one every 11: how many there are follows from no short formula."""
    frames = x.unfold(-1, 18, 11) * torch.hann_window(18)
    return ((frames @ w) ** 2 @ v).log1p().transpose(1, 2)


def patches(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Places of a convolution with stride, in one row, and a linear layer over them."""
    flat = F.conv2d(x, w, stride=2, padding=1).flatten(2).transpose(1, 2)
    return F.linear(flat, v).softmax(1)


def rows(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(*shape) for shape in shapes)


Case = tuple[torch.Tensor, ...]
CASES: dict[str, tuple[Callable[..., Any], list[Case]]] = {
    "copies of a weight, one for each row of the batch": (
        lambda x, w, b: F.instance_norm(x, None, None, w, b),
        [rows((n, 3, h, 7), (3,), (3,)) for n, h in ((2, 5), (5, 2), (7, 4), (1, 8))],
    ),
    "copies, as many as there are rows": (
        lambda x: x.repeat(3, x.shape[0]).exp(), [rows((5, 7)), rows((2, 9)), rows((8, 3))],
    ),
    "windows behind a product": (
        windows,
        [rows((2, 12, 8, 8)), rows((3, 8, 12, 8)), rows((2, 4, 20, 8)), rows((1, 16, 8, 8))],
    ),
    "frames of a signal": (
        spectra,
        [
            (*rows((2, 97)), *rows((18, 20), (20, 5))), (*rows((3, 64)), *rows((18, 20), (20, 5))),
            (*rows((4, 150)), *rows((18, 20), (20, 5))), (*rows((1, 40)), *rows((18, 20), (20, 5))),
        ],
    ),
    "places of a convolution": (
        patches,
        [
            (*rows((2, 3, 9, 12)), *rows((20, 3, 3, 3), (24, 20))),
            (*rows((3, 3, 14, 7)), *rows((20, 3, 3, 3), (24, 20))),
            (*rows((4, 3, 5, 20)), *rows((20, 3, 3, 3), (24, 20))),
            (*rows((5, 3, 11, 9)), *rows((20, 3, 3, 3), (24, 20))),
            (*rows((1, 3, 6, 11)), *rows((20, 3, 3, 3), (24, 20))),
        ],
    ),
    "unfolded images": (
        lambda x: F.unfold(x, 3, padding=1).relu().sum(1),
        [rows((2, 5, 7, 9)), rows((3, 4, 10, 11)), rows((4, 3, 29, 13)), rows((1, 2, 5, 1))],
    ),
    "the halves of a gate": (
        lambda x: x.chunk(2, -1)[0] * torch.sigmoid(x.chunk(2, -1)[1]),
        [rows((6, 12)), rows((5, 14)), rows((3, 202))],
    ),
    "a turn of halves": (halves, [rows((3, 4, 12)), rows((2, 5, 7)), rows((3, 2, 130))]),
    "a causal mask": (causal, [rows((2, 3, 8, 8)), rows((3, 2, 11, 11)), rows((1, 2, 70, 70))]),
    "a roll": (
        lambda x: x.roll(3, -1) + x,
        [rows((6, 12)), rows((5, 7)), rows((4, 45)), rows((2, 131))],
    ),
    "places": (places, [rows((6, 12)), rows((5, 7)), rows((2, 131))]),
    "a mean by hand": (
        lambda x: x.sum(-1) / x.shape[-1], [rows((6, 12)), rows((5, 7)), rows((2, 131))],
    ),
    "scaled by a root": (
        lambda x: x * x.shape[-1] ** -0.5, [rows((6, 12)), rows((5, 7)), rows((2, 131))],
    ),
    "an outer product of two": (
        outer, [rows((6,), (6,)), rows((5,), (7,)), rows((2,), (131,)), rows((40,), (3,))],
    ),
    "channels in fours": (
        folded, [rows((2, 8, 3, 5)), rows((3, 12, 5, 2)), rows((1, 4, 7, 11))],
    ),
    "rows of a size that is a number": (  # the last case has another number of rows
        lambda x: x.reshape(-1, 24) * 2, [rows((6, 4, 6)), rows((5, 8, 6)), rows((6, 12, 6))],
    ),
    "a part as long as another input": (
        lambda x, y: x[:, : y.shape[1]] + y,
        [rows((6, 12), (6, 8)), rows((5, 131), (5, 7)), rows((3, 9), (3, 9))],
    ),
    "the last third": (
        lambda x: x[..., -(x.shape[-1] // 3) :] * 2,
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((2, 133))],
    ),
    "the middle row": (
        lambda x: x[:, x.shape[1] // 2] * x[:, -(x.shape[1] // 3)],
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "a median": (
        lambda x: x.median(-1).values, [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "a quantile": (
        lambda x: x.quantile(0.3, dim=-1),
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "places from the last on": (
        lambda x: x * torch.arange(x.shape[-1] - 1, -1, -1),
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "every other place": (
        lambda x: x[:, ::2] * torch.arange(0, x.shape[-1], 2),
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "places from 0 to 1": (
        lambda x: x * torch.linspace(0, 1, x.shape[-1]),
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "heads of four, as many as there are": (
        lambda x: x.view(x.shape[0], x.shape[1], -1, 4).sum(2),
        [rows((3, 5, 8)), rows((2, 6, 12)), rows((1, 7, 44)), rows((4, 2, 20))],
    ),
    "a mean without the ends": (
        lambda x: x.sort(-1).values[:, x.shape[1] // 4 : x.shape[1] - x.shape[1] // 4].mean(-1),
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "the middle third of sums": (
        lambda x: (x @ x.t()).cumsum(0).narrow(0, x.shape[0] // 3, x.shape[0] // 3).softmax(-1),
        [rows((9, 4)), rows((7, 6)), rows((23, 3)), rows((30, 5)), rows((40, 2))],
    ),
    "the mean of the best half": (
        lambda x: x.topk(x.shape[-1] // 2).values.mean(-1),
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "a padding as long as the row": (
        lambda x: F.pad(x, (1, x.shape[-1])) + 1,
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "as many of the best as half, a number": (
        lambda x: x.topk(x.shape[-1] // 2).values,
        [rows((6, 12)), rows((5, 7)), rows((2, 131)), rows((3, 14))],
    ),
    "what is left after a norm": (
        lambda x: (x / x.norm(dim=-1, keepdim=True)).chunk(2, -1)[1].cumsum(-1),
        [rows((6, 12)), rows((5, 14)), rows((3, 202))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_size_in_the_models_arithmetic_is_no_number(name: str) -> None:
    """Captured at all cases but the last; none is refused that the model takes so."""
    model, cases = CASES[name]
    made = plan_graph(capture_at(model, *cases[:-1] if len(cases) > 2 else cases))
    served = 0
    for case in cases:
        shapes = {f"args_{i}": tuple(item.shape) for i, item in enumerate(case)}
        if serves(made.spec, shapes):
            agrees(made, model, *case, loose=20)
            served += 1
    assert served == len(cases) or "number" in name


def test_one_place_from_0_to_1_is_refused_where_steps_divide_by_what_is_left() -> None:
    made = plan_graph(capture_at(*CASES["places from 0 to 1"][:1], *CASES["places from 0 to 1"][1]))
    assert serves(made.spec, {"args_0": (6, 2)})
    assert not serves(made.spec, {"args_0": (6, 1)})


def test_a_part_behind_a_kernel_serves_the_sizes_that_the_input_in_front_of_it_tells() -> None:
    """The second kernel reads no axis of x: the place and length of its rows follow from x."""
    model, cases = CASES["the middle third of sums"]
    made = plan_graph(capture_at(model, *cases))
    assert len(made.program.kernels) > 1
    for rows_of in (33, 14):
        agrees(made, model, torch.randn(rows_of, 5), loose=20)


class Turned(nn.Module):
    """Its halves are as long as its weight says: no other size can be captured."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        return torch.cat([-x[:, half:], x[:, :half]], -1) * self.w + x.chunk(3, -1)[2].sum()


def test_groups_of_one_channel_each_are_as_many_as_the_model_says() -> None:
    made = plan_graph(
        capture_at(lambda x: F.group_norm(x, 3), rows((2, 3, 31)), rows((5, 6, 7)), rows((4, 9, 8)))
    )
    assert serves(made.spec, {"args_0": (4, 3, 7)})
    assert not serves(made.spec, {"args_0": (4, 6, 7)})


def test_places_that_the_model_names_are_inside_of_what_is_served() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x[:, torch.arange(3) + 4]

    made = plan_graph(capture_at(fn, rows((2, 7)), rows((3, 10)), rows((4, 29))))
    assert not serves(made.spec, {"args_0": (2, 6)})
    agrees(made, fn, *rows((5, 8)))


def test_a_roll_asks_for_more_rows_than_it_moves() -> None:
    """Of no rows, the first place would lie behind a tensor that is read by columns."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 2, 1).roll(-1, 2)

    made = plan_graph(capture_at(fn, rows((8, 6, 67)), rows((23, 19, 37)), rows((5, 7, 9))))
    assert serves(made.spec, {"args_0": (1, 2, 1)})
    agrees(made, fn, *rows((1, 2, 1)))
    assert not serves(made.spec, {"args_0": (1, 1, 1)})


def test_numbers_of_a_view_behind_a_kernel_hold_for_sizes_that_no_input_has() -> None:
    """Every second row, in order: 4 of them for each element of the view's second dimension."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x[::2].sort(-2).values.reshape(4, -1) * 2

    made = plan_graph(capture_at(fn, rows((4, 3, 4)), rows((7, 3, 4)), rows((22, 5, 4))))
    assert serves(made.spec, {"args_0": (4, 3, 4)})
    assert not serves(made.spec, {"args_0": (22, 3, 4)})


def test_numbers_on_an_axis_that_nothing_varied_are_its_own() -> None:
    made = plan_graph(capture_at(Turned(), *[rows((6, 12)), rows((5, 12))]))
    for size, served in ((12, True), (8, False), (10, False), (16, False)):
        shapes = {port.name: (5, size)[2 - len(port.shape) :] for port in made.spec.inputs}
        assert serves(made.spec, shapes) is served


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.at = nn.Embedding(40, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.at(torch.arange(x.shape[1]))


def test_positions_past_a_table_are_refused() -> None:
    made = plan_graph(capture_at(Positions(), rows((2, 12, 6)), rows((3, 7, 6)), rows((2, 31, 6))))
    for size, served in ((40, True), (3, True), (41, False), (90, False)):
        shapes = {port.name: tuple(port.shape) for port in made.spec.inputs}
        user = next(port.name for port in made.spec.inputs if port.source is Source.USER)
        assert serves(made.spec, {**shapes, user: (2, size, 6)}) is served


def test_conditions_that_always_hold_are_not_written_and_a_multiple_is_one() -> None:
    made = plan_graph(
        capture_at(CASES["the halves of a gate"][0], *CASES["the halves of a gate"][1])
    )
    assert [show_expr(expr) for expr in made.spec.legal or ()] == ["args_0.shape[1] % 2 == 0"]
    made = plan_graph(capture_at(halves, *CASES["a turn of halves"][1]))
    assert made.spec.legal == ()


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("n - n // 2", True), ("n // 2 * 2 - n", False), ("n // 2", True), ("(n - 5) // 2", False),
        ("n * m - m", False), ("n * m", True), ("n - (n + 1) // 2", False),
        ("3 * n - 3 * (n // 3)", True), ("n + 4 - (n - 5) // 2", True),
    ],
)  # fmt: skip
def test_what_is_shown_to_be_at_least_0_is(text: str, holds: bool) -> None:
    n, m = Name("n"), Name("m")
    expr = _expression(text, {"n": n, "m": m})
    assert is_positive(expr) is holds
    if holds:
        assert all(eval(text, {"n": a, "m": b}) >= 0 for a in range(40) for b in range(9))


def _expression(text: str, names: dict[str, Expr]) -> Expr:
    """Python's own parser, for the test's formulas."""
    ops = {
        ast.Add: BinOp.ADD,
        ast.Sub: BinOp.SUB,
        ast.Mult: BinOp.MUL,
        ast.FloorDiv: BinOp.FLOORDIV,
    }

    def read(node: ast.expr) -> Expr:
        match node:
            case ast.Name(id=name):
                return names[name]
            case ast.Constant(value=int(number)):
                return Const(number)
            case ast.BinOp(left=left, op=op, right=right):
                return Binary(ops[type(op)], read(left), read(right))
        raise AssertionError(node)

    return read(ast.parse(text, mode="eval").body)


def test_a_size_that_no_capture_varied_is_the_only_one() -> None:
    """Of 50 classes 0.1 / 50 is a number of the graph, and fewer are refused by the labels."""

    def smoothed(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x, t, label_smoothing=0.1)

    cases = [(torch.randn(n, 50), torch.randint(0, 50, (n,))) for n in (64, 7, 101)]
    spec = plan_graph(capture_at(smoothed, *cases)).spec
    x, t = (port.name for port in spec.inputs)
    assert serves(spec, {x: (9, 50), t: (9,)})
    assert not serves(spec, {x: (9, 90), t: (9,)})


class Shuffled(nn.Module):
    """Two products of groups of channels, shuffled between them."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(12, 24, 1, groups=3, bias=False)
        self.two = nn.Conv2d(24, 24, 1, groups=3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, _, height, width = x.shape
        x = self.one(x).view(n, 3, 8, height, width).transpose(1, 2)
        return self.two(x.reshape(n, -1, height, width))


def test_channels_that_are_split_in_another_way_fix_no_other_axis() -> None:
    model = Shuffled()
    shapes = (2, 12, 5, 7), (3, 12, 5, 7), (2, 12, 9, 7), (2, 12, 5, 4)
    made = plan_graph(capture_at(model, *((torch.rand(shape),) for shape in shapes)))
    for shape in (*shapes, (7, 12, 3, 11)):
        agrees(made, model, torch.rand(shape), loose=20)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [((8, 6), (3, 16)), ((4, 9, 5), (6, 6, 5)), ((6, 10), (4, 15)), ((5, 6, 4), (5, 4, 3, 2))],
)
def test_a_shape_that_splits_no_axis_evenly(
    shape: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    x = torch.randn(shape)

    def model(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).view(wanted) + 1

    agrees(plan_graph(capture_at(model, (x,))), model, x)
