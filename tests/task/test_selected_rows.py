"""Rows that a mask selects, and PyTorch's own looks at values: captures equal to the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from npusmith.errors import TaskError
from npusmith.task.export import Captured, export_graph
from npusmith.task.selected_rows import NOTE
from npusmith.task.user import Inputs

Tensor = torch.Tensor
ROWS, COLUMNS = 6, 20


class Call(nn.Module):
    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, x: Tensor, t: Tensor, m: Tensor) -> Any:
        return self.fn(x, t, m)


def drawn(seed: int, share: float) -> tuple[Tensor, Tensor, Tensor]:
    """Two tensors and a mask with about this share of ones."""
    generator = torch.Generator().manual_seed(seed)
    x, t, m = (torch.randn(ROWS, COLUMNS, generator=generator) for _ in range(3))
    return x, t, m.argsort(1) < share * COLUMNS


def captured(fn: Callable[..., Any]) -> Captured:
    leaves, tree = pytree.tree_flatten(drawn(0, 0.5))
    return export_graph(Call(fn), Inputs(tuple(leaves), tree), "task.py")


def agrees(fn: Callable[..., Any], selects: bool = True) -> None:
    """The captured program gives what the function gives, on masks of many, few, all and none."""
    found = captured(fn)
    assert (NOTE in found.notes) == selects
    program = found.program.module()
    for seed, share in enumerate((0.5, 0.1, 0.9, 1.0, 0.0)):
        given = drawn(seed, share)
        if seed == 2:
            given[0][0, 0], given[1][1, 1] = float("nan"), float("inf")
        try:
            wanted = fn(*(item.clone() for item in given))
        except (RuntimeError, IndexError, ValueError):
            continue  # the largest of no elements, a distribution of NaN
        torch.testing.assert_close(program(*given), wanted, equal_nan=True)


def assigned(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
    y = x.clone()
    y[m] *= 2
    y[~m] = (t * 3)[~m]
    y[m] += t[m].exp()
    return y


def normalised(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
    valid = m[:, 0]
    y, rows = x.clone(), x[valid]
    y[valid] = (rows - rows.mean(0)) / (rows.std(0) + 1e-5)
    return y


def routed(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
    """Each expert on the rows that chose it."""
    weight, chosen = torch.topk(F.softmax(x[:, :3], -1), 2)
    out = torch.zeros_like(x[:, :ROWS])
    for expert in range(3):
        row, k = torch.where(chosen == expert)
        out[row] += F.linear(x[row], t * (expert + 1)) * weight[row, k, None]
    return out


def routed_by_slots(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
    """The same with slots first and sums, as published models have it."""
    weight, chosen = torch.topk(F.softmax(x[:, :3], -1), 2)
    out = torch.zeros_like(x[:, :ROWS])
    slots = F.one_hot(chosen, 3).permute(2, 1, 0)
    for expert in range(3):
        k, row = torch.where(slots[expert])
        rows = x[None, row].reshape(-1, COLUMNS)
        out.index_add_(0, row, F.linear(rows, t * (expert + 1)) * weight[row, k, None])
    return out


def written_last(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
    row, column = torch.where(m[:, :4])
    y = x.clone()
    y[row] = t[row] * column[:, None].float()
    return y


def turned(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
    row, column = torch.where(m)
    y = t.t().contiguous()
    y[column, row] = x[row, column] * 2
    return y


def divided(x: Tensor, t: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
    """Of whole numbers: all rows would be divided by 0, which raises."""
    a, b = (item.clamp(-9, 9).nan_to_num().mul(3).long() for item in (x, t))
    other = b != 0
    rest = torch.zeros_like(a)
    rest[other] = a[other] % b[other]
    return rest, (a[other] // b[other]).sum()


def of_classes(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
    """Prototypes: the mean of each class's rows."""
    label = t.argmax(1) % 3
    return torch.stack([x[label == k].mean(0) for k in range(3)])


def nested(x: Tensor, t: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
    some = x[m]
    positive = some[some > 0].sum()
    some[some > 1] = 1.0
    return positive, some.mean()


def classes(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
    label = t.argmax(1)
    return F.cross_entropy(x[m[:, 0]], label[m[:, 0]], reduction="sum")


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, t, m: ((x - t) ** 2)[m].mean(),
        lambda x, t, m: F.smooth_l1_loss(x[m[:, 0]], t[m[:, 0]]),  # two masks of one meaning
        lambda x, t, m: F.mse_loss(x[t > 0], t[t > 0]),
        lambda x, t, m: F.binary_cross_entropy_with_logits(x[~m], (t > 0).float()[~m]),
        lambda x, t, m: torch.masked_select(x, m).sum() / max(x[m].numel(), 1),
        lambda x, t, m: (x[m].norm(), x[m].std(), x[m].var(correction=0)),
        lambda x, t, m: (x[m].max(), x[m].min()),
        lambda x, t, m: (x[m[:, 0]].mean(0), x[m[:, 0]].amax(0), x[m[:, 0]].softmax(1).sum()),
        lambda x, t, m: (x[:, m[0]].sum(1), x[m[:, 0], 1].mean()),
        lambda x, t, m: x[m[:, 0].nonzero().squeeze(1)].sum(),
        lambda x, t, m: torch.cat([x[m], t[~m]]).mean(),
        lambda x, t, m: torch.stack([x[m], t[m]], -1).sum(0),
        lambda x, t, m: x[m[:, 0]].topk(3, -1).values.mean(0),
        lambda x, t, m: x[m[:, 0]].t() @ t[m[:, 0]],
        lambda x, t, m: x[m[:, 0]].reshape(-1).exp().sum(),
        lambda x, t, m: x[m[:, 0]].view(-1, 4, 5).sum((0, 2)),
        lambda x, t, m: x.masked_select(m).softmax(0).max(),
        lambda x, t, m: (t - t[m].mean()).abs()[(t > 0) & m].mean(),
        assigned,
        normalised,
        routed,
        routed_by_slots,
        written_last,
        turned,
        divided,
        of_classes,
        nested,
        classes,
    ],
)  # fmt: skip
def test_selected_rows_are_all_rows_and_their_mask(fn: Callable[..., Any]) -> None:
    agrees(fn)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, t, m: F.gaussian_nll_loss(x, t, x.abs(), full=True, eps=1e-3),
        lambda x, t, m: F.gaussian_nll_loss(x, t, x[:, 0].abs() + 1, reduction="none"),
        lambda x, t, m: F.gaussian_nll_loss(x, t, 0.5, reduction="sum"),
        lambda x, t, m: (torch.cov(x), torch.cov(x[0], correction=0), x.cov()),
        lambda x, t, m: (torch.corrcoef(x), x[:2].corrcoef()),
        lambda x, t, m: Normal(x, F.softplus(t)).log_prob(x * 2).sum(-1),
        lambda x, t, m: kl_divergence(Normal(x, t.exp()), Normal(torch.zeros_like(x), 1.0)),
        lambda x, t, m: (Categorical(logits=x).entropy(), Bernoulli(logits=t).log_prob(m.float())),
    ],
)
def test_checks_of_values_are_left_out(fn: Callable[..., Any]) -> None:
    agrees(fn, selects=False)


def spread(x: Tensor) -> Tensor:
    """Positive definite."""
    clean = x.nan_to_num(0.0, 1.0, -1.0)
    return clean @ clean.t() + torch.eye(x.shape[0])


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, t, m: torch.linalg.cholesky(spread(x)) @ t.nan_to_num(0.0, 1.0, -1.0),
        lambda x, t, m: torch.linalg.inv(spread(x)) + spread(t).inverse(),
        lambda x, t, m: torch.linalg.solve(spread(x), t.nan_to_num(0.0, 1.0, -1.0)),
    ],
)
def test_factorisations_are_captured_without_their_checks(fn: Callable[..., Any]) -> None:
    agrees(fn, selects=False)


def row_where_set(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
    y = x.clone()
    y[m[:, 0]] = t[0]
    y.index_put_((m[:, 1],), t[1], accumulate=True)
    z = y.view(3, 2, COLUMNS).clone()
    z[m[:3, :2]] = t[2]
    z[:, m[0, :2]] = t[3]
    return z


def test_a_row_is_written_wherever_a_mask_is_set() -> None:
    agrees(row_where_set, selects=False)
    assert not [node for node in captured(row_where_set).graph.nodes if "index_put" in node.op]


@pytest.mark.parametrize(
    ("fn", "line"),
    [
        (lambda x, t, m: x[m], "the shape of aten.index.Tensor"),
        (lambda x, t, m: x[m].sort().values.sum(), "aten.sort.stable on rows that a mask selects:"),
        (lambda x, t, m: x[m][:5].sum(), "depends on values"),
        (lambda x, t, m: (x[t > 0][:, None] - x[t <= 0][None]).mean(), "depends on values"),
        (lambda x, t, m: x[m].flip(0).cumsum(0).sum(), "depends on values"),
        (lambda x, t, m: x.clone().index_put((m,), x[m.flip(0)]), "under another"),
    ],
)
def test_what_all_rows_do_not_give_is_refused(fn: Callable[..., Any], line: str) -> None:
    with pytest.raises(TaskError, match=line) as caught:
        captured(fn)
    assert caught.value.code == "task-export"


def test_names_of_arguments_stay() -> None:
    found = captured(lambda x, t, m: x[m].sum())
    assert [item.name for item in found.graph.inputs] == ["x", "t", "m"]


def test_a_mask_that_is_changed_is_not_one_with_its_like() -> None:
    """Two comparisons are one mask where rows must be as many; not where one is written to."""

    def changed(x: Tensor, t: Tensor, m: Tensor) -> Tensor:
        one, other = x > 0, x > 0
        one[0] = False
        other[0] = False
        return F.mse_loss(x[one], t[other])

    with pytest.raises(TaskError, match="a mask by which rows are selected is changed"):
        captured(changed)
