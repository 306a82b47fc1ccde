"""How long a published operator project takes to compile, on one core.

    python runs/speed/answers.py --root CHECKOUT [--every 5]

CHECKOUT is one of PCL's NPUKernelBench (weich97/NPUKernelBench). Every n-th answer is compiled
for its first column of element types: cold (nothing of the project in the cache; the twin's own
headers and runtime are there, as they are after the first use on a machine) and warm (one line of
the kernel changed since, as in a loop that repairs it). Prints medians and spreads.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from npusmith.errors import NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import find_chip
from npusmith.twin import build, read_project
from npusmith.twin.project import Project
from npusmith.twin.toolchain import find_toolchain

CHIP = find_chip("910B2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--every", type=int, default=5)
    options = parser.parse_args()
    answers = sorted(options.root.glob("tasks/*/*/*/answer/0"))[:: options.every]
    if not answers:
        raise SystemExit(f"no answers below {options.root}")
    find_toolchain(CHIP)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    cold, warm = [], []
    for answer in answers:
        with tempfile.TemporaryDirectory() as work:
            copy = Path(shutil.copytree(answer, Path(work, "project")))
            try:
                first, second = _seconds(copy, "cold"), _seconds(copy, "warm")
            except NpusmithError as error:
                print(f"{answer}: {error}", file=sys.stderr)
                continue
        cold.append(first)
        warm.append(second)
        print(f"{answer.parts[-3]}: {first:.2f} s, {second:.2f} s", file=sys.stderr)
    print(json.dumps({"cold": _spread(cold), "warm": _spread(warm)}, indent=2))


def _seconds(project: Path, mark: str) -> float:
    """Change the kernel, then time the compile of the project."""
    source = read_project(project)
    mark = f"\n// {mark} {time.time_ns()}\n"
    source.kernel.write_text(source.texts[source.kernel] + mark)
    clock = time.perf_counter()
    source = read_project(project)
    build(source, CHIP, _dtypes(source))
    return time.perf_counter() - clock


def _dtypes(project: Project) -> tuple[DType, ...]:
    by_name = {dtype.ge: dtype for dtype in DType}
    return tuple(
        by_name.get(port.types[0] if port.types else "", DType.FLOAT32) for port in project.op.ports
    )


def _spread(seconds: list[float]) -> dict[str, float]:
    return {
        "answers": len(seconds),
        "median_s": round(statistics.median(seconds), 2),
        "min_s": round(min(seconds), 2),
        "max_s": round(max(seconds), 2),
    }


if __name__ == "__main__":
    main()
