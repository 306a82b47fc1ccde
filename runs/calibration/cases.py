"""Everything that is timed: launches with their logs, what was published of each, what we say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from calibration import bank, logs, micro, streams, tables
from calibration.examples import SMALLER
from npusmith.target.chips import Chip, find_chip
from npusmith.target.costs import values
from npusmith.timing.model import CoreTime, Timing, UnitTime
from npusmith.timing.simulate import LAUNCH, launch_us, simulate
from npusmith.twin.toolchain import Toolchain, find_toolchain

# Unit of the model for each column of kernels.csv; the cube's for the units that both kinds have.
_PIPES = {
    "vec": "V",
    "scalar": "S",
    "mte1": "MTE1",
    "mte2": "MTE2",
    "mte3": "MTE3",
    "mac": "M",
    "fixpipe": "FIX",
}
_WORKERS = 2
_LEAST = 0.008  # share of the task below which a pipe's busy time says nothing


@dataclass(frozen=True, slots=True)
class Case:
    """One published time and the log, or the two, that ours comes from."""

    name: str
    family: str  # rows of one family are compared with each other
    chip: str
    logs: tuple[Path, ...]
    published: dict[str, float]  # by metric: "task", "core", "cycles", or a pipe's column; us
    share: float = 1.0  # of the published work that the log holds
    pipe: str = ""  # micro: the unit whose busy time counts
    more: int = 1  # micro: repetitions between the two logs
    left_out: bool = False
    end_to_end: bool = True
    double: bool = False  # a matmul whose buffers are all double
    steps: int = 0
    cold: bool = False  # L2 held nothing of its data before
    first: bool = False  # launched once: nor did any cache hold the kernel
    clock_mhz: int = 0  # other than the chip's
    evidence: str = ""  # of a short row

    def tells(self, metric: str) -> bool:
        """Is this a time of its own, and more than a trace of the whole?"""
        traced = metric in _PIPES and self.published[metric] < _LEAST * self.published["task"]
        return not traced and self.published[metric] > 0


@dataclass(frozen=True, slots=True)
class Absent:
    """A published time without a launch, and why."""

    name: str
    why: str


def example_cases(work: Path, checkout: Path, names: Iterable[str] = ()) -> list[Case | Absent]:
    """The best-practice examples."""
    wanted = set(names)
    found: list[Case | Absent] = []
    for row in tables.read("kernels"):
        if wanted and row["name"] not in wanted:
            continue
        if row["name"].split("/")[1] in ("vector only", "cube only"):
            found.append(Absent(row["name"], "published without a scenario of its own"))
            continue
        made = logs.example_log(work, checkout, row["name"], row["chip"])
        if made.log is None:
            found.append(Absent(row["name"], made.why))
            continue
        published = {
            metric: float(row[f"{metric}_us"])
            for metric in ("task", "core", *_PIPES)
            if row[f"{metric}_us"]
        }
        published |= _differences(published)
        smaller = SMALLER.get(row["name"])
        found.append(
            Case(
                row["name"],
                row["name"].split("/")[0],
                row["chip"],
                (made.log,),
                published,
                share=smaller.share if smaller else 1.0,
                left_out=tables.left_out(tables.key_of("kernels", row)),
                steps=made.log.stat().st_size // 48,
                cold=True,  # the examples' programs launch their kernel once
                first=True,
            )
        )
    return found


def matmul_cases(work: Path, most_steps: int) -> list[Case | Absent]:
    """The tuning records, but those with more steps than `most_steps`."""
    found: list[Case | Absent] = []
    for row in tables.read("matmul"):
        plan = bank.plan_of(row)
        why = plan.refusal()
        if not why and plan.steps > most_steps:
            why = f"about {plan.steps} steps, more than {most_steps}"
        made = (
            logs.Made(None, why) if why else logs.matmul_log(work, row["name"], plan, row["chip"])
        )
        if made.log is None:
            found.append(Absent(row["name"], made.why))
            continue
        found.append(
            Case(
                row["name"],
                "bank",
                row["chip"],
                (made.log,),
                {"core": float(row["us"])},
                left_out=tables.left_out(tables.key_of("matmul", row)),
                double=plan.double(),
                steps=plan.steps,
            )
        )
    return found


def micro_cases(work: Path) -> list[Case | Absent]:
    """The microbenchmarks."""
    found: list[Case | Absent] = []
    for one in micro.all_micro():
        made = [logs.micro_log(work, one, case) for case in one.cases]
        paths = tuple(each.log for each in made if each.log)
        if len(paths) < 2:
            found.append(Absent(one.name, made[0].why or made[1].why))
            continue
        found.append(
            Case(
                one.name,
                one.family,
                one.chip,
                paths,
                {"cycles": one.cycles},
                pipe=one.pipe,
                more=one.more,
                left_out=tables.left_out(one.name),
                end_to_end=False,
                cold=one.cold,
                first=one.cold,
                clock_mhz=one.clock_mhz,
            )
        )
    return found


def _differences(times: Mapping[str, float]) -> dict[str, float]:
    """lag: of the task over its cores; rest: of a core over its loads."""
    pairs = {"lag": ("task", "core"), "rest": ("core", "mte2")}
    return {
        name: times[whole] - times[part]
        for name, (whole, part) in pairs.items()
        if whole in times and part in times
    }


def _family(name: str) -> str:
    """Whose kernel a short row is of, and whether each of its rows has a scalar of its own."""
    if name.startswith("eager/"):
        return "eager"
    if "/div/" in name:
        return "by row"
    return "vendor" if "/torch/" in name else "short"


def short_cases(work: Path) -> list[Case | Absent]:
    """Kernels of a few microseconds, which stream over global memory."""
    found: list[Case | Absent] = []
    for row in tables.read("short"):
        made = logs.short_log(work, row["name"], streams.stream_of(row), row["chip"])
        if made.log is None:
            found.append(Absent(row["name"], made.why))
            continue
        published = {
            metric: float(row[f"{metric}_us"])
            for metric in ("task", "core", "vec", "scalar", "mte2", "mte3")
            if row[f"{metric}_us"]
        }
        found.append(
            Case(
                row["name"],
                _family(row["name"]),
                row["chip"],
                (made.log,),
                published | _differences(published),
                left_out=tables.left_out(row["name"]),
                steps=made.log.stat().st_size // 48,
                cold=row["state"] == "flushed",
                clock_mhz=int(row["clock_mhz"]),
                evidence=row["evidence"],
            )
        )
    return found


@cache
def _chain(chip: str) -> Toolchain:
    return find_toolchain(find_chip(chip))


def predict(case: Case, costs: Mapping[str, float]) -> dict[str, float]:
    """Our times for what was published of a case."""
    chip = find_chip(case.chip)
    if case.clock_mhz:
        chip = replace(chip, clock_mhz=case.clock_mhz)
    chain = _chain(case.chip)
    state = {
        "l2.warm": float(not case.cold),
        "l2.full": float(not case.first),
        "launch.warm": float(not case.first),
    }
    used = {**costs, **state}
    found = [_timed(log, chain, chip, used) for log in case.logs]
    if len(found) == 2:
        few, many = (_cycles(timing, case.pipe) for timing in found)
        return {"cycles": (many - few) / case.more}
    times = {
        metric: _micros(found[0], metric, case) / case.share
        for metric in case.published
        if metric not in ("lag", "rest") and _has(found[0], metric)
    }
    return times | _differences(times)


def _timed(log: Path, chain: Toolchain, chip: Chip, used: Mapping[str, float]) -> Timing:
    """The timing of a log: what a launch has on top of its kernel needs no other simulation."""
    kernel = tuple(sorted((name, value) for name, value in used.items() if name not in LAUNCH))
    timing = _simulated(log, chain, chip, kernel)
    whole = timing.kernel_us + launch_us(timing, values(chip, used))
    return timing.model_copy(update={"task_us": whole})


@lru_cache(maxsize=1024)
def _simulated(
    log: Path, chain: Toolchain, chip: Chip, kernel: tuple[tuple[str, float], ...]
) -> Timing:
    return simulate(log, chain, chip, dict(kernel))


def predict_all(cases: list[Case], costs: Mapping[str, float]) -> list[dict[str, float]]:
    """The same for many, two at a time."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        return list(pool.map(lambda case: predict(case, costs), cases))


def _cycles(timing: Timing, pipe: str) -> float:
    return _busy(timing.cores[0].units[pipe]) if pipe else timing.cycles


def _has(timing: Timing, metric: str) -> bool:
    return metric not in _PIPES or bool(_cores(timing, metric))


def _micros(timing: Timing, metric: str, case: Case) -> float:
    """A metric as the profiler gives it: times of cores and pipes are means over the cores."""
    if metric == "task":
        return timing.task_us
    if metric == "core":
        cores = _cores(timing, "mac") or timing.cores
        return sum(core.end - core.begin for core in cores) / len(cores) / timing.clock_mhz
    cores = _cores(timing, metric)
    busy = sum(_busy(core.units[_PIPES[metric]], metric != "scalar") for core in cores)
    return busy / len(cores) / timing.clock_mhz


def _busy(unit: UnitTime, transfers: bool = True) -> float:
    """As a profiler sees it: a transfer that gets less than its own rate is still busy."""
    return unit.busy + (unit.waits.get("memory", 0.0) if transfers else 0.0)


def _cores(timing: Timing, metric: str) -> list[CoreTime]:
    """The cores that a metric is about: cube cores where there are any, V and MTE3 apart."""
    cubes = [core for core in timing.cores if core.cube]
    vectors = [core for core in timing.cores if not core.cube]
    if metric in ("vec", "mte3"):
        return vectors
    return cubes or ([] if metric in ("mac", "mte1", "fixpipe") else vectors)
