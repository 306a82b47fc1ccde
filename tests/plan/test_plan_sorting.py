"""Rows in order: sort, topk, median and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modules import agrees, capture, plan

from npusmith.ir.dtypes import DType
from npusmith.ir.launches import each_launch
from npusmith.ir.nodes import For, Load, Op
from npusmith.ir.text import show
from npusmith.ir.walk import statements
from npusmith.lang import check, parse, run_host
from npusmith.lower import lower, write_project
from npusmith.plan import write
from npusmith.target.chips import find_chip
from npusmith.twin import build, read_project, run
from npusmith.twin.launch import LaunchOptions

INF, NAN = float("inf"), float("nan")


def R(*shape: int) -> torch.Tensor:
    torch.manual_seed(sum(shape))
    return torch.randn(shape)


def special() -> torch.Tensor:
    x = R(4, 50)
    x[0, 3], x[0, 20], x[0, 9], x[1, 5] = NAN, NAN, INF, -INF
    x[2, ::3] = NAN
    x[3] = 1.0
    return x


def integers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    torch.manual_seed(sum(shape))
    limits = torch.iinfo(dtype)
    return torch.randint(limits.min, limits.max, shape, dtype=torch.int64).to(dtype)


def both(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: tuple(fn(*args))


CASES: dict[str, tuple[Callable[..., Any], list[torch.Tensor]]] = {
    "sort, also of rows that do not fit": (
        both(lambda x: x.sort(stable=True)),
        [R(5, 37), R(2, 3001), torch.randint(0, 9, (3, 1777)).float()],
    ),
    "numbers that are none": (both(lambda x: x.sort(stable=True)), [special()]),
    "downwards": (both(lambda x: x.sort(stable=True, descending=True)), [special()]),
    "another dimension": (both(lambda x: x.sort(1, descending=True)), [R(5, 37, 3), R(2, 40, 5)]),
    "between others": (lambda x: (x * 2).sort().values + 1, [R(5, 37)]),
    "of a choice of numbers that are none": (lambda x: x.fmod(0.75).sort().values, [R(5, 37)]),
    "int32": (both(lambda x: x.sort()), [integers(torch.int32, 5, 37)]),
    "int64": (both(lambda x: x.sort(descending=True)), [integers(torch.int64, 3, 19)]),
    "int8": (both(lambda x: x.sort(stable=True)), [integers(torch.int8, 5, 37)]),
    "float16": (both(lambda x: x.sort()), [torch.randperm(100).half().view(2, 50)]),
    "topk": (both(lambda x: x.topk(5)), [R(5, 37), R(3, 3000), R(2, 5)]),
    "topk, the smallest": (both(lambda x: x.topk(5, largest=False)), [R(5, 37), R(3, 3000)]),
    "topk of bfloat16": (both(lambda x: x.topk(4)), [torch.randperm(100).bfloat16().view(2, 50)]),
    "topk of int32": (both(lambda x: x.topk(4)), [integers(torch.int32, 5, 37)]),
    "median of all": (lambda x: x.median(), [R(5, 37), R(4, 5)]),
    "median, with places": (both(lambda x: x.median(1)), [R(5, 37), R(4, 6)]),
    "median of numbers that are none": (lambda x: x.median(1).values, [special()]),
    "nanmedian": (lambda x: x.nanmedian(1).values, [special()]),
    "kthvalue": (both(lambda x: x.kthvalue(3, 0)), [R(5, 37)]),
    "quantile": (lambda x: torch.quantile(x, 0.3, dim=1), [R(5, 37)]),
    "a router": (
        lambda x: torch.zeros_like(x).scatter(1, *reversed(x.softmax(-1).topk(2, 1))),
        [R(50, 8)],
    ),
    "long rows of int32": (
        both(lambda x: x.sort()),
        [integers(torch.int32, 2, 1100), integers(torch.int32, 3, 9)],
    ),
    "long rows of int64": (
        both(lambda x: x.sort(descending=True)),
        [integers(torch.int64, 2, 700), integers(torch.int64, 3, 9)],
    ),
    "topk of long rows of int64": (both(lambda x: x.topk(6)), [integers(torch.int64, 2, 900)]),
    "most of long rows": (both(lambda x: x.topk(700)), [R(2, 1500)]),
    "no rows, and rows without elements": (both(lambda x: x.sort()), [R(3, 9), R(0, 9), R(3, 0)]),
    "one number": (both(lambda x: x.sort()), [torch.tensor(3.0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_in_pytorchs_order_at_every_size(name: str) -> None:
    model, sets = CASES[name]
    made = plan(model, sets[0])
    for x in sets:
        agrees(made, model, x)


# In one kernel, on chip
COMPOSED: dict[str, tuple[Callable[..., Any], list[tuple[torch.Tensor, ...]]]] = {
    "of an expression, and more": (
        both(lambda x: ((x.abs() * 2).sort(stable=True)[0] + 1, x.argsort(stable=True))),
        [(R(5, 37),), (R(3, 64),), (R(4, 1),)],
    ),
    "of what is broadcast": (
        both(lambda x, y: (x + y).sort()),
        [(R(5, 37), R(37)), (R(3, 8), R(8))],
    ),
    "of truth values": (both(lambda x: (x > 0).sort(stable=True)), [(R(5, 37),)]),
    "numbers that are none": (both(lambda x: x.abs().sort(stable=True)), [(special(),)]),
    "ranks": (
        lambda x: x.argsort(dim=-1, stable=True).argsort(dim=-1, stable=True),
        [(torch.randint(0, 9, (5, 37)).float(),), (R(3, 16),)],
    ),
    "up and down": (
        both(lambda x: (x.sort(stable=True)[0], x.sort(stable=True, descending=True)[1])),
        [(torch.randint(0, 9, (5, 37)).float(),)],
    ),
    "places in a gather": (
        lambda x, y: y.gather(-1, x.topk(4)[1]) * 2,
        [(R(5, 37), R(5, 37)), (R(3, 9), R(3, 9))],
    ),
    "a gather of what is sorted": (
        lambda x, i: x.sort()[0].gather(-1, i),
        [(R(5, 37), torch.randint(0, 37, (5, 7))), (R(3, 20), torch.randint(0, 20, (3, 4)))],
    ),
    "a reduction": (lambda x: x.topk(4)[0].mean(-1), [(R(5, 37),), (R(3, 9),)]),
    "weights of the largest": (
        both(lambda x: (lambda top: (top[0].softmax(-1), top[1]))(x.topk(4))),
        [(R(50, 16),)],
    ),
    "what lies between": (lambda x: x.sort()[0].diff(), [(R(5, 37),), (R(3, 16),)]),
    "deviations from the median": (
        lambda x: (x - x.median(-1, keepdim=True).values).abs(),
        [(R(5, 37),), (R(3, 16),)],
    ),
    "between two elements": (
        lambda x: x.clamp(x.kthvalue(3, keepdim=True)[0], x.kthvalue(30, keepdim=True)[0]),
        [(R(5, 37),), (R(3, 40),)],
    ),
    "a router": (lambda x: x.softmax(-1).topk(2, 1)[1] + 1, [(R(50, 8),), (R(7, 5),)]),
    "int64": (
        both(lambda x: (x + 1).sort()),
        [(integers(torch.int64, 4, 20) // 2,), (torch.randint(-3, 3, (3, 9)),)],
    ),
    "one row": (both(lambda x: (x * 2).topk(3)), [(R(101),), (R(64),)]),
    "rows of a dimension of one": (
        both(lambda x: x.topk(2)[0].unsqueeze(0).sort(dim=1)),
        [(R(5, 9),), (R(3, 20),)],
    ),
    "one number of a flattened sort": (
        lambda x: x.flatten().argsort(stable=True).amax() + x.roll(1, 0),
        [(R(3, 7),), (R(5, 9),)],
    ),
    "one number of many rows": (
        lambda x: x.flatten().sort()[0].roll(2) * x.argsort(-1).amax(-1).sum(),
        [(R(3, 7),), (R(5, 9),)],
    ),
    "a mean of columns in order": (
        lambda x, y: (x.sort(0)[0] - y.sort(0)[0]).abs().mean(),
        [(R(14, 5), R(14, 5)), (R(3, 8), R(3, 8))],
    ),
    "parts of a flattened sort": (
        lambda x: x.flatten().argsort(stable=True).view(3, 7).amax(-1).roll(1, 0),
        [(R(3, 7),)],
    ),
    "a flattened sort in order again": (
        lambda x: x.flatten().sort()[0].view(3, 7).argsort(1).amax(0),
        [(R(3, 7),)],
    ),
    "of one row for all": (
        both(lambda x: (x.expand(4, 6).sort(0)[0], x.expand(4, 6).flatten().sort()[0])),
        [(R(1, 6),)],
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_a_sort_composes_with_what_is_around_it(name: str) -> None:
    model, sets = COMPOSED[name]
    made = plan(model, *sets[0])
    assert not made.parts
    for args in sets:
        agrees(made, model, *args)


# In several kernels, as the estimate has it
ACROSS: dict[str, tuple[Callable[..., Any], list[tuple[torch.Tensor, ...]]]] = {
    "int64 from elsewhere": (
        lambda x, i: x.gather(1, i).sort(1)[0] - x.gather(1, i).amax(1, keepdim=True),
        [
            (torch.randint(-9, 9, (5, 7)), torch.randint(0, 7, (5, 9))),
            (torch.randint(-9, 9, (4, 9)), torch.randint(0, 9, (4, 3))),
        ],
    ),
    "columns, then rows, then columns": (
        lambda x: x.sort(0)[0].sort(1)[0].argsort(dim=0, stable=True),
        [(R(5, 7),), (R(4, 1),), (R(8, 3),)],
    ),
}


@pytest.mark.parametrize("name", ACROSS)
def test_rows_in_order_stand_beside_others(name: str) -> None:
    model, sets = ACROSS[name]
    made = plan(model, *sets[0])
    for args in sets:
        agrees(made, model, *args)


def test_products_are_rounded_before_they_are_put_in_order() -> None:
    def fn(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = (x @ w).sort(stable=True, dim=-1)
        return rows.values, rows.indices

    x, w = torch.randint(-3, 4, (2, 6, 64)).half(), (torch.randn(2, 64, 48) * 9).half()
    agrees(plan(fn, x, w), fn, x, w)


def test_many_short_rows_are_sorted_at_once() -> None:
    """One copy and one instruction for a tile of rows."""
    made = plan(lambda x: x.sort().values, R(64, 8))
    first = made.versions[0].program.kernel
    (loop,) = (stmt for stmt in statements(first.body) if isinstance(stmt, For))
    sorts = [stmt for stmt in statements((loop,)) if isinstance(stmt, Op) and "sort" in stmt.name]
    loads = [stmt for stmt in statements((loop,)) if isinstance(stmt, Load)]
    assert (len(sorts), len(loads)) == (1, 1)


def test_rows_that_hardly_fit_are_a_kernel_of_their_own() -> None:
    """So that longer ones are served."""
    made = plan(lambda x: x.exp().sort().values, R(3, 300))
    assert len(made.parts) == 2
    agrees(made, lambda x: x.exp().sort().values, R(2, 1500))


# Captured at 64 x 512, where a kernel of the whole chip holds many rows
LONGER: dict[str, Callable[..., Any]] = {
    "a sort between others": lambda x: (x * 2).sort(-1)[0] + 1,
    "a topk of probabilities": both(lambda x: x.softmax(-1).topk(8)),
    "a median": lambda x: (x - 1).median(-1).values,
    "columns": lambda x: (x.T * 2).sort(0)[0] + 1,
    "two sorts": both(lambda x: (x.relu().sort(-1)[0] + 1, (x * 3).topk(4)[1])),
}


@pytest.mark.parametrize("name", LONGER)
def test_longer_rows_than_a_tile_holds_are_sorted_by_kernels_of_their_own(name: str) -> None:
    model, chip = LONGER[name], find_chip("910B2")
    made = write(capture(model, R(64, 512)), "op_custom", chip)
    check(made.program, chip)
    assert parse(show(made.program)) == made.program
    for shape in ((64, 512), (2, 20_000), (3, 8)):
        agrees(made, model, R(*shape))


def test_only_what_is_asked_for_is_stored() -> None:
    made = plan(lambda x: x.argsort(-1, descending=True), R(5, 37))
    assert [port.dtype.value for port in made.spec.outputs] == ["int64"]
    general = made.versions[-1].program.kernel
    assert not any(buffer.name == "y_out" for buffer in general.buffers)


def test_later_kernels_do_nothing_where_the_first_holds_whole_rows(tmp_path: Path) -> None:
    model, chip = LONGER["a sort between others"], find_chip("910B2")
    made = write(capture(model, R(64, 512)), "op_custom", chip)
    assert len(made.program.kernels) == 3
    write_project(lower(made.program, chip), chip, tmp_path, made.spec)
    built = build(read_project(tmp_path), chip, (DType.FLOAT32, DType.FLOAT32))
    for shape, together in (((64, 512), 1), ((3, 5000), 0)):
        host = run_host(each_launch(made.program)[0], chip, {"args_0": shape, "y": shape})
        assert host.args["one_kernel"] == together
        x = R(*shape)
        done = run(
            built, [x.numpy()], [(shape, DType.FLOAT32)], options=LaunchOptions(seconds=60.0)
        )
        assert done.completed and not done.findings
        np.testing.assert_array_equal(done.outputs[0], model(x).numpy())


def test_a_sort_along_any_dimension_is_one_along_the_last() -> None:
    graph = capture(both(lambda x: x.sort(0)), R(3, 4))
    assert [node.op for node in graph.nodes][:2] == ["aten.permute.default", "aten.sort.stable"]


def test_no_buffer_of_a_later_kernel_has_the_name_of_an_output() -> None:
    """What an output is converted by on its way is no buffer of its name."""

    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ordered = x.sort(-3)[0]
        return torch.topk(ordered.to(torch.int32), 1, -3)[0].to(torch.uint8), ordered

    x = torch.arange(60.0).reshape(3, 4, 5)
    agrees(plan(model, x), model, x)


def test_a_value_between_kernels_that_is_counted_only_is_no_tensor_of_the_next() -> None:
    def gates(logits: torch.Tensor) -> Any:
        p = torch.softmax(logits, dim=-1)
        w, index = torch.topk(p, 2, dim=-1)
        return torch.zeros_like(p).scatter(-1, index, w / w.sum(-1, keepdim=True)), index

    made = plan(gates, torch.randn(101, 13))
    agrees(made, gates, torch.randn(7, 5))
