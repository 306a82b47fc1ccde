"""Modules that move elements, alone and between other operations, at captured and other sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, capture_free, plan, plan_graph

torch.manual_seed(1)
R = torch.randn
ROWS = torch.tensor([3, 0, 2])
Case = tuple[Any, list[tuple[torch.Tensor, ...]]]
PLANE = [(R(4, 10),), (R(7, 33),), (R(3, 1300),), (R(130, 5),)]
# rows of two tiles of 256 and a tail, where a row's elements are read one by one: quadratic work
TILES = [(R(4, 10),), (R(7, 33),), (R(3, 601),), (R(130, 5),)]
SQUARE = [(R(6, 6),), (R(37, 37),)]

SMALL = [(R(4, 10),), (R(7, 33),), (R(30, 5),)]

CASES: dict[str, Case] = {
    "slice": (lambda x: x[:, 2:] + 1, PLANE),
    "slice from the end": (lambda x: x[:, -3:] * 2, PLANE),
    "slice with a step": (lambda x: x[:, ::2].exp(), [(R(4, 10),)]),
    "transposed output": (lambda x: x.T * 2, PLANE),
    "transposed operand": (lambda x, y: x + y.T, [(R(4, 5), R(5, 4)), (R(9, 70), R(70, 9))]),
    "plus its transpose": (lambda x: x + x.T, SQUARE),
    "two sums of one square": (lambda x: x.sum(0) + x.sum(1), SQUARE),
    "channels in another order, and as they are": (
        lambda x: F.channel_shuffle(x, 3) + x, [(R(2, 9, 4, 5),), (R(1, 9, 7, 3),)],
    ),
    "outer square": (lambda x: x[:, None] * x, [(R(5),), (R(70),)]),
    "pairs along two axes": (
        lambda x: (x[:, :, None] * x[:, None, :]).transpose(0, 1),
        [(R(3, 4),)],
    ),
    "flip": (lambda x: x.flip(1) + x, PLANE),
    "flip of two": (lambda x: x.flip(0, 1), PLANE),
    "cat": (lambda x, y: torch.cat([x, y.exp()], 1), [(R(4, 10), R(4, 3)), (R(7, 33), R(7, 2))]),
    "reflected product of two rows": (
        lambda x, y: F.pad((x[:, None] * y)[None], (1, 1, 1, 1), mode="reflect"),
        [(R(6), R(5))],
    ),
    "cat of one tensor turned round": (lambda x: torch.cat([x, x.T]), SQUARE),
    "stack": (lambda x, y: torch.stack([x, y], 1), [(R(4, 10), R(4, 10)), (R(7, 33), R(7, 33))]),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=3.0), PLANE),
    "cut": (lambda x: F.pad(x, (-1, 2)), PLANE),
    "reflect": (lambda x: F.pad(x[None], (1, 2), mode="reflect"), [(R(4, 10),)]),
    "circular": (lambda x: F.pad(x[None], (1, 2), mode="circular"), [(R(4, 10),)]),
    "roll": (lambda x: x.roll(2, 1), [(R(4, 10),)]),
    "lower triangle": (lambda x: x.tril(), PLANE),
    "upper triangle": (lambda x: x.exp().triu(1) + 1, PLANE),
    "rows by index": (
        lambda x, i: x[i] + 1,
        [(R(4, 10), ROWS), (R(9, 33), ROWS), (R(9, 5000), ROWS)],
    ),
    "negative indices": (lambda x, i: x[i], [(R(4, 10), torch.tensor([-1, 0, -4]))]),
    "embedding": (lambda w, i: F.embedding(i, w) * 2, [(R(4, 10), ROWS), (R(9, 33), ROWS)]),
    "gather": (lambda x, i: x.exp().gather(1, i), [(R(4, 10), torch.randint(0, 10, (4, 7)))]),
    "gather of a long row": (
        lambda x, i: x.gather(1, i),
        [(R(2, 9000), torch.randint(0, 9000, (2, 7)))],
    ),
    "swiglu": (lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], [(R(4, 10),)]),
    "rotate half": (lambda x: torch.cat([-x[..., 5:], x[..., :5]], -1) * 2 + x, [(R(4, 10),)]),
    "unfold": (lambda x: x.unfold(1, 3, 2) + 1, [(R(4, 10),)]),
    "diagonal": (lambda x: torch.diagonal(x, 1), [(R(4, 10),)]),
    "repeated elements": (lambda x: x.repeat_interleave(3, dim=1) + 1, [(R(4, 10),)]),
    "one of many": (lambda x: x[:, 0] + x[:, -1], PLANE),
    "permuted": (
        lambda x: x.permute(2, 0, 1) * 2,
        [(R(3, 4, 5),), (R(6, 70, 9),), (R(2, 3, 1500),)],
    ),
    "pixel shuffle": (lambda x: F.pixel_shuffle(x, 2), [(R(1, 8, 3, 3),)]),
    "half": (lambda x: x[:, 1:].flip(0), [(R(4, 10).half(),)]),
    "int64": (lambda x: x[:, 1:].T, [(torch.randint(-9, 9, (4, 10)),)]),
    "bool": (lambda x: x.T, [(R(4, 10) > 0,)]),
    "softmax of a slice": (lambda x: x[:, 1:].softmax(-1), TILES),
    "slice of a softmax": (lambda x: x.softmax(-1)[:, :-1], TILES),
    "rows of a softmax": (
        lambda x, i: x.softmax(-1)[i].sum(0),
        [(R(4, 10), ROWS), (R(9, 33), ROWS)],
    ),
    "softmax of a softmax": (lambda x: x.softmax(0).softmax(1), PLANE),
    "two means": (lambda x: x - x.mean(0) - x.mean(1, keepdim=True), PLANE),
    "columns of a softmax": (lambda x: x.softmax(-1).sum(0), PLANE),
    "scans along two axes": (lambda x: x.cumsum(0).cumsum(1), SMALL),
    "scans both ways": (lambda x: x.cumsum(1) + x.flip(1).cumsum(1).flip(1), PLANE),
    "flip and scan": (lambda x: x.flip(1).cumsum(1), PLANE),
    "cut scan": (lambda x: x.cumsum(1)[:, :-1], SMALL),
    "ones before a sum": (
        lambda x: torch.cat([torch.ones(4, 1), x.cumsum(1)[:, :-1]], 1),
        [(R(4, 10),)],
    ),
    "odd reshape": (lambda x: x.view(15, 4).exp(), [(R(6, 10),)]),
    "odd reshape between operations": (
        lambda x, b, y: ((x * 2 + b).reshape(4, 15) + y)[:, 1:],
        [(R(6, 10), R(10), R(4, 15))],
    ),
    "odd reshape of a transposition": (lambda x: x.T.reshape(4, 15), [(R(6, 10),)]),
    "softmax of an odd reshape": (lambda x: x.view(2, 300).softmax(-1), [(R(6, 100),)]),
    "odd reshape of a softmax": (lambda x: x.softmax(-1).view(4, 15), [(R(6, 10),)]),
    "variance of a join": (lambda x: torch.cat([x, x * 2], 1).var(1), [(R(5, 200),)]),
    "sum over the ends of a roll": (lambda x: x.roll(1, 0).sum((0, 2)), [(R(7, 6, 50),)]),
    "uneven adaptive maximum": (lambda x: F.adaptive_max_pool2d(x, (3, 4)), [(R(2, 7, 9),)]),
    "channels to the end": (
        lambda x: x.permute(0, 2, 3, 1) + 1,
        [(R(2, 3, 20, 22),), (R(1, 5, 33, 7),), (R(1, 2, 50, 50),), (R(2, 1, 1, 9),)],
    ),
    "channels to the end, turned round": (
        lambda x: x.permute(0, 2, 3, 1).flip(2, 3) * 2, [(R(2, 3, 20, 22),), (R(1, 5, 33, 7),)],
    ),
    "pixel shuffle of planes": (
        lambda x: torch.pixel_shuffle(x, 2), [(R(2, 8, 20, 22),), (R(5, 8, 20, 22),)],
    ),
    "heads": (lambda x: x.view(2, 64, 3, 4).transpose(1, 2) * 0.5, [(R(2, 64, 12),)]),
    "two outputs": (lambda x: (x.T + 1, x[:, 1:].sum(1)), PLANE),
    "nothing": (lambda x: torch.cat([x, x], 1)[:, 1:], [(R(4, 10),), (R(0, 10),)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_module_gives_pytorchs_values_at_every_size_from_one_program(name: str) -> None:
    fn, sets = CASES[name]
    made = plan(fn, *sets[0])
    for args in sets:
        agrees(made, fn, *args)


def test_a_mirrored_border_is_one_kernel_for_all_sizes() -> None:
    """Thirteen microseconds in five kernels before, of two of them for one width alone."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (1, 2, 3, 1), mode="reflect")

    made = plan_graph(capture_free(fn, R(2, 5, 9, 17)))
    assert len(made.program.kernels) == 1
    for shape in ((2, 5, 9, 17), (1, 3, 4, 3), (3, 1, 31, 40)):
        agrees(made, fn, R(*shape))


def test_what_another_kernel_computes_passes_through_a_scratch_tensor() -> None:
    made = plan(lambda x: x.softmax(-1).sum(0), R(4, 10))
    assert [kernel.name for kernel in made.program.kernels] == ["op_custom_1", "op_custom_2"]
    assert made.notes[0].startswith("2 kernels; through global memory: ")


def test_a_size_that_a_map_has_as_a_number_is_refused_at_other_sizes() -> None:
    made = plan(lambda x: x.roll(2, 1), R(4, 10))
    assert made.spec.legal and any("1" in str(expr) for expr in made.spec.legal)


def test_rows_of_an_axis_without_elements_are_not_copied() -> None:
    """Rows that lie apart are copied by one instruction: their count would be below zero."""

    def halves(x: torch.Tensor) -> torch.Tensor:
        return x.tensor_split(2, -1)[0]

    made = plan(halves, torch.randn(2, 0, 1, 4, 24))
    for shape in ((2, 0, 1, 4, 24), (2, 3, 1, 4, 24), (2, 3, 5, 0, 24)):
        agrees(made, halves, torch.randn(shape))


def test_resizes_of_resizes_are_not_all_read_by_one_kernel() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        for size in ((5, 6, 7), (4, 7, 5), (6, 5, 8), (5, 7, 6)):
            x = F.interpolate(x, size=size, mode="trilinear")
        return x

    args = (R(1, 1, 4, 5, 6),)
    made = plan(fn, *args)
    assert len(made.program.kernels) > 1
    agrees(made, fn, *args)
