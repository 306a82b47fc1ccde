"""Records as a table in a file, and the best kernel of each task as a project on disk."""

from __future__ import annotations

import csv
import importlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from npusmith.bench.archive import Run, best
from npusmith.bench.model import Candidate, Item, Record
from npusmith.errors import NpusmithError, Place
from npusmith.store.folder import new_folder
from npusmith.store.record import write_result

Row = dict[str, str | int | float | bool | None]

# Column and its kind; a task that was not run has one row, without a key.
COLUMNS: dict[str, str] = {
    "suite": "string", "item": "string", "category": "string", "level": "string",
    "dtype": "string", "writer": "string", "sample": "int64", "trial": "int64",
    "compiled": "bool", "official": "bool", "strict": "bool", "precise": "bool", "clean": "bool",
    "rung": "string", "cheating": "string", "weak_task": "string", "findings": "string",
    "error": "string",
    "skipped": "string", "time_us": "float64", "eager_us": "float64", "eager_basis": "string",
    "eager_low_us": "float64", "eager_high_us": "float64", "eager_rows": "int64",
    "eager_weak": "bool",
    "own_us": "float64", "own_eager_us": "float64", "own_eager_low_us": "float64",
    "own_eager_high_us": "float64", "own_eager_weak": "bool",
    "roof_us": "float64", "time_note": "string", "true_shape": "string", "accuracy": "float64",
    "seconds": "float64",
    "candidate": "string",
    "key": "string",
}  # fmt: skip
_PLAIN = tuple(set(COLUMNS) - {"cheating", "weak_task", "findings", "seconds"})
_FORMULA = re.compile(r"^[=+\-@\t\r]")  # what a spreadsheet would run
_BATCH = 10_000


def rows(run: Run) -> Iterator[Row]:
    """One row a record, then one for each task that was not run."""
    for record in run.records():
        yield _row(record)
    for item in run.items():
        if item.skipped:
            blank: Row = dict.fromkeys(COLUMNS)
            shared = item.model_dump(include={"suite", "category", "level", "dtype", "skipped"})
            yield {**blank, **shared, "item": item.name}


def write_csv(run: Run, path: Path) -> int:
    """Gives the number of rows. A text that a spreadsheet would run gets a quote before it."""
    with path.open("w", encoding="utf-8", newline="", errors="backslashreplace") as file:
        writer = csv.DictWriter(file, list(COLUMNS))
        writer.writeheader()
        count = 0
        for count, row in enumerate(rows(run), 1):  # noqa: B007
            writer.writerow({name: _cell(value) for name, value in row.items()})
    return count


def write_parquet(run: Run, path: Path) -> int:
    """The same rows with their types. Needs the extra npusmith[parquet]."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        message = "pyarrow is not installed: pip install 'npusmith[parquet]'"
        raise NpusmithError("extra-missing", message) from error
    types = {"string": arrow.string(), "int64": arrow.int64(), "bool": arrow.bool_()}
    schema = arrow.schema(
        [(name, types.get(kind, arrow.float64())) for name, kind in COLUMNS.items()]
    )
    count, batch = 0, []
    with parquet.ParquetWriter(path, schema) as writer:
        for row in rows(run):
            batch.append({name: _clean(value) for name, value in row.items()})
            count += 1
            if len(batch) == _BATCH:
                writer.write_table(arrow.Table.from_pylist(batch, schema))
                batch = []
        writer.write_table(arrow.Table.from_pylist(batch, schema))
    return count


def write_projects(run: Run, folder: Path, root: Path | None = None) -> dict[str, str]:
    """The best right kernel of each task, below `folder`; gives task -> folder.

    Tasks without a correct kernel are left out. Formats other than plain files are unpacked by
    the suite, for which its checkout must be there.
    """
    plan = run.plan if root is None else run.plan.model_copy(update={"root": root.resolve()})
    suite: list[Any] = []
    places: dict[str, str] = {}
    with new_folder(folder) as tmp:
        for item in run.items():
            record = best(run.records(item.name))
            if record is None or not record.official or record.cheating:
                continue
            place = _safe(item.name)
            candidate = run.candidate(record)
            target = tmp / place
            target.mkdir(parents=True)
            if candidate.format == "project":
                unpack(candidate, target)
            else:
                suite = suite or [plan.open_suite()]
                _export(suite[0], item, candidate, target, plan.limits.chip)
            (target / "record.json").write_text(record.model_dump_json(indent=2) + "\n")
            places[item.name] = place
        write_result(tmp, {"kind": "kernels", "suite": run.plan.suite, "projects": places})
    return places


def unpack(candidate: Candidate, folder: Path) -> None:
    """Writes the files of a candidate below the folder, and nowhere else."""
    for name, text in candidate.files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise NpusmithError("file-denied", f"a candidate names the file {name!r}", Place(name))
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="backslashreplace")


def _export(suite: Any, item: Item, candidate: Candidate, folder: Path, chip: str) -> None:
    """Through the suite where it can, else the submission as it came."""
    export: Callable[[Item, Candidate, Path, str], None] | None = getattr(suite, "export", None)
    if export is None:
        unpack(candidate, folder)
    else:
        export(item, candidate, folder, chip)


def _safe(name: str) -> str:
    """A folder below the export: the parts of the task's name, without what a shell would read."""
    parts = [re.sub(r"[^\w.+-]", "_", part) for part in name.split("/")]
    return "/".join(part for part in parts if part.strip(".")) or "task"


def _row(record: Record) -> Row:
    return {
        **{name: getattr(record, name) for name in _PLAIN},
        "cheating": " ".join(record.cheating),
        "weak_task": "; ".join(record.weak_task),
        "findings": json.dumps(record.findings, sort_keys=True) if record.findings else "",
        "seconds": record.seconds.get("unit"),
    }


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _clean(value: object) -> object:
    """Arrow takes no lone surrogates."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
