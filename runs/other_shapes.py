"""A kernel at shapes that it was not captured at, against one that was captured there.

    python runs/other_shapes.py [--search N] [--json FILE] [MODULE...]

Every module is captured at each of its shapes, and each program is timed at every other shape that
is within a factor of 64 in every size. One line for each module: the worst ratio to the program
that was captured there, and where. No values are computed. All times are estimates of the timing
model for 910B2.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from few_rows import Call
from torch.utils import _pytree as pytree

from npusmith.errors import PlanError
from npusmith.plan import Plan, write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.search import search_plan
from npusmith.plan.shrink import Shrunk
from npusmith.target.chips import Chip, find_chip
from npusmith.task.export import export_graph
from npusmith.task.graph import Graph
from npusmith.task.user import Inputs

FACTOR = 64  # in every size
SHAPES = ((8, 65_536), (512, 65_536), (512, 1024), (16_384, 1024), (16_384, 64), (1024, 16_384))

MODULES: dict[str, Callable[..., Any]] = {
    "relu": torch.relu,
    "scale_rows": lambda x: x * x.select(1, 0).unsqueeze(1),
    "softmax": lambda x: x.softmax(1),
    "softmax_columns": lambda x: x.softmax(0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "sum": lambda x: x.sum(1),
    "sum_columns": lambda x: x.sum(0),
    "mean_of_all": lambda x: (x * x).mean(),
    "cumsum": lambda x: x.cumsum(1),
    "transpose": lambda x: x.t() * 2,
    "pad": lambda x: F.pad(x, (3, 5)) + 1,
}


def graph_of(name: str, shape: tuple[int, ...]) -> Graph:
    leaves, tree = pytree.tree_flatten((torch.empty(shape, device="meta"),))
    return export_graph(Call(MODULES[name]), Inputs(tuple(leaves), tree), "other_shapes.py").graph


def us(plan: Plan, graph: Graph, chip: Chip) -> float:
    """Microseconds of the kernel at the shapes of `graph`."""
    outputs = tuple(graph.spec(name).shape for name in graph.outputs)
    shapes = Shrunk(tuple(item.shape for item in graph.inputs), outputs)
    return Evaluator(plan.spec, chip, shapes).time(plan.program).kernel_us


def measure(name: str, chip: Chip, budget: int) -> dict[str, Any]:
    graphs = {shape: graph_of(name, shape) for shape in SHAPES}
    plans = {shape: write(graph, "shapes_custom", chip) for shape, graph in graphs.items()}
    if budget:
        plans = {
            shape: search_plan(plan, graphs[shape], "shapes_custom", chip, budget)[0]
            for shape, plan in plans.items()
        }
    own = {shape: us(plan, graphs[shape], chip) for shape, plan in plans.items()}
    ratios: dict[tuple[Any, Any], float] = {}
    for at, to in permutations(SHAPES, 2):
        if all(max(a, b) <= FACTOR * min(a, b) for a, b in zip(at, to, strict=True)):
            with contextlib.suppress(PlanError):  # a size that is a number in the model
                ratios[at, to] = us(plans[at], graphs[to], chip) / own[to]
    (at, to), worst = max(ratios.items(), key=lambda pair: pair[1], default=((SHAPES[0],) * 2, 1.0))
    slow = sum(ratio > 1.5 for ratio in ratios.values())
    return {"module": name, "worst": worst, "at": at, "to": to, "pairs": len(ratios), "slow": slow}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--search", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("modules", nargs="*", choices=[*MODULES, []])
    options = parser.parse_args()
    chip = find_chip("910B2")
    print(
        "| module | worst ratio | captured at | run at | pairs | above 1.5 |\n" + "|---" * 6 + "|"
    )
    found = []
    for name in options.modules or MODULES:
        row = measure(name, chip, options.search)
        at, to = ("x".join(map(str, row[key])) for key in ("at", "to"))
        print(
            f"| {name} | {row['worst']:.2f} | {at} | {to} | {row['pairs']} | {row['slow']} |",
            flush=True,
        )
        found.append(row)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
