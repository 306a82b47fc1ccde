"""One result per task and case, and the file of them that survives being killed."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TextIO

from pydantic import BaseModel, ConfigDict, ValidationError


class Row(BaseModel):
    """`official`: the suite's rule on values, first seed; `strict`: that rule, and the form of the
    results, on every seed; `precise`: our strict profile as well; `clean`: no finding of level
    error. None where the case did not run, and `skipped` says why."""

    model_config = ConfigDict(extra="forbid")

    level: int
    category: str
    task: str
    case: int
    compiled: bool = False
    official: bool | None = None
    strict: bool | None = None
    precise: bool | None  # without a default: rows of the time when strict meant this run again
    clean: bool | None = None
    findings: list[str] = []  # codes of level error, each once
    warnings: list[str] = []
    said: list[str] = []  # the first findings in words, with their places
    repairs: list[str] = []  # what was changed in the published text so that it compiles
    weak: list[str] = []  # do-nothing kernels that the suite's rule would pass, where asked for
    seeds: int = 1
    seconds: float = 0.0
    error: str = ""
    skipped: str = ""
    stages: dict[str, float] = {}

    @property
    def key(self) -> tuple[str, int]:
        return f"{self.level}/{self.category}/{self.task}", self.case


class RowFile:
    """Rows as JSON lines: each is on the disk before the next case starts."""

    def __init__(self, path: Path | None, resume: bool) -> None:
        self.path = path
        self.rows: list[Row] = read_rows(path) if path and resume and path.exists() else []
        self._lock = threading.Lock()
        self._file: TextIO | None = None

    def __enter__(self) -> RowFile:
        if self.path is not None:
            # Written anew: a line that was cut off by a kill must not stay.
            fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            fresh.write_text("".join(_line(row) for row in self.rows), encoding="utf-8")
            fresh.replace(self.path)
            self._file = self.path.open("a", encoding="utf-8")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, row: Row) -> None:
        with self._lock:
            self.rows.append(row)
            if self._file is not None:
                self._file.write(_line(row))
                self._file.flush()
                os.fsync(self._file.fileno())


def read_rows(path: Path) -> list[Row]:
    """The whole rows of a file, the last one of each case; lines that are none are left out."""
    found: dict[tuple[str, int], Row] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValidationError):
            row = Row.model_validate_json(line)
            found[row.key] = row
    return list(found.values())


def _line(row: Row) -> str:
    return json.dumps(row.model_dump(mode="json"), ensure_ascii=False) + "\n"


def count(rows: Iterable[Row]) -> dict[str, int]:
    """How many rows ran, compiled, passed; the figures of a report's line."""
    rows = list(rows)
    ran = [row for row in rows if not row.skipped]
    return {
        "cases": len(ran),
        "compiled": sum(row.compiled for row in ran),
        "official": sum(row.official is True for row in ran),
        "strict": sum(row.strict is True for row in ran),
        "precise": sum(row.precise is True for row in ran),
        "clean": sum(row.clean is True for row in ran),
        "skipped": len(rows) - len(ran),
    }
