"""asc-devkit's samples with a main function: how many compile, run, and pass their own check?

    python runs/samples.py --root CHECKOUT [--only PART] [--every N] [--seconds S] [--json F]

A sample is a source below examples/ with a main function whose README lists Atlas A2 among the
products that it supports. The first shell block of that README that starts the program says how:
`cmake -DNAME=VALUE` gives macros, Python scripts in front of the program make its data, those
behind it check what it left. Each is run as by `npusmith run` with -D, --prepare and --verify.
A sample has a check of its own when such a script follows, or when its source reads a golden file:
then its status and what it prints count. One JSON row a sample; the table at the end counts.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from npusmith.errors import CODES, Level
from npusmith.target.chips import find_chip
from npusmith.task.program import Around, judge_program
from npusmith.task.verdict import Rung, Verdict
from npusmith.twin import scan
from npusmith.twin.direct import has_main
from npusmith.twin.options import BuildOptions
from npusmith.twin.project import read_text
from npusmith.twin.watch import Watch

CHIP = find_chip("910B2")
SECONDS = 60.0
_BLOCK = re.compile(
    r"^[ \t]*```[ \t]*(\w*)[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE
)
_SHELLS = ("", "bash", "shell", "sh")
_PRODUCT = re.compile(r"^\|[^|\n]*Atlas A2[^|\n]*\|(?![ \t]*(?:x|×)[ \t]*\|)", re.MULTILINE)
_START = re.compile(r"(?:^|\s)\./(?!\w+\.(?:sh|py)\b)\w+(?=$|\s)")  # ./demo
_ASSIGN = re.compile(r"(\w+)=(\S+)")
_ASSIGNS = re.compile(r"(?:\w+=\S+(?:\s+|$))+")  # a line of nothing else
_DEFINE = re.compile(r"-D(\w+=\S+?)(?=[\s;]|$)")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a README runs its sample; `starts`: it starts the program at all."""

    prepare: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    starts: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    sample: str
    verdict: str
    compiled: bool
    ran: bool
    checked: bool  # it has a check of its own
    right: bool
    code: str  # of what went wrong first
    said: str
    seconds: float


def find_samples(root: Path) -> Iterator[tuple[Path, str]]:
    """Sources with a main function, each with the README of its folder or the next one around."""
    examples = root / "examples"
    for source in sorted([*examples.rglob("*.asc"), *examples.rglob("*.cpp")]):
        if not has_main(scan.blank(read_text(source))):
            continue
        around = (folder / "README.md" for folder in source.parents if folder != examples)
        readme = next((file for file in around if file.is_file()), None)
        text = readme.read_text(encoding="utf-8") if readme else ""
        if _PRODUCT.search(text):
            yield source, text


def read_recipe(readme: str) -> Recipe:
    """The commands of the first block that starts the program; an empty recipe without one.

    Variables that earlier blocks set count in it.
    """
    earlier: list[str] = []
    for language, block in _BLOCK.findall(readme):
        if language not in _SHELLS:
            continue
        lines = [line.partition("# ")[0].strip().rstrip(";") for line in block.splitlines()]
        if any(_START.search(line) and "cmake" not in line for line in lines):
            return _recipe([*earlier, *lines])
        earlier += [line for line in lines if _ASSIGNS.fullmatch(line)]
    return Recipe()


def _recipe(lines: list[str]) -> Recipe:
    values: dict[str, str] = {}
    before: list[str] = []
    after: list[str] = []
    defines: list[str] = []
    arguments: list[str] = []
    started = False
    for line in lines:
        if _ASSIGNS.fullmatch(line):
            values.update(_ASSIGN.findall(line))
            continue
        text = re.sub(r"\$\{?(\w+)\}?", lambda name: values.get(name[1], name[0]), line)
        if "cmake" in text:  # a variable that the block does not set keeps its default
            found = [item for item in _DEFINE.findall(text) if "$" not in item]
            defines += [item for item in found if not item.startswith("CMAKE_")]
        elif text.startswith("python"):
            # the README works in build/, npusmith in a copy of the sample's folder
            (after if started else before).append(text.replace("../", "./"))
        if "cmake" not in text and (start := _START.search(text)):
            started, arguments = True, text[start.end() :].split()
    return Recipe(tuple(before), tuple(after), tuple(defines), tuple(arguments), started)


def run_sample(source: Path, readme: str, root: Path, seconds: float = SECONDS) -> Row:
    """Judge one sample as `npusmith run` does; its program may take so many seconds."""
    recipe = read_recipe(readme)
    clock = time.perf_counter()
    around = Around(recipe.prepare, recipe.verify, recipe.arguments)
    watch = Watch(build=BuildOptions(define=recipe.defines))
    verdict = judge_program(source, CHIP, around, seconds=seconds, watch=watch)
    code, said = _first_fault(verdict)
    golden = "golden" in scan.blank(read_text(source), strings=False)
    return Row(
        sample=str(source.relative_to(root / "examples")),
        verdict=verdict.verdict,
        compiled=verdict.compiled,
        ran=verdict.rung not in (Rung.NONE, Rung.COMPILED),
        checked=bool(recipe.verify) or golden,
        right=verdict.correct or (golden and verdict.verdict == "ran"),
        code=code,
        said=said,
        seconds=round(time.perf_counter() - clock, 2),
    )


def _first_fault(verdict: Verdict) -> tuple[str, str]:
    if verdict.error is not None:
        return str(verdict.error["code"]), f"{verdict.error['message']}: {verdict.error['seen']}"[
            :400
        ]
    errors = [item for item in verdict.findings if item.level is Level.ERROR]
    order = sorted(errors, key=lambda item: item.code.startswith(("program", "verify")))
    return (order[0].code, f"{order[0].message}: {order[0].seen}"[:400]) if order else ("", "")


def main() -> None:
    """Run all samples, or those whose path holds `--only`, and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--root", type=Path, required=True, help="a checkout of asc-devkit")
    parser.add_argument("--only", default="", help="samples whose path holds this text")
    parser.add_argument("--every", type=int, default=1, help="every N-th of them")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="a program's limit")
    parser.add_argument("--json", type=Path, help="rows, one JSON document a line")
    given = parser.parse_args()
    found = [item for item in find_samples(given.root) if given.only in str(item[0])]
    rows = []
    for source, readme in found[:: given.every]:
        row = run_sample(source, readme, given.root, given.seconds)
        rows.append(row)
        print(f"{row.verdict:5} {row.seconds:6.1f} s  {row.sample}  {row.code} {row.said[:120]!r}",
              flush=True)  # fmt: skip
        if given.json:
            with given.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    _print_table(rows)


def _print_table(rows: list[Row]) -> None:
    checked = [row for row in rows if row.checked]
    compiled, ran = sum(row.compiled for row in rows), sum(row.ran for row in rows)
    content = sum(row.verdict in ("ran", "pass") for row in rows)
    print(f"{len(rows)} samples: {compiled} compile, {ran} run, {content} without an error;")
    right = sum(row.right for row in checked)
    print(f"{right} of {len(checked)} that have a check of their own pass it")
    for code, count in Counter(row.code for row in rows if row.code).most_common():
        print(f"  {count:4} {code}: {CODES[code].meaning}")


if __name__ == "__main__":
    main()
