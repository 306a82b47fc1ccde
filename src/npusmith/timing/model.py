"""What the timing model says of one launch. Cycles are those of the cores' clock."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

UNITS = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
VERSION = 1  # of these records


class UnitTime(BaseModel):
    """One pipe of one core. Busy and waits add up to the core's time."""

    model_config = ConfigDict(extra="forbid")

    steps: int
    busy: float  # cycles
    # Cycles without work, by reason: "V" ... (waits for that unit), "issue" (nothing was issued
    # yet), "queue" (S: the queue of a pipe is full), "memory" (a transfer got less than its own
    # rate), "cores" (S: waits for other cores), "end" (done before its core)
    waits: dict[str, float]


class CoreTime(BaseModel):
    """One core: `begin` and `end` in cycles from the start of the kernel."""

    model_config = ConfigDict(extra="forbid")

    number: int  # 2 * block + is-cube
    cube: bool
    begin: float
    end: float
    units: dict[str, UnitTime]  # by UNITS


class PathTime(BaseModel):
    """All transfers of one path ("gm_ub", "ub_gm", "gm_l1", "l1_l0a", ...)."""

    model_config = ConfigDict(extra="forbid")

    transfers: int
    bytes: int
    miss_bytes: int  # of global memory, that L2 did not hold
    busy: float  # cycles, summed over cores
    sizes: list[int]  # transfers of less than 512 B, 2 KiB, 8 KiB, 16 KiB, 64 KiB, and more
    unaligned: int  # transfers whose rows in global memory do not all start at a multiple of 512 B


class Hinge(BaseModel):
    """How much the result depends on one constant: percent of time for one percent of it."""

    model_config = ConfigDict(extra="forbid")

    name: str
    share: float


class Timing(BaseModel):
    """One launch on one chip."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    chip: str
    clock_mhz: float
    cycles: float  # from the first core's start to the last one's end
    kernel_us: float  # the same, in microseconds
    task_us: float  # with launch and tail: what a profiler calls task duration
    mixed: bool = False  # cube and vector cores work together
    finished: bool  # false: a deadlock; times are those up to it
    sampled: bool = False  # some of the work was extrapolated
    sample_error: float = 0  # share of the time by which the pace still changed at the end of it
    steps: int
    cores: list[CoreTime]
    paths: dict[str, PathTime]
    vector_repeats: int
    vector_elements: int
    conflict_cycles: float  # lost to bank conflicts in UB
    head_cycles: float  # of vector instructions whose start-up nothing hid
    cube_tiles: int  # 16 x 16 x 32 B steps of Mmad
    hinges: list[Hinge] = []
    names: list[str] = []  # for the events
    places: list[tuple[str, int, str]] = []  # file, line, API: for the events
    events: int = 0  # written to the file of events
    events_dropped: int = 0
