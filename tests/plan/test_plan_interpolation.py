"""Resizing and sampling by a grid are PyTorch's, at other sizes from one program, between others.

What is read of a row more than once is held on chip; ranges that do not fit pass by in bands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, capture_at, own_program, plan, plan_graph

from npusmith.errors import PlanError
from npusmith.ir.text import show

Tensor = torch.Tensor
Model = Callable[..., Any]


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def grid(*shape: int) -> Tensor:
    """Places, a fifth of them outside."""
    return 1.2 * rows(*shape).clamp(-1.1, 1.1)


def to(size: Any, mode: str, **more: Any) -> Model:
    return lambda x: F.interpolate(x, size=size, mode=mode, **more)


def by(factor: Any, mode: str, **more: Any) -> Model:
    return lambda x: F.interpolate(x, scale_factor=factor, mode=mode, **more)


THETA = torch.tensor([[[0.866, -0.5, 0.1], [0.5, 0.866, -0.2]]])

RESIZED: dict[str, tuple[Model, list[Tensor]]] = {
    "nearest, lines": (by(4.0, "nearest"), [rows(2, 3, 7), rows(1, 1, 300)]),
    "nearest, planes": (by(3.0, "nearest"), [rows(2, 1, 4, 5), rows(1, 2, 3, 70)]),
    "nearest, volumes": (by(2.0, "nearest"), [rows(1, 2, 3, 4, 5), rows(2, 1, 1, 2, 33)]),
    "nearest, smaller": (to((3, 5), "nearest"), [rows(2, 2, 7, 11), rows(1, 3, 40, 6)]),
    "nearest, no whole factor": (by(1.7, "nearest"), [rows(2, 1, 5, 7), rows(3, 2, 5, 7)]),
    "exact": (to((7, 10), "nearest-exact"), [rows(1, 2, 5, 13), rows(2, 1, 3, 4)]),
    "linear": (by(2.0, "linear"), [rows(2, 3, 7), rows(1, 1, 300)]),
    "linear, a part of a row": (by(2.0, "linear"), [rows(1, 2, 900), rows(2, 1, 5)]),
    "linear, one element": (to(5, "linear"), [rows(2, 3, 1), rows(2, 3, 9)]),
    "linear, to one": (to(1, "linear"), [rows(2, 3, 8), rows(2, 3, 3)]),
    "bilinear": (by(2.0, "bilinear"), [rows(2, 1, 4, 5), rows(1, 3, 1, 270)]),
    "bilinear, bands of rows": (by(2.0, "bilinear"), [rows(1, 2, 21, 33), rows(1, 2, 3, 4)]),
    "bilinear, smaller": (to((3, 5), "bilinear"), [rows(1, 2, 12, 13), rows(2, 1, 9, 40)]),
    "bilinear, corners": (
        to((7, 9), "bilinear", align_corners=True), [rows(1, 2, 4, 5), rows(1, 1, 3, 9)],
    ),
    "nearest, by three quarters": (by(0.75, "nearest"), [rows(2, 1, 5, 7), rows(3, 2, 8, 33)]),
    "bilinear, by one and a half": (
        by((1.5, 2.25), "bilinear"), [rows(1, 2, 5, 7), rows(2, 1, 9, 40)],
    ),
    "bicubic, by a half": (by(0.5, "bicubic"), [rows(1, 2, 6, 8), rows(2, 1, 9, 41)]),
    "recomputed factor": (
        by(1.5, "bilinear", recompute_scale_factor=True), [rows(1, 2, 5, 7)],
    ),
    "trilinear": (
        by(2.0, "trilinear", align_corners=True), [rows(1, 2, 3, 4, 5), rows(2, 1, 2, 2, 33)],
    ),
    "bicubic": (to((7, 9), "bicubic"), [rows(1, 2, 4, 5), rows(1, 1, 6, 40)]),
    "bicubic, corners": (
        to((12, 12), "bicubic", align_corners=True), [rows(1, 2, 4, 5), rows(2, 1, 9, 20)],
    ),
    "area": (to((3, 5), "area"), [rows(1, 2, 7, 11)]),
    "antialiased": (to((4, 6), "bilinear", antialias=True), [rows(1, 2, 8, 12), rows(1, 1, 8, 12)]),
    "antialiased, larger": (to((9, 14), "bilinear", antialias=True), [rows(1, 2, 4, 5)]),
}  # fmt: skip


@pytest.mark.parametrize("name", RESIZED)
def test_a_resize_is_pytorchs_at_every_size_from_one_program(name: str) -> None:
    model, given = RESIZED[name]
    made = plan(model, given[0])
    assert "kernel 2" not in " ".join(made.notes)
    for x in given:
        agrees(made, model, x, loose=20)


SHORT = [rows(2, 2, 5, 6), rows(2, 4, 7), rows(2, 3, 5, 7)]
COMPOSED: dict[str, tuple[Model, list[tuple[Tensor, ...]]]] = {
    "between pointwise ones": (
        lambda x: torch.relu(F.interpolate(x.exp(), scale_factor=2.0, mode="bilinear")) + 1.0,
        [(rows(2, 1, 4, 5),), (rows(1, 2, 6, 33),)],
    ),
    "a skip connection": (
        lambda x, y: F.interpolate(x, scale_factor=2.0) + y,
        [(rows(2, 1, 4, 5), rows(2, 1, 8, 10)), (rows(1, 3, 2, 30), rows(1, 3, 4, 60))],
    ),
    "behind a pooling": (
        lambda x: F.interpolate(F.max_pool2d(x, 2), scale_factor=2.0, mode="bilinear"),
        [(rows(1, 2, 8, 10),), (rows(2, 1, 4, 30),)],
    ),
    "of a slice, joined": (
        lambda x: torch.cat([F.interpolate(x[:, 1:], scale_factor=2.0), x.repeat(1, 1, 2, 2)], 1),
        [(rows(1, 3, 4, 5),), (rows(2, 3, 2, 9),)],
    ),
    "before a softmax": (
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear").softmax(1),
        [(rows(2, 5, 3, 4),)],
    ),
    "one after another": (
        lambda x: F.interpolate(F.interpolate(x, size=(3, 4), mode="nearest"), size=(5, 9)),
        [(rows(2, 1, 6, 7),)],
    ),
    "an index by arithmetic of floats": (
        lambda x: x[:, (torch.arange(9) * 0.6).long()] * 2.0, [(rows(3, 6),), (rows(40, 6),)],
    ),
    "samples with a mask, summed": (
        lambda x, g, m: (F.grid_sample(x, g, align_corners=False) * m).sum(1),
        [(rows(2, 3, 5, 6), grid(2, 4, 7, 2), rows(2, 1, 4, 7))],
    ),
    "samples of what was resized": (
        lambda x, t: F.grid_sample(
            F.interpolate(x, scale_factor=2.0, mode="bilinear"),
            F.affine_grid(t, [1, 2, 8, 10], align_corners=False), align_corners=False,
        ),
        [(rows(1, 2, 4, 5), THETA)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSED)
def test_resizes_and_samples_compose_with_other_operations(name: str) -> None:
    model, cases = COMPOSED[name]
    made = plan(model, *cases[0])
    for given in cases:
        agrees(made, model, *given, loose=20)


WAYS = [
    ("bilinear", "zeros", True),
    ("bilinear", "border", False),
    ("bilinear", "reflection", False),
    ("bilinear", "reflection", True),
    ("nearest", "zeros", False),
    ("nearest", "reflection", True),
    ("bicubic", "zeros", False),
]


@pytest.mark.parametrize(("mode", "padding", "align"), WAYS)
def test_samples_are_pytorchs_in_every_way(mode: str, padding: str, align: bool) -> None:
    def model(x: Tensor, g: Tensor) -> Tensor:
        return F.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=align)

    made = plan(model, rows(2, 1, 5, 6), grid(2, 3, 4, 2))
    for given in ((rows(2, 1, 5, 6), grid(2, 3, 4, 2)), (rows(1, 2, 1, 9), grid(1, 1, 3, 2))):
        agrees(made, model, *given, loose=20)
    g = grid(2, 3, 4, 2)  # NaN is a place, too
    g.view(-1)[1::5] = torch.nan
    agrees(made, model, rows(2, 1, 5, 6), g, loose=20)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_no_weight_of_nothing_beside_an_infinity_at_the_border(padding: str) -> None:
    def model(x: Tensor, g: Tensor) -> Tensor:
        return F.grid_sample(x, g, padding_mode=padding, align_corners=True)

    made = plan(model, rows(2, 1, 5, 6), grid(2, 3, 4, 2))
    for shape in ((2, 1, 5, 6), (2, 1, 1, 6)):
        x = torch.where(rows(*shape) > 0.5, -torch.inf, rows(*shape))
        agrees(made, model, x, 2 * grid(2, 3, 4, 2), loose=20)


def warped(x: Tensor, g: Tensor) -> Tensor:
    return F.grid_sample(x, g, align_corners=False)


def test_a_plane_that_does_not_fit_passes_by_in_bands() -> None:
    made = plan(warped, rows(2, 3, 5, 6), grid(2, 4, 7, 2))
    assert "band" in show(made.program)
    agrees(made, warped, rows(1, 2, 70, 130), grid(1, 33, 40, 2), loose=20)


@pytest.mark.parametrize(
    ("mode", "padding"), [("bilinear", "zeros"), ("bilinear", "border"), ("nearest", "reflection")]
)
def test_samples_of_a_volume(mode: str, padding: str) -> None:
    def model(x: Tensor, g: Tensor) -> Tensor:
        return F.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=False)

    x, g = rows(2, 2, 4, 5, 6), grid(2, 3, 2, 5, 3)
    made = plan(model, x, g)
    agrees(made, model, x, g, loose=20)
    g.view(-1)[1::7] = torch.nan
    agrees(made, model, x, g, loose=20)


def test_a_place_that_is_no_number_is_outside() -> None:
    x, g = rows(1, 2, 5, 6), grid(1, 4, 7, 2)
    made = plan(warped, x, g)
    g[0, 1, 2] = torch.tensor([torch.inf, -torch.inf])
    agrees(made, warped, x, g, loose=20)


@pytest.mark.parametrize("align", [False, True])
def test_an_affine_grid_is_pytorchs(align: bool) -> None:
    for theta, size in ((THETA, [1, 2, 5, 6]), (rows(2, 3, 4), [2, 1, 3, 4, 2])):

        def model(t: Tensor, size: list[int] = size) -> Tensor:
            return F.affine_grid(t, size, align_corners=align)

        agrees(plan(model, theta), model, theta, loose=20)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_resizes_of_16_bit_types_compute_in_float32(dtype: torch.dtype) -> None:
    x = rows(1, 2, 6, 9).to(dtype)
    for model in (by(2.0, "nearest"), by(2.0, "bilinear")):
        agrees(plan(model, x), model, x)


def test_what_follows_from_one_axis_is_worked_out_before_the_planes() -> None:
    text = show(own_program(plan(by(2.0, "bilinear"), rows(4, 5, 6, 7))))
    lines, _, inside = text.partition("for line in")
    assert "floor" in lines
    assert "floor" not in inside.partition("\n    else:")[0]


def test_too_many_taps_are_refused_with_their_number() -> None:
    with pytest.raises(PlanError) as caught:
        plan(to((2, 2), "bilinear", antialias=True), rows(1, 1, 20, 20))
    assert caught.value.code == "plan-unsupported-op"
    assert "21 elements" in caught.value.message


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_an_argument_may_only_say_how_large_the_result_is(mode: str) -> None:
    def model(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, size=like.shape[-2:], mode=mode)

    inputs, others = (
        (torch.randn(1, 2, 5, 6), torch.randn(1, 1, *size)) for size in ((10, 9), (8, 4))
    )
    made = plan_graph(capture_at(model, inputs, others))
    agrees(made, model, *inputs)
    agrees(made, model, *others)
    agrees(made, model, inputs[0], torch.randn(1, 1, 3, 13))


SPECIAL: dict[str, tuple[Model, list[Tensor]]] = {
    "of its size": (to(8, "linear"), [rows(2, 3, 8), rows(2, 3, 5), rows(2, 3, 21)]),
    "of its size at others": (to(8, "linear"), [rows(2, 3, 5), rows(2, 3, 8)]),
    "factor 1": (by(1.0, "linear"), [rows(2, 3, 8), rows(2, 3, 5)]),
    "one axis": (by((1.0, 2.0), "bilinear"), [rows(2, 1, 6, 4), rows(1, 1, 3, 3)]),
    "corners": (
        to((6, 9), "bilinear", align_corners=True),
        [rows(2, 1, 6, 4), rows(1, 1, 6, 9), rows(1, 1, 4, 9)],
    ),
    "volume": (to((4, 5, 6), "trilinear"), [rows(1, 1, 4, 5, 6), rows(1, 1, 4, 3, 6)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_an_axis_that_keeps_its_size_takes_no_neighbour_of_an_infinity(name: str) -> None:
    model, inputs = SPECIAL[name]
    made = plan(model, inputs[0])
    for x in inputs:
        for value in (torch.inf, -torch.inf, torch.nan):
            some = x.clone()
            some.view(-1)[1::7] = value
            agrees(made, model, some)
