"""Run other people's operators against their own references: `npusmith conformance SUITE`.

A benchmark run whose writer is the suite's folder of answers; what is shown are its records.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.option_groups import expand_groups
from npusmith.cli.options import Workers
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps
from npusmith.sandbox.folder import remove_tree, temporary_folder

if TYPE_CHECKING:
    from npusmith.bench.model import Record

Resume = Annotated[
    bool, typer.Option("--resume", help="Keep the rows of the file, and run what is missing.")
]
Rows = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write a JSON line for each record here, the run beside it, and print a JSON summary.",
    ),
]
_COUNTS = ("compiled", "official", "strict", "precise", "clean")
_HEADS = ("tasks", "cases", *_COUNTS, "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """Which answers, and how they are judged."""

    cases: Annotated[
        str, typer.Option("--cases", metavar="0|all", help="The first case of a task, or all.")
    ] = "0"
    tasks: Annotated[
        str,
        typer.Option(
            "--tasks", metavar="NAMES", help="Operators or categories, with commas; default: all."
        ),
    ] = ""
    levels: Annotated[
        str, typer.Option("--levels", metavar="N,...", help="Levels; default: all.")
    ] = ""
    most: Annotated[
        float,
        typer.Option("--max-input-mb", min=0, help="Cases with larger inputs are left out."),
    ] = 256
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="Time limit of one call of an operator.")
    ] = 120
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Inputs to draw for each case; the suite: one.")
    ] = 1


@expand_groups
def npukernelbench(
    *,
    root: Annotated[
        Path,
        typer.Option("--root", metavar="CHECKOUT", help="A checkout of PCL's NPUKernelBench."),
    ],
    asked: AnswerOptions,
    workers: Workers = 0,
    json: Rows = None,
    resume: Resume = False,
) -> Job:
    """Run the reference answers of PCL's NPUKernelBench on the twin.

    Each is judged by the suite's own rule; by our strict one, which also compares list lengths,
    shapes, types and where results are NaN, on every seed; and by the precise one, which holds
    values to the strict profile of tasks.md. An answer is clean when the twin has no finding of
    level error. Nothing of the suite is shipped.
    """
    if asked.cases not in ("0", "all"):
        raise typer.BadParameter("--cases takes 0 or all")
    if not all(level.strip().isdecimal() for level in asked.levels.split(",") if level.strip()):
        raise typer.BadParameter("--levels takes numbers with commas")
    limits = {"seconds": asked.seconds, "input_mb": asked.most, "trials": asked.seeds}
    options = {
        "shapes": "dynamic",
        "cases": "0" if asked.cases == "all" else "1",
        "answered": "true",
    }
    chosen = (asked.tasks, asked.levels)
    return _job("npukernelbench", root, options, chosen, limits, workers, json, resume)


def multikernelbench(
    root: Annotated[
        Path,
        typer.Option("--root", metavar="CHECKOUT", help="A checkout of MultiKernelBench."),
    ],
    tasks: Annotated[
        str, typer.Option("--tasks", metavar="NAMES", help="Examples, with commas; default: all.")
    ] = "",
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="Time limit of the runs of one example.")
    ] = 180,
    json: Rows = None,
    resume: Resume = False,
) -> Job:
    """Run MultiKernelBench's eight bundled Ascend C examples on the twin.

    Each is judged by the suite's own rule on five random sets, and by our strict one. Inputs of
    several GB are replaced by the suite's earlier shapes, and the row says so.
    """
    limits = {"seconds": seconds, "input_mb": 256}
    return _job("multikernelbench-examples", root, {}, (tasks, ""), limits, 1, json, resume)


def _job(
    suite: str,
    root: Path,
    options: dict[str, str],
    chosen: tuple[str, str],
    limits: dict[str, Any],
    workers: int,
    rows: Path | None,
    resume: bool,
) -> Job:
    """`chosen`: names of tasks, and levels."""
    if resume and rows is None:
        raise typer.BadParameter("--resume needs --json FILE")

    def job(steps: Steps) -> Reply:
        from npusmith.bench.model import Limits
        from npusmith.bench.plan import Plan
        from npusmith.bench.pool import LocalPool
        from npusmith.bench.runner import run
        from npusmith.cli.bench import progress_line
        from npusmith.open_writer import OPEN_WRITER

        names, levels = (
            tuple(part.strip() for part in text.split(",") if part.strip()) for text in chosen
        )
        plan = Plan(
            suite=suite, root=root, options=options, writer=f"answers:{root}",
            writers=OPEN_WRITER, names=names, levels=levels, limits=Limits(**limits),
        )  # fmt: skip
        with _folder(rows, resume) as folder:
            steps.step("conformance", suite)
            done = 0

            def watch(now: Any) -> None:
                nonlocal done
                steps.tell(progress_line(now))
                if rows is not None and now.done != done:  # a kill leaves what has ended
                    done = now.done
                    _write(rows, _records(folder))

            run(plan, folder, LocalPool(workers), watch, resume=resume)
            found = _records(folder)
        if rows is not None:
            _write(rows, found)
        return _reply(found)

    return job


@contextmanager
def _folder(rows: Path | None, resume: bool) -> Iterator[Path]:
    """Of the run: beside the file of rows, or for this command alone."""
    if rows is None:
        with temporary_folder("npusmith-conformance-") as home:
            yield home / "run"
        return
    folder = rows.with_name(f"{rows.name}.run")
    if folder.is_dir() and not resume:
        remove_tree(folder)
    rows.parent.mkdir(parents=True, exist_ok=True)
    yield folder


def _records(folder: Path) -> list[Record]:
    """One for each case, in the order of the suite."""
    from npusmith.bench.archive import open_run
    from npusmith.bench.suites.judging import case_records

    with open_run(folder) as run:
        return [part for record in run.records() for part in case_records(run.full(record))]


def _write(path: Path, records: list[Record]) -> None:
    fresh = path.with_name(f".{path.name}.fresh")
    fresh.write_text("".join(record.model_dump_json() + "\n" for record in records))
    fresh.replace(path)


def _word(record: Record) -> str:
    if record.skipped:
        return f"skipped, {record.skipped}"
    if not record.compiled:
        return "not compiled"
    if record.strict:
        return "pass" if record.clean else "right, but not clean"
    return "official rule only" if record.official else "fail"


def _count(records: list[Record]) -> dict[str, int]:
    ran = [record for record in records if not record.skipped]
    return {
        "tasks": len({record.item.partition("/case")[0] for record in records}),
        "cases": len(ran),
        **{name: sum(getattr(record, name) is True for record in ran) for name in _COUNTS},
        "skipped": len(records) - len(ran),
    }


def _reply(records: list[Record]) -> Reply:
    groups: dict[str, list[Record]] = {}
    for record in records:
        home = [f"level{record.level}"] if record.level else []
        for name in (*home, "/".join([*home, record.category])):
            groups.setdefault(name, []).append(record)
    ordered = {name: groups[name] for name in sorted(groups)} | {"all": records}
    figures = {name: _count(part) for name, part in ordered.items()}
    ran = [record for record in records if not record.skipped]
    failed = [record for record in ran if not record.strict]
    unclean = [record for record in ran if record.strict and not record.clean]

    def show(screen: Screen) -> None:
        for record in failed + unclean:
            said = record.error or next(iter(record.messages), "")
            screen.line(f"{record.item}: {_word(record)}: {said}"[:300])
        table = [(name, *(str(value) for value in part.values())) for name, part in figures.items()]
        screen.table(("", *_HEADS), table, 5)

    data = {
        "figures": figures,
        "failed": [record.model_dump(mode="json") for record in failed],
        "unclean": [record.model_dump(mode="json") for record in unclean],
    }
    # Values may be right by luck: a broken hardware rule fails the run all the same.
    return Reply(Exit.FAILED if failed or unclean else Exit.PASS, data, show)


SUITES = (npukernelbench, multikernelbench)
