"""What short rows cost: many rows in a tile against one row after the other.

    python runs/short_rows.py [--json FILE] [CASE...]

One line for each module and shape: estimated microseconds of loops over the rows and of the program
with many rows in a tile, and the share of the memory roof that the latter reaches. No values are
computed. All times are estimates of the timing model for 910B2.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from npusmith.plan import write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.schedule import Schedule, Structure
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.target.chips import Chip, find_chip
from npusmith.task.export import export_graph
from npusmith.task.graph import Graph
from npusmith.task.user import Inputs
from npusmith.timing.roof import roof

SHAPES = ((100_000, 64), (1_000_000, 17), (4096, 100), (65_536, 256), (32_768, 500))
Row = dict[str, Any]
_OWN = Schedule()


class Norm(nn.Module):
    """Layer normalization over the last axis, with weight and bias."""

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], None, None) * w + b


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, fn: Callable[..., Tensor]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *args: Tensor) -> Tensor:
        return self.fn(*args)


def _one(rows: int, cols: int) -> tuple[Tensor, ...]:
    return (torch.empty(rows, cols, device="meta"),)


def _labelled(rows: int, cols: int) -> tuple[Tensor, ...]:
    return (*_one(rows, cols), torch.empty(rows, dtype=torch.int64, device="meta"))


def _weighted(rows: int, cols: int) -> tuple[Tensor, ...]:
    return (*_one(rows, cols), *(torch.empty(cols, device="meta") for _ in range(2)))


def _halves(rows: int, cols: int) -> tuple[Tensor, ...]:
    return (torch.empty(rows, cols, device="meta", dtype=torch.float16),)


def _rms(x: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


def _triplet(a: Tensor, p: Tensor, n: Tensor) -> Tensor:
    return F.triplet_margin_loss(a, p, n)


CASES: dict[str, tuple[nn.Module, Callable[[int, int], tuple[Tensor, ...]]]] = {
    "softmax": (nn.Softmax(-1), _one),
    "softmax, float16": (nn.Softmax(-1), _halves),
    "log_softmax": (nn.LogSoftmax(-1), _one),
    "layer_norm": (Norm(), _weighted),
    "rms_norm": (Call(_rms), _one),
    "l2_norm": (Call(lambda x: F.normalize(x, dim=-1)), _one),
    "sum": (Call(lambda x: x.sum(-1)), _one),
    "bias and relu": (Call(lambda x, w, b: torch.relu(x * w + b)), _weighted),
    "cross_entropy": (Call(lambda x, t: F.cross_entropy(x, t)), _labelled),
    "triplet_loss": (Call(_triplet), lambda r, c: 3 * _one(r, c)),
}


def graph_of(model: nn.Module, args: tuple[Tensor, ...]) -> Graph:
    leaves, tree = pytree.tree_flatten(args)
    return export_graph(model.eval(), Inputs(tuple(leaves), tree), "short_rows.py").graph


def time_of(graph: Graph, chip: Chip, schedule: Schedule = _OWN) -> float:
    """Microseconds of the task."""
    plan = write(graph, "rows_custom", chip, schedule, everywhere=True)
    shapes = shrink(graph, plan.spec, chip, in_step=goes_in_step(plan.program))
    return Evaluator(plan.spec, chip, shapes).time(plan.program).task_us


def measure(name: str, shape: tuple[int, int], chip: Chip) -> Row:
    model, make = CASES[name]
    graph = graph_of(model, make(*shape))
    loops = time_of(graph, chip, Schedule(structure=Structure.LOOPS))
    rows, least = time_of(graph, chip), roof(graph, chip).bound_us
    return {
        "case": name, "shape": list(shape), "loops_us": round(loops, 1),
        "rows_us": round(rows, 1), "roof_us": round(least, 1), "of_roof": round(least / rows, 3),
    }  # fmt: skip


def line(row: Mapping[str, Any]) -> str:
    rows, cols = row["shape"]
    return (
        f"| {row['case']} | {rows} x {cols} | {row['loops_us']:.1f} | {row['rows_us']:.1f} | "
        f"{row['loops_us'] / row['rows_us']:.1f} | {row['of_roof']:.2f} |"
    )


def rows(names: list[str], chip: Chip) -> Iterator[Row]:
    for name in names or list(CASES):
        for shape in SHAPES:
            yield measure(name, shape, chip)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    print("| module | rows | loops, us | rows in a tile, us | times | of the roof |")
    print("|---|---|---|---|---|---|")
    found = []
    for row in rows(options.cases, find_chip("910B2")):
        print(line(row), flush=True)
        found.append(row)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
