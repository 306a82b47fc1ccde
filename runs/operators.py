"""What the deterministic writer's kernels for MultiKernelBench would take at the tasks' own shapes.

    python runs/operators.py --root CHECKOUT [--json FILE] [--search N] [TASK...]

One row a task: estimated time, eager estimate and their ratio, share of the memory roof reached,
what is busy, evaluations, and how long writing took (search included, capture not) by the clock and
in seconds of processors, which a busy machine does not change much. TASK is `category` or
`category/name`; without one, the 52 operators of the seven categories. No kernel is judged here and
no values are computed: `npusmith bench` does that. All times are estimates of the timing model.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from npusmith.errors import NpusmithError
from npusmith.plan import write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.knobs import tile_of
from npusmith.plan.search import search_plan
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.target.chips import Chip, find_chip
from npusmith.task.graph import Graph
from npusmith.task.load import open_task
from npusmith.task.outline import outline
from npusmith.timing.bottleneck import imbalance, share
from npusmith.timing.eager import estimate
from npusmith.timing.roof import roof

CATEGORIES = ("activation", "loss", "math", "normalization", "optimizer", "pooling", "reduce")
_UNITS = ("S", "V", "MTE2", "MTE3")
Row = dict[str, Any]


def measure(path: Path, chip: Chip, budget: int) -> Row:
    """One task's row; `refused` says why there is none."""
    name = f"{path.parent.name}/{path.stem}"
    try:
        return row_of(name, outline(open_task(path), training=True), chip, budget)
    except NpusmithError as error:
        return {"task": name, "refused": f"{error.code}: {error.message}"}


def row_of(name: str, graph: Graph, chip: Chip, budget: int) -> Row:
    """The row of a task's graph."""
    begin = now()
    try:
        plan, trials = write(graph, f"{name.rpartition('/')[2]}_custom", chip), 1
        if budget:
            plan, searched = search_plan(plan, graph, chip, budget)
            trials = len(searched.trials)
        spent = [after - before for after, before in zip(now(), begin, strict=True)]
        shapes = shrink(graph, plan.spec, chip, in_step=goes_in_step(plan.program))
        found = Evaluator(plan.spec, chip, shapes).time(plan.program)
    except NpusmithError as error:
        return {"task": name, "refused": f"{error.code}: {error.message}"}
    limits, eager = roof(graph, chip), estimate(graph, chip)
    return {
        "task": name,
        "us": found.task_us,
        "kernel_us": found.kernel_us,
        "eager_us": eager.us,
        "ratio": eager.us / found.task_us,
        "memory": limits.memory_us / found.kernel_us,
        "compute": limits.compute_us / found.kernel_us,
        "busy": {unit: round(share(found.timing, unit), 3) for unit in _UNITS},
        "imbalance": round(imbalance(found.timing), 3),
        "tile": tile_of(plan.program),
        "evaluations": trials,
        "wall_s": round(spent[0], 2),
        "cpu_s": round(spent[1], 2),
        "note": plan.notes[-1],
    }


def now() -> tuple[float, float]:
    """Seconds by the clock, and of processors: of this process and those that it has waited for."""
    used = os.times()
    return used.elapsed, used.user + used.system + used.children_user + used.children_system


def paths(root: Path, names: list[str]) -> Iterator[Path]:
    for name in names or CATEGORIES:
        pattern = f"{name}.py" if "/" in name else f"{name}/*.py"
        yield from sorted((root / "reference").glob(pattern))


def line(row: Mapping[str, Any]) -> str:
    if "refused" in row:
        return f"| {row['task']} | {row['refused'][:80]} | | | | | | | | |"
    busy = ", ".join(f"{unit} {part:.0%}" for unit, part in row["busy"].items() if part >= 0.2)
    return (
        f"| {row['task']} | {row['us']:.1f} | {row['eager_us']:.1f} | {row['ratio']:.2f} "
        f"| {row['memory']:.2f} | {busy} | {row['imbalance']:.2f} | {row['evaluations']} "
        f"| {row['wall_s']:.1f} | {row['cpu_s']:.1f} |"
    )


def totals(rows: list[Row]) -> str:
    timed = [row for row in rows if "us" in row]
    ratios = [row["ratio"] for row in timed]
    fast = {limit: sum(ratio >= limit for ratio in ratios) for limit in (0.8, 1.0)}
    return (
        f"{len(timed)} of {len(rows)} timed; at least 0.8 x eager {fast[0.8]}, 1.0 x {fast[1.0]}; "
        f"geometric mean {statistics.geometric_mean(ratios):.2f}; memory roof median "
        f"{statistics.median(row['memory'] for row in timed):.2f}; written in "
        f"{statistics.median(row['wall_s'] for row in timed):.1f} s, "
        f"{statistics.median(row['cpu_s'] for row in timed):.1f} s of processors (medians)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--json", type=Path, help="rows as JSON lines, appended")
    parser.add_argument("--search", type=int, default=0, help="schedules to try; 0: none")
    parser.add_argument("--chip", default="910B2")
    options = parser.parse_args()
    chip, rows = find_chip(options.chip), []
    head = "Task | us | eager us | eager / us | memory roof | busy | imbalance | evaluations"
    head += " | s | cpu s"
    print(f"| {head} |")
    print("|---" * 10 + "|")
    for path in paths(options.root, options.tasks):
        rows.append(measure(path, chip, options.search))
        print(line(rows[-1]), flush=True)
        if options.json is not None:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    if any("us" in row for row in rows):
        print(totals(rows))


if __name__ == "__main__":
    main()
