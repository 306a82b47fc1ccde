"""Times out of the tables that msprof leaves: `read_times(folder, op_type, entry, last) -> Times`.

`msprof` writes PROF_*/mindstudio_profiler_output/op_summary_*.csv, `msprof op` writes
OPPROF_*/OpBasicInfo.csv. Columns by their documented names; some differ between releases.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from npusmith.errors import CannError, Place

TABLES = ("op_summary_*.csv", "OpBasicInfo*.csv")
_TYPE = ("OP Type", "Op Type")
_NAME = ("Op Name",)
_TASK = ("Task Duration(us)", "Task Duration")
_START = ("Task Start Time(us)", "Task Start Time")
_CORES = ("Block Dim", "Block Num")
# Means over the cores, by the names of our calibration tables; vector cores' figures first.
PIPES: dict[str, tuple[str, ...]] = {
    "core": ("aiv_time(us)", "aic_time(us)", "aicore_time(us)"),
    "vec": ("aiv_vec_time(us)", "vec_time(us)"),
    "scalar": ("aiv_scalar_time(us)", "aic_scalar_time(us)", "scalar_time(us)"),
    "mte1": ("aic_mte1_time(us)", "mte1_time(us)"),
    "mte2": ("aiv_mte2_time(us)", "aic_mte2_time(us)", "mte2_time(us)"),
    "mte3": ("aiv_mte3_time(us)", "mte3_time(us)"),
    "mac": ("aic_mac_time(us)", "mac_time(us)"),
    "fixpipe": ("aic_fixpipe_time(us)", "fixpipe_time(us)"),
}

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Times:
    """Of the calls that count, microseconds; `pipes` are medians, as far as they were recorded."""

    task_us: tuple[float, ...]
    cores: int
    table: str
    pipes: Mapping[str, float] = field(default_factory=dict)

    @property
    def median_us(self) -> float:
        return median(self.task_us)


def read_times(folder: Path, op_type: str, entry: str, last: int) -> Times:
    """The last calls of the operator in the newest table; CannError device-times."""
    tables = [path for pattern in TABLES for path in sorted(folder.rglob(pattern))]
    for table in tables:
        rows = [row for row in _read(table) if _is(row, op_type, entry) and _number(row, _TASK) > 0]
        rows.sort(key=lambda row: _number(row, _START))
        if rows:
            return _times(rows[-last:], table)
    names = ", ".join(path.name for path in tables) or "no table"
    message = f"msprof left no time of {op_type}"
    raise CannError("device-times", message, Place(str(folder)), seen=names)


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return [
            {str(name).strip(): str(value).strip() for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


def _is(row: Row, op_type: str, entry: str) -> bool:
    """The type where it was recorded; names are aclnnX_X_X, or the entry's with a hash."""
    if _first(row, _TYPE) == op_type:
        return True
    name = _first(row, _NAME)
    return op_type in name.split("_") or name == entry or name.startswith(f"{entry}_")


def _times(rows: Sequence[Row], table: Path) -> Times:
    pipes = {
        name: round(median(_number(row, columns) for row in rows), 3)
        for name, columns in PIPES.items()
    }
    return Times(
        tuple(_number(row, _TASK) for row in rows),
        int(_number(rows[-1], _CORES)),
        table.name,
        {name: value for name, value in pipes.items() if value > 0},
    )


def _first(row: Row, columns: Iterable[str]) -> str:
    return next((row[name] for name in columns if row.get(name)), "")


def _number(row: Row, columns: Iterable[str]) -> float:
    """The first of the columns with a number above zero; N/A and the like count as nothing."""
    for name in columns:
        try:
            value = float(row.get(name, ""))
        except ValueError:
            continue
        if value > 0:
            return value
    return 0.0
