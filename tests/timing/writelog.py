"""Writes logs as the runtime does (twin/runtime/log/log.h): what the timer's tests feed it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

UNITS = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
F32, F16, I8 = 0, 1, 3  # twin::DType
SETS_MASK, BARRIER, ND2NZ, ATOMIC, NO_L2 = 1, 2, 8, 16, 32
SCALAR, VECTOR, COPY, MMAD, LIBRARY, JOIN = range(6)

# (unit, tick): what a step waits for
Tick = tuple[str, int]


@dataclass(frozen=True)
class Arm:
    """An operand of a vector instruction; `addr` in bytes, strides in blocks of 32 B."""

    addr: int
    repeat: int = 8
    block: int = 1

    def pack(self) -> bytes:
        return struct.pack("<HHBB", self.addr // 32, self.repeat, self.block, 1)


_ABSENT = struct.pack("<HHBB", 0, 0, 0, 0)


@dataclass
class Core:
    """Steps of one core, in the order in which its scalar unit comes to them."""

    number: int = 0
    cube: bool = False
    ended: bool = True
    dropped: int = 0
    ticks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(UNITS, 0))
    steps: list[tuple[int, str, int, int, str, int, int, bytes]] = field(default_factory=list)
    deps: list[Tick] = field(default_factory=list)
    joins: list[tuple[int, dict[str, int]]] = field(default_factory=list)

    def step(
        self, kind: int, unit: str, what: str, payload: bytes, after: Sequence[Tick] = (),
        type: int = F32, flags: int = 0, count: int = 1,
    ) -> Tick:  # fmt: skip
        self.steps.append((kind, unit, type, flags, what, len(after), count, payload))
        self.deps.extend(after)
        self.ticks[unit] += count
        return unit, self.ticks[unit]

    def scalar(self, what: str = "call", count: int = 1, after: Sequence[Tick] = ()) -> Tick:
        payload = struct.pack("<II24x", 0, count)
        return self.step(SCALAR, "S", what, payload, after, count=count)

    def mark(self, unit: str, after: Sequence[Tick] = ()) -> Tick:
        return self.step(SCALAR, unit, "mark", struct.pack("<II24x", 0, 1), after)

    def vector(
        self, what: str = "add", repeats: int = 1, dst: Arm | None = None, src0: Arm | None = None,
        src1: Arm | None = None, after: Sequence[Tick] = (), type: int = F32, flags: int = 0,
    ) -> Tick:  # fmt: skip
        arms = b"".join(arm.pack() if arm else _ABSENT for arm in (dst, src0, src1))
        payload = struct.pack("<II", repeats, repeats * 64) + arms + struct.pack("<B5x", type)
        return self.step(VECTOR, "V", what, payload, after, type, flags)

    def library(self, what: str, elements: int, after: Sequence[Tick] = ()) -> Tick:
        return self.step(LIBRARY, "V", what, struct.pack("<II24x", 0, elements), after)

    def copy(
        self, path: str, bytes: int, rows: int = 1, region: int = 1, at: int = 0, pitch: int = 0,
        unit: str = "MTE2", after: Sequence[Tick] = (), flags: int = 0, type: int = F16,
    ) -> Tick:  # fmt: skip
        gm = region << 48 | at
        payload = struct.pack("<IIQII8x", rows, bytes, gm, pitch or bytes, 0)
        return self.step(COPY, unit, path, payload, after, type, flags)

    def local(
        self, path: str, bytes: int, rows: int = 1, unit: str = "MTE1", after: Sequence[Tick] = ()
    ) -> Tick:
        return self.copy(path, bytes, rows, region=0, unit=unit, after=after)

    def mmad(
        self, m: int, n: int, k: int, type: int = F16, hf32: bool = False,
        after: Sequence[Tick] = (),
    ) -> Tick:  # fmt: skip
        payload = struct.pack("<IIIBB18x", m, n, k, 0, hf32)
        return self.step(MMAD, "M", "mmad", payload, after, type)

    def join(
        self, joins: Sequence[tuple[int, dict[str, int]]], what: str = "sync_all",
        after: Sequence[Tick] = (),
    ) -> Tick:  # fmt: skip
        self.joins.extend(joins)
        payload = struct.pack("<II24x", len(joins), 1)
        return self.step(JOIN, "S", what, payload, after)


def write_log(
    path: Path, cores: Sequence[Core], regions: Sequence[int] = (1 << 30,), finished: bool = True
) -> Path:
    """One launch; `regions` are sizes in bytes, the first is region 1."""
    names = sorted({step[4] for core in cores for step in core.steps})
    body = b"".join(_core(core, names) for core in cores)
    tables = b"".join(struct.pack("<H", len(name)) + name.encode() for name in names)
    tables += struct.pack("<IH", 7, 10) + b"kernel.cpp" + struct.pack("<H", 3) + b"Add"
    tables += b"".join(struct.pack("<QBBH", size, 1, 0, 1) + b"x" for size in regions)
    cubes = sum(core.cube for core in cores)
    head = struct.pack(
        "<8sQIIIIIIIIII", b"NPULOG01", 56 + len(body), len(names), 1, len(regions), len(cores),
        len(cores), cubes, len(cores) - cubes, 0, finished, 0,
    )  # fmt: skip
    path.write_bytes(head + body + tables)
    return path


def _core(core: Core, names: list[str]) -> bytes:
    steps = b"".join(
        struct.pack("<BBBBHHII", kind, UNITS.index(unit), type, flags, names.index(what), deps, 0,
                    count) + payload
        for kind, unit, type, flags, what, deps, count, payload in core.steps
    )  # fmt: skip
    deps = b"".join(struct.pack("<II", UNITS.index(unit), tick) for unit, tick in core.deps)
    joins = b"".join(
        struct.pack("<I7I", number, *(ticks.get(unit, 0) for unit in UNITS))
        for number, ticks in core.joins
    )
    head = struct.pack(
        "<IBBHIIQQQQQQQ", core.number, core.cube, core.ended, 0, 0, 0, len(core.steps),
        len(core.deps), len(core.joins), core.dropped, 0, 0, 0,
    )  # fmt: skip
    return head + steps + deps + joins
