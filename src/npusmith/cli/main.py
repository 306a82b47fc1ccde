"""Entry point: parse, do the job, print. Every way out of the program is in this file.

stdout carries the answer (with --json one document, whatever happens), stderr carries progress. The
exit code is one of cli/exits.py.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from inspect import cleandoc
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TextIO

import typer
from typer.main import get_command

from npusmith.cli import agent, bench, cann, commands, conformance, knowledge, train, train_stages
from npusmith.cli.exits import EXITS, Exit
from npusmith.cli.profile import profile
from npusmith.cli.reply import Job, Reply, failure
from npusmith.cli.settings import Settings, read_settings
from npusmith.errors import CODES, NpusmithError
from npusmith.store.refusal import refusal
from npusmith.version import __version__

_UsageError: Any = typer.BadParameter.__bases__[0]  # typer gives it no name of its own
_SILENT = {"-h", "--help", "--version"}  # these answer whatever stands in files
# What to do with a file that was named without a command.
_MEANT = {".py": "generate", ".asc": "run", ".cpp": "run", ".json": "run"}
_EPILOG = "Exit codes: " + "; ".join(f"{int(row.exit)} = {row.meaning}" for row in EXITS) + "."


def build() -> typer.Typer:
    """The command table."""
    app = typer.Typer(
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=_EPILOG,
        help="From a PyTorch module to a verified Ascend C operator, on any machine.",
    )
    app.callback()(_top)
    for panel, row in (
        ("Operators", (*commands.OPERATORS, profile)),
        ("Benchmarks", (bench.bench, bench.report)),
        ("On an NPU", cann.COMMANDS),
        ("Models and agents", (*agent.COMMANDS, train.judge_server)),
        ("npusmith itself", commands.ITSELF),
    ):
        for command in row:
            app.command(help=_help(command), epilog=_EPILOG, rich_help_panel=panel)(command)
    suites = typer.Typer(
        no_args_is_help=True, rich_markup_mode="rich", help=_help(conformance), epilog=_EPILOG
    )
    for suite in conformance.SUITES:
        suites.command(help=_help(suite), epilog=_EPILOG)(suite)
    suites.callback()(_suites)  # a group, also with one suite in it
    app.add_typer(suites, name="conformance", rich_help_panel="Benchmarks")
    items = typer.Typer(
        no_args_is_help=True, rich_markup_mode="rich", help=_help(knowledge), epilog=_EPILOG
    )
    for name, command in knowledge.COMMANDS.items():
        items.command(name, help=_help(command), epilog=_EPILOG)(command)
    app.add_typer(items, name="knowledge", rich_help_panel="Models and agents")
    stages = typer.Typer(
        no_args_is_help=True, rich_markup_mode="rich", help=_help(train), epilog=_EPILOG
    )
    for name, command in {**train.COMMANDS, **train_stages.COMMANDS}.items():
        stages.command(name, help=_help(command), epilog=_EPILOG)(command)
    stages.callback()(_stages)  # a group, also with one command in it
    app.add_typer(stages, name="train", rich_help_panel="Models and agents")
    return app


def _help(documented: object) -> str:
    """Its docstring with a line for each paragraph: help breaks lines by itself."""
    paragraphs = cleandoc(documented.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def main() -> None:
    """The console script."""
    signal.signal(signal.SIGTERM, _stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None when the caller closed it
            stream.reconfigure(errors="backslashreplace")
    code = call(sys.argv[1:])
    _flush(sys.stdout)
    _flush(sys.stderr)
    sys.exit(int(code))


def call(args: Sequence[str]) -> Exit:
    """Runs one command line to its end and gives its exit code."""
    as_json = "--json" in args and not {"-h", "--help"} & set(args)
    answer = _claim_stdout() if as_json else sys.stdout
    try:
        job, applied = _parse(args)
        if not callable(job):  # help, version or completion is printed; Ctrl-C gives 130
            return Exit(job or 0)
        reply = _do(job, applied)
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help is printed
            return Exit.USAGE
        reply = _usage(error, args)
    except BaseException as error:
        reply = _caught(error)
    try:
        code = _print(reply, answer, as_json)
        return _watch(job, applied, reply.watched) if reply.watched else code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _watch(job: Job, applied: Sequence[str], paths: Sequence[Path]) -> Exit:
    """Do the job again each time that a file has changed, until Ctrl-C."""
    from npusmith.cli.watching import state, wait_for_change

    while True:
        before = state(paths)
        sys.stderr.write("waiting for a change; Ctrl-C ends this\n")
        sys.stderr.flush()
        wait_for_change(paths, before)
        try:
            reply = _do(job, applied)
        except NpusmithError as error:
            reply = _caught(error)
        _print(reply, sys.stdout, as_json=False)


def _parse(args: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """The job, or a code where there is nothing left to do; and the settings that apply to it."""
    command = get_command(build())
    settings = Settings({})
    if not _SILENT & set(args) and "_NPUSMITH_COMPLETE" not in os.environ:
        settings = read_settings(command, args, Path.cwd())
    try:
        job = command.main(
            list(args), "npusmith", standalone_mode=False, default_map=settings.defaults
        )
    except SystemExit as end:  # completion, and its installation
        return end.code, ()
    return job, settings.applied


def _do(job: Job, applied: Sequence[str]) -> Reply:
    from npusmith.cli.screen import Screen
    from npusmith.cli.steps import Steps

    with Steps(Screen(_open(sys.stderr))) as steps:
        if applied:
            steps.step("settings", ", ".join(applied))
        return job(steps)


def _caught(error: BaseException) -> Reply:
    """Turns what a job raised into a reply; a defect of ours shows its traceback."""
    if isinstance(error, NpusmithError):
        return failure(error.record(), error.render())
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return _failure("interrupted", "stopped before the end")
    if isinstance(error, OSError) and (code := refusal(error)):
        return _failure(code, str(error))
    from npusmith.report.text import plain

    sys.stderr.write(plain("".join(traceback.format_exception(error))))
    return _failure("internal", f"{type(error).__name__}: {error}")


def _usage(error: Any, args: Sequence[str]) -> Reply:
    """The parser's words, and a hint: the command that was meant, or the help of this one."""
    called = error.ctx.command_path if error.ctx is not None else "npusmith"
    hint = f"{called} --help"
    if called == "npusmith" and args and (meant := _MEANT.get(Path(args[0]).suffix)):
        hint = f"npusmith {meant} {args[0][:80]}"
    return _failure("usage", error.format_message().rstrip("."), hint)


def _failure(code: str, message: str, hint: str = "") -> Reply:
    assert code in CODES
    known = NpusmithError(code, message, hint=hint)
    return failure(known.record(), known.render())


def _print(reply: Reply, answer: TextIO | None, as_json: bool) -> Exit:
    """Answers go to stdout; an error for a person goes to stderr."""
    from npusmith.cli.screen import Screen, drop
    from npusmith.store.record import to_json

    try:
        if as_json:
            _open(answer).write(to_json(dict(reply.data)) + "\n")
        else:
            stream = sys.stderr if reply.error else answer
            reply.show(Screen(_open(stream)))
        _open(answer).flush()
    except BrokenPipeError:
        drop(_open(answer).fileno())
    except OSError as error:  # a full disk behind stdout: nobody has the answer
        drop(_open(answer).fileno())
        Screen(_open(sys.stderr)).line(_failure(refusal(error) or "internal", str(error)).error)
        return Exit.ENVIRONMENT
    return reply.exit


def _claim_stdout() -> TextIO | None:
    """A private copy of stdout; what anything else prints goes to stderr from here on."""
    if sys.stdout is None:
        return None
    sys.stdout.flush()
    try:
        private = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        os.dup2(_open(sys.stderr).fileno(), sys.stdout.fileno())
    except OSError:  # stdout or stderr is no real file: nothing else can write to it either
        return sys.stdout
    return private


def _open(stream: TextIO | None) -> TextIO:
    """The stream, or nowhere when the caller closed it."""
    return stream if stream is not None else open(os.devnull, "w")  # noqa: PTH123


def _flush(stream: TextIO | None) -> None:
    from npusmith.cli.screen import drop

    if stream is None:
        return
    try:
        stream.flush()
    except BrokenPipeError:
        drop(stream.fileno())


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"npusmith {__version__}")
        raise typer.Exit


def _suites() -> None:
    """Run other people's operators against their own references."""


def _stages() -> None:
    """Train on what execution has verified."""


def _top(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass
