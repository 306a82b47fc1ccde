"""The tasks of a checkout of PCL's NPUKernelBench: `read_suite(root, ...)`, static facts only.

tasks/level<N>/<Category>/<Operator> holds validation/ (module.py, prepare_inputs.py, pybind.cpp,
test_cases.csv) and, for most tasks, answer/0 with op_host and op_kernel.
"""

from __future__ import annotations

import ast
import csv
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npusmith.errors import NpusmithError, Place
from npusmith.task.isolated.arrays import width

Cell = int | float | bool | str

# What a table of pandas counts as missing.
_MISSING = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


@dataclass(frozen=True, slots=True)
class Task:
    """One operator with its cases."""

    level: int
    category: str
    name: str
    folder: Path
    cases: tuple[int, ...]

    @property
    def validation(self) -> Path:
        return self.folder / "validation"

    @property
    def answer(self) -> Path:
        return self.folder / "answer" / "0"


def read_suite(
    root: Path,
    names: Collection[str] = (),
    levels: Collection[int] = (),
    *,
    answered: bool = True,
) -> list[Task]:
    """The tasks in the order of their folders, all by default; `answered`: that have an answer."""
    home = Path(root).resolve() / "tasks"
    if not home.is_dir():
        raise NpusmithError(
            "file-missing",
            f"{root} is no checkout of NPUKernelBench: it has no folder tasks",
            Place(str(root)),
        )
    found = []
    for folder in sorted(home.glob("level*/*/*")):
        level = folder.parts[-3].removeprefix("level")
        wanted = folder / "answer" / "0" if answered else folder / "validation"
        if not level.isdecimal() or not wanted.is_dir():
            continue
        if (levels and int(level) not in levels) or not _is_named(folder, names):
            continue
        found.append(Task(int(level), folder.parts[-2], folder.name, folder, _cases(folder)))
    if not found:
        raise NpusmithError(
            "file-missing",
            "no task with an answer matches" if answered else "no task matches",
            Place(str(home)),
            seen=", ".join([*map(str, names), *(f"level {level}" for level in levels)]),
        )
    return found


def _is_named(folder: Path, names: Collection[str]) -> bool:
    """By operator, category, or both with a slash."""
    words = {folder.name, folder.parts[-2], f"{folder.parts[-2]}/{folder.name}"}
    return not names or bool(words & set(names))


def _cases(folder: Path) -> tuple[int, ...]:
    """The ids; case 0 where the table cannot be read, so that its row tells why."""
    try:
        return tuple(int(row["case_id"]) for row in read_cases(folder)) or (0,)
    except (OSError, ValueError, KeyError, csv.Error):
        return (0,)


def read_cases(folder: Path) -> list[dict[str, Cell]]:
    """The rows of test_cases.csv, each value as pandas and the suite's own clean-up give it."""
    path = folder / "validation" / "test_cases.csv"
    with path.open(newline="", encoding="utf-8") as file:
        heads, *rows = (row for row in csv.reader(file, delimiter=";") if row)
    for row in rows:
        if len(row) != len(heads):
            raise ValueError(f"{path}: {len(row)} values for {len(heads)} columns")
    columns = {head: _column([row[at] for row in rows]) for at, head in enumerate(heads)}
    return [{head: columns[head][at] for head in heads} for at in range(len(rows))]


def _column(texts: list[str]) -> list[Cell]:
    """A column has one type; whole numbers become integers, and so do truth values."""
    present = [text for text in texts if text not in _MISSING]
    if present and all(text in _TRUTH for text in present):
        whole = len(present) == len(texts)
        return [
            (int(_TRUTH[text]) if whole else _TRUTH[text]) if text in _TRUTH else math.nan
            for text in texts
        ]
    try:
        numbers = [math.nan if text in _MISSING else float(text) for text in texts]
    except ValueError:
        return [math.nan if text in _MISSING else text for text in texts]
    if any(number != number or not float(number).is_integer() for number in numbers):
        return list(numbers)
    return [int(text) if _is_int(text) else int(float(text)) for text in texts]


def _is_int(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def literal_bytes(row: Mapping[str, Cell]) -> int:
    """Bytes of the inputs of a case, by the shapes that stand in its row."""
    each = width(str(row.get("dtype", "")))
    total = 0
    for value in row.values():
        try:
            total += _elements(ast.literal_eval(value)) if isinstance(value, str) else 0
        except (ValueError, SyntaxError):
            continue
    m, k, n = (row.get(name) for name in ("m", "k", "n"))
    if isinstance(m, int) and isinstance(k, int) and isinstance(n, int):
        total += m * k + k * n + m * n
    return total * each


def _elements(shape: Any) -> int:
    if isinstance(shape, (list, tuple)) and shape and all(isinstance(n, int) for n in shape):
        return math.prod(shape)
    return sum(map(_elements, shape)) if isinstance(shape, (list, tuple)) else 0
