"""`npusmith profile`: how long a candidate would take on the chip, and what limits it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npusmith.cli.option_groups import expand_groups, panel
from npusmith.cli.options import (
    Attrs,
    Json,
    JudgedOptions,
    ProgramOptions,
    RunBuild,
    read_attrs,
)
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps

if TYPE_CHECKING:
    from npusmith import profiling
    from npusmith.timing.profile import Profile

_MOST_EVENTS = 200_000  # as timing.trace, which is too heavy to import for a help text


_of_record = panel("What is recorded")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """How much of a run is recorded, and where it goes."""

    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where results go; default: out/ and the project's name with .profile.",
        ),
    ] = None
    trace: Annotated[
        Path | None,
        _of_record(
            "--trace", "Where the trace goes; default: trace.json in --out.", metavar="FILE"
        ),
    ] = None
    trace_events: Annotated[
        int, _of_record("--trace-events", "Most events in the trace.", min=1, max=5_000_000)
    ] = _MOST_EVENTS
    sample: Annotated[
        int | None,
        _of_record(
            "--sample",
            "Record only the first N steps of each core and extrapolate the rest.",
            metavar="N", min=100, max=1 << 30,
        ),
    ] = None  # fmt: skip


@expand_groups
def profile(
    project: Annotated[
        Path,
        typer.Argument(
            metavar="PROJECT",
            help="What `npusmith run` takes: a project folder, a direct-launch source, or a "
            "submission.",
        ),
    ],
    *,
    task: Annotated[
        Path | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="The task it solves; without one there are no roofs and no eager estimate.",
        ),
    ] = None,
    judged: JudgedOptions,
    attr: Attrs = None,
    record: RecordOptions,
    program: ProgramOptions,
    sources: RunBuild,
    json: Json = False,
) -> Job:
    """Estimate how long a candidate would take on the chip, and say what limits it.

    The candidate is judged on the task's first random set of inputs. Leaves profile.json, a
    Chrome / Perfetto trace, timeline.svg, roofline.svg and report.html in the output folder. All
    times are estimates of a model; nothing is measured on a device.
    """
    row = judged.row
    folder = record.out or Path("out", f"{project.stem}.profile")
    attrs = read_attrs(attr or [])

    def job(steps: Steps) -> Reply:
        from npusmith import profiling
        from npusmith.twin.watch import Watch

        watch = Watch(sources.auto_sync, notes=True, build=sources.read())
        options = profiling.Options(
            folder, record.trace, record.trace_events, record.sample, judged.seed, watch, attrs,
            program.read(),
        )  # fmt: skip
        done = profiling.profile(project, task, row, judged.tolerance, steps, options)
        return _reply(done, folder)

    return job


def _reply(done: profiling.Profiled, folder: Path) -> Reply:
    from npusmith import profiling
    from npusmith.cli.exits import exit_for
    from npusmith.cli.verdict import verdict_reply
    from npusmith.report.ladder import document

    if done.profile is None:
        if done.verdict.error is None and done.verdict.verdict in ("pass", "ran"):
            raise profiling.no_profile(done.verdict)
        return verdict_reply(done.verdict)
    code = exit_for(done.verdict.verdict, done.verdict.error)
    data = {**document(done.verdict), "profile": done.profile.model_dump(mode="python")}
    data["out"] = str(folder)
    return Reply(code, data, lambda screen: show_profile(screen, done, folder))


def show_profile(screen: Screen, done: profiling.Profiled, folder: Path) -> None:
    """The answer for a person."""
    from npusmith.report.ladder import answer, reached

    made, verdict = done.profile, done.verdict
    assert made is not None
    screen.line(made.headline, "bold")
    screen.pair("chip", f"{made.chip} at {made.clock_mhz:g} MHz; no chip was used")
    if made.model_error:
        screen.pair("model", made.model_error)
    screen.pair("correct", f"{answer(verdict)}: {reached(verdict)}")
    screen.pair("work", f"{made.steps:,} steps, {made.cores} cores, imbalance {made.imbalance:.0%}")
    _show_roofs(screen, made)
    _show_tables(screen, made)
    _show_advice(screen, made)
    if made.hinges:
        hinges = ", ".join(f"{item.name} {item.share:+.2f} %" for item in made.hinges)
        screen.line()
        screen.pair("hinges on", f"{hinges} for each percent of that constant")
    for finding in verdict.findings[:5]:
        if finding.level.value == "error":
            screen.line(finding.render(), "red")
    for note in made.notes:
        screen.line(f"  note: {note}", "yellow")
    screen.line()
    screen.pair("report", str(folder / "report.html"))
    if done.trace is not None:
        screen.pair("trace", f"{done.trace.path} (ui.perfetto.dev, chrome://tracing)")


def _show_roofs(screen: Screen, made: Profile) -> None:
    from npusmith.report.svg import short

    if made.roof is not None:
        roof = made.roof
        screen.pair(
            "roofs",
            f"memory {short(roof.memory_us)} us ({roof.memory_share:.0%} reached; "
            f"{short(roof.memory_l2_us)} us when L2 holds what fits), compute "
            f"{short(roof.compute_us)} us ({roof.compute_share:.0%} reached): {roof.words}",
        )
        screen.pair("T_h", f"{short(roof.hardware_us)} us, hardware time by the rule of CANN-bench")
    if made.eager is not None:
        eager = made.eager
        screen.pair(
            "eager",
            f"{eager.us:.2f} us ({eager.low_us:.2f} to {eager.high_us:.2f}), an estimate; "
            f"eager / this = {eager.ratio:.2f} ({eager.low_ratio:.2f} to {eager.high_ratio:.2f})",
        )
        bases = sorted({str(op["basis"]) for op in eager.ops})
        screen.pair("", f"{len(eager.ops)} ops, each {' or '.join(bases)}; see profile.json")
        screen.pair("", eager.rests)


def _show_tables(screen: Screen, made: Profile) -> None:
    screen.line()
    rows: list[tuple[str, ...]] = [
        (
            row.unit,
            f"{row.busy:.1%}",
            f"{row.steps:,}",
            ", ".join(f"{reason} {part:.1%}" for reason, part in list(row.waits.items())[:4]),
        )
        for row in made.pipes
    ]
    screen.table(("pipe", "busy", "steps", "without work, by reason"), rows, most=3)
    screen.line()
    moves: list[tuple[str, ...]] = [
        (
            row.path,
            f"{row.bytes:,}",
            f"{row.transfers:,}",
            "-" if row.hit is None else f"{row.hit:.0%}",
            f"{row.gbps:.1f}",
        )
        for row in made.paths
    ]
    screen.table(("path", "bytes", "copies", "L2 hits", "GB/s"), moves, most=4)
    screen.line()
    lines: list[tuple[str, ...]] = [
        (f"{Path(row.file).name}:{row.line}", row.unit, f"{row.us:.2f}", f"{row.waited_us:.2f}")
        for row in made.lines[:5]
    ]
    screen.table(("line", "pipe", "us", "us waited before"), lines, most=3)


def _show_advice(screen: Screen, made: Profile) -> None:
    screen.line()
    if not made.advice:
        screen.line("nothing stands out that would be worth changing")
    for at, item in enumerate(made.advice, 1):
        name = f"{item.rule} ({item.item})" if item.item else item.rule
        screen.line(f"{at}. {name}: {item.number}; at most {item.gain:.0%} of the time", "cyan")
        screen.line(f"   try: {item.hint}")
        if item.places:
            screen.line(f"   at: {', '.join(item.places)}")
        if item.tried:
            screen.line(f"   {item.tried}")
        screen.line(f"   source: {item.source}", "dim")
