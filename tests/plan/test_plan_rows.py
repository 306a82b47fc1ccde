"""Short rows: a tile holds many; the program is right for rows that are not short as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import modules
import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan
from torch import nn

from npusmith.ir.text import show
from npusmith.target.chips import find_chip

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ROOMY = replace(modules.CHIP, ub_total_bytes=96 * 1024)  # 8 rows of 101 elements fit
SEED = torch.Generator().manual_seed(17)
# Captured with rows of whole blocks or not; run with one row, tails, other lengths, long rows.
COLUMNS = (24, 17, 101)
SHAPES = ((1, 8), (131, 24), (70, 72), (45, 17), (3, 101), (5, 1), (2, 2503))


@pytest.fixture(autouse=True)
def chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "CHIP", ROOMY)


def values(rows: int, cols: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(rows, cols, generator=SEED).to(dtype)


def classes(rows: int, cols: int) -> torch.Tensor:
    return torch.randint(0, cols, (rows,), generator=SEED)


class Affine(nn.Module):
    """Layer normalization of rows of any length with a weight and a bias that are inputs."""

    def forward(self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], None, None, 1e-5) * w + b


def rms(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)


def picked(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, target)


def apart(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A loss with a threshold for each row, and one of the whole."""
    far = torch.relu((x - y).pow(2).sum(-1).sqrt() - 0.5)
    return far / (far.sum() + 1.0)


def masked(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return torch.where(keep[:, None] > 0, x.softmax(-1), x)


Make = Callable[[int, int], tuple[torch.Tensor, ...]]
CASES: dict[str, tuple[Any, Make]] = {
    "softmax": (lambda x: x.softmax(-1), lambda r, c: (values(r, c),)),
    "log_softmax": (lambda x: x.log_softmax(-1), lambda r, c: (values(r, c),)),
    "layer_norm": (Affine(), lambda r, c: (values(r, c), values(1, c)[0], values(1, c)[0])),
    "rms_half": (rms, lambda r, c: (values(r, c, torch.float16),)),
    "normalize": (lambda x: F.normalize(x, dim=-1), lambda r, c: (values(r, c),)),
    "largest": (lambda x: (x.amax(-1), x.argmin(-1)), lambda r, c: (values(r, c),)),
    "cross_entropy": (picked, lambda r, c: (values(r, c), classes(r, c))),
    "distances": (apart, lambda r, c: (values(r, c), values(r, c))),
    "bias": (lambda x, b: torch.relu(x + b), lambda r, c: (values(r, c), values(1, c)[0])),
    "scaled": (lambda x, s: x * s[:, None], lambda r, c: (values(r, c), values(1, r)[0])),
    "masked": (masked, lambda r, c: (values(r, c), values(1, r)[0])),
}


@pytest.mark.parametrize("cols", COLUMNS)
@pytest.mark.parametrize("name", CASES)
def test_short_rows_by_the_tile_compute_what_the_module_computes(name: str, cols: int) -> None:
    model, make = CASES[name]
    made = plan(model, *make(300, cols))
    folds = name not in ("bias", "scaled")  # these serve rows of any length
    assert ("rows are short as captured: many in a tile" in made.notes) == folds
    for rows, length in SHAPES:
        agrees(made, model, *make(rows, length))


@pytest.mark.parametrize("cols", (1500, 2048, 3008))
@pytest.mark.parametrize("name", ("softmax", "log_softmax", "rms_half", "normalize", "masked"))
def test_rows_of_thousands_share_a_tile_that_has_room(
    name: str, cols: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "CHIP", replace(find_chip("910B2"), vector_cores=4))
    model, make = CASES[name]
    made = plan(model, *make(64, cols))
    assert "rows are short as captured: many in a tile" in made.notes or name == "masked"
    for rows, length in ((9, cols), (3, 4096), (5, 2100), (2, 5000), (70, 72), (3, 17)):
        agrees(made, model, *make(rows, length))


def test_no_row_at_all_and_rows_of_nothing_are_right() -> None:
    made = plan(lambda x: x.softmax(-1), values(300, 24))
    for shape in ((0, 24), (3, 0)):
        agrees(made, lambda x: x.softmax(-1), values(*shape))


def test_few_rows_and_long_rows_go_one_after_another() -> None:
    for shape in ((4, 24), (300, 2000)):
        made = plan(lambda x: x.softmax(-1), values(*shape))
        assert "rows are short as captured: many in a tile" not in made.notes


def test_each_of_two_programs_says_which_shapes_it_serves() -> None:
    text = show(plan(lambda x: F.softmax(x, -1), values(131, 24)).program)
    quick, _, other = text.partition('"all other shapes"')
    assert '"shapes with ' in quick and "if brief == 1:" in quick
    assert other


def test_an_output_of_one_row_beside_many_rows_is_stored_once() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return y < 1, x * 2

    args = (torch.randn(8, 5, 8, 8), torch.randn(1, 8))
    agrees(plan(fn, *args), fn, *args)
