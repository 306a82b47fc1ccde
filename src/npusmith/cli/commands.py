"""The commands: each turns its arguments into a job. Heavy imports wait until the job runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npusmith.cli import agent
from npusmith.cli.bind import bind
from npusmith.cli.exits import Exit
from npusmith.cli.option_groups import expand_groups
from npusmith.cli.options import (
    Arguments,
    Attrs,
    AutoSync,
    Backward,
    ChipName,
    DebuggedCore,
    Define,
    Gdb,
    Include,
    Json,
    NoSearch,
    Notes,
    OperatorName,
    Prepare,
    ScheduleFile,
    Search,
    Seed,
    Shuffle,
    Strict,
    TaskFile,
    Timed,
    ToleranceName,
    Verify,
    Watched,
    Whole,
    Writer,
    WriterName,
    read_attrs,
)
from npusmith.cli.reply import Job, Reply, beside
from npusmith.cli.steps import Steps
from npusmith.errors import CODES, Level
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.load import stem_of

if TYPE_CHECKING:
    from npusmith.cli.screen import Screen


@expand_groups
def generate(
    task: TaskFile,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where results go; default: out/ and the name of the task file.",
        ),
    ] = None,
    chip: ChipName = DEFAULT_CHIP,
    writer: WriterName = Writer.PLAN,
    tolerance: ToleranceName = "default",
    seed: Seed = 0,
    time: Timed = False,
    search: Search = 16,
    no_search: NoSearch = False,
    schedule: ScheduleFile = None,
    whole: Whole = False,
    backward: Backward = False,
    model: agent.ModelOptions,
    options: agent.AgentOptions,
    json: Json = False,
) -> Job:
    """Write an operator for a PyTorch module, and judge it on the twin.

    Leaves the Ascend C project, the tile program it came from, result.json and report.html in the
    output folder. An earlier result there is replaced in one step when the new one is whole.
    With --writer agent a model writes, in rounds; the options of that stand apart. With --writer lm
    a model of our own does, on this machine: --model names its folder.
    """
    row = find_chip(chip)
    folder = out or Path("out", stem_of(task))
    if backward and (writer is not Writer.PLAN or schedule is not None):
        raise typer.BadParameter("--backward is for the deterministic writer, without a schedule")

    def job(steps: Steps) -> Reply:
        from npusmith import pipeline
        from npusmith.cli.verdict import verdict_reply
        from npusmith.writers.plan import PlanWriter, read_schedule

        if writer is Writer.AGENT:
            author = agent.open_agent(row, tolerance, model, options, folder, steps)
        elif writer is Writer.LM:
            author = agent.open_lm(row, model, options)
        else:
            author = PlanWriter(
                row, search=0 if no_search else search, step=steps.step, whole=whole,
                schedule=None if schedule is None else read_schedule(schedule),
            )  # fmt: skip
        verdict = pipeline.generate(
            task,
            folder,
            row,
            tolerance,
            steps,
            writer=author,
            seed=seed,
            timed=time or options.optimise,
        )
        if not backward or verdict.verdict != "pass" or not isinstance(author, PlanWriter):
            return verdict_reply(verdict)
        from npusmith.backward import add_backward

        gradients = add_backward(task, folder, author, verdict, steps, seed=seed, timed=time)
        return beside(verdict_reply(verdict), "backward", verdict_reply(gradients))

    return job


def run(
    project: Annotated[
        Path,
        typer.Argument(
            metavar="PROJECT",
            help="An Ascend C project folder, a direct-launch source (.asc, .cpp), or a submission "
            "in a format of MultiKernelBench (.json, .py).",
        ),
    ],
    task: Annotated[
        Path | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="The task it must solve; a source with a main function that checks itself needs "
            "none.",
        ),
    ] = None,
    chip: ChipName = DEFAULT_CHIP,
    tolerance: ToleranceName = "default",
    seed: Seed = 0,
    dynamic: Annotated[
        bool | None,
        typer.Option(
            "--dynamic/--static",
            help="Also judge other shapes, or only the task's own; default: what the project says.",
        ),
    ] = None,
    attr: Attrs = None,
    prepare: Prepare = None,
    verify: Verify = None,
    arg: Arguments = None,
    watch: Watched = False,
    gdb: Gdb = False,
    core: DebuggedCore = None,
    op: OperatorName = "",
    include: Include = None,
    define: Define = None,
    strict: Strict = False,
    auto_sync: AutoSync = None,
    notes: Notes = False,
    shuffle: Shuffle = 0,
    time: Timed = False,
    json: Json = False,
) -> Job:
    """Judge an existing Ascend C project, of npusmith or not, on the twin."""
    row = find_chip(chip)
    attrs = read_attrs(attr or [])
    if watch and json:
        raise typer.BadParameter("--json is one document: it does not go with --watch")
    if gdb and (json or watch):
        raise typer.BadParameter("--gdb talks to a person: no --json, no --watch")
    if core is not None and not gdb:
        raise typer.BadParameter("--core says where --gdb stops, too")

    def job(steps: Steps) -> Reply:
        from npusmith import pipeline
        from npusmith.cli.verdict import verdict_reply
        from npusmith.task.program import Around
        from npusmith.twin.options import BuildOptions
        from npusmith.twin.watch import Watch

        build = BuildOptions(op, tuple(include or ()), tuple(define or ()), gdb)
        look = Watch(auto_sync, notes, shuffle, build)
        around = Around(tuple(prepare or ()), tuple(verify or ()), tuple(arg or ()))
        if gdb:
            done = pipeline.debug(
                project, task, row, tolerance, steps, seed=seed, watch=look, attrs=attrs,
                around=around, core=core,
            )  # fmt: skip
            if done.error is not None:
                return verdict_reply(done)
            wrong = [item for item in done.findings if item.level is Level.ERROR]

            def tell(screen: Screen) -> None:
                for item in wrong:
                    screen.line(item.render(), "red")

            return Reply(Exit.FAILED if wrong else Exit.PASS, {}, tell)
        verdict = pipeline.run(
            project, task, row, tolerance, steps, dynamic=dynamic, seed=seed, watch=look,
            attrs=attrs, timed=time, around=around,
        )  # fmt: skip
        reply = verdict_reply(pipeline.strictly(verdict) if strict else verdict)
        paths = (project, *(() if task is None else (task,)))
        return replace(reply, watched=paths if watch else ())

    return job


def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A tile program, an Ascend C kernel (.cpp) or a project folder."
        ),
    ],
    chip: ChipName = DEFAULT_CHIP,
    op: OperatorName = "",
    include: Include = None,
    define: Define = None,
    strict: Strict = False,
    json: Json = False,
) -> Job:
    """Parse, check the rules, and compile; run nothing."""
    row = find_chip(chip)

    def job(steps: Steps) -> Reply:
        from npusmith import pipeline
        from npusmith.cli.verdict import verdict_reply
        from npusmith.twin.options import BuildOptions

        steps.step("check", str(file))
        build = BuildOptions(op, tuple(include or ()), tuple(define or ()))
        verdict = pipeline.check(file, row, build)
        return verdict_reply(pipeline.strictly(verdict) if strict else verdict)

    return job


def checks(json: Json = False) -> Job:
    """List what the twin checks: code, level, what it means, what is legal, what to try."""

    def job(steps: Steps) -> Reply:
        from npusmith.cli.checks import list_checks

        return list_checks()

    return job


def explain(
    code: Annotated[
        str,
        typer.Argument(
            metavar="CODE",
            autocompletion=lambda: list(CODES),
            help="Of an error or a finding, such as hazard.",
        ),
    ],
    json: Json = False,
) -> Job:
    """Say what an error or a finding means, what is legal, and what to try."""

    def job(steps: Steps) -> Reply:
        from npusmith.cli.checks import explain_code

        return explain_code(code)

    return job


def doctor(json: Json = False) -> Job:
    """Say what this machine has, and what each missing piece would unlock."""

    def job(steps: Steps) -> Reply:
        from npusmith.cli.doctor import examine

        return examine()

    return job


def docs(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder of the pages.")
    ] = Path("docs"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail when a page is stale.")
    ] = False,
    json: Json = False,
) -> Job:
    """Write the generated pages of the documentation from the tables."""

    def job(steps: Steps) -> Reply:
        from npusmith.cli.pages import refresh

        return refresh(folder, check, context.find_root().command)

    return job


OPERATORS = (generate, run, check, checks, explain, bind)
ITSELF = (doctor, docs)
