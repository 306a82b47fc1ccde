"""What few long lines cost: cut into chunks for all cores, against one core a line.

    python runs/few_rows.py MODULE ROWSxCOLS [ROWSxCOLS ...]

MODULE is one of those below. One line for each shape: estimated microseconds with whole lines dealt
to cores, and as the writer has it. No values are computed. All times are estimates of the timing
model for 910B2.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from npusmith.plan import Plan, write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.schedule import Lines, Schedule
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.target.chips import Chip, find_chip
from npusmith.task.export import export_graph
from npusmith.task.graph import Graph
from npusmith.task.user import Inputs

MODULES: dict[str, Callable[[Tensor], Tensor]] = {
    "cumsum": lambda x: x.cumsum(1),
    "cumsum_columns": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(1),
    "softmax": lambda x: x.softmax(1),
    "softmax_columns": lambda x: x.softmax(0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "l2_norm": lambda x: x / torch.norm(x, dim=1, keepdim=True),
    "sum": lambda x: x.sum(1),
    "sum_columns": lambda x: x.sum(0),
}


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, fn: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, x: Tensor) -> Tensor:
        return self.fn(x)


def graph_of(name: str, shape: tuple[int, ...]) -> Graph:
    leaves, tree = pytree.tree_flatten((torch.empty(shape, device="meta"),))
    return export_graph(Call(MODULES[name]), Inputs(tuple(leaves), tree), "few_rows.py").graph


def us(plan: Plan, graph: Graph, chip: Chip) -> float:
    shapes = shrink(graph, plan.spec, chip, in_step=goes_in_step(plan.program))
    return Evaluator(plan.spec, chip, shapes).time(plan.program).kernel_us


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", choices=sorted(MODULES))
    parser.add_argument("shapes", nargs="+")
    options = parser.parse_args()
    chip = find_chip("910B2")
    for text in options.shapes:
        graph = graph_of(options.module, tuple(int(size) for size in text.split("x")))
        plan = write(graph, "few_custom", chip)
        dealt = tuple(Lines.DEALT for _ in plan.schedule.lines)
        whole = write(graph, "few_custom", chip, Schedule(lines=dealt))
        times = f"{us(whole, graph, chip):.1f} | {us(plan, graph, chip):.1f}"
        print(f"| {options.module} | {text} | {times} |", flush=True)


if __name__ == "__main__":
    main()
