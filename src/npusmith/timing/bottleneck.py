"""The bottleneck vector: what limits a launch, as a fixed list of numbers.

`vector(timing, roof)` gives one number for each of NAMES; docs/profile.md says what each means. The
order and meaning never change under one VERSION: other programs compare vectors of different days.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from npusmith.timing.model import UNITS, CoreTime, PathTime, Timing, UnitTime

if TYPE_CHECKING:
    from npusmith.timing.roof import Roof

VERSION = 1
# Why a unit has no work; "end" is left out of the vector, the imbalance says it better.
REASONS = (*UNITS, "issue", "queue", "memory", "cores", "end")
SIZES = (512, 2 << 10, 8 << 10, 16 << 10, 64 << 10)  # ends of the classes of PathTime.sizes, bytes
_SIZE_NAMES = ("512", "2k", "8k", "16k", "64k", "more")
_CUBE_UNITS = ("M", "MTE1", "FIX")

NAMES: tuple[str, ...] = (
    *(f"busy_{unit}" for unit in UNITS),
    *(f"wait_{reason}" for reason in REASONS[:-1]),
    *(f"size_{name}" for name in _SIZE_NAMES),
    "unaligned",
    "reuse",
    "l2_hit",
    "imbalance",
    "conflict",
    "head",
    "scalar",
    "lanes",
    "launch",
    "memory_roof",
    "compute_roof",
    "log_cores",
    "log_cycles",
    "log_bytes",
    "log_steps",
    "finished",
    "sampled",
)


def vector(timing: Timing, roof: Roof | None = None) -> list[float]:
    """One finite number for each of NAMES."""
    paths = global_paths(timing)
    moved = sum(path.bytes for path in paths)
    steps = sum(unit.steps for unit in _units(timing.cores))
    busy = busy_cycles(timing)
    values = [
        *(share(timing, unit) for unit in UNITS),
        *_waits(timing),
        *_sizes(paths),
        _over(sum(path.unaligned for path in paths), sum(path.transfers for path in paths)),
        _over(roof.gm_bytes, moved) if roof else 0.0,
        1 - _over(sum(path.miss_bytes for path in paths), moved) if moved else 0.0,
        imbalance(timing),
        _over(timing.conflict_cycles, busy["V"]),
        _over(timing.head_cycles, busy["V"]),
        _over(busy["S"], sum(busy.values())),
        _over(timing.vector_elements, 128 * timing.vector_repeats),
        1 - _over(timing.kernel_us, timing.task_us) if timing.task_us else 0.0,
        _over(roof.memory_us, timing.kernel_us) if roof else 0.0,
        _over(roof.compute_us, timing.kernel_us) if roof else 0.0,
        math.log2(1 + len(working(timing))),
        math.log10(1 + timing.cycles),
        math.log10(1 + moved),
        math.log10(1 + steps),
        float(timing.finished),
        float(timing.sampled),
    ]
    assert len(values) == len(NAMES)
    return [round(value, 6) for value in values]


def named(timing: Timing, roof: Roof | None = None) -> dict[str, float]:
    """The vector by name."""
    return dict(zip(NAMES, vector(timing, roof), strict=True))


def working(timing: Timing) -> list[CoreTime]:
    """The cores that did more than begin and end."""
    return [core for core in timing.cores if any(unit.busy for unit in core.units.values())]


def busy_cycles(timing: Timing) -> dict[str, float]:
    """Busy cycles of each unit, summed over the cores."""
    cores = timing.cores
    return {
        name: sum(core.units[name].busy for core in cores if name in core.units) for name in UNITS
    }


def share(timing: Timing, unit: str) -> float:
    """Busy share of a unit: of the kernel's cycles, over the launch's cores that have that unit."""
    cores = sum(has_unit(core, unit) for core in timing.cores)
    return _over(busy_cycles(timing)[unit], cores * timing.cycles)


def has_unit(core: CoreTime, unit: str) -> bool:
    """AIC has M, MTE1 and FIX, AIV has V; both have S, MTE2 and MTE3."""
    return core.cube if unit in _CUBE_UNITS else unit != "V" or not core.cube


def waits_of(timing: Timing, unit: str) -> dict[str, float]:
    """Waits of one unit by reason, as shares like `share`; without those of a core at its end."""
    cores = [core for core in timing.cores if has_unit(core, unit)]
    total: dict[str, float] = {}
    for core in cores:
        for reason, cycles in core.units[unit].waits.items() if unit in core.units else ():
            total[reason] = total.get(reason, 0.0) + cycles
    return {reason: _over(cycles, len(cores) * timing.cycles) for reason, cycles in total.items()}


def global_paths(timing: Timing) -> list[PathTime]:
    """The transfers that touch global memory."""
    return [path for name, path in timing.paths.items() if "gm" in name.split("_")]


def imbalance(timing: Timing) -> float:
    """0 when all cores of a kind work equally long, towards 1 when one works and others do not.

    Of the kind of core whose slowest takes longest.
    """
    worst = (0.0, 0.0)
    for cube in (False, True):
        spans = [core.end - core.begin for core in timing.cores if core.cube is cube]
        top = max(spans, default=0.0)
        if top:
            worst = max(worst, (top, 1 - sum(spans) / (len(spans) * top)))
    return worst[1]


def _waits(timing: Timing) -> list[float]:
    """Share of each reason in all time of the units that had work."""
    units = [unit for unit in _units(timing.cores) if unit.steps]
    whole = sum(unit.busy + sum(unit.waits.values()) for unit in units)
    return [
        _over(sum(unit.waits.get(reason, 0.0) for unit in units), whole) for reason in REASONS[:-1]
    ]


def _sizes(paths: list[PathTime]) -> list[float]:
    rows = [path.sizes for path in paths]
    counts = [sum(row[at] for row in rows if at < len(row)) for at in range(len(_SIZE_NAMES))]
    return [_over(count, sum(counts)) for count in counts]


def _units(cores: Iterable[CoreTime]) -> list[UnitTime]:
    return [unit for core in cores for unit in core.units.values()]


def _over(part: float, whole: float) -> float:
    """part / whole, 0 where there is nothing: a kernel without traffic has no share of it."""
    return part / whole if whole > 0 else 0.0
