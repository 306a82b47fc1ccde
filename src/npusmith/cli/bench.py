"""`npusmith bench` and `npusmith report`: run a suite, and show what its records say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.option_groups import expand_groups, panel
from npusmith.cli.options import ChipName, Json, SearchOptions, Seed, Workers
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps
from npusmith.target.chips import DEFAULT_CHIP, find_chip, lasting_name

if TYPE_CHECKING:
    from npusmith.bench.archive import Run
    from npusmith.bench.compare import Comparison
    from npusmith.bench.metrics import Group, Summary
    from npusmith.bench.plan import Plan
    from npusmith.bench.protocols import Beside, Protocol
    from npusmith.bench.runner import Progress

_HEADS = ("tasks", "n", "compiled", "suite", "strict", "correct", "trusted", ">1x", ">=1x")
_MOST = 20  # lines of a list
_FIGURES = (
    "compile@",
    "pass@",
    "strict@",
    "trusted@",
    "fast_",
    "geomean",
    "best@",
    "own_",
    "score",
)


_to_select, _to_limit, _of_suite = panel("Selection"), panel("Limits"), panel("Suite")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionOptions:
    """Which tasks of a suite."""

    categories: Annotated[
        str, _to_select("--categories", "Only these categories.", metavar="A,B")
    ] = ""
    levels: Annotated[str, _to_select("--levels", "Only these levels.", metavar="1,2")] = ""
    tasks: Annotated[
        str,
        _to_select(
            "--tasks", "Only tasks of these names, or patterns such as *pool*.", metavar="A,B"
        ),
    ] = ""
    listed: Annotated[
        bool, _to_select("--list", "Name the tasks that are selected; run nothing.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """How one unit is judged, and how much it may take."""

    chip: ChipName = DEFAULT_CHIP
    seed: Seed = 1024

    seconds: Annotated[
        float,
        _to_limit(
            "--seconds",
            "Time limit of a candidate's run; a reference may take four times as long.",
            min=1,
        ),
    ] = 180
    memory: Annotated[float, _to_limit("--memory-mb", "Memory limit of one unit.", min=64)] = 8192
    most: Annotated[
        float,
        _to_limit("--max-input-mb", "Tasks with larger inputs are not run, and listed.", min=0),
    ] = 256
    inputs: Annotated[int, _to_limit("--inputs", "Sets of inputs of one judgement.", min=1)] = 5
    timing: Annotated[
        bool, _to_limit("--time/--no-time", "Estimate the time of candidates that are right.")
    ] = True
    sample: Annotated[
        int,
        _to_limit(
            "--sample", "Steps of a core that a time is made from.", min=1000, metavar="STEPS"
        ),
    ] = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSettings:
    """What a suite is asked for besides its tasks."""

    shapes: Annotated[
        str,
        _of_suite(
            "--shapes",
            "MultiKernelBench: scaled (default), or original: those before 2026-01-22.",
            metavar="WHICH",
        ),
    ] = ""
    full: Annotated[
        bool,
        _of_suite(
            "--full",
            "MultiKernelBench: the checkout's own shapes, where the inputs take at most an eighth "
            "of --memory-mb.",
        ),
    ] = False
    option: Annotated[
        list[str] | None,
        _of_suite("--option", "An option of the suite; repeatable.", metavar="NAME=VALUE"),
    ] = None

    def read(self) -> dict[str, str]:
        """By name. Raises BadParameter."""
        if self.shapes and self.full:
            raise typer.BadParameter("--full and --shapes ask for different shapes")
        options = _options(self.option or [])
        if self.shapes or self.full:
            options["shapes"] = "full" if self.full else self.shapes
        return options


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOptions(SearchOptions):
    """Who writes, and how often."""

    writer: Annotated[
        str,
        typer.Option(
            "--writer",
            metavar="W",
            help="plan (plan:N is plan with --search N; plan:0 with --no-search), "
            "folder:PATH with responses, answers:ROOT, agent:NAME=VALUE,... (docs/agent.md), "
            "or lm:model=FOLDER,... (docs/training.md).",
        ),
    ] = "plan"
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            metavar="NAME",
            help="As a paper measured: ascendkernelgen, hawk or ascendcraft (docs/bench.md); its "
            "figures stand beside the run's.",
        ),
    ] = ""
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            min=1,
            help="Candidates to ask for, for each task; default: 1, or the protocol's.",
        ),
    ] = None
    trials: Annotated[
        int, typer.Option("--trials", min=1, help="Judgements of each candidate, on other seeds.")
    ] = 1

    @property
    def spec(self) -> str:
        """The writer as the run's plan names it."""
        return f"plan:{self.schedules()}" if self.writer == "plan" else self.writer


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Where a run happens, and where it is kept."""

    workers: Workers = 0
    ray: Annotated[
        str,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Run on a Ray cluster: local, auto or an address. Needs the extra ray.",
        ),
    ] = ""
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="RUN", help="Folder of the run; default: out/SUITE-WRITER."),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run: keep its records, add what misses.")
    ] = False


@expand_groups
def bench(
    *,
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE",
            help="multikernelbench, npukernelbench, kernelbench, cann-bench or folder.",
        ),
    ],
    root: Annotated[
        Path, typer.Option("--root", metavar="CHECKOUT", help="The suite's checkout, or folder.")
    ],
    asked: AskedOptions,
    select: SelectionOptions,
    engine: EngineOptions,
    limit: LimitOptions,
    shaped: SuiteSettings,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the figures here, and print them."),
    ] = None,
) -> Job:
    """Have a writer solve a benchmark, judge every candidate, and keep every record.

    A run that was stopped or killed goes on with --resume. Two runners may share a run. Skipped
    tasks are listed, never dropped. The run ends with code 0 whatever the candidates did.
    """
    find_chip(limit.chip)  # before anything is opened
    options = shaped.read()
    most = max(limit.most, limit.memory / 8) if shaped.full else limit.most

    def job(steps: Steps) -> Reply:
        from npusmith.bench.archive import open_run
        from npusmith.bench.model import Limits
        from npusmith.bench.plan import Plan, folder_of
        from npusmith.bench.pool import Engine, LocalPool
        from npusmith.bench.protocols import beside, find_protocol, with_terms
        from npusmith.bench.raypool import RayPool
        from npusmith.bench.runner import run
        from npusmith.open_writer import OPEN_WRITER

        paper = find_protocol(asked.protocol, suite) if asked.protocol else None
        writer = with_terms(paper, asked.spec) if paper else asked.spec
        plan = Plan(
            suite=suite, root=root, options=options, writer=writer, writers=OPEN_WRITER,
            samples=asked.samples or (paper.samples if paper else 1), trials=asked.trials,
            categories=_names(select.categories) or (paper.categories if paper else ()),
            levels=_names(select.levels) or (paper.levels if paper else ()),
            names=_names(select.tasks),
            limits=Limits(
                seconds=limit.seconds, memory_mb=limit.memory, input_mb=most, trials=limit.inputs,
                seed=limit.seed, chip=lasting_name(limit.chip),
                timing=limit.timing, sample=limit.sample,
            ),
        )  # fmt: skip
        if select.listed:
            reply = _list(plan)
            if json is not None:
                _keep(json, reply.data)
            return reply
        folder = engine.out or folder_of(plan)
        workers, ray = engine.workers, engine.ray
        pool: Engine = RayPool(ray, workers) if ray else LocalPool(workers)
        steps.step("bench", f"{suite} by {writer}, {pool.name}, {folder}")
        run(plan, folder, pool, lambda now: steps.tell(progress_line(now)), resume=engine.resume)
        steps.step("figures", str(folder))
        with open_run(folder) as done:
            summary = done.finish()
            data = done.document(summary)
            skipped = [(item.name, item.skipped) for item in done.items() if item.skipped]
        rows = beside(paper, summary) if paper else []
        if paper:
            data["protocol"] = {
                "name": paper.name, "paper": paper.paper, "differs": list(paper.differs),
                "published": [asdict(row) for row in rows],
            }  # fmt: skip
        if json is not None:
            _keep(json, data)

        def tell(screen: Screen) -> None:
            _show(screen, folder, data, summary, skipped)
            if paper:
                _show_paper(screen, paper, rows)

        return Reply(Exit.PASS, data, tell)

    return job


_to_check, _to_export = panel("Checks"), panel("Files")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What a run is checked against."""

    compare: Annotated[bool, _to_check("--compare", "Compare two runs, task by task.")] = False
    audit: Annotated[
        bool,
        _to_check(
            "--audit",
            "Check the store and its keys, compute every figure again, judge a sample again.",
        ),
    ] = False
    rerun: Annotated[int, _to_check("--rerun", "Candidates that --audit judges again.", min=0)] = 5
    root: Annotated[
        Path | None,
        _to_check("--root", "The checkout, where it has moved.", metavar="CHECKOUT"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What is written of a run."""

    csv: Annotated[
        Path | None, _to_export("--csv", "Write the records as a table.", metavar="FILE")
    ] = None
    parquet: Annotated[
        Path | None,
        _to_export("--parquet", "The same as Parquet. Needs the extra parquet.", metavar="FILE"),
    ] = None
    html: Annotated[
        Path | None, _to_export("--html", "Write one self-contained page.", metavar="FILE")
    ] = None
    export: Annotated[
        Path | None,
        _to_export(
            "--export", "Write the best right kernel of each task as a project.", metavar="DIR"
        ),
    ] = None


@expand_groups
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    *,
    checked: AuditOptions,
    files: ExportOptions,
    json: Json = False,
) -> Job:
    """Show what the records of a run say; every figure is computed from them.

    Times are estimates of the twin, and rows without a time count as not measured.
    """
    if len(runs) != (2 if checked.compare else 1):
        raise typer.BadParameter("--compare takes two runs" if checked.compare else "give one run")

    def job(steps: Steps) -> Reply:
        from npusmith.bench.archive import open_run

        if checked.compare:
            return _compare(runs[0], runs[1])
        steps.step("read", str(runs[0]))
        with open_run(runs[0]) as run:
            if checked.audit:
                return _audit(run, checked.rerun, checked.root, steps)
            paths = {"csv": files.csv, "parquet": files.parquet, "html": files.html}
            written, summary = _write(run, paths, files.export, checked.root, steps)
            data = run.document(summary) | {"written": written}
            skipped = [(item.name, item.skipped) for item in run.items() if item.skipped]
        return Reply(Exit.PASS, data, lambda screen: _show(screen, runs[0], data, summary, skipped))

    return job


def _keep(file: Path, data: Mapping[str, object]) -> None:
    from npusmith.store.record import to_json

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(to_json(dict(data)) + "\n", encoding="utf-8")


def _list(plan: Plan) -> Reply:
    entries = list(plan.open_suite().chosen())
    rows = [{"name": item.name, "category": item.category, "level": item.level} for item in entries]

    def tell(screen: Screen) -> None:
        for item in entries:
            screen.line(item.name)
        groups = len({item.category for item in entries})
        screen.line(f"{len(entries)} tasks, {groups} categories", "dim")

    return Reply(Exit.PASS, {"suite": plan.suite, "tasks": rows}, tell)


def _write(
    run: Run, files: Mapping[str, Path | None], export: Path | None, root: Path | None, steps: Steps
) -> tuple[dict[str, str], Summary]:
    """The files that were asked for, by kind, and the figures of the run."""
    from npusmith.bench import export as exports
    from npusmith.bench.metrics import Summary
    from npusmith.bench.report.page import write_page

    writers: dict[str, Callable[[Run, Path], object]] = {
        "csv": exports.write_csv, "parquet": exports.write_parquet, "html": write_page,
    }  # fmt: skip
    written: dict[str, str] = {}
    made: dict[str, object] = {}
    for name, path in files.items():
        if path is not None:
            steps.step(name, str(path))
            path.parent.mkdir(parents=True, exist_ok=True)
            made[name] = writers[name](run, path)
            written[name] = str(path)
    if export is not None:
        steps.step("export", str(export))
        exports.write_projects(run, export, root)
        written["export"] = str(export)
    summary = made.get("html")  # it has read every record already
    return written, summary if isinstance(summary, Summary) else run.summary()


def _audit(run: Run, rerun: int, root: Path | None, steps: Steps) -> Reply:
    from npusmith.bench.audit import audit

    found = audit(run, rerun, root, lambda what: steps.step("audit", what))

    def show(screen: Screen) -> None:
        screen.line("AUDIT PASSED" if not found.wrong else "AUDIT FAILED",
                    "bold red" if found.wrong else "bold green")  # fmt: skip
        screen.pair("records", f"{found.records}, each with the key of its content")
        screen.pair("figures", f"{found.figures} computed in two ways")
        screen.pair("again", f"{found.again} candidates judged again")
        for text in found.notes:
            screen.line(f"  note: {text}", "yellow")
        for text in found.wrong[:_MOST]:
            screen.line(f"  {text}", "red")
        if len(found.wrong) > _MOST:
            screen.line(f"  ... and {len(found.wrong) - _MOST} more; --json has all")

    return Reply(Exit.FAILED if found.wrong else Exit.PASS, found.model_dump(mode="json"), show)


def _compare(first: Path, second: Path) -> Reply:
    from npusmith.bench.archive import open_run
    from npusmith.bench.compare import compare

    with open_run(first) as ours, open_run(second) as theirs:
        found = compare(ours, theirs)
    return Reply(
        Exit.PASS, found.model_dump(mode="json"), lambda screen: _show_comparison(screen, found)
    )


def _show_comparison(screen: Screen, found: Comparison) -> None:
    for mark, side in (("first", found.first), ("second", found.second)):
        screen.pair(mark, f"{side['folder']}: {side['suite']} by {side['writer']}")
    screen.pair("tasks", f"{found.tasks} in both, {found.only_first} only in the first, "
                         f"{found.only_second} only in the second")  # fmt: skip
    for text in found.warnings:
        screen.line(f"  warning: {text}", "yellow")
    screen.line()
    rows: list[tuple[str, ...]] = [
        (
            part.name, _percent(part.first), _percent(part.second), _percent(part.change),
            _between(part.low, part.high), str(part.n), str(len(part.gained)), str(len(part.lost)),
        )
        for part in found.differences
    ]  # fmt: skip
    heads = ("samples", "first", "second", "change", "95 %", "n", "gained", "lost")
    screen.table(heads, rows, 4)
    speed = found.speed
    if speed.ratio is not None:
        screen.line()
        screen.line(
            f"  estimated speed where both are right: {speed.ratio:.2f}x "
            f"({speed.low:.2f} to {speed.high:.2f}), n = {speed.n}"
        )
    for part in found.differences:
        if part.name == "correct":
            for word, names in (("gained", part.gained), ("lost", part.lost)):
                for name in names[:_MOST]:
                    screen.line(f"  {word}: {name}", "green" if word == "gained" else "red")


def _show(
    screen: Screen,
    folder: Path,
    data: Mapping[str, object],
    summary: Summary,
    skipped: Sequence[tuple[str, str]],
) -> None:
    """The answer for a person: counts by group, figures with intervals, what was not measured."""
    every = summary.overall
    screen.line(f"{data['suite']} by {data['writer']}: {every.correct} of {every.n} measured tasks "
                "correct", "bold")  # fmt: skip
    screen.pair("run", str(folder))
    screen.pair("not run", f"{every.not_measured} of {every.tasks} tasks without a verdict")
    if data["units_left"]:
        screen.line(f"  not finished: {data['units_left']} of {data['units']} units left", "yellow")
    screen.pair("times", summary.basis)
    screen.line()
    rows = [("all", *_counts(every))]
    for kind, groups in (("level", summary.levels), ("", summary.categories),
                         ("type", summary.dtypes)):  # fmt: skip
        rows += [(f"{kind} {name}".strip(), *_counts(part)) for name, part in groups.items()]
    screen.table(("", *_HEADS), rows, 6)
    screen.line()
    screen.table(("figure", "value", "95 % interval", "n", "not measured"), _figures(every), 3)
    for word, count in every.true_shape.items():
        screen.line(f"  {count} tasks at their true shape, on memory with holes: {word}", "dim")
    for text, count in (
        (f"a do-nothing kernel passes the check of {every.weak} tasks", every.weak),
        (f"{every.cheating} tasks have a sample that computes outside the kernel", every.cheating),
        (f"{every.untimed} correct tasks have no time", every.untimed),
        (
            f"{every.few_rows} timed tasks have an eager time estimated from fewer than three "
            "published rows: left out of geomean",
            every.few_rows,
        ),
    ):
        if count:
            screen.line(f"  {text}", "yellow")
    if skipped:
        screen.line()
        screen.line(f"  {len(skipped)} tasks were not run:", "yellow")
        for name, why in skipped[:_MOST]:
            screen.line(f"    {name}: {why}"[:200], "dim")
        if len(skipped) > _MOST:
            screen.line(f"    ... and {len(skipped) - _MOST} more; --csv has all", "dim")


def _show_paper(screen: Screen, paper: Protocol, rows: Sequence[Beside]) -> None:
    screen.line()
    screen.line(f"beside {paper.paper}", "bold")
    heads = ("system", "tasks", "figure", "paper", "this run", "n")
    screen.table(
        heads,
        [
            (row.system, row.group or "all", row.figure, _percent(row.paper), _percent(row.run),
             str(row.n))
            for row in rows
        ],
        3,
    )  # fmt: skip
    for text in paper.differs:
        screen.line(f"  not as in the paper: {text}", "yellow")


def _counts(part: Group) -> tuple[str, ...]:
    numbers = (part.tasks, part.n, part.compiled, part.official, part.strict, part.correct,
               part.trusted)  # fmt: skip
    speeds = (part.fast["strict"]["1"], part.fast["at_least"]["1"])
    return (*map(str, numbers), *("-" if count is None else str(count) for count in speeds))


def _figures(part: Group) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, value in part.rates.items():
        if value.n and name.startswith(_FIGURES):
            form = _factor if name.startswith(("geomean", "best@", "own_geomean")) else _percent
            form = _points if name == "score" else form
            between = f"{form(value.low)} to {form(value.high)}"
            rows.append((name, form(value.value), between, str(value.n), str(value.not_measured)))
    return rows


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _between(low: float | None, high: float | None) -> str:
    return f"{_percent(low)} to {_percent(high)}"


def progress_line(now: Progress) -> str:
    """One line: how far, how fast, how long still."""
    total = f"{now.total}{'' if now.whole else '+'}"
    share = f" ({now.done / now.total:.0%})" if now.whole and now.total else ""
    text = f"{now.done} of {total}{share}, {now.passed} right here{_pace(now.rate)}"
    if now.left is not None and now.whole:
        hours, rest = divmod(int(now.left), 3600)
        text += f", {hours}:{rest // 60:02}:{rest % 60:02} left"
    return f"{text}  {now.last}"[:160]


def _pace(rate: float) -> str:
    """Units a second, or seconds a unit where they are long; nothing before the first has ended."""
    if rate <= 0:
        return ""
    return f", {rate:.1f} units/s" if rate >= 1 else f", {1 / rate:.0f} s a unit"


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _options(texts: Sequence[str]) -> dict[str, str]:
    values = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise typer.BadParameter(f"--option takes NAME=VALUE, not {text[:80]!r}")
        values[name] = value
    return values
