"""What the writer makes of a module computes what the module computes, at other sizes as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, general_program, plan
from torch import nn

from npusmith.ir.text import show

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

torch.manual_seed(1)
R = torch.randn
Case = tuple[Any, list[tuple[torch.Tensor, ...]]]

# One row, one column, primes, several tiles, more rows than cores.
PLANE = [(R(6, 10),), (R(1, 1),), (R(3, 2503),), (R(37, 13),)]
CUBE = [(R(4, 5, 6),), (R(1, 1, 1),), (R(2, 131, 17),), (R(2, 3, 1301),)]
LINE = [(R(40),), (R(1),), (R(5003),)]
PAIR = [(torch.rand(6, 10), torch.rand(6, 10)), (torch.rand(7, 1301), torch.rand(7, 1301))]
IMAGE = [(R(2, 6, 3, 5),), (R(3, 6, 9, 151),), (R(5, 6, 1, 1),)]


def filled(model: nn.Module) -> nn.Module:
    """The module with parameters and statistics that are not all ones and zeros."""
    for item in model.parameters():
        nn.init.normal_(item)
    for name, item in model.named_buffers():
        if "mean" in name:
            item.normal_()
        if "var" in name:
            item.uniform_(0.5, 2.0)
    return model


class ChannelsLast(nn.Module):
    """Layer normalization over channels, between two permutations that cancel."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = filled(nn.LayerNorm(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def lamb(weight: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    return weight - 0.1 * (torch.norm(weight) / torch.norm(step)) * step


def adam(w: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> Any:
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    return w - 0.01 * m / (v.sqrt() + 1e-8), m, v


def before(x: torch.Tensor, dim: int) -> torch.Tensor:
    """The exclusive scan as models write it."""
    zeros = torch.zeros_like(x.select(dim, 0).unsqueeze(dim))
    return torch.cat((zeros, x.narrow(dim, 0, x.size(dim) - 1).cumsum(dim)), dim)


def behind(x: torch.Tensor) -> torch.Tensor:
    return x.flip(1).cumsum(1).flip(1)


CASES: dict[str, Case] = {
    # pointwise, with broadcasting
    "gelu": (F.gelu, LINE),
    "adam": (
        adam,
        [tuple(torch.rand(6, 10) for _ in range(4)), tuple(torch.rand(3, 1301) for _ in range(4))],
    ),
    "row and column": (lambda a, b: a * b, [(R(5, 1), R(1, 7)), (R(11, 1), R(1, 1501))]),
    "three operands": (
        lambda a, b, c: a + b * c,
        [(R(3, 1, 7), R(1, 5, 7), R(5, 1)), (R(2, 1, 1501), R(1, 4, 1501), R(4, 1))],
    ),
    "a 0-dim operand": (
        lambda a, b: a * b,
        [(R(5, 7), torch.tensor(2.5)), (R(3, 1501), torch.tensor(-1.0))],
    ),
    "0-dim alone": (lambda a, b: (a * b, a + 1), [(torch.tensor(2.0), torch.tensor(3.0))]),
    "a row picks": (
        lambda c, x, y: torch.where(c[:, None], x, y),
        [(R(5) > 0, R(5, 7), R(5, 7)), (R(9) > 0, R(9, 1501), R(9, 1501))],
    ),
    "outputs repeat": (lambda x: (x * 2, x * 2, x), PLANE[:3]),
    "expand": (lambda x: x[:, None].expand(-1, 3), LINE),
    "repeat": (lambda x: x.repeat(2, 3) + 1, PLANE[:3]),
    # reductions
    "sum last": (lambda x: x.sum(-1), PLANE),
    "sum first": (lambda x: x.sum(0), PLANE),
    "sum middle": (lambda x: x.sum(1), CUBE),
    "sum around": (lambda x: x.sum((0, 2)), CUBE),
    "sum all": (lambda x: x.abs().sum(), CUBE),
    "mean of two": (lambda x: x.square().mean((1, 2), keepdim=True), CUBE),
    "largest and smallest": (lambda x: (x.amax(1), x.amin(), x.max(2)[0]), CUBE),
    "product": (lambda x: ((x * 0.1 + 1).prod(1), (x * 0.01 + 1).prod()), PLANE),
    "variance": (lambda x: (x.var(1, unbiased=False), x.std(0, unbiased=False)), PLANE),
    "unbiased": (lambda x: x.var(1), [(R(6, 10),), (R(3, 2503),)]),
    "norms": (lambda x: (torch.norm(x, dim=1), torch.norm(x, p=1), x / torch.norm(x)), PLANE),
    "cubic norm": (lambda x: torch.linalg.vector_norm(x, 3, dim=1), PLANE),
    "any and all": (lambda x: ((x > 1).any(1), (x > -2).all(0), (x > 0).any()), PLANE),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), PLANE),
    "reduction of a reduction": (lambda x: x.sum(2).amax(1).mean(), CUBE),
    "two axes of four": (lambda x: x - x.mean((1, 3), keepdim=True), IMAGE),
    "sum of an outer product": (
        lambda a, b: (a[:, None] * b[None, :]).sum(1),
        [(R(5), R(7)), (R(3), R(1501))],
    ),
    "split axis": (lambda x: x.view(x.shape[0], 3, -1).sum(2), [(R(2, 6, 8),), (R(3, 6, 8),)]),
    "window": (
        lambda x: x.reshape(x.shape[0], -1, 4).amax(-1),
        [(R(2, 64),), (R(3, 4),), (R(3, 1200),)],
    ),
    # scans
    "cumsum": (lambda x: x.cumsum(1), PLANE),
    "cumsum of rows": (lambda x: x.cumsum(0), PLANE),
    "cumsum in the middle": (lambda x: x.cumsum(1), CUBE),
    "cumsum of a vector": (lambda x: x.cumsum(0), LINE),
    "cumsum of row means": (lambda x: x.mean(1).cumsum(0), PLANE),
    "cumprod": (lambda x: (1 + x / 10).cumprod(1), PLANE),
    "cumprod in the middle": (lambda x: (1 + x / 10).cumprod(1), CUBE),
    "reverse cumsum": (behind, PLANE),
    "reverse cumsum in the middle": (behind, CUBE),
    "exclusive cumsum": (lambda x: before(x, 1), PLANE),
    "exclusive cumsum in the middle": (lambda x: before(x, 1), CUBE),
    "padded cumsum": (lambda x: F.pad(x.cumsum(1)[:, :-1], (1, 0)), PLANE),
    "masked cumsum": (
        lambda x, m: (x * m).cumsum(1),
        [(R(5, 7), R(5, 7) > 0), (R(2, 2503), R(2, 2503) > 0)],
    ),
    # One sign: where sums of sums cancel, PyTorch's own last bits depend on its vector width.
    "sums of a scan": (lambda x: (x.abs().cumsum(1).sum(1), x.cumsum(1).amax()), PLANE),
    "long sums of a scan": (lambda x: x.abs().cumsum(0).sum(0), [(R(6, 10),), (R(201, 7),)]),
    "scan of a softmax": (lambda x: x.softmax(1).cumsum(1) * 2 + x, PLANE),
    "scan of a scan": (lambda x: x.abs().cumsum(1).cumsum(1), [(R(6, 10),), (R(3, 1301),)]),
    # softmax
    "softmax last": (lambda x: torch.softmax(x, -1), PLANE),
    "softmax middle": (lambda x: torch.softmax(x, 1), CUBE),
    "softmax of a vector": (lambda x: torch.softmax(x, 0), LINE),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), PLANE),
    "masked softmax": (
        lambda x, m: x.masked_fill(m, -torch.inf).softmax(-1),
        [(R(5, 7), R(5, 7) > 0), (R(2, 1501), R(2, 1501) > 0)],
    ),
    "two softmaxes": (lambda x: (x.softmax(0), x.softmax(1)), PLANE),
    # normalizations
    "layer norm": (filled(nn.LayerNorm(10)), [(R(6, 10),), (R(37, 10),), (R(1, 10),)]),
    "long layer norm": (filled(nn.LayerNorm(2503)), [(R(3, 2503),), (R(9, 2503),)]),
    "layer norm over two": (filled(nn.LayerNorm((5, 6))), [(R(4, 5, 6),), (R(1, 5, 6),)]),
    "channels last": (ChannelsLast(), IMAGE[:2]),
    "rms norm": (filled(nn.RMSNorm(10)), [(R(6, 10),), (R(37, 10),)]),
    "rms over channels": (lambda x: x / torch.sqrt((x * x).mean(1, keepdim=True) + 1e-5), CUBE),
    "group norm": (filled(nn.GroupNorm(3, 6)), IMAGE),
    "one group": (filled(nn.GroupNorm(1, 6)), IMAGE),
    "instance norm": (filled(nn.InstanceNorm2d(6, affine=True)), IMAGE[:2]),
    "batch norm": (filled(nn.BatchNorm2d(6)), IMAGE),
    "batch norm of rows": (filled(nn.BatchNorm1d(10)), [(R(6, 10),), (R(37, 10),)]),
    "measured batch norm": (lambda x: F.batch_norm(x, None, None, training=True), IMAGE[:2]),
    "l1 norm": (lambda x: x / x.abs().mean(1, keepdim=True), CUBE),
    "normalize": (F.normalize, CUBE),
    # losses and steps
    "mse": (F.mse_loss, PAIR),
    "huber": (F.huber_loss, PAIR),
    "kl": (F.kl_div, PAIR),
    "binary cross entropy": (F.binary_cross_entropy, PAIR),
    "cosine": (lambda a, b: (1 - F.cosine_similarity(a, b, dim=1)).mean(), PAIR),
    "triplet": (
        nn.TripletMarginLoss(),
        [(R(5, 7), R(5, 7), R(5, 7)), (R(6, 1501), R(6, 1501), R(6, 1501))],
    ),
    "hinge": (
        lambda a, b: torch.clamp(1 - a * b, min=0).mean(),
        [(R(5, 7), R(7)), (R(3, 1501), R(1501))],
    ),
    "cross entropy": (
        F.cross_entropy,
        [(R(5, 7), torch.tensor([1, 2, 3, -100, 0])), (R(3, 1501), torch.tensor([5, 1500, 0]))],
    ),
    "lamb": (lamb, [(R(5, 7), R(5, 7)), (R(6, 701), R(6, 701))]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_module_gives_pytorchs_values_at_every_size_from_one_program(name: str) -> None:
    model, sets = CASES[name]
    made = plan(model, *sets[0])
    for args in sets:
        agrees(made, model, *args, loose=10.0)


@pytest.mark.parametrize("name", ["softmax last", "group norm", "sum around", "lamb"])
def test_the_program_does_not_depend_on_the_captured_sizes(name: str) -> None:
    model, sets = CASES[name]
    first, second = (general_program(plan(model, *args)) for args in sets[:2])
    assert first == second


EMPTY: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(0),
    "softmax": lambda x: x.softmax(1),
    "total": lambda x: x.sum(),
    "variance": lambda x: x.var(1),
    "pointwise": lambda x: x * 2 + 1,
    "scan": lambda x: x.cumsum(1),
    "scan of rows": lambda x: x.flip(0).cumsum(0).flip(0),
}


@pytest.mark.parametrize("name", EMPTY)
def test_tensors_without_elements_go_through_the_same_program(name: str) -> None:
    made = plan(EMPTY[name], R(3, 4))
    for shape in ((0, 4), (4, 0), (0, 0)):
        agrees(made, EMPTY[name], R(*shape))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x * torch.sigmoid(x),
        lambda x: x.softmax(-1),
        lambda x: (x.float().sum(1), x > 0, x),
        lambda x: (x.cumsum(1), before(x, 0)),
    ],
    ids=["swish", "softmax", "several", "scans"],
)
def test_16_bit_types_are_computed_in_float32(fn: Callable[..., Any], dtype: torch.dtype) -> None:
    made = plan(fn, R(6, 10).to(dtype))
    for shape in ((6, 10), (3, 2503)):
        agrees(made, fn, R(*shape).to(dtype))


def test_an_explicit_cast_to_half_rounds() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.half().float() * 3

    agrees(plan(fn, R(5, 7)), fn, R(5, 7))


def _normed(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    h = x.float() + y.float()
    return h.half(), h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: (x.float() * 2 + y).half(),
        lambda x, y: (x.half(), y.t().half()),
        lambda x, y: torch.cat([x, y], 1).half(),
        lambda x, y: torch.cat([(x * 2).half(), (y + 1).half()]),
        lambda x, y: (x * y).sum(-1).half(),
        lambda x, y: torch.zeros_like(x).index_add(0, torch.arange(7) % 2, y).half(),
        _normed,
    ],
)
def test_an_output_that_the_model_rounds_is_rounded_by_its_store_alone(fn: Any) -> None:
    for size in (7, 2503):
        given = torch.rand(7, size), torch.rand(7, size)
        agrees(plan(fn, *given), fn, *given)


def test_rounding_an_output_takes_one_cast() -> None:
    """Rounded and widened before its store, it would take three."""
    made = plan(lambda x, y: ((x * 2).half(), (x + y).half()), R(5, 7), R(5, 7))
    assert show(made.program).count("cast(") == 2


def test_a_cast_that_core_aten_adds_does_not_round() -> None:
    p, t = (torch.rand(6, 40, generator=torch.Generator().manual_seed(i)).half() for i in (1, 2))
    made = plan(lambda p, t: F.kl_div(p.log(), t, reduction="batchmean"), p, t)
    assert show(made.program).count('"rint"') == 1  # the output's own


def test_int32_arithmetic_stays_in_int32() -> None:
    def fn(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * b + 3 - b.clamp(min=-2)

    a = torch.randint(-(2**30), 2**30, (5, 7), dtype=torch.int32)
    b = torch.randint(-50, 50, (7,), dtype=torch.int32)
    agrees(plan(fn, a, b), fn, a, b)


def test_bool_tensors_go_in_and_out() -> None:
    def fn(a: torch.Tensor, b: torch.Tensor) -> Any:
        return (a & b) | ~a, a ^ b, a

    a, b = R(3, 50) > 0, R(3, 50) > 0
    agrees(plan(fn, a, b), fn, a, b)


def test_names_that_the_program_needs_for_itself_are_changed() -> None:
    class Odd(nn.Module):
        def forward(self, size: Any, rows: Any, x_in: Any, new: Any) -> Any:
            return size + rows * x_in - new

    args = (R(5, 7), R(7), R(5, 1), R(5, 7))
    agrees(plan(Odd(), *args), Odd(), *args)


def test_statistics_of_the_whole_beside_the_rows_that_they_need() -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = x.softmax(-1)
        return rows, F.layer_norm(rows, (13, 100))

    args = (R(13, 100),)
    agrees(plan(fn, *args), fn, *args)


POSITIONS = {
    "largest": lambda x: x.max(1),
    "smallest": lambda x: x.min(0, keepdim=True),
    "of all": lambda x: x.argmax(),
    "of a transposition": lambda x: (x.T * 2).argmin(),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_the_place_of_an_extreme_is_the_first_that_holds_it(name: str) -> None:
    made = plan(POSITIONS[name], torch.zeros(4, 5))
    for shape in ((4, 5), (30, 300)):
        agrees(made, POSITIONS[name], torch.randint(0, 4, shape).float())


def _points(*shape: int) -> torch.Tensor:
    return torch.randint(-40, 40, shape).float() / 4


TAKEN_APART: dict[str, Callable[..., Any]] = {
    "remainders": lambda a, b: (torch.remainder(a, b), torch.fmod(a, 2.5), a // b),
    "remainders of large numbers": lambda a, b: (
        torch.remainder(a * 2.0**70, 0.7),
        torch.fmod(a * 2.0**90, -3.3),
        torch.remainder(a, b * 0.3),
    ),
    "angles": lambda a, b: (torch.atan2(a, b), torch.hypot(a, b), torch.copysign(a, b)),
    "gamma": lambda a, b: (torch.lgamma(a.abs() + 0.1), torch.digamma(a.abs() + 0.1)),
    "erfinv": lambda a, b: torch.erfinv(a / 20),
    "elements from elsewhere": lambda a, b: (
        a.masked_scatter(b > 0, b), a.as_strided((3, 4), (1, 2)) + 1,
    ),
    "a running maximum of integers": lambda a, b: (a.int().cummax(1)[0], b.int().cummin(0)[1]),
    "places among edges": lambda a, b: torch.searchsorted(b[0].sort().values, a),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN_APART)
def test_what_the_capture_takes_apart_is_pytorchs(name: str) -> None:
    model = TAKEN_APART[name]
    torch.manual_seed(3)
    args = _points(4, 37), _points(4, 37) + 0.125
    agrees(plan(model, *args), model, *args)


FOUND: dict[str, tuple[Callable[..., Any], list[tuple[torch.Tensor, ...]]]] = {
    "pieces of a stack as many as they are long": (
        lambda a: torch.stack([a.flip(1)] * 3, 0),
        [(R(3, 4, 5),), (R(7, 2, 6),)],
    ),
    "a condition that decides nothing": (
        lambda a, b: torch.where(a < b, b, b),
        [(R(6, 33), torch.tensor(2.0)), (R(4, 1), torch.tensor(3.0))],
    ),
    "an index that two ways need": (
        lambda a, b: (
            torch.cat([F.pad(a, (2, 0, 1, 0), mode="circular").split(31, 2)[0], b], -1)
        ).unfold(-3, 3, 3),
        [(R(5, 3, 34), R(5, 4, 2))],
    ),
    "windows of more than 128 elements": (
        lambda a: F.adaptive_max_pool2d(a.relu(), (2, 1)) + 1,
        [(R(2, 3, 23, 14),)],
    ),
    "a bound with a choice in it": (
        lambda a: F.max_pool1d(torch.roll(a, 5, 1), 4, 2, 0, ceil_mode=True),
        [(R(7, 7),)],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_random_modules_found_is_right(name: str) -> None:
    model, sets = FOUND[name]
    made = plan(model, *sets[0])
    for args in sets:
        agrees(made, model, *args)


def test_a_slice_from_the_end_needs_as_many_elements() -> None:
    made = plan(lambda a: a[:, -3:-1] * 2, R(2, 9))
    assert made.spec.legal and "GE" in str(made.spec.legal) and "value=3" in str(made.spec.legal)


def test_a_half_that_is_the_same_along_a_row_is_laid_along_it_once() -> None:
    model = lambda a: a.repeat_interleave(3, 1)  # noqa: E731
    x = R(7, 96).half()
    agrees(plan(model, x), model, x)


def test_what_one_output_stores_another_may_read() -> None:
    def model(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = a.cumsum(1)
        return total, total + 0

    x = torch.arange(54).reshape(6, 9) << 40
    agrees(plan(model, x), model, x)


def test_an_output_that_is_an_input_has_a_kernel_where_others_are_alone() -> None:
    def model(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return a.sort().values, b

    agrees(plan(model, R(3, 5), R(2, 2)), model, R(3, 5), R(2, 2))
    none = torch.empty(0, 9)
    agrees(plan(lambda a: a.sort(0)[0], none), lambda a: a.sort(0)[0], none)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "model",
    [
        lambda x: torch.softmax(x, -1).to(torch.float32),
        lambda x: (x * x).float().sum(-1),
        lambda x: (x.abs() * 1.1).flip(-1).float(),
    ],
)
def test_what_a_model_converts_from_a_16_bit_type_was_rounded_to_it(
    model: Any, dtype: torch.dtype
) -> None:
    agrees(plan(model, R(3, 77).to(dtype)), model, R(5, 131).to(dtype))


def test_what_was_loaded_is_not_rounded_again() -> None:
    made = plan(lambda x: x.float().sqrt(), torch.rand(3, 77).to(torch.bfloat16))
    assert show(made.program).count("cast(") == 1
