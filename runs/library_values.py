"""Whether operators of ops-nn and ops-math compute what PyTorch does: one written test each.

    python runs/library_values.py --root CHECKOUT [--root CHECKOUT] [NAME ...]

The operators are those of `runs/library.py --every 4` for which a test is written here: random
inputs of a size that several cores share, with rows that end inside of a block. An operator is
right when each output that is compared is within the tolerance of its type. A line for each says
which findings of level error there were; of a right operator they are likely false.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import library
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from npusmith.errors import Level, NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.ir.opname import entry_name
from npusmith.target.chips import find_chip
from npusmith.twin import build, read_project, run
from npusmith.twin.check import type_columns
from npusmith.twin.options import BuildOptions
from npusmith.twin.project import Project

Value = Tensor | None | list[Tensor]
_TORCH = {
    DType.FLOAT16: torch.float16,
    DType.FLOAT32: torch.float32,
    DType.BFLOAT16: torch.bfloat16,
    DType.INT8: torch.int8,
    DType.UINT8: torch.uint8,
    DType.INT16: torch.int16,
    DType.INT32: torch.int32,
    DType.INT64: torch.int64,
    DType.BOOL: torch.bool,
}
_DTYPE = {value: key for key, value in _TORCH.items()}
_CLOSE = {torch.float32: 2e-4, torch.float16: 4e-3, torch.bfloat16: 2e-2}


@dataclass(frozen=True)
class Case:
    """Inputs in OpDef order, and what the outputs have to be; of an output that is not compared
    only shape and type count (`unsure`: positions)."""

    inputs: Sequence[Value]
    wanted: Sequence[Tensor | list[Tensor]]
    attrs: Mapping[str, object] = field(default_factory=dict)
    unsure: tuple[int, ...] = ()
    apart: float = 0.0  # tolerance of a kernel that computes another formula than PyTorch


def draw(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0, low: float = -2.0,
         high: float = 2.0) -> Tensor:  # fmt: skip
    made = torch.Generator().manual_seed(seed + math.prod(shape))
    values = torch.rand(shape, generator=made) * (high - low) + low
    return values.to(dtype)


F16, F32, BF16 = torch.float16, torch.float32, torch.bfloat16
I32, I64 = torch.int32, torch.int64
Make = Callable[[], Case]
CASES: dict[str, Make] = {}


def written(function: Make) -> Make:
    CASES[function.__name__] = function
    return function


def map1(name: str, f: Callable[[Tensor], Tensor], dtype: torch.dtype = F32, low: float = -2.0,
         high: float = 2.0, **attrs: object) -> None:  # fmt: skip
    """An operator of one tensor, element by element."""

    def make() -> Case:
        x = draw(37, 133, dtype=dtype, low=low, high=high)
        y = f(x.float() if x.is_floating_point() else x)
        return Case([x], [y.to(dtype) if y.is_floating_point() else y], attrs)

    CASES[name] = make


def map2(
    name: str,
    f: Callable[[Tensor, Tensor], Tensor],
    dtype: torch.dtype = F32,
    low: float = -2.0,
    high: float = 2.0,
    extra: Sequence[Value] = (),
    **attrs: object,
) -> None:
    """The same of two tensors."""

    def make() -> Case:
        x, z = (draw(37, 133, dtype=dtype, low=low, high=high, seed=s) for s in (0, 7))
        wide = (x.float(), z.float()) if x.is_floating_point() else (x, z)
        y = f(*wide)
        return Case([x, z, *extra], [y.to(dtype) if y.is_floating_point() else y], attrs)

    CASES[name] = make


def lists(
    name: str,
    f: Callable[..., Tensor],
    count: int = 1,
    dtype: torch.dtype = F32,
    scalar: Tensor | None = None,
    low: float = -2.0,
    first: bool = False,
) -> None:
    """A foreach operator: lists of tensors, perhaps a scalar or one for each tensor behind them."""

    def make() -> Case:
        shapes = ((100,), (7, 33), (3000,))
        xs = [[draw(*s, dtype=dtype, low=low, seed=k) for s in shapes] for k in range(count)]
        rows = list(zip(*xs, strict=True))
        each = (
            [None] * 3
            if scalar is None
            else [scalar[0 if len(scalar) == 1 else i] for i in range(3)]
        )
        ys = []
        for row, value in zip(rows, each, strict=True):
            wide = [item.float() for item in row]
            ys.append(f(*wide, *([] if value is None else [float(value)])).to(dtype))
        more: list[Value] = [] if scalar is None else [scalar]
        return Case([*more, *xs] if first else [*xs, *more], [ys])

    CASES[name] = make


def grad(f: Callable[..., Tensor], g: Tensor, *xs: Tensor) -> list[Tensor]:
    leaves = [x.float().requires_grad_() for x in xs]
    f(*leaves).backward(g.float())
    return [leaf.grad.to(x.dtype) for leaf, x in zip(leaves, xs, strict=True)]  # type: ignore[union-attr]


def backward(name: str, f: Callable[[Tensor], Tensor], dtype: torch.dtype = F32, low: float = -2.0,
             high: float = 2.0, extra: Sequence[Value] = (), **attrs: object) -> None:  # fmt: skip
    """A gradient of one tensor: (incoming gradient, input) -> gradient."""

    def make() -> Case:
        g, x = (draw(37, 133, dtype=dtype, low=low, high=high, seed=s) for s in (3, 0))
        return Case([g, x, *extra], grad(f, g, x), attrs)

    CASES[name] = make


# ---- element by element

map1("squared_relu", lambda x: x.relu() ** 2)
map1("celu_v3", lambda x: F.celu(x, 1.5), alpha=1.5)
map1("hard_swish_v2", F.hardswish, low=-5, high=5)
map1("relu_v2", torch.relu)
map1("sigmoid", torch.sigmoid)
map1("swish_v2", lambda x: x * torch.sigmoid(1.5 * x), scale=1.5)
map1("asin_with_agent", torch.asin, low=-0.95, high=0.95)
map1("atan", torch.atan)
map1("cos", torch.cos)
map1("reciprocal", torch.reciprocal, low=0.5)
map1("tan_v2", torch.tan, low=-1, high=1)
map1("ones_like", torch.ones_like)
map1("tensor_move", lambda x: x.clone())
map1("is_finite", torch.isfinite)
map1("is_pos_inf", torch.isposinf)
map1("nan_to_num", torch.nan_to_num, nan=0.0, posinf=3e38, neginf=-3e38)


@written
def gelu() -> Case:
    x = draw(37, 133)
    return Case([x], [F.gelu(x)], apart=1e-3)  # its cubic term is 0.0455, not 0.0447


@written
def silu_mul() -> Case:
    x, y = draw(37, 134), draw(37, 134, seed=7)
    return Case([x, y], [F.silu(x) * y])


map2("add_v2", torch.add)
map2("maximum_v2", torch.maximum)
map2("floor_mod", torch.remainder, low=0.5, high=9)
map2("greater", torch.gt)
map2("less", torch.lt)
map2("equal", lambda x, y: torch.eq(x, y))
map2("log_add_exp", torch.logaddexp)
map2("axpy_v2", lambda x, y: x + 0.5 * y, extra=[torch.tensor([0.5])])
map2("sqrt_grad", lambda y, g: g * 0.5 / y, low=0.5)
map2("acos_grad_v2", lambda y, g: -g / torch.sqrt(1 - y * y), low=-0.9, high=0.9)


@written
def bitwise_and() -> Case:
    x, y = (draw(37, 133, low=-9000, high=9000, seed=s).to(torch.int16) for s in (0, 7))
    return Case([x, y], [x & y])


@written
def logical_not() -> Case:
    x = draw(37, 133) > 0
    return Case([x], [~x])


@written
def select_v2() -> Case:
    c, x, y = draw(37, 133) > 0, draw(37, 133, seed=1), draw(37, 133, seed=2)
    return Case([c, x, y], [torch.where(c, x, y)])


backward("hard_swish_grad_v2", F.hardswish, low=-5, high=5)
backward("hard_sigmoid_grad_v2", F.hardsigmoid, low=-5, high=5)
backward("mish_grad", F.mish, extra=[None])
backward("relu_grad", torch.relu)
backward("softplus_v2_grad", lambda x: F.softplus(x, 1.5, 20.0), beta=1.5, threshold=20.0)
backward("softsign_grad", F.softsign)


# ---- lists of tensors

lists("foreach_add_scalar", lambda x, s: x + s, scalar=torch.tensor([0.5]))
lists("foreach_div_scalar", lambda x, s: x / s, scalar=torch.tensor([0.5]))
lists("foreach_addcdiv_scalar_list", lambda a, b, c, s: a + s * b / c, 3, low=0.5,
      scalar=torch.tensor([0.5, 1.5, -1.0]))  # fmt: skip
lists("foreach_asin", lambda x: torch.asin(x), low=0.0)
lists("foreach_cosh", torch.cosh)
lists("foreach_erf", torch.erf)
lists("foreach_lerp_list", lambda a, b, w: torch.lerp(a, b, w), 3)
lists("foreach_log1p", torch.log1p, low=0.0)
lists("foreach_maximum_scalar_list", lambda x, s: x.clamp(min=s),
      scalar=torch.tensor([0.5, 1.5, -1.0]))  # fmt: skip
lists("foreach_mul_list", torch.mul, 2)
lists("foreach_pow_scalar_and_tensor", lambda x, s: torch.pow(torch.tensor(s), x),
      scalar=torch.tensor([1.5]), first=True)  # fmt: skip
lists("foreach_sigmoid", torch.sigmoid)
lists("foreach_sqrt", torch.sqrt, low=0.0)
lists("foreach_tan", lambda x: torch.tan(x), low=0.0)


# ---- losses


@written
def huber_loss() -> Case:
    x, y = draw(37, 133), draw(37, 133, seed=1)
    return Case([x, y], [F.huber_loss(x, y, delta=1.0, reduction="none")], {"delta": 1.0})


@written
def l2_loss() -> Case:
    x = draw(37, 133)
    return Case([x], [(x * x).sum().reshape(1) / 2])


@written
def mse_loss_grad_v2() -> Case:
    x, y, g = draw(37, 133), draw(37, 133, seed=1), draw(37, 133, seed=2)
    return Case([x, y, g], [(x - y) * 2 / x.numel() * g], {"reduction": "mean"})


@written
def smooth_l1_loss_grad_v2() -> Case:
    x, y, g = draw(37, 133), draw(37, 133, seed=1), draw(37, 133, seed=2)
    (wanted,) = grad(lambda t: F.smooth_l1_loss(t, y, reduction="none"), g, x)
    return Case([x, y, g], [wanted], {"sigma": 1.0, "reduction": "none"})


@written
def gaussian_nll_loss_grad() -> Case:
    x, y, v, g = (
        draw(37, 133),
        draw(37, 133, seed=1),
        draw(37, 133, low=0.5, seed=2),
        draw(1, seed=3),
    )

    def loss(a: Tensor, b: Tensor) -> Tensor:
        return F.gaussian_nll_loss(a, y, b, reduction="mean").reshape(1)

    return Case(
        [g, x, y, v], grad(loss, g, x, v), {"reduction": "mean", "eps": 1e-6, "full": False}
    )


@written
def cross_entropy_loss() -> Case:
    x, t = draw(40, 200), torch.arange(40) % 200
    loss = F.cross_entropy(x, t).reshape(1)
    return Case(
        [x, t, None], [loss, F.log_softmax(x, 1), loss, torch.empty(40)], {"reduction": "mean"},
        (2, 3),
    )  # fmt: skip


@written
def softmax_grad() -> Case:
    y, g = draw(37, 133).softmax(1), draw(37, 133, seed=1)
    return Case([y, g], [torch._softmax_backward_data(g, y, 1, F32)])


@written
def log_softmax_grad() -> Case:
    y, g = draw(37, 133).log_softmax(1), draw(37, 133, seed=1)
    return Case([g, y], [torch._log_softmax_backward_data(g, y, 1, F32)], {"axis": [-1]})


# ---- normalisations, reductions


def rms(x: Tensor, gamma: Tensor, eps: float = 1e-6) -> tuple[Tensor, Tensor]:
    rstd = torch.rsqrt((x.float() ** 2).mean(-1, keepdim=True) + eps)
    return x * rstd * gamma, rstd


@written
def gemma_rms_norm() -> Case:
    x, gamma = draw(37, 256), draw(256, seed=1)
    y, rstd = rms(x, 1 + gamma)
    return Case([x, gamma], [y, rstd], {"epsilon": 1e-6})


@written
def group_norm_swish() -> Case:
    x, g, b = draw(4, 16, 64), draw(16, seed=1), draw(16, seed=2)
    y, mean, rstd = torch.native_group_norm(x, g, b, 4, 16, 64, 4, 1e-5)
    return Case(
        [x, g, b], [F.silu(y), mean, rstd], {"num_groups": 4, "eps": 1e-5, "activate_swish": True}
    )


@written
def ada_layer_norm_v2() -> Case:
    x, scale, shift = draw(2, 37, 256), draw(2, 256, seed=1), draw(2, 256, seed=2)
    y, mean, rstd = torch.native_layer_norm(x, [256], None, None, 1e-5)
    wanted = y * (1 + scale[:, None]) + shift[:, None]
    return Case([x, scale, shift, None, None], [wanted, mean, rstd], {"epsilon": 1e-5})


@written
def layer_norm_grad_v3() -> Case:
    x, g, w = draw(37, 256), draw(37, 256, seed=1), draw(256, seed=2)
    _, mean, rstd = torch.native_layer_norm(x, [256], w, torch.zeros(256), 1e-5)
    back = torch.ops.aten.native_layer_norm_backward(
        g, x, [256], mean, rstd, w, torch.zeros(256), [True, True, True]
    )
    return Case([g, x, rstd, mean, w], list(back))


@written
def scaled_masked_softmax_v2() -> Case:
    x, mask = draw(2, 4, 32, 64), draw(2, 4, 32, 64, seed=1) > 1.5
    return Case([x, mask], [(x * 0.5).masked_fill(mask, -10000.0).softmax(-1)], {"scale": 0.5})


@written
def reduce_prod_v2() -> Case:
    x = draw(37, 16, low=0.5, high=1.5)
    return Case([x], [x.prod(1)], {"axes": [1], "keepdims": False})


@written
def trace_v2() -> Case:
    x = draw(64, 64)
    return Case([x], [x.trace().reshape(1)])


# ---- moves


@written
def chunk_cat() -> Case:
    xs = [draw(4, 6), draw(4, 10, seed=1)]
    return Case([xs], [torch._chunk_cat(xs, 0, 2)], {"dim": 0, "num_chunks": 2})


@written
def concat_dv2() -> Case:
    xs = [draw(40, 16), draw(24, 16, seed=1)]
    return Case([xs], [torch.cat(xs, 0)], {"concat_dim": 0})


@written
def concat_v2() -> Case:
    xs = [draw(40, 16), draw(24, 16, seed=1)]
    return Case([*xs], [torch.cat(xs, 0)], {"d": 0})


@written
def transpose_v2() -> Case:
    x = draw(4, 40, 48, dtype=F16)
    return Case([x, torch.tensor([0, 2, 1], dtype=I32)], [x.transpose(1, 2).contiguous()])


@written
def slice_v3() -> Case:
    x = draw(40, 64, dtype=F16)
    return Case([x, torch.tensor([3, 16]), torch.tensor([20, 32])], [x[3:23, 16:48].contiguous()])


@written
def diag_part() -> Case:
    x = draw(64, 64)
    return Case([x], [x.diagonal().contiguous()])


@written
def expandv() -> Case:
    x = draw(1, 64)
    return Case([x], [x.expand(37, 64).contiguous()], {"shape": [37, 64]})


@written
def fill_diagonal_v2() -> Case:
    x = draw(48, 48)
    return Case([x, torch.tensor([3.0])], [x.clone().fill_diagonal_(3.0)], {"wrap": False})


@written
def segsum() -> Case:
    x = draw(1, 2, 8, 16)
    s = x.cumsum(-1)
    low = torch.tril(torch.ones(16, 16, dtype=torch.bool))
    wanted = (s[..., :, None] - s[..., None, :]).masked_fill(~low, -math.inf)
    return Case([x], [wanted.exp()])


@written
def scatter_nd_update() -> Case:
    var, at, new = draw(64, 32), torch.arange(0, 20, dtype=I32)[:, None] * 3, draw(20, 32, seed=1)
    wanted = var.clone()
    wanted[at[:, 0].long()] = new
    return Case([var, at, new], [wanted])


@written
def repeat_interleave_grad() -> Case:
    g, repeats = draw(40, 64), torch.full((20,), 2, dtype=I32)
    return Case([g, repeats], [g.reshape(20, 2, 64).sum(1)], {"axis": 0})


@written
def non_finite_check() -> Case:
    xs = [draw(100), draw(70, seed=1)]
    xs[1][3] = math.inf
    return Case([xs], [torch.ones(1)])


# ---- optimizers, cells


@written
def adam_apply_one() -> Case:
    grad_, v, m, var = (draw(37, 133, seed=s, low=0.1) for s in range(4))
    lr, b1, c1, b2, c2, eps = (torch.full((37, 133), x) for x in (0.01, 0.9, 0.1, 0.99, 0.01, 1e-4))
    new_v = v * b2 + grad_ * grad_ * c2
    new_m = m * b1 + grad_ * c1
    wanted = [new_v, new_m, var - new_m / (new_v.sqrt() + eps) * lr]
    return Case([grad_, v, m, var, lr, b1, c1, b2, c2, eps], wanted)


@written
def thnn_fused_lstm_cell() -> Case:
    gates, hidden, cx = draw(16, 256), draw(16, 256, seed=1), draw(16, 64, seed=2)
    b1, b2 = draw(256, seed=3), draw(256, seed=4)
    i, f, g, o = (gates + hidden + b1 + b2).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return Case([gates, hidden, cx, b1, b2], [o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)])


@written
def batch_norm_v3() -> Case:
    x, w, b = draw(4, 16, 8, 8), draw(16, seed=1), draw(16, seed=2)
    mean, var = torch.zeros(16), torch.ones(16)
    y, save_mean, save_rstd = torch.native_batch_norm(
        x, w, b, mean.clone(), var.clone(), True, 0.1, 1e-5
    )
    count = 4 * 64
    new_mean = mean * 0.9 + x.mean((0, 2, 3)) * 0.1
    new_var = var * 0.9 + x.var((0, 2, 3), unbiased=True) * 0.1
    assert count == x.numel() // 16
    return Case(
        [x, w, b, mean, var], [y, new_mean, new_var, save_mean, save_rstd],
        {"epsilon": 1e-5, "momentum": 0.1, "is_training": True}, (3, 4),
    )  # fmt: skip


# ---- running


def main(every: int = 4) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, action="append", required=True)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    right = total = alarms = 0
    for root in args.root:
        for base in list(library.operators(root.resolve()))[::every]:
            for name, read in operators_of(base).items():
                if name not in CASES or (args.names and name not in args.names):
                    continue
                said, errors = check(read, CASES[name]())
                total, right = total + 1, right + (not said)
                alarms += bool(not said and errors)
                print(f"{name}: {said or 'right'} {' '.join(errors)}", flush=True)
    print(f"\n{right} of {total} right; {alarms} of these with a finding of level error")


def operators_of(base: Path) -> dict[str, Callable[[], Project]]:
    """What reads each operator of a folder, by the name of its kernel, or else of the folder."""
    try:
        found = library.projects_in(base, BuildOptions())
    except NpusmithError:  # `check` tells what is wrong
        return {base.name: partial(read_project, base)}
    if "" in found:
        return dict.fromkeys((base.name, found[""]().name), found[""])
    return {entry_name(name): read for name, read in found.items()}


def check(read: Callable[[], Project], case: Case) -> tuple[str, list[str]]:
    """What is wrong ("" for nothing), and the findings of level error."""
    try:
        project = read()
        dtypes = columns(project, case)
        if dtypes is None:
            return "no column of types fits the test", []
        made = build(project, find_chip("910B2"), dtypes)
        outputs = [shapes(value) for value in case.wanted]
        done = run(made, [arrays(value) for value in case.inputs], outputs, dict(case.attrs))
    except NpusmithError as error:
        return f"{error.code}: {str(error)[:200]}", []
    errors = sorted({f"{f.code}@{Path(f.file).name}:{f.line}" for f in done.findings
                     if f.level is Level.ERROR})  # fmt: skip
    if not done.completed:
        return "did not complete", errors
    left = iter(done.outputs)
    for at, value in enumerate(case.wanted):
        for item in value if isinstance(value, list) else [value]:
            got = torch.from_numpy(np.asarray(next(left)).astype(np.float64))
            if at not in case.unsure and not close(got, item, case.apart):
                apart = (got - item.double()).abs().max()
                return f"output {at} differs by {apart:.3g}", errors
    return "", errors


def close(got: Tensor, wanted: Tensor, apart: float) -> bool:
    most = max(_CLOSE.get(wanted.dtype, 0.0), apart)
    return torch.allclose(got, wanted.double(), rtol=most, atol=most, equal_nan=True)


def columns(project: Project, case: Case) -> tuple[DType, ...] | None:
    """The first combination of declared types that has those of the test."""
    given = [*case.inputs, *case.wanted]
    for column in type_columns(project):
        pairs = zip(column, given, strict=True)
        if all(value is None or dtype is type_of(value) for dtype, value in pairs):
            return column
    return None


def type_of(value: Value) -> DType:
    return _DTYPE[(value[0] if isinstance(value, list) else value).dtype]  # type: ignore[index,union-attr]


def arrays(value: Value) -> object:
    if value is None:
        return None
    if isinstance(value, list):
        return [array(item) for item in value]
    return array(value)


def array(value: Tensor) -> np.ndarray:
    if value.dtype is BF16:
        return value.detach().float().numpy().astype(DType.BFLOAT16.numpy)
    return np.ascontiguousarray(value.detach().numpy())


def shapes(value: Tensor | list[Tensor]) -> object:
    if isinstance(value, list):
        return [shapes(item) for item in value]
    return tuple(value.shape), _DTYPE[value.dtype]


if __name__ == "__main__":
    main()
