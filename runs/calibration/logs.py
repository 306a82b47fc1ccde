"""Logs of launches, made once: a folder of files whose names hold all that went into them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from calibration.bank import Plan
from calibration.examples import prepare
from calibration.micro import Micro
from calibration.streams import Stream
from npusmith.errors import Level, NpusmithError
from npusmith.target.chips import find_chip
from npusmith.twin.direct import build_direct, build_program, run_direct, run_program
from npusmith.twin.launch import LaunchOptions, Run
from npusmith.twin.toolchain import INCLUDE, RUNTIME

KERNELS = Path(__file__).parent / "kernels"
_SECONDS = 1800.0
_MOST_STEPS = 40_000_000


@dataclass(frozen=True, slots=True)
class Made:
    """A log, or why there is none."""

    log: Path | None
    why: str = ""


def example_log(work: Path, checkout: Path, name: str, chip: str) -> Made:
    """The launch of one scenario of asc-devkit's examples."""
    source = prepare(checkout, name, work)
    texts = b"".join(file.read_bytes() for file in sorted(source.parent.iterdir()))

    def launch(log: Path) -> Run:
        build = build_program(source, find_chip(chip))
        return run_program(
            build,
            options=LaunchOptions(seconds=_SECONDS, record=log, dry=True, most_steps=_MOST_STEPS),
        )

    return _keep(work, name, texts, launch)


def matmul_log(work: Path, name: str, plan: Plan, chip: str) -> Made:
    """The launch of one tuning record."""
    build = build_direct(KERNELS / "matmul.asc", find_chip(chip))

    def launch(log: Path) -> Run:
        return run_direct(
            build,
            plan.blocks,
            [],
            [],
            [*plan.sizes, plan.packed()],
            options=LaunchOptions(seconds=_SECONDS, record=log, dry=True, most_steps=_MOST_STEPS),
        )

    text = (KERNELS / "matmul.asc").read_bytes() + plan.packed()
    return _keep(work, name, text, launch)


def short_log(work: Path, name: str, stream: Stream, chip: str) -> Made:
    """The launch of a short kernel."""
    build = build_direct(KERNELS / stream.kernel, find_chip(chip), stream.launcher)

    def launch(log: Path) -> Run:
        rest = [*stream.areas, stream.packed()]
        return run_direct(
            build, stream.blocks, [], [], rest, options=LaunchOptions(record=log, dry=True)
        )

    text = (KERNELS / stream.kernel).read_bytes() + stream.launcher.encode()
    return _keep(work, name, text + stream.packed() + bytes([stream.blocks]), launch)


def micro_log(work: Path, micro: Micro, case: bytes) -> Made:
    """One of the two launches of a microbenchmark."""
    build = build_direct(KERNELS / micro.kernel, find_chip(micro.chip), micro.launcher)

    def launch(log: Path) -> Run:
        return run_direct(
            build, 1, [], [], [*micro.areas, case], options=LaunchOptions(record=log, dry=True)
        )

    text = (KERNELS / micro.kernel).read_bytes()
    return _keep(work, micro.name, text + case, launch)


@cache
def _runtime() -> bytes:
    """What the twin is at present: a log is as good as what wrote it."""
    files = sorted(path for folder in (INCLUDE, RUNTIME) for path in folder.rglob("*.*"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).digest()


def _keep(work: Path, name: str, text: bytes, launch: Callable[[Path], Run]) -> Made:
    key = hashlib.sha256(_runtime() + text).hexdigest()[:12]
    folder = work / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{name.replace('/', '-')}-{key}.log"
    if log.exists():
        return Made(log)
    part = log.with_suffix(".part")
    try:
        run = launch(part)
    except NpusmithError as error:
        return Made(None, f"{error.code}: {error.message} ({error.place.file}:{error.place.line})")
    # What broke a rule was not done, but a hazard is only a wait that is missing.
    wrong = [
        finding
        for finding in run.findings
        if finding.level == Level.ERROR and not finding.code.startswith("hazard")
    ]
    if wrong or not run.completed or not part.exists():
        return Made(None, f"the twin refuses it: {wrong[0].message if wrong else run.log[-200:]}")
    shutil.move(part, log)
    return Made(log)
