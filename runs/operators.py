"""What the deterministic writer's kernels for MultiKernelBench would take at the tasks' own shapes.

    python runs/operators.py --root CHECKOUT [--json FILE] [--search N] [--published] [TASK...]

One row a task: estimated time, eager estimate and their ratio, share of the memory roof reached,
what is busy, evaluations, and how long writing took (search included, capture not) by the clock and
in seconds of processors, which a busy machine does not change much. TASK is `category` or
`category/name`; without one, the 52 operators of the seven categories. No kernel is judged here and
no values are computed: `npusmith bench` does that. All times are estimates of the timing model.

Eager's time says on how many published rows it rests; "*" marks fewer than three, and those are
left out of the headline. "k" marks the sum of kernels that were timed apart. --published takes the
tasks at the shapes that eager was measured with (their last revision before the shapes grew, out of
the checkout's history); the line of those that were published is then a ratio without a model of
eager.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from npusmith.bench.suites.multikernelbench import text_before
from npusmith.errors import NpusmithError, PlanError
from npusmith.plan import Plan, write
from npusmith.plan.evaluate import Estimate, Evaluator
from npusmith.plan.search import search_plan
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.target.chips import Chip, find_chip
from npusmith.task.graph import Graph
from npusmith.task.load import open_task
from npusmith.task.outline import outline
from npusmith.timing.bottleneck import imbalance, share
from npusmith.timing.eager import Ratio, estimate, geometric_mean, ratio
from npusmith.timing.roof import roof

CATEGORIES = ("activation", "loss", "math", "normalization", "optimizer", "pooling", "reduce")
_UNITS = ("S", "V", "M", "MTE2", "MTE3")
Row = dict[str, Any]


def measure(path: Path, chip: Chip, budget: int, root: Path | None = None) -> Row:
    """One task's row; `refused` says why there is none. `root`: at its shapes of before."""
    name = f"{path.parent.name}/{path.stem}"
    try:
        if root is None:
            return row_of(name, outline(open_task(path), training=True), chip, budget)
        with tempfile.TemporaryDirectory(prefix="npusmith-operators-") as folder:
            before = Path(folder) / path.name
            before.write_text(text_before(root, path), encoding="utf-8")
            return row_of(name, outline(open_task(before), training=True), chip, budget)
    except NpusmithError as error:
        return {"task": name, "refused": f"{error.code}: {error.message}"}


def row_of(name: str, graph: Graph, chip: Chip, budget: int) -> Row:
    """The row of a task's graph."""
    begin = now()
    try:
        called = f"{name.rpartition('/')[2]}_custom"
        plan, trials = write(graph, called, chip), 1
        if budget:
            plan, searched = search_plan(plan, graph, called, chip, budget)
            trials = len(searched.trials)
        spent = [after - before for after, before in zip(now(), begin, strict=True)]
        plan = write(graph, called, chip, plan.schedule, everywhere=True)  # timed at fewer rows
        found, apart = timed(plan, graph, chip)
    except NpusmithError as error:
        return {"task": name, "refused": f"{error.code}: {error.message}"}
    limits, eager = roof(graph, chip), estimate(graph, chip)
    return {
        "task": name,
        "us": found.task_us,
        "kernel_us": found.kernel_us,
        "eager_us": eager.us,
        "ratio": ratio(eager, found.task_us).model_dump(),
        "rows": eager.rows,
        "sure": eager.sure,
        "published": all(item.basis == "measured" for item in eager.ops),
        "memory": limits.memory_us / found.kernel_us,
        "compute": limits.compute_us / found.kernel_us,
        "busy": {unit: round(share(found.timing, unit), 3) for unit in _UNITS},
        "imbalance": round(imbalance(found.timing), 3),
        "schedule": str(plan.schedule),
        "evaluations": trials,
        "wall_s": round(spent[0], 2),
        "cpu_s": round(spent[1], 2),
        "note": plan.notes[-1],
        "apart": apart,
    }


def timed(plan: Plan, graph: Graph, chip: Chip) -> tuple[Estimate, bool]:
    """Of the operator as it is launched, or the sum over its kernels and whether it is one.

    Products are timed at their true shapes, at which kernels on vector cores between them may have
    more steps than can be run, even dry; each kernel alone has shapes of its own. What is busy is
    that of the longest. Each starts with an L2 that holds nothing.
    """

    def alone(own: Plan, part: Graph) -> Estimate:
        shapes = shrink(part, own.spec, chip, in_step=goes_in_step(own.program))
        return Evaluator(own.spec, chip, shapes).time(own.program)

    try:
        return alone(plan, graph), False
    except PlanError:
        if not plan.parts:
            raise
    parts = [alone(own, part) for part, own in plan.parts]
    kernel = sum(item.kernel_us for item in parts)
    first = max(parts, key=lambda item: item.kernel_us)
    task = kernel + first.task_us - first.kernel_us
    return replace(first, kernel_us=kernel, task_us=task), True


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
        return f"| {row['task']} | {row['refused'][:80]} | | | | | | | | | |"
    busy = ", ".join(f"{unit} {part:.0%}" for unit, part in row["busy"].items() if part >= 0.2)
    rests = "published" if row["published"] else f"{row['rows']}{'' if row['sure'] else ' *'}"
    us = f"{row['us']:.1f}{' k' * row['apart']}"
    return (
        f"| {row['task']} | {us} | {row['eager_us']:.1f} | {Ratio(**row['ratio'])} "
        f"| {rests} | {row['memory']:.2f} | {busy} | {row['imbalance']:.2f} | {row['evaluations']} "
        f"| {row['wall_s']:.1f} | {row['cpu_s']:.1f} |"
    )


def totals(rows: list[Row]) -> str:
    timed = [row for row in rows if "us" in row]
    parts = {
        "headline, eager on three rows or more, or published": [r for r in timed if r["sure"]],
        "all, also eager on 0 to 2 rows (*)": timed,
        "eager published at these shapes": [r for r in timed if r["published"]],
    }
    lines = [f"{len(timed)} of {len(rows)} timed"]
    lines += [f"{name}: {of(mine)}" for name, mine in parts.items() if mine]
    lines.append(
        f"memory roof median {statistics.median(row['memory'] for row in timed):.2f}; written in "
        f"{statistics.median(row['wall_s'] for row in timed):.1f} s, "
        f"{statistics.median(row['cpu_s'] for row in timed):.1f} s of processors (medians)"
    )
    return "\n".join(lines)


def of(rows: list[Row]) -> str:
    """Geometric mean of the ratios with its range, and how many reach eager."""
    ratios = [Ratio(**row["ratio"]) for row in rows]
    fast = {limit: sum(item.value >= limit for item in ratios) for limit in (0.8, 1.0)}
    mean = geometric_mean(ratios)
    return f"{len(rows)}: {mean}; at least 0.8 x eager {fast[0.8]}, 1.0 x {fast[1.0]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--json", type=Path, help="rows as JSON lines, appended")
    parser.add_argument("--search", type=int, default=0, help="schedules to try; 0: none")
    parser.add_argument("--published", action="store_true", help="at the shapes of before")
    parser.add_argument("--chip", default="910B2")
    options = parser.parse_args()
    chip, rows = find_chip(options.chip), []
    head = "Task | us | eager us | eager / us | eager's rows | memory roof | busy | imbalance"
    head += " | evaluations | s | cpu s"
    print(f"| {head} |")
    print("|---" * 11 + "|")
    for path in paths(options.root, options.tasks):
        before = options.root if options.published else None
        rows.append(measure(path, chip, options.search, before))
        print(line(rows[-1]), flush=True)
        if options.json is not None:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    if any("us" in row for row in rows):
        print(totals(rows))


if __name__ == "__main__":
    main()
