"""The tables beside this file, and which of their rows are left out of the calibration."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

HERE = Path(__file__).parent
TABLES = (
    "kernels", "matmul", "vector", "isolated", "transfer", "mmad", "conflict", "short", "rows",
)  # fmt: skip

Row = dict[str, str]


def read(table: str) -> list[Row]:
    """The rows of one table, in the order of the file."""
    with (HERE / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def left_out(key: str) -> bool:
    """Three keys in ten, by their hash: fixed before any error was looked at."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % 10 < 3


def key_of(table: str, row: Row) -> str:
    """What is hashed: a matmul's shape, so that no shape is in both parts; else the row's name."""
    if table == "matmul":
        return " ".join(row[name] for name in ("b", "m", "k", "n"))
    return row["name"]
