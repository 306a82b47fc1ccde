"""Kill -9 at random moments: is a unit lost, counted twice, or is the store damaged?

    python runs/speed/kills.py [--units 300] [--kills 20] [--seed 1]

A run of small units (10 tasks; each unit sleeps 50 ms, so that kills hit all stages) is begun, its
runner is killed with SIGKILL after a random time, and it is begun again with --resume, until it
ends. Prints where the kills hit and what the store's own check and the audit say.
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

from npusmith.bench.archive import open_run
from npusmith.bench.audit import verify
from npusmith.bench.model import Limits
from npusmith.bench.plan import Plan
from npusmith.bench.pool import LocalPool
from npusmith.bench.runner import run
from npusmith.errors import NpusmithError
from npusmith.store.database import open_store

FAKES = Path(__file__).parents[2] / "tests" / "bench"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=300)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        plan = Plan.model_validate_json((options.work / "plan.json").read_text())
        run(plan, options.work / "run", LocalPool(2), resume=True)
        return
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(_kill(Path(name), options), indent=2))


def _kill(work: Path, options: argparse.Namespace) -> dict[str, object]:
    root = work / "suite"
    root.mkdir()
    for number in range(10):
        (root / f"t{number}.task").write_text("sleep 0.05 pass")
    plan = Plan(
        suite="fake", root=root, writer="v1", samples=options.units // 10, limits=Limits(),
        suites="fakesuite:open_suite", writers="fakesuite:open_writer",
    )  # fmt: skip
    (work / "plan.json").write_text(plan.model_dump_json())
    chance, hits, begun = random.Random(options.seed), [], time.monotonic()
    while True:
        process = _begin(work)
        if len(hits) == options.kills:
            code = process.wait()
            break
        target = _done(work) + max(1, options.units // (options.kills + 2))
        while process.poll() is None and _done(work) < target:
            time.sleep(chance.random() * 0.05)
        time.sleep(chance.random() * 0.1)
        if process.poll() is not None:
            code = process.returncode
            break
        process.kill()
        process.wait()
        hits.append(_done(work))
    return {"kills": len(hits), "done_at_kill": hits, "exit": code,
            "seconds": round(time.monotonic() - begun, 1), **_judge(work, plan)}  # fmt: skip


def _begin(work: Path) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join([str(FAKES), *filter(None, sys.path)])
    argv = [sys.executable, __file__, "--work", str(work)]
    return subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": paths})


def _done(work: Path) -> int:
    try:
        with open_store(work / "run") as store:
            total, left = store.counts()
            return total - left
    except NpusmithError:  # not begun yet
        return 0


def _judge(work: Path, plan: Plan) -> dict[str, object]:
    wanted = {(f"t{n}", sample) for n in range(10) for sample in range(plan.samples)}
    with open_run(work / "run") as found:
        seen = [(record.item, record.sample) for record in found.records()]
        wrong = verify(found).wrong
    lost, twice = len(wanted - set(seen)), len(seen) - len(set(seen))
    good = not (lost or twice or wrong) and set(seen) == wanted
    return {
        "records": len(seen),
        "lost": lost,
        "twice": twice,
        "verify": wrong or "passed",
        "verdict": "passed: no unit lost, none twice" if good else "FAILED",
    }


if __name__ == "__main__":
    sys.path.insert(0, str(FAKES))
    main()
