"""Kernels that `npusmith device --calibrate FILE` measured, as cases of the calibration.

FILE has the columns of kernels.csv; the logs of the launches lie beside it, in a folder whose
name ends with .logs.
"""

from __future__ import annotations

import csv
from pathlib import Path

from calibration import tables
from calibration.cases import Absent, Case
from npusmith.cann.calibrate import log_of
from npusmith.cann.msprof import PIPES


def device_cases(path: Path) -> list[Case | Absent]:
    """One case for each row; the calls that count follow others, so L2 is warm."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_case(path, row) for row in csv.DictReader(file)]


def _case(path: Path, row: dict[str, str]) -> Case | Absent:
    log = log_of(path, row["name"])
    if not log.is_file():
        return Absent(row["name"], f"no log {log}")
    return Case(
        row["name"],
        "device",
        row["chip"],
        (log,),
        {name: float(row[f"{name}_us"]) for name in ("task", *PIPES) if row[f"{name}_us"]},
        left_out=tables.left_out(tables.key_of("kernels", row)),
        steps=log.stat().st_size // 48,
    )
