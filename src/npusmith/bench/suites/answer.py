"""The watched process for PCL's NPUKernelBench: a candidate's project in the place of an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from npusmith.bench.suites.watch import leave_reply, read_orders
from npusmith.conformance.npukernelbench import Options, run_task
from npusmith.conformance.rows import Row
from npusmith.conformance.suite import read_suite
from npusmith.errors import NpusmithError


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
            nulls=True,
        )
        run_task(task, orders["cases"], options, 1, rows.append, folder / "project")
    except NpusmithError as error:
        reply["error"] = f"{error.code}: {error.message}"
    reply["rows"] = [row.model_dump(mode="json") for row in rows]
    leave_reply(folder, reply)
