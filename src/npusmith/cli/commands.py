"""The commands: each turns its arguments into a job. Heavy imports wait until the job runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npusmith.cli import agent
from npusmith.cli.bind import bind
from npusmith.cli.exits import Exit
from npusmith.cli.option_groups import expand_groups, names_of, panel, refuse_unread
from npusmith.cli.options import (
    Attrs,
    BuildChoices,
    ChipName,
    Json,
    JudgedOptions,
    ProgramOptions,
    RunBuild,
    SearchOptions,
    Strict,
    TaskFile,
    Timed,
    Writer,
    read_attrs,
)
from npusmith.cli.reply import Job, Reply, beside
from npusmith.cli.steps import Steps
from npusmith.errors import CODES, Level
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.load import stem_of

if TYPE_CHECKING:
    from npusmith.cli.screen import Screen


_to_write = panel("Writer plan")
_of_run, _to_debug = panel("Judging"), panel("Debugging")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions(SearchOptions):
    """What the deterministic writer does."""

    schedule: Annotated[
        Path | None,
        _to_write(
            "--schedule",
            "Write the kernel with this schedule instead of a search: a result.json of npusmith "
            "generate, or its part provenance.schedule.",
            metavar="FILE",
        ),
    ] = None
    whole: Annotated[
        bool,
        _to_write(
            "--whole",
            "Refuse a module of which a part cannot be written; else PyTorch computes that part, "
            "between operators.",
        ),
    ] = False
    backward: Annotated[
        bool,
        _to_write(
            "--backward",
            "Also write the operator of the module's gradients, into backward/, and both as a "
            "package that autograd can train, into training/.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedOptions:
    """Where an operator goes, who writes it, and whether it is timed."""

    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where results go; default: out/ and the name of the task file.",
        ),
    ] = None
    writer: Annotated[Writer, typer.Option("--writer", help="Who writes the kernel.")] = Writer.PLAN
    time: Timed = False


_READS = {
    Writer.PLAN.value: names_of(PlanOptions),
    Writer.AGENT.value: names_of(agent.ModelOptions, agent.AgentOptions),
    Writer.LM.value: agent.LM_READS.keys(),
}


@expand_groups
def generate(
    task: TaskFile,
    *,
    context: typer.Context,
    wanted: WantedOptions,
    judged: JudgedOptions,
    plan: PlanOptions,
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
    row = judged.row
    folder = wanted.out or Path("out", stem_of(task))
    refuse_unread(context, wanted.writer.value, _READS)
    if plan.backward and plan.schedule is not None:
        raise typer.BadParameter("--backward writes by a search: it does not go with --schedule")

    def job(steps: Steps) -> Reply:
        from npusmith import pipeline
        from npusmith.cli.verdict import verdict_reply
        from npusmith.writers.plan import PlanWriter, read_schedule

        if wanted.writer is Writer.AGENT:
            author = agent.open_agent(row, judged.tolerance, model, options, folder, steps)
        elif wanted.writer is Writer.LM:
            author = agent.open_lm(row, model, options)
        else:
            author = PlanWriter(
                row, search=plan.schedules(), step=steps.step, whole=plan.whole,
                schedule=None if plan.schedule is None else read_schedule(plan.schedule),
            )  # fmt: skip
        verdict = pipeline.generate(
            task,
            folder,
            row,
            judged.tolerance,
            steps,
            writer=author,
            seed=judged.seed,
            timed=wanted.time or options.optimise,
        )
        if not plan.backward or verdict.verdict != "pass" or not isinstance(author, PlanWriter):
            return verdict_reply(verdict)
        from npusmith.backward import add_backward

        gradients = add_backward(
            task, folder, author, verdict, steps, seed=judged.seed, timed=wanted.time
        )
        return beside(verdict_reply(verdict), "backward", verdict_reply(gradients))

    return job


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How much is judged, and how strictly."""

    dynamic: Annotated[
        bool | None,
        _of_run(
            "--dynamic/--static",
            "Also judge other shapes, or only the task's own; default: what the project says.",
        ),
    ] = None
    attr: Attrs = None
    strict: Annotated[bool, _of_run("--strict", "A warning fails the verdict like an error.")] = (
        False
    )
    notes: Annotated[
        bool,
        _of_run("--notes", "Also report what costs time, and barriers that auto-sync adds."),
    ] = False
    shuffle: Annotated[
        int,
        _of_run(
            "--shuffle",
            "Start the blocks in an order drawn from this seed; 0 is their own.",
            min=0, max=(1 << 31) - 1,
        ),
    ] = 0  # fmt: skip
    time: Timed = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugOptions:
    """Running again, or under gdb."""

    watch: Annotated[
        bool,
        _to_debug("--watch", "Run again whenever a file of the project changes, until Ctrl-C."),
    ] = False
    gdb: Annotated[
        bool,
        _to_debug(
            "--gdb",
            "Run the task's first random set of inputs, or the program, under gdb, which stops at "
            "each finding of level error and shows the line, its variables and what tensors hold.",
        ),
    ] = False
    core: Annotated[
        int | None,
        _to_debug("--core", "With --gdb: stop where block N begins, too.", metavar="N", min=0),
    ] = None

    def check(self, json: bool) -> None:
        """Raises BadParameter for what does not go together."""
        if self.watch and json:
            raise typer.BadParameter("--json is one document: it does not go with --watch")
        if self.gdb and (json or self.watch):
            raise typer.BadParameter("--gdb talks to a person: no --json, no --watch")
        if self.core is not None and not self.gdb:
            raise typer.BadParameter("--core says where --gdb stops, too")


@expand_groups
def run(
    project: Annotated[
        Path,
        typer.Argument(
            metavar="PROJECT",
            help="An Ascend C project folder, a direct-launch source (.asc, .cpp), or a submission "
            "in a format of MultiKernelBench (.json, .py).",
        ),
    ],
    *,
    task: Annotated[
        Path | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="The task it must solve; a source with a main function that checks itself needs "
            "none.",
        ),
    ] = None,
    judged: JudgedOptions,
    options: RunOptions,
    program: ProgramOptions,
    debug: DebugOptions,
    sources: RunBuild,
    json: Json = False,
) -> Job:
    """Judge an existing Ascend C project, of npusmith or not, on the twin."""
    row = judged.row
    attrs = read_attrs(options.attr or [])
    debug.check(json)

    def job(steps: Steps) -> Reply:
        from npusmith import pipeline
        from npusmith.cli.verdict import verdict_reply
        from npusmith.twin.watch import Watch

        build = sources.read(debug.gdb)
        look = Watch(sources.auto_sync, options.notes, options.shuffle, build)
        running = pipeline.RunOptions(
            dynamic=options.dynamic, seed=judged.seed, watch=look, attrs=attrs,
            timed=options.time, around=program.read(),
        )  # fmt: skip
        if debug.gdb:
            done = pipeline.debug(
                project, task, row, judged.tolerance, steps, running, core=debug.core
            )
            if done.error is not None:
                return verdict_reply(done)
            wrong = [item for item in done.findings if item.level is Level.ERROR]

            def tell(screen: Screen) -> None:
                for item in wrong:
                    screen.line(item.render(), "red")

            return Reply(Exit.FAILED if wrong else Exit.PASS, {}, tell)
        verdict = pipeline.run(project, task, row, judged.tolerance, steps, running)
        reply = verdict_reply(pipeline.strictly(verdict) if options.strict else verdict)
        paths = (project, *(() if task is None else (task,)))
        return replace(reply, watched=paths if debug.watch else ())

    return job


@expand_groups
def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A tile program, an Ascend C kernel (.cpp) or a project folder."
        ),
    ],
    *,
    chip: ChipName = DEFAULT_CHIP,
    sources: BuildChoices,
    strict: Strict = False,
    json: Json = False,
) -> Job:
    """Parse, check the rules, and compile; run nothing."""
    row = find_chip(chip)

    def job(steps: Steps) -> Reply:
        from npusmith import pipeline
        from npusmith.cli.verdict import verdict_reply

        steps.step("check", str(file))
        verdict = pipeline.check(file, row, sources.read())
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
