"""`read_log(path) -> Log`: the log of a launch (runtime/log/log.h), for tests that look into it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

UNITS = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
KINDS = ("scalar", "vector", "copy", "mmad", "library", "join")
SETS_MASK, BARRIER, SETS_FLAG, ND2NZ, ATOMIC, NO_L2 = 1, 2, 4, 8, 16, 32

_HEAD = struct.Struct("<8sQ10I")
_CORE = struct.Struct("<IBBHII7Q")
_STEP = struct.Struct("<4B2H2I32s")
_DEP = struct.Struct("<2I")
_JOIN = struct.Struct("<8I")
_VECTOR = struct.Struct("<2I" + 3 * "2H2B" + "B5x")
_COPY = struct.Struct("<2IQ2I8x")
_MMAD = struct.Struct("<3I2B18x")


@dataclass(frozen=True)
class Arm:
    addr: int  # blocks of 32 B
    repeat: int
    block: int


@dataclass(frozen=True)
class Join:
    core: int
    ticks: dict[str, int]  # without zeros


@dataclass(frozen=True)
class Step:
    kind: str
    unit: str
    type: int
    flags: int
    what: str
    place: tuple[str, int, str]  # file, line, api
    count: int
    tick: int  # of its unit, the last that it stands for
    deps: tuple[tuple[str, int], ...]  # unit, tick
    joins: tuple[Join, ...] = ()
    times: int = 1
    # vector, library
    repeats: int = 0
    elements: int = 0
    dst: Arm | None = None
    src0: Arm | None = None
    src1: Arm | None = None
    src_type: int = 0
    # copy
    rows: int = 0
    bytes: int = 0
    region: int = 0  # its number; 0: none
    offset: int = 0
    pitch: int = 0
    local: int = 0
    # mmad
    m: int = 0
    n: int = 0
    k: int = 0
    accumulates: bool = False
    hf32: bool = False


@dataclass(frozen=True)
class Region:
    bytes: int
    writable: bool
    scratch: bool
    name: str


@dataclass(frozen=True)
class Core:
    number: int
    cube: bool
    ended: bool
    sub: int
    group: int
    dropped: int
    dropped_bytes: int
    dropped_repeats: int
    dropped_cube: int
    steps: list[Step] = field(default_factory=list)

    def find(self, what: str, unit: str = "") -> list[Step]:
        """The steps of that name, on that unit."""
        return [step for step in self.steps if step.what == what and unit in ("", step.unit)]


@dataclass(frozen=True)
class Log:
    names: list[str]
    places: list[tuple[str, int, str]]
    regions: list[Region]  # number 1 is the first
    blocks: int
    cubes: int
    vectors: int
    kernel_type: int
    finished: bool
    cores: list[Core]  # as they ended

    def core(self, number: int) -> Core:
        return next(core for core in self.cores if core.number == number)


class _Cursor:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        values = form.unpack_from(self.data, self.at)
        self.at += form.size
        return values

    def number(self, form: str) -> int:
        return self.take(struct.Struct("<" + form))[0]

    def text(self) -> str:
        size = self.number("H")
        self.at += size
        return self.data[self.at - size : self.at].decode()


def read_log(path: Path) -> Log:
    """Read a whole log; ValueError when it is none, or one that was cut off."""
    data = path.read_bytes()
    magic, tables, names, places, regions, heads, *rest = _HEAD.unpack_from(data)
    if magic != b"NPULOG01" or tables == 0:
        raise ValueError(f"{path} is no finished log")
    blocks, cubes, vectors, kernel_type, finished, _ = rest
    end = _Cursor(data, tables)
    all_names = [end.text() for _ in range(names)]
    all_places = [_place(end) for _ in range(places)]
    all_regions = [_region(end) for _ in range(regions)]
    if end.at != len(data):
        raise ValueError(f"{len(data) - end.at} bytes behind the tables of {path}")
    cursor = _Cursor(data, _HEAD.size)
    cores = [_core(cursor, all_names, all_places) for _ in range(heads)]
    if cursor.at != tables:
        raise ValueError(f"{tables - cursor.at} bytes before the tables of {path}")
    return Log(
        all_names,
        all_places,
        all_regions,
        blocks,
        cubes,
        vectors,
        kernel_type,
        bool(finished),
        cores,
    )


def _place(end: _Cursor) -> tuple[str, int, str]:
    line = end.number("I")
    return end.text(), line, end.text()


def _region(end: _Cursor) -> Region:
    size, writable, scratch = end.number("Q"), end.number("B"), end.number("B")
    return Region(size, bool(writable), bool(scratch), end.text())


def _core(cursor: _Cursor, names: list[str], places: list[tuple[str, int, str]]) -> Core:
    number, cube, ended, sub, group, _, steps, deps, joins, *dropped = cursor.take(_CORE)
    raw = [_STEP.unpack_from(cursor.data, cursor.at + i * _STEP.size) for i in range(steps)]
    cursor.at += steps * _STEP.size
    waits = iter([cursor.take(_DEP) for _ in range(deps)])
    meets = iter([cursor.take(_JOIN) for _ in range(joins)])
    core = Core(number, bool(cube), bool(ended), sub, group, *dropped)
    ticks = dict.fromkeys(UNITS, 0)
    for fields in raw:
        core.steps.append(_step(fields, names, places, ticks, waits, meets))
    if list(waits) or list(meets):
        raise ValueError(f"core {number} has waits that belong to no step")
    return core


def _step(
    fields: tuple[int, ...],
    names: list[str],
    places: list[tuple[str, int, str]],
    ticks: dict[str, int],
    waits: Iterator[tuple[int, ...]],
    meets: Iterator[tuple[int, ...]],
) -> Step:
    kind, unit, dtype, flags, what, deps, place, count, payload = fields
    name = UNITS[unit]
    ticks[name] += count
    took = tuple((UNITS[by], tick) for by, tick in (next(waits) for _ in range(deps)))
    return Step(
        KINDS[kind],
        name,
        dtype,
        flags,
        names[what],
        places[place],
        count,
        ticks[name],
        took,
        **_payload(KINDS[kind], bytes(payload), meets),  # type: ignore[call-overload]
    )


def _payload(kind: str, data: bytes, meets: Iterator[tuple[int, ...]]) -> dict[str, object]:
    if kind in ("vector", "library"):
        repeats, elements, *arms, src_type = _VECTOR.unpack(data)
        dst, src0, src1 = (_arm(arms[at : at + 4]) for at in (0, 4, 8))
        return {
            "repeats": repeats,
            "elements": elements,
            "dst": dst,
            "src0": src0,
            "src1": src1,
            "src_type": src_type,
        }
    if kind == "copy":
        rows, size, gm, pitch, local = _COPY.unpack(data)
        return {
            "rows": rows,
            "bytes": size,
            "region": gm >> 48,
            "offset": gm & ((1 << 48) - 1),
            "pitch": pitch,
            "local": local,
        }
    if kind == "mmad":
        m, n, k, accumulates, hf32 = _MMAD.unpack(data)
        return {"m": m, "n": n, "k": k, "accumulates": bool(accumulates), "hf32": bool(hf32)}
    joins, times = struct.unpack_from("<2I", data)
    return {"times": times, "joins": tuple(_join(next(meets)) for _ in range(joins))}


def _arm(words: list[int]) -> Arm | None:
    addr, repeat, block, there = words
    return Arm(addr, repeat, block) if there else None


def _join(words: tuple[int, ...]) -> Join:
    core, *ticks = words
    return Join(core, {unit: tick for unit, tick in zip(UNITS, ticks, strict=True) if tick})
