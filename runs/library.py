"""How many operators of a library compile as they lie, and what stops the others.

    python runs/library.py --root CHECKOUT [--every 4] [--columns 2] [--json ROWS.jsonl] [NAME ...]

A library is a tree of operator projects. An operator counts for Atlas A2 when a folder holds
op_host/ and op_kernel/ (not below a folder `tests`), its host text has OP_ADD, its AddConfig calls
name ascend910b or there are none, and op_kernel/ defines a __global__ function outside of folders
and files of other architectures (src/npusmith/twin/architecture.py). Of these, sorted by their
paths, every fourth is taken, or those named. Each is read as `npusmith run` reads it, and compiled
with its host side for the declared combinations of element types (`--columns N`: the first N).

One line for each, then the counts of first errors. `--json`: rows of an earlier run that are in the
file are not measured again.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from npusmith.errors import NpusmithError
from npusmith.target.chips import Chip, find_chip
from npusmith.twin import compile, opdef, scan
from npusmith.twin.architecture import keep_ours
from npusmith.twin.check import type_columns
from npusmith.twin.diagnose import CompileError
from npusmith.twin.project import read_project

_CONFIG = re.compile(r'\bAddConfig\s*\(\s*"(\w+)"')
Row = dict[str, object]


def operators(root: Path) -> Iterator[Path]:
    """The folders of operators for Atlas A2, sorted."""
    for kernels in sorted(root.rglob("op_kernel")):
        base = kernels.parent
        tests = "tests" in base.relative_to(root).parts
        if not tests and (base / "op_host").is_dir() and _is_a2(base):
            yield base


def _is_a2(base: Path) -> bool:
    host = "\n".join(_texts(base / "op_host"))
    chips = set(_CONFIG.findall(host))
    if not opdef.find_ops(scan.blank(host)) or (chips and "ascend910b" not in chips):
        return False
    return any(scan.find_entries(scan.blank(text)) for text in _texts(base / "op_kernel"))


def _texts(folder: Path) -> Iterator[str]:
    for file in keep_ours(folder, sorted(folder.rglob("*.cpp"))):
        yield file.read_text(errors="replace")


def measure(base: Path, chip: Chip, columns: int) -> Row:
    """What came of one operator."""
    start = time.monotonic()
    row: Row = {"code": "", "message": ""}
    try:
        project = read_project(base)
        for dtypes in type_columns(project)[:columns]:
            compile.build(project, chip, dtypes)
    except NpusmithError as error:
        first = error.errors[0] if isinstance(error, CompileError) and error.errors else None
        row = {
            "code": error.code,
            "message": first.message if first else f"{error.message} {error.seen}",
            "place": str(first) if first else str(error.place.file),
            "all": [str(item) for item in error.errors] if isinstance(error, CompileError) else [],
        }
    return {**row, "seconds": round(time.monotonic() - start, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    root = args.root.resolve()
    known = _known(args.json)
    chip = find_chip("910B2")
    rows: dict[str, Row] = {}
    for base in list(operators(root))[:: 1 if args.names else args.every]:
        name = str(base.relative_to(root))
        if args.names and not {base.name, name} & set(args.names):
            continue
        rows[name] = row = known.get(name) or {"name": name, **measure(base, chip, args.columns)}
        print(f"{name}: {row['code'] or 'compiles'} {row['message']} ({row['seconds']} s)")
        if args.json and name not in known:
            with args.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
    right = sum(not row["code"] for row in rows.values())
    print(f"\n{right} of {len(rows)} compile")
    said = Counter(f"{row['code']}: {row['message']}" for row in rows.values() if row["code"])
    for text, count in said.most_common(40):
        print(f"{count:4d}  {text}")


def _known(file: Path | None) -> dict[str, Row]:
    if file is None or not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {row["name"]: row for row in rows}


if __name__ == "__main__":
    main()
