"""Folds of a row that need another fold of it, in one pass: accuracy, special values, passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, agrees, capture, own_program, plan
from test_plan_form import body

from npusmith.ir.nodes import Combine, If, Load, Op, Program, SyncCores
from npusmith.ir.walk import statements
from npusmith.plan import write
from npusmith.plan.schedule import Lines, Schedule
from npusmith.target.chips import find_chip

Rows = torch.Tensor
COLS = 5003  # several tiles of the small chip, the last one short
INF, NAN = math.inf, math.nan


def draw(rows: int = 3, cols: int = COLS) -> Rows:
    return torch.randn(rows, cols, generator=torch.Generator().manual_seed(7))


def unlike(first: float, spread: float = 0.01) -> Rows:
    """Rows around 5 whose first tiles are something else."""
    x = draw() * spread + 5
    x[:, :1500] = first
    return x


def spread_of(x: Rows) -> Any:
    return torch.var_mean(x, 1, correction=0)


def exact(x: Rows) -> Any:
    return tuple(item.float() for item in spread_of(x.double()))


def normalized(x: Rows) -> Rows:
    return (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, correction=0) + 1e-6).sqrt()


ROWS: dict[str, Callable[[], Rows]] = {
    "mean 1e3 times the spread": lambda: draw() + 1e3,
    "mean 1e6 times the spread": lambda: draw() + 1e6,
    "first tile of zeros": lambda: unlike(0.0),
    "first tile of 1e6": lambda: unlike(1e6),
    "first tile of 1e16": lambda: unlike(1e16, 1e10),
    "ramp": lambda: torch.linspace(0, 1e3, COLS).expand(3, COLS) + draw(),
    "one value": lambda: torch.full((3, COLS), 0.1),
    "1e15": lambda: draw() * 1e15 + 3e15,
    "tiny": lambda: draw() * 1e-15 + 1e-15,
    "one element": lambda: draw(3, 1),
    "two tiles": lambda: draw(3, 1500) + 300,
}


@pytest.fixture(scope="module")
def made() -> Any:
    return plan(spread_of, draw())


@pytest.mark.parametrize("name", ROWS)
def test_a_variance_in_one_pass_is_as_accurate_as_one_in_two(made: Any, name: str) -> None:
    agrees(made, exact, ROWS[name](), loose=0.1)


def test_distances_from_the_mean_keep_their_digits() -> None:
    def norm(x: Rows) -> Rows:
        return F.layer_norm(x, (COLS,))

    x = draw() + 1e6
    agrees(plan(norm, x), lambda a: norm(a.double()).float(), x)


def marked(*places: tuple[int, float]) -> Rows:
    x = draw(1)
    for at, value in places:
        x[0, at] = value
    return x


SPECIAL = torch.cat(
    [
        marked((0, INF)), marked((4000, INF)), marked((0, INF), (4000, -INF)), marked((0, NAN)),
        marked((4000, NAN)), marked((4000, -INF)), torch.full((1, COLS), INF),
    ]
)  # fmt: skip


def test_means_and_variances_of_special_rows_are_pytorchs() -> None:
    def apart(x: Rows) -> Any:
        return x.mean(1), x.var(1)  # infinite rows have a mean there, var_mean gives NaN

    agrees(plan(apart, draw()), apart, SPECIAL)


def rising() -> Rows:
    x = draw(8)
    x[0] += torch.linspace(-1e4, 1e4, COLS)  # higher in every tile
    x[1] += torch.linspace(1e4, -1e4, COLS)
    x[2, :1600] = -INF
    x[3] = torch.finfo(torch.float32).min
    x[4] = -INF
    x[5, 4000] = INF
    x[6, 0] = NAN
    x[7] = torch.finfo(torch.float32).max
    return x


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.softmax(-1),
        lambda x: x.log_softmax(-1),
        lambda x: torch.logsumexp(x, 1),
        lambda x: (x.softmax(1), x.amax(1)),
        lambda x: (x - x.amax(1, keepdim=True)).exp().sum(1),
        lambda x: x.t().softmax(0).t(),
    ],
    ids=["softmax", "log_softmax", "logsumexp", "with maximum", "written out", "transposed"],
)
def test_a_maximum_that_rises_scales_the_sum(fn: Callable[..., Any]) -> None:
    agrees(plan(fn, draw()), fn, rising(), loose=10.0)


@pytest.mark.parametrize("fn", [lambda x: x.softmax(0), lambda x: torch.logsumexp(x, 0)])
def test_sums_of_rows_rise_as_well(fn: Callable[..., Any]) -> None:
    agrees(plan(fn, draw()), fn, rising().t().contiguous()[:300], loose=10.0)


def test_all_cores_join_what_they_found_of_one_row() -> None:
    for fn in (lambda x: x.softmax(0), lambda x: (x - x.mean()) / x.std()):
        made = plan(fn, draw()[0])
        agrees(made, fn, unlike(0.0)[0], loose=10.0)
        agrees(made, fn, rising()[0], loose=10.0)
        agrees(made, fn, draw()[0, :2])


def passes(program: Program) -> int:
    """Loads of the form for rows that do not stay on chip, without those of the repair."""
    forms = [stmt for stmt in program.kernel.body if isinstance(stmt, If)]
    long = list(statements(forms[0].orelse)) if forms else list(body(program))
    repairs = [stmt for stmt in long if isinstance(stmt, If)]
    loads = sum(isinstance(stmt, Load) for stmt in long)
    return loads - sum(isinstance(s, Load) for stmt in repairs for s in statements(stmt.then))


@pytest.mark.parametrize(
    ("fn", "count"),
    [
        # one load is that of the first tile
        (lambda x: x.softmax(1), 3),
        (lambda x: torch.logsumexp(x, 1), 2),
        (lambda x: (x - x.mean(1, keepdim=True)).square().mean(1), 2),
        (normalized, 3),
        (lambda x: x.var(1) + x.amax(1) + x.abs().sum(1), 2),
        (lambda x: F.layer_norm(x, (COLS,)), 3),
        # the sum needs a maximum of other numbers: a pass each
        (lambda x: (x - x.abs().amax(1, keepdim=True)).exp().sum(1), 2),
    ],
    ids=["softmax", "logsumexp", "variance", "normalized", "with others", "layer norm", "other"],
)
def test_rows_are_read_as_seldom_as_can_be(fn: Callable[..., Any], count: int) -> None:
    assert passes(plan(fn, draw()).program) == count


@pytest.mark.parametrize(
    ("fn", "sums"), [(spread_of, 3), (lambda x: x.var(1), 2)], ids=["with mean", "variance"]
)
def test_a_sum_that_is_wanted_for_itself_is_not_put_together(
    fn: Callable[..., Any], sums: int
) -> None:
    dealt = Schedule(lines=(Lines.DEALT,))
    made = write(capture(fn, draw()), "op_custom", CHIP, dealt, everywhere=True)
    stmts = body(made.program)
    added = [stmt for stmt in stmts if isinstance(stmt, Op) and stmt.name == "accumulate_sum"]
    assert len(added) == sums + (2 if sums == 3 else 3)  # and once more in the repair


def test_sums_over_rows_that_are_ready_share_a_pass() -> None:
    made = plan(F.cross_entropy, draw(3, 40), torch.tensor([1, 2, -100]))
    stmts = list(body(own_program(made)))
    assert sum(isinstance(stmt, Combine | SyncCores) for stmt in stmts) == 1


def test_two_plans_of_one_model_are_the_same() -> None:
    chip = find_chip("910B2")
    first, second = (write(capture(normalized, draw()), "op_custom", chip) for _ in range(2))
    assert first.program == second.program
