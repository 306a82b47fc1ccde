"""How many cores a kernel is worth: few for little work, all of them for much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import capture

from npusmith.lang.interp import run_host
from npusmith.plan.estimate import shapes_of
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.shrink import shrink
from npusmith.plan.write import write
from npusmith.plan.write_kernel import write_kernel
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")
CASES: dict[str, Callable[..., Any]] = {
    "map": torch.relu,
    "number of everything": torch.sum,
    "sums of columns": lambda x: x.sum(0),
    "normalised rows": lambda x: (x - x.mean(-1, keepdim=True)) * x.var(-1, keepdim=True),
}


@pytest.mark.parametrize("name", CASES)
def test_little_work_takes_less_time_on_fewer_cores(name: str) -> None:
    graph = capture(CASES[name], torch.empty(64, 512, device="meta"))
    before, after = write_kernel(graph, "op_custom", CHIP), write(graph, "op_custom", CHIP)
    evaluator = Evaluator(after.spec, CHIP, shrink(graph, after.spec, CHIP))
    taken = [evaluator.time(plan.program) for plan in (before, after)]
    assert len(taken[1].timing.cores) < len(taken[0].timing.cores)
    assert taken[1].task_us < 0.97 * taken[0].task_us


@pytest.mark.parametrize("name", CASES)
def test_the_captured_sizes_do_not_limit_the_cores_of_larger_ones(name: str) -> None:
    graph = capture(CASES[name], torch.empty(64, 512, device="meta"))
    plan = write(graph, "op_custom", CHIP)
    here = shapes_of(graph, plan.spec)
    large = {key: tuple(64 * side for side in shape) for key, shape in here.items()}
    assert run_host(plan.program, CHIP, here).cores < CHIP.vector_cores
    every = write_kernel(graph, "op_custom", CHIP).program
    assert run_host(plan.program, CHIP, large).cores == run_host(every, CHIP, large).cores


def test_a_core_with_one_line_of_its_own_is_kept() -> None:
    graph = capture(lambda x: x.sum(-1), torch.empty(16, 4096, device="meta"))
    plan = write(graph, "op_custom", CHIP)
    assert run_host(plan.program, CHIP, shapes_of(graph, plan.spec)).cores == 16


def test_a_core_with_enough_for_two_tiles_copies_one_while_it_works_on_the_other() -> None:
    graph = capture(torch.relu, torch.empty(256, 1024, device="meta"))
    launched = run_host(write(graph, "op_custom", CHIP).program, CHIP, {"args_0": (256, 1024)})
    assert launched.args["tiles_per_core"] == 2
