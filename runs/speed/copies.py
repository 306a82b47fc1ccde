"""How busy a run keeps two cores, and what the runner adds to the units themselves.

    python runs/speed/copies.py [--copies 200] [--workers 2] [--inputs 5] [--ray] [--time]

One small task (softmax of 64 x 128) in a folder of its own, one project that `npusmith generate`
wrote for it, copied as the response of each sample. Evaluated by `npusmith bench folder`, warm: a
first run of a few copies fills the compile cache, as in any run but the first.

- busy: CPU time of all processes of the run over (wall time x workers), from getrusage of the
  process that ended, whose children and theirs are counted when they are waited for;
- overhead: (wall time x workers - the sum of unit times) over that sum. A unit's time is taken in
  its worker around the suite's judgement. Wall time is from the first line of the runner to its
  end, with the start of the workers.
- own: CPU time of the runner's process over that of everything: what it takes from the units.

Other work on the machine lowers busy, and stretches units and runner alike; `others` says how much
CPU time other processes took meanwhile, from /proc/stat.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from npusmith.bench.archive import open_run
from npusmith.bench.model import Limits
from npusmith.bench.plan import Plan
from npusmith.bench.pool import Engine, LocalPool
from npusmith.bench.raypool import RayPool
from npusmith.bench.runner import run
from npusmith.open_writer import OPEN_WRITER
from npusmith.pipeline import generate
from npusmith.target.chips import DEFAULT_CHIP, find_chip

TASK = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
"""


class Silent:
    """Progress that nobody reads."""

    def step(self, name: str, detail: str = "") -> None:
        """Nothing to say."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--inputs", type=int, default=5, help="sets of inputs of a unit")
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--time", action="store_true", help="time each copy, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        responses = _prepare(work, options.copies)
        plan = Plan(
            suite="folder", root=work / "suite", writer=f"folder:{responses}", writers=OPEN_WRITER,
            limits=Limits(trials=options.inputs, timing=options.time),
        )  # fmt: skip
        run(plan.model_copy(update={"samples": 4}), work / "warm", LocalPool(options.workers))
        engine: Engine = (
            RayPool("local", options.workers) if options.ray else LocalPool(options.workers)
        )
        result = _measure(plan.model_copy(update={"samples": options.copies}), work / "run", engine)
    print(json.dumps(result, indent=2))


def _prepare(work: Path, copies: int) -> Path:
    (work / "suite").mkdir()
    (work / "suite" / "softmax.py").write_text(TASK)
    task = work / "suite" / "softmax.py"
    verdict = generate(task, work / "project", find_chip(DEFAULT_CHIP), "default", Silent())
    if verdict.verdict != "pass":
        raise SystemExit(f"the project is not right: {verdict.verdict}")
    for sample in range(copies):
        target = work / "responses" / "softmax" / str(sample)
        target.mkdir(parents=True)
        for part in ("op_kernel", "op_host", "CMakeLists.txt", "bindings.json"):
            path = work / "project" / part
            if path.is_dir():
                shutil.copytree(path, target / part)
            elif path.is_file():
                shutil.copy(path, target / part)
    return work / "responses"


def _measure(plan: Plan, folder: Path, engine: Engine) -> dict[str, object]:
    before, others, clock = _cpu(), _all_cpu(), time.perf_counter()
    run(plan, folder, engine)
    wall = time.perf_counter() - clock
    own, children = (after - old for after, old in zip(_cpu(), before, strict=True))
    with open_run(folder) as found:
        units = [record.seconds["unit"] for record in found.records()]
        right = sum(bool(record.official) for record in found.records())
        timed = sum(record.time_us is not None for record in found.records())
    space = wall * engine.workers
    busy, overhead = (own + children) / space, (space - sum(units)) / sum(units)
    good = busy >= 0.9 and overhead < 0.05 and right == len(units)
    return {
        "engine": engine.name,
        "units": len(units),
        "right": right,
        "wall_s": round(wall, 1),
        "unit_s": round(sum(units) / len(units), 3),
        "timed": timed,
        "cpu_s": round(own + children, 1),
        "busy": round(busy, 3),
        "overhead": round(overhead, 3),
        "own": round(own / (own + children), 4),
        "others": round((_all_cpu() - others - own - children) / space, 3),
        "verdict": ("passed" if good else "FAILED") + ": 90 % busy, less than 5 % overhead",
    }


def _cpu() -> tuple[float, float]:
    """User and system seconds of this process, and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return used[0].ru_utime + used[0].ru_stime, used[1].ru_utime + used[1].ru_stime


def _all_cpu() -> float:
    """Seconds that all processes of the machine have used."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system = map(int, fields[:3])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
