"""The watched process for PCL's NPUKernelBench: a candidate's project in the place of an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from npusmith.bench.suites.timed import numbered, weigh
from npusmith.bench.suites.watch import leave_reply, read_orders, told_error
from npusmith.conformance.npukernelbench import Options, run_task
from npusmith.conformance.rows import Row
from npusmith.conformance.suite import read_suite
from npusmith.errors import NpusmithError, TwinError
from npusmith.target.chips import find_chip


def main() -> None:
    orders = read_orders()
    folder = Path(orders["folder"])
    rows: list[Row] = []
    reply: dict[str, Any] = {}
    try:
        levels = [int(orders["level"])]
        task = read_suite(Path(orders["root"]), [orders["task"]], levels, answered=False)[0]
        options = Options(
            case_seconds=float(orders["seconds"]),
            most_mb=float(orders["most_mb"]),
            memory_mb=float(orders["memory_mb"]),
            seeds=int(orders["seeds"]),
            nulls=orders["nulls"],
            chip=orders["chip"],
            seed=int(orders["seed"]),
            logs=Path(orders["logs"]) if "logs" in orders else None,
        )
        run_task(task, orders["cases"], options, 1, rows.append, folder / "project")
    except NpusmithError as error:
        reply["error"] = told_error(error)
    reply["rows"] = [row.model_dump(mode="json") for row in rows]
    if "logs" in orders and "error" not in reply:
        reply |= _time(orders, rows, folder)
    leave_reply(folder, reply)


def _time(orders: dict[str, Any], rows: list[Row], folder: Path) -> dict[str, Any]:
    """The times of what the recorded call left."""
    try:
        if not all(row.official for row in rows):
            raise TwinError("timing-log", "the recorded run did not come to its end")
        return weigh(numbered(Path(orders["logs"])), find_chip(orders["chip"]), folder)
    except NpusmithError as error:
        return {"error": told_error(error)}
