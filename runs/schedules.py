"""What each decision of a schedule is worth: one changed at a time, then the search over all.

    python runs/schedules.py --root CHECKOUT [--json FILE] [--search N] [TASK...]

One row for each TASK of MultiKernelBench (`category/name`) and for a few modules over short rows
(without TASKs: eight of the former, all of the latter). Each cell is the least estimated time with
that decision changed alone (a way is left after the first value that is worse), over the time
as written; the last what the search finds. Times are estimates of the timing model for 910B2.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from short_rows import CASES, graph_of

from npusmith.ir.nodes import Program
from npusmith.plan import Plan, write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.schedule import Schedule
from npusmith.plan.search import DEFAULT, ORDER, Walk, search
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.target.chips import Chip, find_chip
from npusmith.task.graph import Graph
from npusmith.task.load import open_task
from npusmith.task.outline import outline
from npusmith.timing.roof import roof

TASKS = (
    "activation/gelu", "loss/cosine_similarity_loss", "loss/mse_loss", "math/cumsum",
    "normalization/rms_norm", "optimizer/adam", "pooling/average_pooling_2d",
    "reduce/sum_reduction_over_a_dimension",
)  # fmt: skip
ROWS = (
    ("softmax", (100_000, 64)), ("softmax", (1_000_000, 17)), ("layer_norm", (65_536, 256)),
    ("cross_entropy", (100_000, 64)),
)  # fmt: skip
Row = dict[str, Any]


def measure(name: str, graph: Graph, chip: Chip, budget: int) -> Row:
    """One row: the share of the time as written that is left with each decision changed."""
    plan = write(graph, "schedules_custom", chip)
    shapes = shrink(graph, plan.spec, chip, in_step=goes_in_step(plan.program))
    evaluator = Evaluator(plan.spec, chip, shapes)
    least = roof(graph, chip).bound_us
    known: dict[Program, tuple[float, float]] = {}

    def times(program: Program) -> tuple[float, float]:
        if program not in known:
            found = evaluator.time(program)
            known[program] = found.task_us, found.cycles
        return known[program]

    def other(schedule: Schedule) -> Plan:
        return write(graph, "schedules_custom", chip, schedule, everywhere=True)

    cells: Row = {}
    for decision in ORDER:
        walk = Walk(plan, other, chip, times, 1 << 10, 0.0)
        walk.begin()
        walk.improve(decision)
        others = [trial for trial in walk.trials[1:] if trial.us is not None]
        best = min(others, key=lambda trial: trial.us or 0.0, default=None)
        share = None if best is None else round((best.us or 0.0) / (walk.trials[0].us or 1.0), 4)
        cells[decision] = {"share": share, "schedule": str(best.schedule) if best else ""}
    whole = search(plan, other, chip, times, budget, least)
    return {
        "task": name, "us": round(whole.first_us, 1), "of_roof": round(least / whole.first_us, 3),
        "cells": cells, "search": round(whole.us / whole.first_us, 4),
        "trials": len(whole.trials), "schedule": str(whole.schedule),
    }  # fmt: skip


def line(row: Mapping[str, Any]) -> str:
    cells = " | ".join(_share(cell["share"]) for cell in row["cells"].values())
    found = f"{_share(row['search'])} ({row['schedule']}, {row['trials']} evaluations)"
    return f"| {row['task']} | {row['us']:.1f} | {row['of_roof']:.2f} | {cells} | {found} |"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def graphs(root: Path | None, names: list[str]) -> Iterator[tuple[str, Graph]]:
    for name, shape in () if names else ROWS:
        model, make = CASES[name]
        yield f"{name} of {shape[0]} x {shape[1]}", graph_of(model, make(*shape))
    for name in names or (TASKS if root else ()):
        path = (root or Path()) / "reference" / f"{name}.py"
        yield name, outline(open_task(path), training=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--search", type=int, default=DEFAULT)
    parser.add_argument("tasks", nargs="*")
    options = parser.parse_args()
    print(f"| task | us | of the roof | {' | '.join(ORDER)} | search |")
    print("|---" * (len(ORDER) + 4) + "|")
    found = []
    for name, graph in graphs(options.root, options.tasks):
        found.append(measure(name, graph, find_chip("910B2"), options.search))
        print(line(found[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
