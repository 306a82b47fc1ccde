"""From nothing to a first verdict: the steps of README's first command, each with its time.

    python runs/first_verdict.py [--task examples/softmax.py] [--install]

With --install a fresh virtual environment gets the checkout first, as README says; most of that
time is the network's and pip's. Then the command runs twice with an empty cache of npusmith: once
as it stands, and once more with the twin compiled. The difference is what the first compile of the
twin costs; processor time is told beside the clock, since other work on the machine stretches that.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET_S = 30.0  # of what is ours: everything but the installation


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds on the clock, and of processor time of all processes that ended."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:6.1f} s on the clock, {self.cpu:6.1f} s of processor time"


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(argv: list[str], cache: Path, folder: Path) -> tuple[Took, str]:
    """How long the command took, and what it printed; CalledProcessError where it failed."""
    start, before = time.monotonic(), spent()
    done = subprocess.run(
        argv, cwd=folder, env=os.environ | {"NPUSMITH_CACHE": str(cache)}, check=True,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return Took(time.monotonic() - start, spent() - before), done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", type=Path, default=ROOT / "examples" / "softmax.py")
    parser.add_argument("--install", action="store_true", help="Into a fresh environment, first.")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="npusmith-first-") as name:
        folder = Path(name)
        cache, python = folder / "cache", Path(sys.executable)
        if args.install:
            timed([sys.executable, "-m", "venv", "env"], cache, folder)
            python = folder / "env" / "bin" / "python"
            pip = [str(python), "-m", "pip", "install", "--quiet", "-e", str(ROOT)]
            print(f"install   {timed(pip, cache, folder)[0]}", flush=True)
        command = [str(python), "-m", "npusmith", "generate", str(args.task.resolve()), "--json"]
        first, said = timed(command, cache, folder)
        print(f"first     {first}: {json.loads(said)['verdict']}", flush=True)
        again, said = timed(command, cache, folder)
        print(f"again     {again}: {json.loads(said)['verdict']}")
        print(f"the twin  {first.wall - again.wall:6.1f} s of the first; target {TARGET_S:.0f} s")
    return 0 if first.wall <= TARGET_S else 1


if __name__ == "__main__":
    sys.exit(main())
