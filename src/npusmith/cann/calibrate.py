"""A measured kernel as a row of runs/calibration/kernels.csv, which the calibration reads."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

from npusmith.cann.msprof import PIPES
from npusmith.errors import CannError
from npusmith.task.verdict import Verdict

COLUMNS = (
    "name", "chip", "shape", "cores", "task_us", *(f"{name}_us" for name in PIPES), "ids", "source"
)  # fmt: skip


def write_row(verdict: Verdict, path: Path, log: Path) -> None:
    """Appends the row, behind the head of the table where there is none, and keeps its log.

    `log`: of the twin's launch on the same set of inputs. CannError device-times.
    """
    held, operator = verdict.device, verdict.task
    if held is None or held.median_us is None:
        raise CannError("device-times", f"nothing was measured of {operator}", seen=str(path))
    first = held.trials[0]
    row = {
        "name": f"{operator}/{_sizes(first.shapes)}",
        "chip": held.device.removeprefix("Ascend"),
        "shape": " ".join("x".join(map(str, shape)) for shape in first.shapes),
        "cores": held.cores,
        "task_us": held.median_us,
        **{f"{name}_us": held.pipes.get(name, "") for name in PIPES},
        "ids": "",
        "source": f"npusmith device, {len(held.task_us)} calls",
    }
    new = not path.is_file() or path.stat().st_size == 0
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
    kept = log_of(path, str(row["name"]))
    kept.parent.mkdir(exist_ok=True)
    shutil.copyfile(log, kept)


def log_of(path: Path, name: str) -> Path:
    """Where the log of a row lies."""
    return path.with_suffix(".logs") / f"{name.replace('/', '_')}.log"


def _sizes(shapes: list[list[int]]) -> str:
    """Part of the name: a table may hold one operator at several shapes."""
    return "-".join("x".join(map(str, shape)) for shape in shapes)
