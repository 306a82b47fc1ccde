"""Times from the text of a program alone, against the timing model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import capture

from npusmith.plan import write
from npusmith.plan.estimate import LAUNCH, time_of
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.plan.write_kernel import write_kernel
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")  # whose toolchain other tests made

CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "map": (lambda x: torch.exp(x) * 2, ((3000, 700),)),
    "rows": (lambda x: torch.softmax(x, -1), ((2000, 900),)),
    "columns": (lambda x: x.sum(0), ((5000, 640),)),
    "elements one by one": (lambda x, y: y > x.mean(), ((100, 100), (90, 80))),
    "broadcast": (lambda x, y: x * y, ((3000, 7, 64), (3000, 1, 64))),
    "scan": (lambda x: x.cumsum(-1), ((600, 3000),)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_program_takes_about_as_long_as_on_the_timing_model(name: str) -> None:
    fn, shapes = CASES[name]
    graph = capture(fn, *(torch.empty(shape, device="meta") for shape in shapes))
    made = write_kernel(graph, "op_custom", CHIP)
    shrunk = shrink(graph, made.spec, CHIP, in_step=goes_in_step(made.program))
    timed = Evaluator(made.spec, CHIP, shrunk).time(made.program).task_us
    assert timed / 2.5 < time_of(made.program, made.spec, graph, CHIP) < timed * 2.5


def test_several_kernels_take_as_long_as_each_by_itself() -> None:
    """What one leaves for the next is read from HBM, as an input of that size is."""
    conv = torch.nn.ConvTranspose1d(32, 64, 3, stride=2).to("meta")
    graph = capture(conv, torch.empty((16, 32, 1 << 17), device="meta"))
    plan = write(graph, "op_custom", CHIP)
    alone = [time_of(own.program, own.spec, part, CHIP) - LAUNCH for part, own in plan.parts]
    assert len(alone) > 1
    assert time_of(plan.program, plan.spec, graph, CHIP) == pytest.approx(sum(alone), rel=0.1)
