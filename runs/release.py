"""Does a release work outside of its checkout? Wheel and sdist, each Python, each compiler.

    python runs/release.py [--task examples/gelu.py] [--keep DIR] [--system-packages]

Builds both, installs them into fresh virtual environments of every Python of PYTHONS that is on
PATH, and runs the main job, `npusmith generate`, in an empty folder with every compiler of
COMPILERS that is there. Prints a row for each combination, those that are not here included; ends
with 1 where one fails. An installation takes minutes, most of it for torch; with
--system-packages the environments see the distribution's packages, as Debian's python3-torch.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13")
COMPILERS = (
    "g++-11", "g++-12", "g++-13", "g++-14", "clang++-16", "clang++-17", "clang++-18", "clang++-19",
    "clang++-20",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One combination; `verdict` is "not here" where it could not be tried."""

    package: str
    python: str
    compiler: str
    verdict: str
    seconds: float = 0.0

    def __str__(self) -> str:
        took = f"{self.seconds:6.1f} s" if self.seconds else ""
        return f"{self.package:6}  {self.python:10}  {self.compiler:10}  {self.verdict:9}  {took}"


def build(out: Path) -> dict[str, Path]:
    """The wheel and the sdist of this checkout."""
    for kind in ("wheel", "sdist"):
        argv = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
        subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return {"wheel": next(out.glob("*.whl")), "sdist": next(out.glob("*.tar.gz"))}


def install(python: str, package: Path, place: Path, *, system: bool) -> Path:
    """A fresh environment with that package; gives its npusmith."""
    seen = ["--system-site-packages"] if system else []
    subprocess.run([python, "-m", "venv", *seen, str(place)], check=True)
    argv = [str(place / "bin" / "pip"), "install", "--quiet", str(package)]
    subprocess.run(argv, check=True)
    return place / "bin" / "npusmith"


def generate(command: Path, task: Path, compiler: str, place: Path) -> tuple[str, float]:
    """The verdict of the main job in an empty folder, and its wall time."""
    place.mkdir(parents=True)
    shutil.copy(task, place)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = kept | {"NPUSMITH_CXX": compiler, "NPUSMITH_CACHE": str(place / "cache")}
    start = time.monotonic()
    done = subprocess.run(
        [str(command), "generate", task.name, "--no-search", "--json"], cwd=place,
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    try:
        verdict = json.loads(done.stdout)["verdict"]
    except (ValueError, KeyError):
        verdict = f"exit {done.returncode}"
    return str(verdict), time.monotonic() - start


def rows(task: Path, work: Path, *, system: bool) -> Iterator[Row]:
    """The sdist is tried with the first Python and compiler that are there."""
    compilers = [name for name in COMPILERS if shutil.which(name)]
    packages = build(work / "dist")
    tried = set()
    for python in PYTHONS:
        if not shutil.which(python):
            yield Row("wheel", python, "any", "not here")
            continue
        kinds = ("wheel",) if tried else ("wheel", "sdist")
        for kind in kinds:
            command = install(python, packages[kind], work / f"{python}-{kind}", system=system)
            for compiler in compilers if kind == "wheel" else compilers[:1]:
                place = work / f"{python}-{kind}-{compiler}"
                yield Row(kind, python, compiler, *generate(command, task, compiler, place))
        tried.add(python)
    for name in COMPILERS:
        if name not in compilers:
            yield Row("wheel", "any", name, "not here")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", type=Path, default=ROOT / "examples" / "gelu.py")
    parser.add_argument("--keep", type=Path, help="Work here, and leave everything there.")
    parser.add_argument(
        "--system-packages", action="store_true", help="Use packages of the distribution."
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="npusmith-release-") as name:
        work = args.keep or Path(name)
        work.mkdir(parents=True, exist_ok=True)
        bad = 0
        for row in rows(args.task.resolve(), work.resolve(), system=args.system_packages):
            print(row, flush=True)
            bad += row.verdict not in ("pass", "not here")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
