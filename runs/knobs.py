"""What each parameter of a schedule is worth: one turned at a time, then the search over all.

    python runs/knobs.py --root CHECKOUT [--json FILE] [--search N] [TASK...]

One row for each TASK of MultiKernelBench (`category/name`) and for a few modules over short rows
(without TASKs: eight of the former, all of the latter). Each cell is the least estimated time with
that parameter turned alone (a direction is left after the first value that is worse), over the time
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
from npusmith.ir.text import show
from npusmith.plan import write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.search import AXES, DEFAULT, Walk, search, suffixes
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
    """One row: the share of the time as written that is left with each parameter turned."""
    plan = write(graph, "knobs_custom", chip)
    shapes = shrink(graph, plan.spec, chip, in_step=goes_in_step(plan.program))
    evaluator = Evaluator(plan.spec, chip, shapes)
    least, rows = roof(graph, chip).bound_us, suffixes(plan.spec)

    known: dict[str, tuple[float, float]] = {}

    def times(program: Program) -> tuple[float, float]:
        text = show(program)
        if text not in known:
            found = evaluator.time(program)
            known[text] = found.task_us, found.cycles
        return known[text]

    cells: Row = {}
    for word, axis in AXES.items():
        walk = Walk(plan.program, chip, times, 1 << 10, 0.0, rows)
        walk.begin()
        walk.improve(axis)
        others = [trial for trial in walk.trials[1:] if trial.us is not None]
        best = min(others, key=lambda trial: trial.us or 0.0, default=None)
        share = None if best is None else round((best.us or 0.0) / (walk.trials[0].us or 1.0), 4)
        cells[word] = {"share": share, "schedule": best.schedule.words if best else ""}
    whole = search(plan.program, chip, times, budget, least, rows)
    first = whole.trials[0].us or 1.0
    return {
        "task": name, "us": round(first, 1), "of_roof": round(least / first, 3),
        "cells": cells, "search": round(whole.us / first, 4),
        "trials": len(whole.trials), "schedule": whole.schedule.words,
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
    print(f"| task | us | of the roof | {' | '.join(AXES)} | search |")
    print("|---" * (len(AXES) + 4) + "|")
    found = []
    for name, graph in graphs(options.root, options.tasks):
        found.append(measure(name, graph, find_chip("910B2"), options.search))
        print(line(found[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
