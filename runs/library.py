"""How many operators of a library compile as they lie, and what stops the others.

    python runs/library.py --root CHECKOUT [--every 4] [--columns 2] [-I FOLDER] [--json ROWS.jsonl]
        [--files] [NAME ...]

A library is a tree of operator projects. A project counts for Atlas A2 when a folder holds
op_host/ and op_kernel/ (not below a folder `tests`), its host text has OP_ADD, its AddConfig calls
name ascend910b or there are none, and op_kernel/ defines a __global__ function outside of folders
and files of other architectures (src/npusmith/twin/architecture.py). Of these, sorted by their
paths, every fourth is taken, or those named; of a project with several operators each one counts.
Each is read as `npusmith run` reads it, and compiled with its host side for the declared
combinations of element types (`--columns N`: the first N).

`--files`: instead of projects, the sources (*.asc, *.cpp, *.cc) that define a __global__ function
or a main with a launch, lie in no such project, and whose path names no other architecture and no
tests. One with a main is compiled as a program, any other as a kernel by itself.

-I: as for `npusmith run`; may be repeated. Submodules have to be there.

One line for each, then the counts of first errors. `--json`: rows of an earlier run that are in the
file are not measured again.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from npusmith.errors import NpusmithError, TwinError
from npusmith.target.chips import Chip, find_chip
from npusmith.twin import compile, opdef, scan
from npusmith.twin.architecture import is_foreign, keep_ours
from npusmith.twin.check import check_file, type_columns
from npusmith.twin.diagnose import CompileError
from npusmith.twin.direct import build_program, has_main
from npusmith.twin.launchsyntax import launch_headers
from npusmith.twin.options import BuildOptions
from npusmith.twin.project import Project, read_project

_CONFIG = re.compile(r'\bAddConfig\s*\(\s*"(\w+)"')
_OTHER_CHIPS = re.compile(r"(?:^|[_/.-])(?:950|3510|310p?|simt|regbase|archxx)")
_SOURCES = (".asc", ".cpp", ".cc")
Row = dict[str, object]


def operators(root: Path) -> Iterator[Path]:
    """The folders of operators for Atlas A2, sorted."""
    for kernels in sorted(root.rglob("op_kernel")):
        base = kernels.parent
        tests = "tests" in base.relative_to(root).parts
        if not tests and (base / "op_host").is_dir() and _is_a2(base):
            yield base


def sources(root: Path) -> Iterator[Path]:
    """The kernels and programs for Atlas A2 that lie in no project, sorted."""
    projects = set(operators(root))
    for file in sorted(item for item in root.rglob("*") if item.suffix in _SOURCES):
        path = file.relative_to(root)
        names = set(path.parts)
        if {"tests", "test", "3rdparty", "third_party"} & names or projects & set(file.parents):
            continue
        if not file.is_file() or is_foreign(path) or _OTHER_CHIPS.search(str(path)):
            continue
        text = file.read_text(errors="replace")
        code = scan.blank(text)
        kernels = any(entry.defined for entry in scan.find_entries(code))
        if kernels or (has_main(text) and (launch_headers(text) or "<<<" in code)):
            yield file


def _is_a2(base: Path) -> bool:
    host = "\n".join(_texts(base / "op_host"))
    chips = set(_CONFIG.findall(host))
    if not opdef.find_ops(scan.blank(host)) or (chips and "ascend910b" not in chips):
        return False
    return any(scan.find_entries(scan.blank(text)) for text in _texts(base / "op_kernel"))


def _texts(folder: Path) -> Iterator[str]:
    for file in keep_ours(folder, sorted(folder.rglob("*.cpp"))):
        yield file.read_text(errors="replace")


def projects_in(base: Path, options: BuildOptions) -> dict[str, Callable[[], Project]]:
    """What reads each operator of a folder, by the type; "" where there is one."""
    try:
        project = read_project(base, options=options)
    except TwinError as error:
        if error.code == "project-two-ops":
            named = {name: replace(options, op=name) for name in error.seen.split(", ")}
            return {name: partial(read_project, base, options=one) for name, one in named.items()}
        raise
    return {"": lambda: project}


def measure(make: Callable[[], object]) -> Row:
    """What came of one operator or source."""
    start = time.monotonic()
    row: Row = {"code": "", "message": ""}
    try:
        make()
    except NpusmithError as error:
        first = error.errors[0] if isinstance(error, CompileError) and error.errors else None
        row = {
            "code": error.code,
            "message": first.message if first else f"{error.message} {error.seen}",
            "place": str(first) if first else str(error.place.file),
            "all": [str(item) for item in error.errors] if isinstance(error, CompileError) else [],
        }
    return {**row, "seconds": round(time.monotonic() - start, 1)}


def measured(base: Path, chip: Chip, columns: int, options: BuildOptions) -> Iterator[Row]:
    """A row for each operator in a folder, or for a source."""

    def build(read: Callable[[], Project]) -> None:
        project = read()
        for dtypes in type_columns(project)[:columns]:
            compile.build(project, chip, dtypes)

    if base.is_file():
        if has_main(base.read_text(errors="replace")):
            yield {"op": "", **measure(lambda: build_program(base, chip, options))}
        else:
            yield {"op": "", **measure(lambda: check_file(base, chip, options))}
        return
    try:
        found = projects_in(base, options)
    except NpusmithError:
        found = {"": lambda: read_project(base, options=options)}
    for name, read in found.items():
        yield {"op": name, **measure(lambda read=read: build(read))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("-I", dest="include", type=Path, action="append", default=[])
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    root = args.root.resolve()
    known = _known(args.json)
    chip = find_chip("910B2")
    options = BuildOptions(include=tuple(folder.resolve() for folder in args.include))
    rows: list[Row] = []
    found = list(sources(root) if args.files else operators(root))
    for base in found[:: 1 if args.names else args.every]:
        name = str(base.relative_to(root))
        if args.names and not {base.name, name} & set(args.names):
            continue
        new = [] if name in known else list(measured(base, chip, args.columns, options))
        for row in known.get(name, new):
            rows.append(row)
            op = f" {row['op']}" if row["op"] else ""
            said = f"{row['code'] or 'compiles'} {row['message']}"
            print(f"{name}{op}: {said} ({row['seconds']} s)", flush=True)
        if args.json:
            with args.json.open("a") as file:
                file.writelines(json.dumps({"name": name, **row}) + "\n" for row in new)
    right = sum(not row["code"] for row in rows)
    print(f"\n{right} of {len(rows)} compile")
    said = Counter(f"{row['code']}: {row['message']}" for row in rows if row["code"])
    for text, count in said.most_common(40):
        print(f"{count:4d}  {text}")


def _known(file: Path | None) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    if file is not None and file.exists():
        for line in file.read_text().splitlines():
            row = json.loads(line)
            found.setdefault(row["name"], []).append({"op": "", **row})
    return found


if __name__ == "__main__":
    main()
