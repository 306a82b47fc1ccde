"""A run of 100,000 recorded units: how long its report takes, and deciding what is left.

    python runs/speed/records.py [--tasks 1000] [--samples 100]

Writes the run through the store's own methods, a third of the units wrong and each with findings,
five trials and a kernel of 4 KB, every tenth kernel its own. Then times, each as a process of its
own with its peak memory: `npusmith report` on the terminal, as JSON, as CSV and as the page; the
CPU time (which other work on the machine stretches less), and how long --resume takes to know what
is left. --keep DIR leaves the run there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from npusmith.bench.model import Candidate, Limits, Record
from npusmith.bench.plan import Plan, freeze
from npusmith.bench.runner import Progress, run
from npusmith.bench.work import DETAILS, Job, key_of
from npusmith.store.database import open_store
from npusmith.task.verdict import Trial

FAKES = Path(__file__).parents[2] / "tests" / "bench"
KERNEL = "// one line of a kernel, so that its size is a usual one\n" * 70


class Decided(Exception):
    """Ends a run when it knows all that is left."""


class Stop:
    """An engine that takes no unit."""

    name, workers, free, running = "stop", 2, 0, 0

    def start(self, plan: Plan) -> None:
        """Nothing to start."""

    def submit(self, job: Job) -> None:
        raise AssertionError("nothing is free")

    def poll(self, seconds: float) -> list[object]:
        return []

    def close(self) -> None:
        """Nothing to end."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--left", type=int, default=1000, help="units to leave open")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = options.keep or Path(name)
        work.mkdir(parents=True, exist_ok=True)
        plan = _plan(work, options)
        clock = time.perf_counter()
        _fill(work / "run", plan, options.left)
        result: dict[str, Any] = {
            "units": options.tasks * options.samples,
            "write_s": round(time.perf_counter() - clock, 1),
            "store_mb": round((work / "run" / "run.db").stat().st_size / 2**20, 1),
            "resume_s": round(_resume(work / "run", plan), 2),
        }
        for label, more in (
            ("report", []),
            ("report --json", ["--json"]),
            ("report --csv", ["--csv", str(work / "r.csv")]),
            ("report --html", ["--html", str(work / "r.html")]),
        ):
            result[label] = _report(work / "run", more)
        result["page_mb"] = round((work / "r.html").stat().st_size / 2**20, 1)
        result["verdict"] = _verdict(result)
        print(json.dumps(result, indent=2))


def _verdict(result: dict[str, Any]) -> str:
    """Against what is wanted: a report in 10 s and 500 MB, resume in 5 s."""
    report = result["report"]
    good = report["seconds"] <= 10 and report["peak_mb"] <= 500 and result["resume_s"] <= 5
    return ("passed" if good else "FAILED") + ": report in 10 s and 500 MB, resume in 5 s"


def _plan(work: Path, options: argparse.Namespace) -> Plan:
    root = work / "suite"
    root.mkdir()
    for number in range(options.tasks):
        (root / f"task_{number:05}.task").write_text("pass")
    plan = Plan(
        suite="fake", root=root, writer="v1", samples=options.samples, limits=Limits(),
        suites="fakesuite:open_suite", writers="fakesuite:open_writer",
    )  # fmt: skip
    return freeze(plan)


def _fill(folder: Path, plan: Plan, left: int) -> None:
    chance = random.Random(0)
    with open_store(folder, create=True) as store:
        store.settle("plan", plan.model_dump_json())
        items = {item.name: item for item in plan.open_suite().items()}
        for item in items.values():
            store.add_item(item.name, item.digest, item.model_dump_json(), "", plan.samples, 1)
        total = len(items) * plan.samples
        for unit in store.claim("filler 1 1", total - left):
            item = items[unit.item]
            text = KERNEL + (f"// {unit.item} {unit.sample}" if unit.sample % 10 == 0 else "")
            candidate = Candidate(
                format="project", files={"op_kernel/k.cpp": text}, writer="fake", sample=unit.sample
            )
            right = chance.random() < 0.67
            record = Record(
                key=key_of(plan, item, candidate, 0), suite="fake", item=item.name,
                category=f"category {hash(item.name) % 15}", level=item.level, dtype=item.dtype,
                writer="fake", sample=unit.sample, candidate=candidate.digest, compiled=True,
                official=right, strict=right, precise=right, clean=right,
                findings={} if right else {"ub-align": 3, "gm-range": 1},
                time_us=chance.uniform(2, 40) if right else None,
                eager_us=10.0 if right else None, eager_basis="model", roof_us=2.0,
                trials=[Trial(name=f"random {n}", seed=n, passed=right, max_abs_error=1e-6,
                                  elements=4096) for n in range(5)],
                seconds={"unit": chance.uniform(0.5, 4), "compile": 0.4, "run": 0.2},
                provenance={"trials": "1", "chip": "910B2", "torch": "2", "seed": "1024"},
            )  # fmt: skip
            store.propose(
                unit.item, unit.sample, candidate.digest,
                candidate.model_dump_json(exclude={"format", "files"}),
                json.dumps([candidate.format, candidate.files]),
            )  # fmt: skip
            store.finish(
                unit.id, record.key, candidate.digest,
                record.model_dump_json(exclude=set(DETAILS), exclude_defaults=True),
                record.model_dump_json(include=set(DETAILS)),
            )  # fmt: skip


def _resume(folder: Path, plan: Plan) -> float:
    """Until every task of the suite was read and compared, and what is left is counted."""

    def watch(now: Progress) -> None:
        if now.whole:
            assert now.total > now.done
            raise Decided

    clock = time.perf_counter()
    try:
        run(plan, folder, Stop(), watch, resume=True)  # type: ignore[arg-type]
    except Decided:
        return time.perf_counter() - clock
    raise SystemExit("nothing was left")


def _report(folder: Path, more: list[str]) -> dict[str, float]:
    """Seconds and peak memory of one process."""
    argv = [sys.executable, "-m", "npusmith", "report", str(folder), *more]
    paths = os.pathsep.join([str(FAKES), *filter(None, sys.path)])
    clock = time.perf_counter()
    with open(os.devnull, "wb") as null:  # noqa: PTH123
        process = subprocess.Popen(
            argv, env=os.environ | {"PYTHONPATH": paths}, stdout=null, stderr=null
        )
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(argv)} ended with {os.waitstatus_to_exitcode(status)}")
    return {
        "seconds": round(time.perf_counter() - clock, 2),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": round(used.ru_maxrss / 1024, 1),
    }


if __name__ == "__main__":
    sys.path.insert(0, str(FAKES))
    main()
