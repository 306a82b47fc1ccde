"""The microbenchmarks: what was timed for one instruction or one transfer, as launches of ours.

Each is launched twice, with few and with many repetitions of the same instruction; the difference
is free of what a launch costs. `pipe`: the busy time of that unit is meant, else the whole time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from calibration import tables

_TICK_NS = 20.0  # GetSystemCycle counts at 50 MHz
_CONFLICT_MHZ = 1800.0  # the clock that these rows fit: 86.0 and 150.0 cycles are whole repeats
_ROWS_MHZ = 1650
_ADD = {  # scenario: addresses of destination and sources, strides of the first source
    "1": (0x20000, 0x0, 0x10100, 1, 8),
    "2": (0x10000, 0x0, 0x4000, 1, 8),
    "3": (0x14100, 0x0, 0x10000, 1, 8),
    "4": (0x4000, 0x0, 0x10100, 1, 8),
    "5": (0x4020, 0x0, 0x10100, 1, 8),
    "6": (0x10100, 0x0, 0x10100, 1, 8),
    "7": (0x10100, 0x0, 0x10100, 0, 1),
    "8": (0x10100, 0x0, 0x10100, 0, 8),
}
# path of the table: number in kernels/move.asc, cores, unit, does L2 have the data
_MOVES = {
    ("gm_to_ub", "910b1"): (0, "vector", "MTE2", 0),
    ("gm_to_ub", "910b3"): (0, "vector", "MTE2", 1),
    ("ub_to_gm", "910b1"): (1, "vector", "MTE3", 1),
    ("gm_to_l1", "910b1"): (2, "cube", "MTE2", 1),
    ("l1_to_l0a", "910b1"): (3, "cube", "MTE1", 1),
    ("l1_to_l0b", "910b1"): (4, "cube", "MTE1", 1),
}
_SIZES = (1, 2, 4, 8, 16, 32, 48, 64, 128)  # KiB that are run; the tables have more
_PRODUCTS = ((32, 16, 16), (32, 16, 64), (32, 16, 128), (32, 16, 256), (32, 16, 512))


@dataclass(frozen=True, slots=True)
class Micro:
    """One instruction's published cycles and the two launches that tell ours."""

    name: str
    family: str
    kernel: str  # file of kernels/
    launcher: str
    cases: tuple[bytes, bytes]  # what the launcher takes: few and many repetitions
    more: int  # how many are between the two
    areas: tuple[int, ...]  # bytes of its arguments in global memory
    chip: str
    pipe: str
    cycles: float
    cold: bool = False  # L2 does not have the data
    clock_mhz: int = 0  # other than the chip's


def conflicts() -> Iterator[Micro]:
    """The Add of 64 repeats whose operands lie in banks of eight kinds."""
    for row in tables.read("conflict"):
        cases = _add(row["scenario"], 100), _add(row["scenario"], 1100)
        cycles = float(row["ticks"]) * _TICK_NS * _CONFLICT_MHZ / 1000 / 1000
        yield Micro(
            f"conflict/{row['scenario']}", "conflict", "vector.asc", "vector_float_do",
            cases, 1000, (), "910B2", "", cycles,
        )  # fmt: skip


def _add(scenario: str, times: int) -> bytes:
    dst, src0, src1, block, repeat = _ADD[scenario]
    return struct.pack("<9i", 0, times, 64, dst, src0, src1, block, repeat, 0)


def transfers() -> Iterator[Micro]:
    """Transfers of one core at some of the sizes of the tables."""
    for row in tables.read("transfer"):
        key = (row["path"], row["chip"])
        size = float(row["bytes"])
        if key not in _MOVES or size not in [kib * 1024 for kib in _SIZES]:
            continue
        number, kind, pipe, still = _MOVES[key]
        if row["form"] == "load2d" or (number in (3, 4) and size > 64 << 10):
            continue
        cases = (
            struct.pack("<4i", number, 4, int(size), still),
            struct.pack("<4i", number, 12, int(size), still),
        )
        yield Micro(
            f"move/{row['path']}/{row['chip']}/{size:g}",
            row["path"] if still else f"{row['path']}, cold", "move.asc",
            f"move_{kind}_{'do' if kind == 'vector' else 'run'}", cases, 8,
            (int(size) * 12,), "910B1", pipe, float(row["cycles"]), not still,
        )  # fmt: skip


def products() -> Iterator[Micro]:
    """Mmad, back to back."""
    for row in tables.read("mmad"):
        size = tuple(int(row[name]) for name in "mkn")
        if row["chip"] != "910b1" or not row["types"].startswith("fp16") or size not in _PRODUCTS:
            continue
        cases = struct.pack("<5i", *size, 4, 0), struct.pack("<5i", *size, 36, 0)
        yield Micro(
            f"mmad/{size[0]}x{size[1]}x{size[2]}", "mmad", "product.asc", "product_do", cases,
            32, (1 << 20, 1 << 20), "910B1", "M", float(row["cycles"]),
        )  # fmt: skip


def rows() -> Iterator[Micro]:
    """One more row of kernels that go row by row, on one core of any chip."""
    for row in tables.read("rows"):
        what, length, few, many = (int(row[name]) for name in ("what", "length", "few", "many"))
        cases = struct.pack("<3i", what, few, length), struct.pack("<3i", what, many, length)
        area = many * length * 2
        yield Micro(
            f"row/{row['name']}", "row", "rows.asc", "rows_do", cases, many - few, (area, area),
            "910B2", "", float(row["cycles"]), clock_mhz=_ROWS_MHZ,
        )  # fmt: skip


def all_micro() -> list[Micro]:
    """Every microbenchmark that is launched."""
    return [*conflicts(), *transfers(), *products(), *rows()]
