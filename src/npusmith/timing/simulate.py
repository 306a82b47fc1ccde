"""How long a recorded launch would take on a chip: runs the timer (twin/timer) on its log.

`simulate(log, chain, chip)` gives a Timing. The same log and constants give the same cycles on
every machine. The model is described in docs/timing.md; its constants stand in target/costs.py.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npusmith.errors import NpusmithError, Place
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.target.costs import values
from npusmith.timing.model import Hinge, Timing
from npusmith.twin.toolchain import Toolchain

_LOG, _COSTS = 2, 3  # exit statuses of the timer
_HINGES = 8  # constants of the kernel that are tried, besides those of the launch
_STEP = 0.01  # by how much each is raised
_SWITCHES = ("l2.on", "l2.warm", "l2.full", "launch.warm")  # no quantities
LAUNCH = (
    "launch.task",
    "launch.core",
    "launch.core_cube",
    "launch.first",
    "launch.first_core",
    "launch.first_core_cube",
    "launch.mix",
)  # us on top of the kernel
_FIRST = ("launch.first", "launch.first_core", "launch.first_core_cube")


def simulate(
    log: Path,
    chain: Toolchain,
    chip: Chip,
    costs: Mapping[str, float] | None = None,
    events: Path | None = None,
    most_events: int = 200_000,
    hinges: bool = False,
) -> Timing:
    """The timing of one launch; `costs` replaces constants by name.

    `events` gets a line of numbers for each of the first `most_events` steps: core unit start end
    what place reason wait bytes (times in cycles; timing/trace.py reads it). `hinges` also tries
    how much the result depends on the constants that were charged most: a dozen runs more.
    Raises timing-log, timing-damaged, timing-costs, timing-failed.
    """
    if not log.is_file():
        raise NpusmithError("timing-log", "there is no log of a launch", Place(str(log)))
    used = values(chip, costs)
    with temporary_folder("npusmith-timer-") as folder:
        report = _run(log, chain, used, Path(folder), events, most_events)
        timing = _timing(report, chip, used)
        if hinges:
            timing.hinges = _hinges(log, chain, chip, used, Path(folder), report)
    return timing


def _run(
    log: Path,
    chain: Toolchain,
    used: Mapping[str, float],
    folder: Path,
    events: Path | None = None,
    most: int = 0,
) -> dict[str, Any]:
    """One run of the timer; what it reports."""
    given, report = folder / "costs", folder / "report"
    starts = dict(used)
    if not used["launch.warm"] > 0:
        starts["launch.prologue"] += used["launch.first_prologue"]
    given.write_text("".join(f"{name} {value!r}\n" for name, value in sorted(starts.items())))
    command = [str(chain.timer), str(log), str(given), str(report)]
    command += [str(events), str(max(0, most))] if events else []
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise _refusal(done.returncode, done.stderr.strip(), log)
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def _refusal(status: int, said: str, log: Path) -> NpusmithError:
    place = Place(str(log))
    if status == _LOG:
        return NpusmithError("timing-damaged", "the log cannot be timed", place, seen=said)
    if status == _COSTS:
        return NpusmithError("timing-costs", "the timer refuses the constants", seen=said)
    return NpusmithError("timing-failed", "the timer stopped", place, seen=said or f"exit {status}")


def _timing(report: dict[str, Any], chip: Chip, used: Mapping[str, float]) -> Timing:
    known = {key: value for key, value in report.items() if key in Timing.model_fields}
    kernel = report["cycles"] / chip.clock_mhz
    timing = Timing(
        **known,
        chip=chip.name,
        clock_mhz=chip.clock_mhz,
        kernel_us=kernel,
        task_us=kernel,
    )
    timing.task_us += launch_us(timing, used)
    return timing


def core_start_us(chip: Chip) -> float:
    """What one more vector core costs a task, in microseconds: its part of start and tail."""
    used = values(chip)
    return used["launch.core"] + used["launch.stagger"] / chip.clock_mhz


def launch_us(timing: Timing, used: Mapping[str, float]) -> float:
    """What a profiler's task duration has on top of the kernel."""
    cubes = sum(core.cube for core in timing.cores)
    vectors = len(timing.cores) - cubes
    found = used["launch.task"] + (used["launch.mix"] if timing.mixed else 0.0)
    found += used["launch.core"] * vectors + used["launch.core_cube"] * cubes
    if used["launch.warm"] > 0:
        return found
    first = used["launch.first_core"] * vectors + used["launch.first_core_cube"] * cubes
    return found + used["launch.first"] + first


def _hinges(
    log: Path,
    chain: Toolchain,
    chip: Chip,
    used: Mapping[str, float],
    folder: Path,
    report: dict[str, Any],
) -> list[Hinge]:
    """Percent of task time for one percent of a constant, the largest first."""
    base = _timing(report, chip, used).task_us
    charged = {name: cycles for name, cycles in report["charged"].items() if used[name] > 0}
    most = sorted(charged, key=lambda name: (-charged[name], name))[:_HINGES]
    found = []
    first = not used["launch.warm"] > 0
    for name in (*most, *LAUNCH):
        if name in _SWITCHES or (name in _FIRST and not first):
            continue
        raised = {**used, name: used[name] * (1 + _STEP)}
        again = report if name in LAUNCH else _run(log, chain, raised, folder)
        change = _timing(again, chip, raised).task_us / base - 1
        found.append(Hinge(name=name, share=change / _STEP))
    return sorted(found, key=lambda hinge: (-abs(hinge.share), hinge.name))
