"""What a command gives back to main: an exit code, a document for --json, a text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from npusmith.cli.exits import Exit, exit_of

if TYPE_CHECKING:
    from npusmith.cli.screen import Screen
    from npusmith.cli.steps import Steps


@dataclass(frozen=True, slots=True)
class Reply:
    """`data` is the one document of --json; `show` prints the same for a person.

    `watched`: when one of these files or folders changes, the command runs again.
    """

    exit: Exit
    data: Mapping[str, object]
    show: Callable[[Screen], None]
    error: str = ""  # what failed, in words; a person reads it on stderr
    watched: tuple[Path, ...] = ()


# A command only parses its arguments; the job it returns does the work.
Job = Callable[["Steps"], Reply]


def beside(first: Reply, name: str, second: Reply) -> Reply:
    """Both answers; the second's document is under `name`, and what fails in it fails the job."""

    def show(screen: Screen) -> None:
        first.show(screen)
        screen.line()
        screen.line(name.upper(), "bold")
        second.show(screen)

    worse = second if second.exit != Exit.PASS else first
    return Reply(worse.exit, {**first.data, name: second.data}, show, worse.error)


def failure(record: Mapping[str, object], text: str) -> Reply:
    """The reply to an error: the same keys as a verdict, so that readers need one shape."""
    data = {
        "verdict": "error",
        "rung": "none",
        "compiled": False,
        "correct": False,
        "trials": [],
        "max_abs_error": None,
        "findings": [],
        "project": "",
        "error": dict(record),
    }
    return Reply(exit_of(str(record["code"])), data, lambda screen: screen.line(text), text)
