"""Launches made by hand, as the timer would report them. Fixtures, which conftest.py imports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from npusmith.timing.model import CoreTime, PathTime, Timing, UnitTime
from npusmith.timing.trace import Event

CYCLES = 18_000.0  # 10 us at 1800 MHz


@dataclass
class Limits:
    """What timing.roof.Roof has, to be changed field by field."""

    gm_bytes: float = 48 * 48 * 16384.0
    vector_ops: dict[str, float] = field(default_factory=lambda: {"float32": 9.4e6})
    cube_flops: dict[str, float] = field(default_factory=dict)
    memory_us: float = 5.0
    memory_l2_us: float = 2.5
    compute_us: float = 2.0
    bound_us: float = 5.0
    hardware_us: float = 5.5
    notes: list[str] = field(default_factory=list)


def vector_core(number: int, end: float = CYCLES) -> CoreTime:
    """An AIV whose pipes are busy for fixed shares of its time."""
    units = {}
    for name, share in (("S", 0.1), ("V", 0.3), ("MTE2", 0.6), ("MTE3", 0.2)):
        rest = {"V": 0.1 * end} if name == "MTE2" else {"MTE2": 0.4 * end}
        busy = share * end
        rest["issue"] = end - busy - sum(rest.values())
        units[name] = UnitTime(steps=48, busy=busy, waits=rest)
    return CoreTime(number=number, cube=False, begin=0.0, end=end, units=units)


def make(**changes: object) -> Timing:
    """48 vector cores that load 32 tiles of 16 KiB and store 16."""
    fields: dict[str, object] = {
        "chip": "910B2", "clock_mhz": 1800.0, "cycles": CYCLES, "kernel_us": 10.0, "task_us": 13.0,
        "finished": True, "steps": 48 * 192, "cores": [vector_core(2 * at) for at in range(48)],
        "paths": {
            "gm_ub": PathTime(transfers=1536, bytes=1536 * 16384, miss_bytes=1536 * 16384,
                              busy=1e5, sizes=[0, 0, 0, 0, 1536, 0], unaligned=0),
            "ub_gm": PathTime(transfers=768, bytes=768 * 16384, miss_bytes=768 * 16384, busy=5e4,
                              sizes=[0, 0, 0, 0, 768, 0], unaligned=0),
        },
        "vector_repeats": 64 * 768, "vector_elements": 4096 * 768, "conflict_cycles": 0.0,
        "head_cycles": 0.0, "cube_tiles": 0, "names": ["gm_ub", "add", "ub_gm", "call"],
        "places": [("op_kernel/add.cpp", 41, "DataCopy"), ("op_kernel/add.cpp", 52, "Add")],
    }  # fmt: skip
    return Timing.model_validate(fields | changes)


def tiles(timing: Timing, count: int = 16) -> Iterator[Event]:
    """Load, add and store, tile after tile, on every core: with double buffers."""
    step = timing.cycles / (count + 2)
    for core in timing.cores:
        for at in range(count):
            start = at * step
            load = start + 0.9 * step
            store = load + 0.4 * step
            yield Event(core.number, 4, start, load, 0, 0, 255, 0.0, 16384)
            yield Event(core.number, 1, load, store, 1, 1, 4, 0.4 * step)
            yield Event(core.number, 5, store, store + 0.3 * step, 2, 0, 1, 0.1 * step, 16384)


@pytest.fixture
def timing() -> Timing:
    return make()


@pytest.fixture
def made() -> Callable[..., Timing]:
    return make


@pytest.fixture
def steps() -> Callable[..., Iterator[Event]]:
    return tiles


@pytest.fixture
def limits() -> Limits:
    return Limits()
