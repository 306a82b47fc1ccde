"""What a change of the writer does to every graph that it is known to write, or to refuse.

    python runs/replay.py freeze [--root CHECKOUT] [--times] [--jobs N]
    python runs/replay.py compare [--only GLOB] [--jobs N] [--json FILE] [--kept FILE]
    python runs/replay.py accept NAME... [--jobs N]

`runs/replay/` holds the graphs (graphs.jsonl.xz) and, for each, a line of record.jsonl: the digest
of its tile program, the estimated time on the 910B2 at its shapes, and whether the program is
right; or the code with which it was refused. `compare` writes every program anew. One with the
digest of the record is the same and costs nothing more; another one is timed and judged. It ends
with 1 where something right is right no more, or where something takes more than 1.1 times as long
and reasons.toml does not say why. What is not the same is said as it is found; with --kept, results
lie in that file, and a second call of the same code goes on with what is missing. `accept` (names,
or patterns) makes what is now the record.

`freeze --root` captures the graphs that are not there yet, from a checkout of MultiKernelBench,
examples/, and the modules of few_rows.py and short_rows.py. Then `freeze` makes the records that
are missing: verdicts first, times (--times) after them. It goes on where it was ended.

Right means: the interpreter of the tile language gives what PyTorch gives for the graph, at the
small sizes of the same module (replay_judge.py), by the judge's strict rule. Times are estimates of
the timing model. Both are the same on every machine.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import hashlib
import json
import math
import multiprocessing
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from replay_frozen import FOLDER, Case, read_cases, write_cases

import npusmith
from npusmith.errors import NpusmithError
from npusmith.ir.text import show
from npusmith.plan import Plan, write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.target.chips import Chip, find_chip
from npusmith.task.compare import difference

RECORD, REASONS = FOLDER / "record.jsonl", FOLDER / "reasons.toml"
CHIP = "910B2"
SLOWER, SAME_TIME = 1.1, 1.005  # times the record's: more than this needs a reason; less is none
WORST = 10
_EVERY = 20  # results between two writings of the record


class Record(BaseModel):
    """What is known of a case. `us` is None where the program could not be timed: `untimed`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    case: str
    digest: str = ""
    us: float | None = None
    untimed: str = ""
    verdict: str = ""  # right, wrong: ..., fails: ..., or not judged: ...
    judged: str = ""  # how, and at the sizes of which case
    refused: str = ""  # the code


class Reason(BaseModel):
    """Cases (a pattern) that may take `up_to` times as long as in the record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cases: str
    up_to: float
    why: str


class Kind(Enum):
    """What became of a case."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    AS_FAST = "another program, as fast"
    WRITTEN = "written now"
    REFUSED = "refused now"
    REFUSED_ELSE = "refused with another code"
    LOST = "verdict lost"
    OTHER_VERDICT = "another verdict"


@dataclass(frozen=True, slots=True)
class Change:
    """One case, before and now."""

    kind: Kind
    before: Record
    now: Record

    @property
    def ratio(self) -> float | None:
        """The time now over the time of the record."""
        if not self.before.us or not self.now.us:
            return None
        return self.now.us / self.before.us


# ---------------------------------------------------------------------------------------- one case


def digest(text: str) -> str:
    """Of a tile program without comments, docstrings and notes."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            if isinstance(block := getattr(node, name, None), list):
                setattr(node, name, [item for item in block if not _is_note(item)])
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:16]


def _is_note(item: ast.stmt) -> bool:
    return (
        isinstance(item, ast.Expr)
        and isinstance(item.value, ast.Constant)
        and isinstance(item.value.value, str)
    )


def replay(
    case: Case, check: Case | None, known: Record | None = None, *, timed: bool = True
) -> Record:
    """What the present writer makes of a case; `known` itself where the program is the same."""
    chip = find_chip(CHIP)
    try:
        plan = write(case.graph, "op_custom", chip)
    except NpusmithError as error:
        return Record(case=case.name, refused=error.code)
    found = digest(show(plan.program))
    if known is not None and known.digest == found:
        return known
    verdict, judged = _verdict(plan, case, check, chip)
    us, untimed = _time(plan, case, chip) if timed else (None, "")
    return Record(
        case=case.name, digest=found, us=us, untimed=untimed, verdict=verdict, judged=judged
    )


def timed(case: Case, known: Record) -> Record:
    """The record with a time; as it is where the writer makes another program by now."""
    chip = find_chip(CHIP)
    try:
        plan = write(case.graph, "op_custom", chip)
    except NpusmithError:
        return known
    if digest(show(plan.program)) != known.digest:
        return known
    us, untimed = _time(plan, case, chip)
    return known.model_copy(update={"us": us, "untimed": untimed})


def _time(plan: Plan, case: Case, chip: Chip) -> tuple[float | None, str]:
    """Estimated microseconds of the task at the case's shapes, or the code of what forbids it."""
    try:
        shapes = shrink(case.graph, plan.spec, chip, in_step=goes_in_step(plan.program))
        return round(Evaluator(plan.spec, chip, shapes).time(plan.program).task_us, 3), ""
    except NpusmithError as error:
        return None, error.code


def _verdict(plan: Plan, case: Case, check: Case | None, chip: Chip) -> tuple[str, str]:
    from replay_judge import judge  # PyTorch is loaded where a program is judged

    if check is None:
        return "not judged: no case at small sizes", ""
    if check.name != case.name and (why := difference(case.graph, check.graph)):
        return f"not judged: {why}", ""
    return judge(plan, check.graph, check.draws, chip), f"interpreter, {check.name}"


def compared(before: Record, now: Record) -> Change:
    """What kind of change it is; the worst of what could be said."""
    return Change(_kind(before, now), before, now)


def _kind(before: Record, now: Record) -> Kind:
    if before == now:
        return Kind.SAME
    if now.refused:
        return Kind.REFUSED_ELSE if before.refused else Kind.REFUSED
    if before.refused:
        return Kind.WRITTEN
    if before.verdict == "right" != now.verdict or (before.us and not now.us):
        return Kind.LOST
    if before.verdict != now.verdict:
        return Kind.OTHER_VERDICT
    if before.us and now.us and now.us > SAME_TIME * before.us:
        return Kind.SLOWER
    if before.us and now.us and now.us * SAME_TIME < before.us:
        return Kind.FASTER
    return Kind.AS_FAST


def is_bad(change: Change, reasons: Sequence[Reason]) -> bool:
    """Whether `compare` fails for it."""
    if change.kind in (Kind.LOST, Kind.REFUSED):
        return True
    ratio, name = change.ratio or 0.0, change.before.case
    allowed = [item.up_to for item in reasons if fnmatchcase(name, item.cases)]
    return ratio > max([SLOWER, *allowed])


# ------------------------------------------------------------------------------------------- files


def read_records(path: Path = RECORD) -> dict[str, Record]:
    if not path.is_file():
        return {}
    found = map(Record.model_validate_json, path.read_text(encoding="utf-8").splitlines())
    return {item.case: item for item in found}


def write_records(records: Mapping[str, Record], path: Path = RECORD) -> None:
    lines = [records[name].model_dump_json(exclude_defaults=True) for name in sorted(records)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_reasons(path: Path = REASONS) -> list[Reason]:
    """`[[slower]]` tables with cases, up_to and why."""
    if not path.is_file():
        return []
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("slower", [])
    return TypeAdapter(list[Reason]).validate_python(rows)


# ------------------------------------------------------------------------------------------ report


def report(changes: Sequence[Change], reasons: Sequence[Reason]) -> Iterator[str]:
    """A table of what is not the same, counts, and means of the ratios of times."""
    rows = [change for change in changes if change.kind is not Kind.SAME]
    rows.sort(key=lambda item: (item.kind.value, -(item.ratio or 0.0), item.before.case))
    if rows:
        yield "| case | what | us before | us now | ratio | verdict now |"
        yield "|---|---|---|---|---|---|"
        yield from (_row(item, is_bad(item, reasons)) for item in rows)
    counts = Counter(change.kind.value for change in changes)
    yield ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    ratios = {change.before.case: change.ratio for change in changes if change.ratio}
    if ratios:
        moved = [ratio for ratio in ratios.values() if ratio != 1.0]
        yield f"time now over before, geometric mean: {_mean(ratios.values())} of {len(ratios)}" + (
            f", {_mean(moved)} of the {len(moved)} that differ" if moved else ""
        )
        worst = sorted(((ratio, name) for name, ratio in ratios.items() if ratio > 1), reverse=True)
        if worst:
            yield "worst: " + ", ".join(f"{name} {ratio:.3f}" for ratio, name in worst[:WORST])
    bad = sum(is_bad(change, reasons) for change in changes)
    if bad:
        yield f"{bad} must not land without a reason in {REASONS.name}, or `accept`"


def _row(change: Change, bad: bool) -> str:
    before, now = change.before, change.now
    times = [
        f"{item.us:.1f}" if item.us else item.refused or item.untimed for item in (before, now)
    ]
    ratio = f"{change.ratio:.3f}" if change.ratio else ""
    what = f"**{change.kind.value}**" if bad else change.kind.value
    return f"| {before.case} | {what} | {' | '.join(times)} | {ratio} | {now.verdict[:120]} |"


def _mean(ratios: Iterable[float]) -> str:
    logs = [math.log(ratio) for ratio in ratios]
    return f"{math.exp(sum(logs) / len(logs)):.4f}"


# ---------------------------------------------------------------------------------------- commands

Work = tuple[Case, Case | None, Record | None]


def _whole(work: Work) -> Record:
    return replay(*work)


def _untimed(work: Work) -> Record:
    return replay(*work, timed=False)


def _timed(work: Work) -> Record:
    assert work[2] is not None
    return timed(work[0], work[2])


def run(how: Callable[[Work], Record], works: Sequence[Work], jobs: int) -> Iterator[Record]:
    """Records in the order of the cases."""
    if jobs == 1:
        yield from map(how, works)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap(how, works)


def compare(
    cases: Mapping[str, Case],
    records: Mapping[str, Record],
    only: str = "*",
    jobs: int = 1,
    kept: Path | None = None,
) -> Iterator[Change]:
    """Every recorded case whose name fits `only`, before and now; results in `kept` come first."""
    wanted = [name for name in cases if name in records and fnmatchcase(name, only)]
    known = {} if kept is None else _read_kept(kept)
    yield from (compared(records[name], known[name]) for name in wanted if name in known)
    left = [name for name in wanted if name not in known]
    works = [(cases[name], cases.get(cases[name].check), records[name]) for name in left]
    for found in run(_whole, works, jobs):
        if kept is not None:
            with kept.open("a", encoding="utf-8") as file:
                file.write(f"{code_digest()} {found.model_dump_json()}\n")
        yield compared(records[found.case], found)


def _read_kept(file: Path) -> dict[str, Record]:
    """Results of this very code, by case; a line that was cut off is none."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        code, _, text = line.partition(" ")
        with contextlib.suppress(ValidationError):
            if code == code_digest():
                record = Record.model_validate_json(text)
                found[record.case] = record
    return found


@functools.cache
def code_digest() -> str:
    """Of npusmith and these scripts."""
    files = [*Path(npusmith.__file__).parent.rglob("*"), *Path(__file__).parent.glob("*.py")]
    total = hashlib.sha256()
    for file in sorted(item for item in files if item.is_file() and item.suffix != ".pyc"):
        total.update(file.read_bytes())
    return total.hexdigest()[:16]


def measure(how: Callable[[Work], Record], works: Sequence[Work], jobs: int) -> None:
    """New records for these cases, written now and then."""
    records = read_records()
    for at, found in enumerate(run(how, works, jobs), 1):
        records[found.case] = found
        what = found.refused or f"{found.us or found.untimed or '-'} us, {found.verdict}"
        print(f"{at} of {len(works)}: {found.case}: {what}", flush=True)
        if at % _EVERY == 0:
            write_records(records)
    write_records(records)


def freeze(options: Any) -> int:
    if options.root is not None:
        from replay_cases import capture  # PyTorch, and the modules that are captured

        for found in capture(options.root, read_cases(), options.jobs):
            write_cases(list(found.values()))
    cases, known = read_cases(), read_records()
    if options.times:
        left = [
            item
            for name, item in known.items()
            if fnmatchcase(name, options.only) and item.digest and not (item.us or item.untimed)
        ]
        measure(_timed, [(cases[item.case], None, item) for item in left], options.jobs)
        return 0
    fresh = [
        case
        for name, case in cases.items()
        if fnmatchcase(name, options.only) and name not in known
    ]
    measure(_untimed, [(case, cases.get(case.check), None) for case in fresh], options.jobs)
    return 0


def check(options: Any) -> int:
    reasons = read_reasons()
    changes = []
    for change in compare(read_cases(), read_records(), options.only, options.jobs, options.kept):
        changes.append(change)
        if change.kind not in (Kind.SAME, Kind.AS_FAST):
            print(f"{len(changes)}: {_row(change, is_bad(change, reasons))}", flush=True)
    for line in report(changes, reasons):
        print(line)
    if options.json is not None:
        rows = [
            {
                "what": item.kind.value, "ratio": item.ratio,
                "before": item.before.model_dump(), "now": item.now.model_dump(),
            }
            for item in changes
        ]  # fmt: skip
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(any(is_bad(item, reasons) for item in changes))


def accept(options: Any) -> int:
    cases = read_cases()
    chosen = [
        case
        for name, case in cases.items()
        if any(fnmatchcase(name, pattern) for pattern in options.names)
    ]
    if not chosen:
        print("no case has such a name", file=sys.stderr)
        return 2
    measure(_whole, [(case, cases.get(case.check), None) for case in chosen], options.jobs)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, run: Callable[[Any], int]) -> argparse.ArgumentParser:
        made = commands.add_parser(name)
        made.set_defaults(run=run)
        made.add_argument("--jobs", type=int, default=1)
        return made

    freezing = command("freeze", freeze)
    freezing.add_argument("--root", type=Path)
    freezing.add_argument("--times", action="store_true", help="of the records without")
    comparing = command("compare", check)
    for item in (freezing, comparing):
        item.add_argument("--only", default="*", help="names of cases, with * and ?")
    comparing.add_argument("--json", type=Path)
    comparing.add_argument("--kept", type=Path)
    command("accept", accept).add_argument("names", nargs="+")
    options = parser.parse_args(argv)
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
