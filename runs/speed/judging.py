"""What a verdict costs, on the clock and in processor time.

    python runs/speed/judging.py [--runs 3]

Three cases: a new right softmax of 1M float32 elements on five sets of inputs, one that is wrong on
the first set, both in a warm process with references known; and `npusmith run --task` of a small
add, as a process of its own. Prints medians with their spread. Compiles are not taken from the
cache: each run gets a kernel whose text was never compiled before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch  # noqa: F401  - the figures are for a process that has torch imported

from npusmith.lower import lower, write_project
from npusmith.plan import write
from npusmith.target.chips import find_chip
from npusmith.task.judge import judge
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.load import open_task
from npusmith.task.trials import Sets, prepare
from npusmith.task.verdict import Verdict

CHIP = find_chip("910B2")
TASK = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, {names}):
        return {value}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def processor_seconds() -> float:
    """Of this process and all that it started, the server of its boxes included."""
    times = os.times()
    total = times.user + times.system + times.children_user + times.children_system
    ticks = os.sysconf("SC_CLK_TCK")
    for thread in Path("/proc/self/task").iterdir():
        for child in (thread / "children").read_text().split():
            # utime, stime, cutime and cstime are fields 14 to 17; a name may hold blanks
            fields = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / ticks
    return total


def measure(runs: int, job: Callable[[int], object]) -> dict[str, list[float]]:
    """Median, least and most of each kind of time; a first run warms up."""
    walls, processors = [], []
    for number in range(runs + 1):
        clock, before = time.perf_counter(), processor_seconds()
        job(number)
        walls.append(time.perf_counter() - clock)
        processors.append(processor_seconds() - before)
    rows = {"wall_s": walls[1:], "processor_s": processors[1:]}
    return {
        name: [round(figure(row), 2) for figure in (statistics.median, min, max)]
        for name, row in rows.items()
    }


def write_task(path: Path, names: str, value: str, inputs: str) -> Path:
    path.write_text(TASK.format(names=names, value=value, inputs=inputs))
    return path


def judge_softmax(work: Path, runs: int) -> dict[str, object]:
    path = write_task(work / "softmax.py", "x", "torch.softmax(x, -1)", "torch.randn(1024, 1024)")
    prepared = prepare(open_task(path), work / "references", sets=Sets(edges=False, shapes=False))
    plan = write(prepared.graph, "softmax_custom", CHIP)
    program = lower(plan.program, CHIP)

    def candidate(number: int, wrong: bool) -> Verdict:
        folder = work / f"{'wrong' if wrong else 'right'}{number}"
        folder.mkdir()
        write_project(program, CHIP, folder, plan.spec)
        kernel = next(folder.glob("op_kernel/*.cpp"))
        text = kernel.read_text().replace("Exp(", "Abs(") if wrong else kernel.read_text()
        kernel.write_text(f"{text}// {number} {time.time_ns()}\n")
        verdict = judge(
            folder, prepared, CHIP, "strict", spec=plan.spec, options=JudgeOptions(stop=True)
        )
        if verdict.correct is wrong or not verdict.compiled:
            raise SystemExit(verdict.model_dump_json(indent=2))
        return verdict

    return {
        "right, five sets": measure(runs, lambda number: candidate(number, False)),
        "wrong at the first set": measure(runs, lambda number: candidate(number, True)),
    }


def run_add(work: Path, runs: int) -> dict[str, list[float]]:
    inputs = "torch.randn(64, 1000), torch.randn(64, 1000)"
    task = str(write_task(work / "add.py", "x, y", "x + y", inputs))
    project = str(work / "add")
    command = [sys.executable, "-m", "npusmith"]
    subprocess.run(
        [*command, "generate", task, "--out", project, "--no-search"],
        check=True, capture_output=True,
    )  # fmt: skip
    run = [*command, "run", project, "--task", task]
    return measure(runs, lambda _: subprocess.run(run, check=True, capture_output=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "references").mkdir()
        found = judge_softmax(work, runs) | {"run --task, small add": run_add(work, runs)}
        print(json.dumps({"runs": runs, "median, least, most": found}, indent=2))


if __name__ == "__main__":
    main()
