"""Infinities, NaN, zeros, tiny and huge numbers: as PyTorch has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, agrees, as_array, plan

from npusmith.ir.nodes import Op
from npusmith.ir.walk import statements
from npusmith.lang import interpret

INF, NAN = math.inf, math.nan
SCALES = (1.0, 1e4, 1e-40, 1e-20, 3e38, 0.5, 20.5, 88.0, 104.0, 1e-4, 1e-7, 2.0, 3.0, 6.0, 0.1)
EDGES = torch.tensor([0.0, -0.0, INF, -INF, NAN, *SCALES, *(-scale for scale in SCALES)])
FINITE = EDGES[torch.isfinite(EDGES)]

MAPS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(F, name)
        for name in (
            "silu", "softplus", "elu", "selu", "hardtanh", "hardsigmoid", "hardswish",
            "leaky_relu", "logsigmoid", "relu", "softsign", "softshrink", "tanhshrink", "mish",
        )
    },
    **{
        name: getattr(torch, name)
        for name in (
            "exp", "log", "sqrt", "rsqrt", "reciprocal", "log2", "log1p", "expm1", "sign", "floor",
            "ceil", "round", "trunc", "abs", "neg", "erf", "sigmoid", "tanh", "isnan", "isinf",
            "isfinite", "square",
        )
    },
    "where": lambda x: torch.where(x > 0.5, x, -1.0),
    "clamp": lambda x: x.clamp(-0.5, 0.3),
    "cube": lambda x: x**3,
    "inverse square": lambda x: x**-2,
    "root": lambda x: x**0.5,
    "power": lambda x: x.abs() ** 1.5,
    "number to a power": lambda x: (0.25**x, 1**x, 7**x, 0**x),
    "comparisons": lambda x: (x < 1, x <= 1, x > 1, x >= 1, x == 1, x != 1),
    "over what was rounded": lambda x: (
        1 / x.round(), x.floor().reciprocal(), 2 / x.trunc(), 3 / x.ceil(),
    ),
    "nan where": lambda x: torch.where(x > 0, x, NAN),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_a_map_has_pytorchs_special_values(name: str) -> None:
    made = plan(MAPS[name], EDGES)
    agrees(made, MAPS[name], EDGES)
    agrees(made, MAPS[name], torch.linspace(-3, 3, 1201))


@pytest.mark.parametrize(
    "fn", [torch.isfinite, lambda x: (x == x) & (x.abs() != INF)], ids=["call", "written out"]
)
def test_what_is_finite_is_one_comparison(fn: Callable[..., Any]) -> None:
    made = plan(fn, EDGES)
    agrees(made, fn, EDGES)
    ops = [stmt.name for stmt in statements(made.program.kernel.body) if isinstance(stmt, Op)]
    assert sum(name.startswith("compare") for name in ops) == 1


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extremes_of_two_treat_nan_as_pytorch_does(name: str) -> None:
    fn = getattr(torch, name)
    agrees(plan(fn, EDGES, EDGES.flip(0)), fn, EDGES, EDGES.flip(0))


def test_gelu_keeps_its_tail_in_both_forms() -> None:
    x = torch.linspace(-5, 5, 999, dtype=torch.float64)
    for form in ("none", "tanh"):

        def exact(a: torch.Tensor, form: str = form) -> torch.Tensor:
            return F.gelu(a.double(), approximate=form).float()

        made = plan(lambda a, form=form: F.gelu(a, approximate=form), x.float())
        agrees(made, exact, x.float())


@pytest.mark.parametrize("base", [0.25, 2.0, 0.9999, 10000.0, 1e-30, 3e38])
def test_a_number_to_the_power_of_x_is_as_near_as_a_float_can_be(base: float) -> None:
    # nothing that is subnormal, or within a half of the largest number's logarithm
    most = 87 / abs(math.log(base))
    x = torch.linspace(-most, most, 4001)
    made = plan(lambda a: base**a, x)
    (y,) = interpret(made.program, CHIP, [as_array(x)], [((4001,), made.spec.outputs[0].dtype)])
    exact = float(np.float32(base)) ** x.double().numpy()
    assert np.abs(y / exact - 1).max() < 2.5e-7
    agrees(made, lambda a: base**a, torch.cat([EDGES, x])[: len(x)])


def _gelu_of(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What the program makes of `x`, and GELU in float64 with its tail; finite values alone."""
    made = plan(F.gelu, x[:999])
    shape = [(tuple(x.shape), made.spec.outputs[0].dtype)]
    result = torch.from_numpy(interpret(made.program, CHIP, [as_array(x)], shape)[0].astype(float))
    # as defined: F.gelu of infinity is NaN where PyTorch has instructions of 512 bits
    defined = 0.5 * x.double() * (1 + torch.erf(x.double() * math.sqrt(0.5)))
    assert torch.equal(result.isnan(), defined.to(x.dtype).isnan())
    assert torch.equal(result.isinf(), defined.to(x.dtype).isinf())
    wide = x.double() * torch.special.ndtr(x.double())
    keep = result.isfinite() & wide.isfinite()
    return result[keep], wide[keep]


def test_gelu_of_float32_is_as_near_as_pytorchs() -> None:
    bits = np.arange(0, 1 << 32, 40009, dtype=np.uint64).astype(np.uint32)
    x = torch.cat([torch.linspace(-15, 15, 100001), torch.from_numpy(bits.view(np.float32))])
    x = torch.cat([x[x.isfinite()], torch.linspace(-1e-4, 1e-4, 2001), EDGES])
    result, wide = _gelu_of(x)
    off = (result - wide).abs()
    most = wide.clamp_min(1)  # where it is more than 1, it is nearly x
    assert (off / most).max() < 2.5e-7
    large = wide.abs() > 2.0**-14
    assert (off / wide.abs())[large].max() < 2e-5  # PyTorch, whose 1 + erf cancels: 1.6e-3
    assert off[~large].max() < 5e-10


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gelu_of_every_16_bit_number_is_rounded_as_pytorchs(dtype: torch.dtype) -> None:
    x = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16).view(dtype)
    result, wide = _gelu_of(x)
    step = torch.finfo(dtype).eps
    large = wide.abs() > 2.0**-14
    off = (result - wide).abs()
    assert (off[large] / wide.abs()[large]).max() < 1.5 * step  # PyTorch in float16: 1.7
    assert off[~large].max() < 2e-7
    other = (result != wide.to(dtype).double())[large]
    assert other.float().mean() < 0.01  # the next number, or that behind it


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: 0.5 * a * (1 + torch.erf(a / math.sqrt(2))),
        lambda a: 0.5 * a * (1 + torch.tanh(0.8 * (a + 0.04 * a**3))),
    ],
    ids=["erf", "tanh"],
)
def test_written_out_gelus_do_not_cancel(fn: Callable[..., Any]) -> None:
    x = torch.linspace(-5, 5, 999)

    def exact(a: torch.Tensor) -> torch.Tensor:
        return fn(a.double()).float()

    agrees(plan(fn, x), exact, x)


ROWS = torch.stack(
    [
        torch.full((2000,), -INF),
        torch.full((2000,), INF),
        torch.cat([FINITE[:4], torch.randn(1996)]),
        torch.cat([torch.randn(1900), EDGES[:7], torch.randn(93)]),
        torch.randn(2000) * 1e4,
        torch.zeros(2000),
        torch.full((2000,), 1e-41),
    ]
)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.softmax(-1),
        lambda x: x.log_softmax(-1),
        lambda x: x.sum(-1),
        lambda x: x.amax(-1),
        lambda x: x.amin(0),
        lambda x: torch.logsumexp(x, 1),
        lambda x: x.mean(-1),
    ],
    ids=["softmax", "log_softmax", "sum", "amax", "amin", "logsumexp", "mean"],
)
def test_rows_of_special_values_reduce_as_in_pytorch(fn: Callable[..., Any]) -> None:
    agrees(plan(fn, ROWS), fn, ROWS, loose=10.0)


def test_long_sums_do_not_drift() -> None:
    x = torch.rand(20000, 3)

    def exact(a: torch.Tensor) -> torch.Tensor:
        return a.double().sum(0).float()

    agrees(plan(lambda a: a.sum(0), x), exact, x, loose=0.05)


def test_a_constant_row_has_exactly_its_value_as_mean() -> None:
    x = torch.full((3, 1000), 10000.0)
    agrees(plan(lambda a: a - a.mean(1, keepdim=True), x), torch.zeros_like, x)
