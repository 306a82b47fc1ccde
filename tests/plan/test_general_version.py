"""The version for all sizes alone: shorter, legal, and it computes what all versions compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from modules import CHIP, agrees, general_program, plan
from torch.nn import functional

from npusmith.ir.text import show
from npusmith.lang import check, parse
from npusmith.plan.general_version import general_version


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def normed(x: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:])


@pytest.mark.parametrize("fn", [softmax, normed])
def test_one_kernel_of_several_versions_becomes_its_last_one(
    fn: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    made = plan(fn, torch.randn(96, 24))
    alone = general_version(made.program)
    check(alone, CHIP)
    assert parse(show(alone)) == alone
    assert len(show(alone)) < 0.7 * len(show(made.program))
    assert [item.name for item in alone.kernel.buffers] == [
        item.name for item in general_program(made).kernel.buffers
    ]
    for shape in ((96, 24), (3, 5000), (1, 1), (0, 7)):
        agrees(replace(made, program=alone), fn, torch.randn(shape))


def test_kernels_between_products_lose_their_versions_too() -> None:
    def weighted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ y, dim=-1)

    made = plan(weighted, torch.randn(64, 40), torch.randn(40, 48))
    alone = general_version(made.program)
    check(alone, CHIP)
    assert len(alone.kernels) == len(made.program.kernels) > 1
    assert len(show(alone)) < len(show(made.program))
    agrees(replace(made, program=alone), weighted, torch.randn(64, 40), torch.randn(40, 48))


def test_a_program_of_one_version_is_left_as_it_is() -> None:
    made = plan(lambda x: x / (1 + x.abs()), torch.randn(8, 100))
    assert general_version(made.program) == made.program
