"""A kernel at shapes that it was not captured at, against one that was captured there.

    python runs/other_shapes.py [--search N] [--json FILE] [MODULE...]

Every module is captured at each of its shapes, and each program is timed at every other shape that
is within a factor of 64 in every size. One line for each module: the worst ratio to the program
that was captured there, and where. No values are computed. All times are estimates of the timing
model for 910B2.
"""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

from npusmith.errors import TaskError
from npusmith.ir.text import show
from npusmith.lang.extents import serves
from npusmith.plan import Plan, write
from npusmith.plan.estimate import shapes_of
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.search import search_plan
from npusmith.plan.shrink import Shrunk
from npusmith.target.chips import Chip, find_chip
from npusmith.task.export import export_graph
from npusmith.task.graph import Graph
from npusmith.task.shapes import find_classes, plan_sets
from npusmith.task.symbolic_sizes import find_symbolic
from npusmith.task.user import Inputs, run_model

FACTOR = 64  # in every size
MOST = 1.5  # times as long
Shape = tuple[int, int]
SHAPES: tuple[Shape, ...] = (
    (8, 65_536),
    (512, 65_536),
    (512, 1024),
    (16_384, 1024),
    (16_384, 64),
    (1024, 16_384),
)


def halves(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([-x[:, x.shape[1] // 2 :], x[:, : x.shape[1] // 2]], 1)


def swiglu(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.chunk(2, 1)
    return F.silu(gate) * up


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
    "rms_norm": lambda x, row: x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * row,
    "log_softmax": lambda x: x.log_softmax(1),
    "masked_softmax": lambda x, y: x.masked_fill(y > 0, -torch.inf).softmax(1),
    "swiglu": swiglu,
    "rotary": lambda x, row: x * row.cos() + halves(x) * row.sin(),
    "join_columns": lambda x, y: torch.cat([x, y], 1),
    "slice": lambda x: x[:, 1:-1] * 2,
    "mean_of_middle": lambda planes: planes.mean(1),
    "group_norm": lambda planes: F.group_norm(planes, 4),
    "take_rows": lambda x, index: x[index],
    "max_pool": lambda planes: F.max_pool1d(planes, 2),
    "cross_entropy": lambda x, index: F.cross_entropy(x, index),
    "cumsum_columns": lambda x: x.cumsum(0),
    "add_row": lambda x, row: x + row,
    "add_column": lambda x, column: x + column,
    "add_both": lambda row, column: row + column,
    "argmax": lambda x: x.argmax(1),
    "add_transposed": lambda x, turned: x + turned.t(),
}


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *args: torch.Tensor) -> Any:
        return self.fn(*args)


def inputs_of(name: str, rows: int, cols: int) -> tuple[torch.Tensor, ...]:
    """One for each parameter of a module, by its name; they have no memory."""
    kinds = {
        "row": (cols,),
        "column": (rows, 1),
        "turned": (cols, rows),
        "planes": (rows // 8, 8, cols),
        "index": (rows,),
    }
    called = [*inspect.signature(MODULES[name]).parameters] if name != "relu" else ["x"]
    return tuple(
        torch.empty(
            kinds.get(item, (rows, cols)),
            device="meta",
            dtype=torch.int64 if item == "index" else torch.float32,
        )
        for item in called
    )


def graph_of(name: str, shape: Shape) -> Graph:
    """The module as it is captured there, with what follows from sizes."""
    model = Call(MODULES[name])

    def at(sized: Sequence[tuple[int, ...]]) -> Inputs:
        pairs = zip(inputs_of(name, *shape), sized, strict=True)
        leaves, tree = pytree.tree_flatten(tuple(x.new_empty(size) for x, size in pairs))
        return Inputs(tuple(leaves), tree)

    def captured(sized: list[tuple[int, ...]]) -> Graph | str:
        try:
            return export_graph(model, at(sized), "other_shapes.py").graph
        except TaskError as error:
            return error.message

    def refusal(sized: list[tuple[int, ...]]) -> str:
        try:
            run_model(model, at(sized).args(), "other_shapes.py")
        except TaskError as error:
            return error.message
        return ""

    own = [tuple(x.shape) for x in inputs_of(name, *shape)]
    graph = export_graph(model, at(own), "other_shapes.py").graph
    free, _ = find_classes(own, refusal)
    primes = [sized for kind, sized in plan_sets(own, free, 1 << 20, 1) if kind == "primes"]
    return find_symbolic(graph, own, free, primes, captured)


def us(plan: Plan, graph: Graph, chip: Chip) -> float | None:
    """Microseconds of the kernel at the shapes of `graph`; None where it does not serve them."""
    shapes = shapes_of(graph, plan.spec)
    if not serves(plan.spec, shapes):
        return None
    ports = plan.spec.inputs, plan.spec.outputs
    inputs, outputs = (tuple(shapes[port.name] for port in row) for row in ports)
    return Evaluator(plan.spec, chip, Shrunk(inputs, outputs)).time(plan.program).kernel_us


def timed(
    plans: Mapping[Shape, Plan], graphs: Mapping[Shape, Graph], chip: Chip
) -> Callable[[Shape, Shape], float | None]:
    """Microseconds of the program of one shape at another; the same program is timed once."""
    texts = {shape: show(plan.program) for shape, plan in plans.items()}
    known: dict[tuple[str, Shape], float | None] = {}

    def time(at: Shape, to: Shape) -> float | None:
        key = texts[at], to
        if key not in known:
            known[key] = us(plans[at], graphs[to], chip)
        return known[key]

    return time


def measure(name: str, chip: Chip, budget: int) -> dict[str, Any]:
    graphs = {shape: graph_of(name, shape) for shape in SHAPES}
    plans = {shape: write(graph, "shapes_custom", chip) for shape, graph in graphs.items()}
    if budget:
        plans = {
            shape: search_plan(plan, graphs[shape], "shapes_custom", chip, budget)[0]
            for shape, plan in plans.items()
        }
    time = timed(plans, graphs, chip)
    ratios: dict[tuple[Shape, Shape], float] = {}
    for at, to in permutations(SHAPES, 2):
        if all(max(a, b) <= FACTOR * min(a, b) for a, b in zip(at, to, strict=True)):
            found, own = time(at, to), time(to, to)
            if found is not None and own is not None:  # else a size is a number in the model
                ratios[at, to] = found / own
    (at, to), worst = max(ratios.items(), key=lambda pair: pair[1], default=((SHAPES[0],) * 2, 1.0))
    slow = [(ratio, at, to) for (at, to), ratio in ratios.items() if ratio > MOST]
    slow.sort(reverse=True)
    row = {"module": name, "worst": worst, "at": at, "to": to, "pairs": len(ratios)}
    return {**row, "slow": slow, "us": {"x".join(map(str, at)): time(at, at) for at in SHAPES}}


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
            f"| {name} | {row['worst']:.2f} | {at} | {to} | {row['pairs']} | {len(row['slow'])} |",
            flush=True,
        )
        found.append(row)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
