"""The compiler's estimate of a tile program against the timing model, at the tasks' own shapes.

    python runs/estimates.py --root KERNELBENCH_CHECKOUT [--every 5] [--level 1] [--level 2]
    python runs/estimates.py --root KERNELBENCH_CHECKOUT --every 1 --against eager

The estimate (plan/estimate.py) walks through the program's text; the model times the log of a dry
run, at smaller shapes that tell the time of these (plan/shrink.py). One line for each task, then
how far they lie apart. A log of more steps than are recorded says nothing where the pace of its
last quarters differs, as of several kernels: such tasks are named and left out. Nothing is judged,
no values are computed. Against eager, the estimate of eager PyTorch takes the model's place.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from npusmith.errors import NpusmithError
from npusmith.plan import write
from npusmith.plan.estimate import estimate, shapes_of
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.load import open_task
from npusmith.task.outline import outline
from npusmith.timing import eager

_SAMPLE = 400_000  # steps of a core
_DRIFT = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, required=True, help="a checkout of KernelBench")
    parser.add_argument("--every", type=int, default=5, help="of the tasks in their order")
    parser.add_argument("--level", type=int, action="append", help="default: 1 and 2")
    parser.add_argument("--against", choices=["model", "eager"], default="model")
    options = parser.parse_args()
    ratios = []
    for path in _tasks(options.root, options.level or [1, 2], options.every):
        try:
            ours, theirs, drift = _times(path, options.against == "model")
        except NpusmithError as error:
            print(f"{path.stem[:50]:50} {error.code}: {error.message[:80]}", flush=True)
            continue
        line = f"{path.stem[:50]:50} estimate {ours:10.1f} us"
        if drift > _DRIFT:
            print(f"{line}  pace varies by {drift:.0%}", flush=True)
            continue
        ratios.append(ours / theirs if options.against == "model" else theirs / ours)
        print(f"{line}  {options.against} {theirs:10.1f} us  ratio {ratios[-1]:.2f}", flush=True)
    if not ratios:
        sys.exit("no task could be timed")
    ordered = sorted(ratios)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    what = "estimate / model" if options.against == "model" else "eager / estimate"
    print(
        f"{len(ratios)} tasks: geometric mean of {what} {statistics.geometric_mean(ratios):.3f}, "
        f"median {statistics.median(ratios):.3f}, 80 % between {low:.2f} and {high:.2f}, "
        f"all between {ordered[0]:.2f} and {ordered[-1]:.2f}, "
        f"{sum(ratio >= 1 for ratio in ratios)} at 1.0 or more"
    )


def _tasks(root: Path, levels: list[int], every: int) -> Iterator[Path]:
    for level in levels:
        files = (root / "KernelBench" / f"level{level}").glob("*_*.py")
        yield from sorted(files, key=lambda path: int(path.stem.partition("_")[0]))[::every]


def _times(path: Path, by_model: bool) -> tuple[float, float, float]:
    """Microseconds by the estimate, those of the other side, and how unsure that is."""
    chip = find_chip(DEFAULT_CHIP)
    graph = outline(open_task(path), training=True)
    plan = write(graph, "timed", chip)
    ours = estimate(plan.program, shapes_of(graph, plan.spec), chip)
    if not by_model:
        return ours, eager.estimate(graph, chip).us, 0.0
    shapes = shrink(graph, plan.spec, chip, in_step=goes_in_step(plan.program))
    timed = Evaluator(plan.spec, chip, shapes, _SAMPLE).time(plan.program)
    return ours, timed.task_us, timed.timing.sample_error if timed.timing.sampled else 0.0


if __name__ == "__main__":
    main()
