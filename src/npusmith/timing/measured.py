"""Published times of eager operations: the tables in target/measured/ as records."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from npusmith.timing.calls import Call, parse_call

FOLDER = Path(__file__).parents[1] / "target" / "measured"
TABLES = ("cann_bench", "kernelbench", "others")


@dataclass(frozen=True, slots=True)
class Measured:
    """One published time: the sum of the device kernels behind `calls`."""

    name: str
    chip: str
    table: str
    case: str
    us: float
    roofline_us: float | None
    calls: tuple[Call, ...]
    source: str

    @property
    def text(self) -> tuple[str, ...]:
        return tuple(call.text() for call in self.calls)


def is_held_out(row: Measured) -> bool:
    """A quarter of cann-bench, by its calls, which no fit has seen: times play no part."""
    digest = hashlib.sha256("; ".join(row.text).encode()).digest()
    return row.table == "cann_bench" and digest[0] % 4 == 0


@cache
def measured_rows(folder: Path = FOLDER) -> tuple[Measured, ...]:
    """All rows, in the order of the tables."""
    return tuple(row for table in TABLES for row in _read_table(folder / f"{table}.csv"))


def _read_table(path: Path) -> list[Measured]:
    with path.open(encoding="utf-8", newline="") as file:
        return [_row(record) for record in csv.DictReader(file)]


def _row(record: dict[str, str]) -> Measured:
    return Measured(
        name=record["id"],
        chip=record["chip"],
        table=record["set"],
        case=record["case"],
        us=float(record["us"]),
        roofline_us=float(record["roofline_us"]) if record["roofline_us"] else None,
        calls=tuple(parse_call(text) for text in record["calls"].split("; ")),
        source=record["source"],
    )
