"""Error bounds: every order of summation passes, on every seed, and a missing term does not."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from npusmith.task import error_bounds
from npusmith.task.error_bounds import find_bounds
from npusmith.task.golden import Golden
from npusmith.task.tolerance import compare
from npusmith.task.user import check_inputs, run_model

Array = np.ndarray
FLOAT = np.float32


def by_one(x: Array) -> Array:
    return np.cumsum(x, axis=1, dtype=FLOAT)[:, -1]


def by_pairs(x: Array) -> Array:
    while x.shape[1] > 1:
        x = np.pad(x, ((0, 0), (0, x.shape[1] % 2)))
        x = x[:, ::2] + x[:, 1::2]
    return x[:, 0]


def by_lanes(x: Array, lanes: int) -> Array:
    parts = np.pad(x, ((0, 0), (0, -x.shape[1] % lanes))).reshape(x.shape[0], -1, lanes)
    total = np.zeros((x.shape[0], lanes), FLOAT)
    for at in range(parts.shape[1]):
        total = total + parts[:, at]
    return by_pairs(total)


def shuffled(x: Array, seed: int) -> Array:
    return x[:, np.random.default_rng(seed).permutation(x.shape[1])]


ORDERS: dict[str, Callable[[Array], Array]] = {
    "pairs": by_pairs,
    "one by one": by_one,
    "backwards": lambda x: by_one(x[:, ::-1]),
    "8 lanes": lambda x: by_lanes(x, 8),
    "64 lanes": lambda x: by_lanes(x, 64),
    "512 lanes": lambda x: by_lanes(x, 512),
    "shuffled": lambda x: by_one(shuffled(x, 1)),
    "shuffled lanes": lambda x: by_lanes(shuffled(x, 2), 64),
    "largest first": lambda x: by_one(np.take_along_axis(x, np.argsort(-np.abs(x), 1), 1)),
}


class Call(torch.nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*args)


class Case:
    """A function on inputs: what the judge knows of it."""

    def __init__(self, function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> None:
        model = Call(function)
        given = check_inputs(list(inputs), "task.py", "inputs")
        native = [function(*inputs)]
        golden, said = Golden(model, "task.py").run(given, native)
        assert not said
        bounds = find_bounds(model, given, native, golden, "task.py")
        self.native, self.golden = native[0].numpy(), golden[0].numpy()
        self.bound = bounds[0].numpy() if bounds else None

    def message(self, answer: Array) -> str:
        answer = np.asarray(answer, self.native.dtype).reshape(self.native.shape)
        return compare(answer, self.native, self.golden, "strict", self.bound).message


def large(seed: int, *shape: int) -> torch.Tensor:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return x * (1e15 / x.abs().max())


def rows_sum(x: torch.Tensor) -> torch.Tensor:
    return x.sum(dim=1)


@pytest.mark.parametrize("seed", range(8))
def test_nine_orders_of_summation_pass_where_terms_cancel(seed: int) -> None:
    x = large(seed, 4000, 600)
    case, values = Case(rows_sum, x), x.numpy()
    for name, order in ORDERS.items():
        assert case.message(order(values)) == "", name


@pytest.mark.parametrize("seed", range(8))
def test_they_pass_for_a_single_sum_too(seed: int) -> None:
    x = large(seed, 1, 20_000)
    case, values = Case(lambda x: x.sum(), x), x.numpy()
    for name, order in ORDERS.items():
        assert case.message(order(values)) == "", name


@pytest.mark.parametrize("seed", range(4))
def test_a_missing_a_double_and_a_rounded_term_fail(seed: int) -> None:
    x = large(seed, 4000, 600)
    case, values = Case(rows_sum, x), x.numpy()
    assert case.message(by_pairs(values[:, 1:]))
    assert case.message(by_one(np.concatenate([values, values[:, -1:]], axis=1)))
    assert case.message(by_pairs(x.bfloat16().float().numpy()))
    one = by_pairs(values)
    one[1234] = by_pairs(values[1234:1235, :-1])[0]  # in one row of thousands
    assert "flat index 1234" in case.message(one)


def test_halves_may_not_be_added_up_in_halves() -> None:
    x = torch.randn(64, 4096, generator=torch.Generator().manual_seed(1)).half()
    case = Case(rows_sum, x)
    assert case.message(by_lanes(x.float().numpy(), 64)) == ""
    assert case.message(np.cumsum(x.numpy(), axis=1, dtype=np.float16)[:, -1])


def test_a_product_of_matrices_may_be_added_up_in_pieces() -> None:
    a, b = large(1, 32, 700) / 1e10, large(2, 700, 40) / 1e10
    case = Case(torch.mm, a, b)
    pieces = [a.numpy()[:, at : at + 64] @ b.numpy()[at : at + 64] for at in range(0, 700, 64)]
    assert case.message(np.sum(np.stack(pieces), axis=0, dtype=FLOAT)) == ""
    assert case.message(np.sum(np.stack(pieces[:-1]), axis=0, dtype=FLOAT))
    short = a.bfloat16().float().numpy() @ b.numpy()
    assert case.message(short)


@pytest.mark.parametrize("size", [1.0, 100.0])  # magnitudes of 2.5 million are none of 16 bits
def test_a_long_product_of_16_bits_may_be_added_up_one_by_one(size: float) -> None:
    """PyTorch adds up in blocks, and its own nearness to the truth says nothing of that."""
    generator = torch.Generator().manual_seed(3)
    a, b = ((torch.rand(200, 200, generator=generator) * 2 - 1) * size for _ in range(2))
    a, b = a.repeat(1, 10).half(), b.repeat(10, 1).half()
    case = Case(torch.mm, a, b)
    assert case.bound is not None and np.isfinite(case.bound).any() and case.bound.any()
    sums = np.zeros((200, 200), FLOAT)
    for k in range(a.shape[1]):
        sums += a.float().numpy()[:, k : k + 1] * b.float().numpy()[k : k + 1]
    assert case.message(sums) == ""
    assert case.message(sums + 0.01 * np.abs(sums).mean())


def norm(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), eps=1e-5)


def by_moments(x: Array, count: int, eps: float) -> Array:
    mean = by_lanes(x, 64)[:, None] / FLOAT(x.shape[1])
    square = by_lanes((x - mean) ** 2, 64)[:, None] / FLOAT(count)
    return (x - mean) / np.sqrt(square + FLOAT(eps))


def test_a_norm_by_lanes_passes_and_one_with_another_count_or_eps_does_not() -> None:
    x = torch.randn(64, 500, generator=torch.Generator().manual_seed(3))
    case, values = Case(norm, x), x.numpy()
    assert case.message(by_moments(values, 500, 1e-5)) == ""
    assert case.message(by_moments(values, 499, 1e-5))
    small = x * 1e-3
    case, values = Case(norm, small), small.numpy()
    assert case.message(by_moments(values, 500, 1e-5)) == ""
    assert case.message(by_moments(values, 500, 0.0))


def longer(x: torch.Tensor) -> torch.Tensor:
    return F.interpolate(x, scale_factor=3, mode="linear")


def by_places(x: Array, away: float, dtype: type[np.floating]) -> Array:
    """Linear interpolation with places that are rounded twice; `away`: all of them moved."""
    near = np.arange(3 * x.shape[-1]).astype(dtype)
    place = (near + dtype(0.5)) * dtype(FLOAT(1.0 / 3.0)) - dtype(0.5) + dtype(away)
    low = np.floor(np.maximum(place, 0)).astype(np.int64)
    part = (np.maximum(place, 0) - low).astype(FLOAT)
    below, above = (x[..., np.minimum(i, x.shape[-1] - 1)] for i in (low, low + 1))
    return (1 - part) * below + part * above


def test_places_between_far_elements_are_rounded_as_well() -> None:
    x = torch.randn(2, 1, 8405, generator=torch.Generator().manual_seed(5))
    case, values = Case(longer, x), x.numpy()
    assert case.message(by_places(values, 0.0, FLOAT)) == ""
    assert case.message(by_places(values, 0.0, np.float64)) == ""
    assert case.message(by_places(values, 0.01, FLOAT))


def test_where_nothing_cancels_there_is_no_bound() -> None:
    x = torch.rand(64, 256, generator=torch.Generator().manual_seed(3)) + 0.5
    assert Case(lambda x: torch.softmax(x, -1), x).bound is None
    assert Case(lambda x: x * 2, x).bound is None


def test_few_values_that_stand_in_every_row_are_as_few() -> None:
    """That PyTorch is near in nine numbers is luck, however large the batch."""
    x = torch.rand(9, 256, generator=torch.Generator().manual_seed(3)) + 0.5
    assert Case(lambda x: x.mean(1), x).bound is not None
    assert Case(lambda x: x.mean(1).expand(800, 9) * 1, x).bound is not None


@pytest.mark.parametrize("profile", ["multikernelbench", "npukernelbench", "cann-bench"])
def test_published_rules_forgive_nothing(profile: str) -> None:
    native = np.full(1000, 100.0, FLOAT)
    answer, bound = native * FLOAT(1.01), np.full(1000, 10.0, FLOAT)
    wide = native.astype(np.float64)
    assert compare(answer, native, wide, "strict", bound).passed
    assert not compare(answer, native, wide, profile, bound).passed


def test_the_element_that_is_named_is_the_one_that_failed() -> None:
    native = np.full(1000, 100.0, FLOAT)
    answer = native.copy()
    answer[10] += 0.02  # within its bound, though no published rule allows it
    answer[700] += 3
    bound = np.zeros(1000, FLOAT)
    bound[10] = 0.1
    found = compare(answer, native, native.astype(np.float64), "strict", bound)
    assert "1 of 1000" in found.message and "flat index 700: 103.0" in found.message


def test_noise_goes_through_writes_in_place_views_and_parameters(write_task, prepare_here):
    task = write_task(
        init="self.norm = nn.BatchNorm1d(8); self.line = nn.Linear(8, 8)",
        forward="y = self.line(self.norm(x)).t().contiguous()\ny.add_(1).mul_(2)\nreturn y.sum()",
        inputs="[torch.randn(16, 8)]",
    )
    manifest = prepare_here(task, seeds=(1, 2), edges=True)
    assert all(len(item.bounds) == 1 for item in manifest.trials)
    assert manifest.trials[0].bounds[0].dtype == "float32"


def sums_of_sorted(x: torch.Tensor) -> torch.Tensor:
    """Down to a large sum, and back to a small one: PyTorch adds in float64 and rounds."""
    return torch.cumsum(torch.sort(x, dim=0).values, 0)


@pytest.mark.parametrize("seed", range(4))
def test_running_sums_in_float32_pass_though_pytorch_adds_in_float64(seed: int) -> None:
    x = torch.randn(4129, 26, generator=torch.Generator().manual_seed(seed))
    case, values = Case(sums_of_sorted, x), np.sort(x.numpy(), axis=0)
    assert case.message(np.cumsum(values, axis=0, dtype=FLOAT)) == ""
    pieces = [values[at : at + 64].cumsum(axis=0, dtype=FLOAT) for at in range(0, 4129, 64)]
    for before, after in itertools.pairwise(pieces):
        after += before[-1]
    assert case.message(np.concatenate(pieces)) == ""
    assert case.message(np.cumsum(values, axis=0, dtype=FLOAT) - values[2000])
    less = values.copy()
    less[1000, 3] = 0
    assert "flat index" in case.message(np.cumsum(less, axis=0, dtype=FLOAT))


def test_a_running_product_may_round_at_every_factor() -> None:
    x = torch.rand(8, 3000, generator=torch.Generator().manual_seed(1)) * 0.02 + 0.99
    case, values = Case(lambda x: torch.cumprod(x, 1), x), x.numpy()
    assert case.message(np.cumprod(values, axis=1, dtype=FLOAT)) == ""
    values = values.copy()
    values[:, 7] *= FLOAT(1.001)
    assert case.message(np.cumprod(values, axis=1, dtype=FLOAT))


def test_two_roundings_that_undo_each_other_leave_a_bound() -> None:
    """A kernel that rounds once is one unit off where PyTorch rounds twice."""

    def pooled(x: torch.Tensor) -> torch.Tensor:
        rounded = F.avg_pool1d(x, 2, 1)
        return F.selu(rounded).float()

    x = torch.randn(513, 260, generator=torch.Generator().manual_seed(2)).bfloat16()
    case = Case(pooled, x)
    wide = F.selu(F.avg_pool1d(x.float(), 2, 1))
    assert case.message(wide.bfloat16().float().numpy()) == ""
    assert case.message((wide * 1.05).bfloat16().float().numpy())


def spread(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return (x * s).std(unbiased=False)


def test_squares_that_overflow_may_be_no_numbers_where_pytorch_squares_in_float64() -> None:
    x, s = large(1, 31), torch.tensor(1e15)
    case = Case(spread, x, s)
    assert np.isfinite(case.native) and case.bound is not None and np.isinf(case.bound)
    for answer in (np.nan, np.inf):
        assert case.message(np.array(answer)) == ""
    ordinary = Case(spread, x / 1e15, torch.tensor(1.0))
    assert ordinary.bound is not None and np.isfinite(ordinary.bound).all()
    assert ordinary.message(np.array(np.nan))


def weighted(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w) * 1e-20


def test_a_sum_that_overflows_may_be_infinite_or_no_number() -> None:
    x, w = 1e20 * torch.ones(40, 16), 1e20 * torch.ones(16, 30)
    w[:, ::2] *= torch.arange(16)[:, None] % 2 * 2.0 - 1  # fused steps end in infinity even here
    case = Case(weighted, x, w)
    assert case.bound is not None and np.isinf(case.bound).all()
    for answer in (np.inf, np.nan):
        assert case.message(np.full((40, 30), answer)) == ""
    x[0, 0] = torch.inf  # one that was given, beside positive terms, is what comes out
    case = Case(weighted, x, w.abs() * 1e-20)
    assert np.isinf(case.native[0]).all()
    assert case.bound is None or not np.isinf(case.bound).any()


class Heads(torch.nn.MultiheadAttention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x, x, x)[0]


def test_attention_as_one_call_has_the_bounds_of_its_products() -> None:
    torch.manual_seed(3)
    heads = Heads(64, 4, batch_first=True).eval().requires_grad_(False)
    case = Case(heads, torch.rand(2, 40, 64))
    assert case.bound is not None
    # elements of which little is left are as far apart as the terms of their sums
    assert case.bound.min() > 2.0**-24 * np.median(np.abs(case.native))


def test_an_infinity_that_fused_attention_skips_is_no_evidence() -> None:
    q, k, v = (torch.randn(2, 4, 40, 16).half() for _ in range(3))
    k[0, 0, 3, 2] = torch.inf
    case = Case(F.scaled_dot_product_attention, q, k, v)
    composed = torch.ops.aten._scaled_dot_product_attention_math(q, k, v)[0].numpy()
    odd = np.isnan(composed) & ~np.isnan(case.native)
    assert odd.any() and case.bound is not None and np.isinf(case.bound[odd]).all()
    assert case.message(composed) == ""
    composed[1, 0, 0, 0] = np.nan
    assert case.message(composed)


def test_a_rounding_that_decides_between_three_values_may_decide_otherwise() -> None:
    values = torch.randn(4, 40, generator=torch.Generator().manual_seed(3))
    scores = torch.tensor([1000.0, 999.5, 999.5, 500.0]).repeat(64, 1).half()

    def pick(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return torch.softmax((scores * 64).to(values.dtype), -1) @ values

    model = Call(lambda *args: pick(*args).half())
    given = check_inputs([scores, values], "task.py", "inputs")
    native = model(scores, values)
    (bound,) = error_bounds._moves(model, given, [native], "task.py", run_model)
    assert torch.equal(native[0], values[0].half())
    far = (values[:3].mean(0) - values[0]).abs()  # of a kernel to which the three are equal
    assert (8 * bound >= far).all()
    assert (bound <= 2.1 * values[:3].abs().amax(0) + 1e-2).all()


def test_what_several_steps_give_is_rounded_once_to_its_type() -> None:
    x = torch.randn(40, 30, generator=torch.Generator().manual_seed(3)).bfloat16()
    case = Case(lambda x: torch.log_softmax(x, -1).half().float(), x)
    finer = torch.log_softmax(x.float(), -1).half().float()  # not by way of bfloat16
    assert case.message(finer.numpy()) == ""
    assert case.message((finer * 1.05).numpy()) != ""


def test_indices_and_truth_values_of_rounded_numbers_may_differ_where_they_are_near() -> None:
    x = torch.randn(4000, 64, generator=torch.Generator().manual_seed(5)).bfloat16()
    w = torch.randn(64, generator=torch.Generator().manual_seed(6)).bfloat16()
    case = Case(lambda x: (x * w + x * x).argmax(-1), x)
    wide = x.float() * w.float() + x.float() * x.float()  # rounded nowhere on the way
    top = wide.topk(2, -1).values
    answer = wide.argmax(-1).numpy()
    differ = answer != case.native
    assert differ.sum() > 10 and case.message(answer) == ""
    terms = (x.float() * w.float()).abs() + x.float() * x.float()
    far = ((top[:, 0] - top[:, 1]) > 0.05 * terms.amax(-1)).numpy()
    assert case.bound is not None and not case.bound[far].any()
    answer[np.flatnonzero(far)[0]] += 1
    assert case.message(answer)
    truth = Case(lambda x: x * 1.1 - 0.3 * x * x > 0.2, x)
    wide = x.float() * 1.1 - 0.3 * x.float() * x.float()
    assert truth.message((wide > 0.2).numpy()) == ""
    assert truth.message((wide > 0.21).numpy())


def test_what_is_decided_by_numbers_that_nothing_has_rounded_is_the_same_for_all() -> None:
    x = torch.randn(50, 64, generator=torch.Generator().manual_seed(5)).half()
    assert Case(lambda x: x.argmax(-1), x).bound is None
    assert Case(lambda x: torch.where(x > 0.5, x, -x).sort(-1)[1], x).bound is None


def test_subnormal_numbers_are_rounded_by_as_much_as_the_least_of_them() -> None:
    x = (torch.randn(500, 16, generator=torch.Generator().manual_seed(5)) * 1e-39).bfloat16()
    case = Case(lambda x: (x * 0.4).argmax(-1), x)
    assert case.message((x.float() * 0.4).argmax(-1).numpy()) == ""


def test_boundaries_near_zero_are_as_far_off_as_their_ends_are_rounded() -> None:
    x = torch.randn(300, generator=torch.Generator().manual_seed(5)) * 1e-39
    case = Case(lambda x: torch.bucketize(x, torch.linspace(-2, 2, 15)), x)
    edges = torch.linspace(-2, 2, 15, dtype=torch.float64).float()
    edges[7] = 0.0
    found = torch.bucketize(x, edges).numpy()
    assert len(set(found.tolist())) == 2 and case.message(found) == ""
    assert case.message(found + 3)


def test_places_of_a_sampler_are_rounded_and_what_lies_beside_them_is_named_exactly() -> None:
    random = torch.Generator().manual_seed(5)
    x, size = torch.rand(1, 2, 200, 200, generator=random), 200
    grid = torch.rand(1, 200, 200, 2, generator=random) * 1.8 - 0.9
    case = Case(lambda x, g: F.grid_sample(x, g, align_corners=False), x, grid)
    at = (grid * (size / 2) + (size - 1) / 2)[0].numpy()  # PyTorch: ((grid + 1) * size - 1) / 2
    low = np.floor(at)
    (rx, ry), (cx, cy) = np.moveaxis(at - low, -1, 0), np.moveaxis(low.astype(int), -1, 0)
    v = x[0].numpy()
    answer = (v[:, cy, cx] * (1 - ry) + v[:, cy + 1, cx] * ry) * (1 - rx)
    answer += (v[:, cy, cx + 1] * (1 - ry) + v[:, cy + 1, cx + 1] * ry) * rx
    assert case.message(answer) == ""
    assert case.bound is not None and 1e-6 < case.bound.max() < 1e-3
    assert case.message(answer + 5e-3 * (v.max() - v[:, cy, cx]))


def test_a_run_that_moves_too_much_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    x = large(3, 40, 600)
    assert Case(rows_sum, x).bound is not None
    monkeypatch.setattr(error_bounds, "MOST_MOVED", 30)
    assert Case(rows_sum, x).bound is None


def test_scores_and_weights_of_fused_attention_round_as_well() -> None:
    """PyTorch's one operation: not its last rounding alone."""

    def model(*args: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(*args[:3], attn_mask=args[3])

    torch.manual_seed(0)
    args = [torch.randn(16, 3, count, 40) for count in (3, 28, 28)]
    args.append(torch.rand(3, 28) > 0.4)
    inputs = check_inputs(args, "task.py", "inputs")
    references = run_model(model, inputs.args(), "task.py")
    golden = model(*(item.double() for item in args[:3]), args[3])
    (bound,) = find_bounds(model, inputs, references, [golden], "task.py")
    apart = (references[0].double() - golden).abs()
    assert bool((apart <= 8 * bound).all())
    assert float(bound.max()) < 1e-5
