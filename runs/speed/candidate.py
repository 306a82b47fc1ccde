"""One candidate, warm: from project text to verdict on one set of inputs of 1M float32 elements.

    python runs/speed/candidate.py [--task examples/softmax.py] [--runs 7]

The reference is computed once, as it is for every further candidate of a task. Each run gets a
project whose text was never compiled before. Prints the median and spread, and the parts of the
median run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch  # noqa: F401  - the figure is for a process that has torch imported

from npusmith.lower import lower, write_project
from npusmith.plan import write
from npusmith.target.chips import find_chip
from npusmith.task.judge import judge
from npusmith.task.load import open_task
from npusmith.task.trials import Sets, prepare


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", type=Path, default=Path("examples/softmax.py"))
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    chip = find_chip("910B2")
    with tempfile.TemporaryDirectory() as work:
        prepared = prepare(
            open_task(options.task), Path(work), sets=Sets(edges=False, shapes=False)
        )
        prepared = replace(prepared, trials=tuple(prepared.trials[:1]))
        plan = write(prepared.graph, f"{options.task.stem}_custom", chip)
        program = lower(plan.program, chip)
        spec = replace(plan.spec, task_source=prepared.task.text)
        seconds, parts = [], []
        for index in range(options.runs + 1):
            folder = Path(work, f"project{index}")
            folder.mkdir()
            clock = time.perf_counter()
            write_project(program, chip, folder, spec)
            kernel = next(folder.glob("op_kernel/*.cpp"))
            kernel.write_text(kernel.read_text() + f"// {index} {time.time_ns()}\n")
            verdict = judge(folder, prepared, chip, "strict", spec=spec)
            seconds.append(time.perf_counter() - clock)
            parts.append(verdict.seconds)
            if verdict.verdict != "pass":
                raise SystemExit(verdict.model_dump_json(indent=2))
        warm = seconds[1:]  # the first may build the header cache
        print(
            json.dumps(
                {
                    "task": str(options.task),
                    "elements": prepared.trials[0].references[0].size,
                    "runs": len(warm),
                    "median_s": round(statistics.median(warm), 3),
                    "min_s": round(min(warm), 3),
                    "max_s": round(max(warm), 3),
                    "parts_of_median": parts[1 + warm.index(statistics.median_high(warm))],
                },
                indent=2,
            )
        )


if __name__ == "__main__":
    main()
