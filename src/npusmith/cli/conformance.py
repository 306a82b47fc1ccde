"""`npusmith conformance SUITE`: other people's operators against their own references."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps

if TYPE_CHECKING:
    from npusmith.conformance.rows import Row

Resume = Annotated[
    bool, typer.Option("--resume", help="Keep the rows of the file, and run what is missing.")
]
_HEADS = (
    "tasks",
    "cases",
    "compiled",
    "official",
    "strict",
    "precise",
    "clean",
    "skipped",
)


def npukernelbench(
    root: Annotated[
        Path,
        typer.Option("--root", metavar="CHECKOUT", help="A checkout of PCL's NPUKernelBench."),
    ],
    cases: Annotated[
        str, typer.Option("--cases", metavar="0|all", help="The first case of a task, or all.")
    ] = "0",
    tasks: Annotated[
        str,
        typer.Option(
            "--tasks", metavar="NAMES", help="Operators or categories, with commas; default: all."
        ),
    ] = "",
    levels: Annotated[
        str, typer.Option("--levels", metavar="N,...", help="Levels; default: all.")
    ] = "",
    jobs: Annotated[
        int, typer.Option("--jobs", min=0, help="Tasks at a time; 0: one for each CPU.")
    ] = 0,
    most: Annotated[
        float,
        typer.Option("--max-input-mb", min=0, help="Cases with larger inputs are left out."),
    ] = 256,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="Time limit of one call of an operator.")
    ] = 120,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Inputs to draw for each case; the suite: one.")
    ] = 1,
    json: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Write one JSON line per case here, and print a JSON summary.",
        ),
    ] = None,
    resume: Resume = False,
) -> Job:
    """Run the reference answers of PCL's NPUKernelBench on the twin.

    Each is judged by the suite's own rule; by our strict one, which also compares list lengths,
    shapes, types and where results are NaN, on every seed; and by the precise one, which holds
    values to the strict profile of tasks.md. An answer is clean when the twin has no finding of
    level error. Nothing of the suite is shipped.
    """
    if cases not in ("0", "all"):
        raise typer.BadParameter("--cases takes 0 or all")
    if resume and json is None:
        raise typer.BadParameter("--resume needs --json FILE")
    try:
        chosen = tuple(int(level) for level in levels.split(",") if level.strip())
    except ValueError as error:
        raise typer.BadParameter("--levels takes numbers with commas") from error
    names = tuple(name.strip() for name in tasks.split(",") if name.strip())

    def job(steps: Steps) -> Reply:
        from npusmith.conformance import npukernelbench as suite

        options = suite.Options(
            every_case=cases == "all",
            names=names,
            levels=chosen,
            jobs=jobs,
            most_mb=most,
            case_seconds=seconds,
            seeds=seeds,
            rows=json,
            resume=resume,
        )
        return _reply(suite.run(root, options, _watch(steps)))

    return job


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
    json: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Write one JSON line per example here, and print a JSON summary.",
        ),
    ] = None,
    resume: Resume = False,
) -> Job:
    """Run MultiKernelBench's eight bundled Ascend C examples on the twin.

    Each is judged by the suite's own rule on five random sets, and by our strict one. Inputs of
    several GB are replaced by the suite's earlier shapes, and the row says so.
    """
    if resume and json is None:
        raise typer.BadParameter("--resume needs --json FILE")
    names = tuple(name.strip() for name in tasks.split(",") if name.strip())

    def job(steps: Steps) -> Reply:
        from npusmith.conformance import multikernelbench as suite

        options = suite.Options(names, seconds, json, resume)
        return _reply(suite.run(root, options, _watch(steps)))

    return job


def _watch(steps: Steps) -> Callable[[Row, int, int], None]:
    def watch(row: Row, done: int, total: int) -> None:
        steps.step(f"{done} of {total}", f"{row.category}/{row.task} case {row.case}: {_word(row)}")

    return watch


def _word(row: Row) -> str:
    if row.skipped:
        return f"skipped, {row.skipped}"
    if not row.compiled:
        return "not compiled"
    if row.strict:
        return "pass" if row.clean else "right, but not clean"
    return "official rule only" if row.official else "fail"


def _reply(rows: list[Row]) -> Reply:
    from npusmith.conformance.rows import count

    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(f"level{row.level}/{row.category}", []).append(row)
        groups.setdefault(f"level{row.level}", []).append(row)
    ordered = {name: groups[name] for name in sorted(groups)} | {"all": rows}
    figures = {
        name: {"tasks": len({row.task for row in part}), **count(part)}
        for name, part in ordered.items()
    }
    ran = [row for row in rows if not row.skipped]
    failed = [row for row in ran if not row.strict]
    unclean = [row for row in ran if row.strict and not row.clean]

    def show(screen: Screen) -> None:
        for row in failed + unclean:
            screen.line(f"{row.key[0]} case {row.case}: {_word(row)}: {row.error}"[:300])
        table = [(name, *(str(value) for value in part.values())) for name, part in figures.items()]
        screen.table(("", *_HEADS), table, 5)

    data = {
        "figures": figures,
        "failed": [row.model_dump(mode="json") for row in failed],
        "unclean": [row.model_dump(mode="json") for row in unclean],
    }
    # Values may be right by luck: a broken hardware rule fails the run all the same.
    return Reply(Exit.FAILED if failed or unclean else Exit.PASS, data, show)


SUITES = (npukernelbench, multikernelbench)
