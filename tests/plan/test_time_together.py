"""Several kernels of one operator are launched once, and the estimate counts that once."""

from __future__ import annotations

import pytest
import torch
from modules import capture

from npusmith.plan import write
from npusmith.plan.estimate import LAUNCH, WAIT
from npusmith.plan.partition import Part, passes_short_floats, time_together, us_of
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")


def test_kernels_wait_for_each_other_and_are_launched_once() -> None:
    graph = capture(lambda x: x.exp(), torch.rand(64, 64))
    part = Part(graph, write(graph, "op_custom", CHIP))
    assert time_together((part, part), CHIP) == pytest.approx(2 * us_of(part, CHIP) + WAIT - LAUNCH)
    assert not passes_short_floats((part, part))


def test_a_loss_whose_weights_are_found_by_target_takes_several_kernels() -> None:
    def fn(x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        top = x.max(1, keepdim=True)[0]
        rows = x - (top + (x - top).exp().sum(1, keepdim=True).log())
        picked = weight.gather(0, target)
        loss = -rows.gather(1, target[:, None])[:, 0] * picked
        smooth = -(rows * weight).sum(1)
        return loss.sum() / picked.sum() + smooth.sum() / picked.sum(), rows

    graph = capture(fn, torch.rand(32, 50), torch.randint(0, 50, (32,)), torch.rand(50))
    assert len(write(graph, "op_custom", CHIP).program.kernels) > 1
