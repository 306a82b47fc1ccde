"""Exit codes: one table, read by the commands, by the help text and by docs/cli.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from npusmith.errors import CODES


class Exit(IntEnum):
    """What the process returns to the shell."""

    PASS = 0
    FAILED = 1
    USAGE = 2
    TASK = 3
    WRITER = 4
    ENVIRONMENT = 5
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class ExitRow:
    exit: Exit
    meaning: str


EXITS: tuple[ExitRow, ...] = (
    ExitRow(Exit.PASS, "the candidate passed every check that ran"),
    ExitRow(Exit.FAILED, "the candidate failed: not legal, not compiled, wrong values, findings"),
    ExitRow(Exit.USAGE, "the command line could not be understood"),
    ExitRow(Exit.TASK, "the task, or a file that was named, is unusable"),
    ExitRow(Exit.WRITER, "the writer cannot write this task"),
    ExitRow(Exit.ENVIRONMENT, "no compiler, full disk, or a defect of npusmith itself"),
    ExitRow(Exit.INTERRUPTED, "interrupted by Ctrl-C or asked to end"),
)

# Which side an area of the error table is about; CODE_EXITS holds the exceptions.
AREA_EXITS: dict[str, Exit] = {
    "lang": Exit.FAILED,
    "lower": Exit.FAILED,
    "twin": Exit.FAILED,
    "task": Exit.TASK,
    "sandbox": Exit.TASK,
    "plan": Exit.WRITER,
    "store": Exit.TASK,
    "train": Exit.TASK,
    "knowledge": Exit.TASK,
    "house": Exit.ENVIRONMENT,
    "agent": Exit.ENVIRONMENT,
    "cann": Exit.ENVIRONMENT,
}

CODE_EXITS: dict[str, Exit] = {
    "usage": Exit.USAGE,
    "settings-file": Exit.USAGE,
    "chip-unknown": Exit.USAGE,
    "chip-file": Exit.USAGE,
    "tolerance-unknown": Exit.USAGE,
    "folder-foreign": Exit.USAGE,
    "timing-log": Exit.FAILED,
    "binding-unknown": Exit.TASK,
    "task-no-trials": Exit.TASK,
    "project-missing": Exit.TASK,
    "compiler-missing": Exit.ENVIRONMENT,
    "cann-script": Exit.TASK,
    "cann-build": Exit.FAILED,
    "device-run": Exit.FAILED,
    "toolchain-failed": Exit.ENVIRONMENT,
    "run-failed": Exit.ENVIRONMENT,
    "task-disk": Exit.ENVIRONMENT,
    "task-prepare": Exit.ENVIRONMENT,
    "torch-missing": Exit.ENVIRONMENT,
    "sandbox-program": Exit.ENVIRONMENT,
    "sandbox-folder": Exit.ENVIRONMENT,
    "sandbox-start": Exit.ENVIRONMENT,
    "run-exists": Exit.USAGE,
    "run-changed": Exit.USAGE,
    "run-empty": Exit.USAGE,
    "store-busy": Exit.ENVIRONMENT,
    "extra-missing": Exit.ENVIRONMENT,
    "ray-failed": Exit.ENVIRONMENT,
    "file-missing": Exit.TASK,
    "file-denied": Exit.TASK,
    "file-unusable": Exit.TASK,
    "file-kind": Exit.TASK,
    "model-spec": Exit.USAGE,
    "budget-zero": Exit.USAGE,
    "prices-missing": Exit.USAGE,
    "script-file": Exit.TASK,
    "replay-missing": Exit.TASK,
    "budget-spent": Exit.WRITER,
    "agent-none": Exit.WRITER,
    **dict.fromkeys(
        (
            "reply-no-code",
            "reply-language",
            "reply-part",
            "reply-cut",
            "reply-same",
            "reply-choice",
            "agent-ports",
            "agent-values",
            "agent-endless",
        ),
        Exit.FAILED,
    ),
    "interrupted": Exit.INTERRUPTED,
}


def exit_of(code: str) -> Exit:
    """The exit code that an error of CODES ends with."""
    return CODE_EXITS.get(code) or AREA_EXITS[CODES[code].area]


def exit_for(verdict: str, error: dict[str, object] | None) -> Exit:
    """The exit code of a Verdict: its error decides when there is one."""
    if error is not None:
        return exit_of(str(error["code"]))
    return Exit.PASS if verdict in ("pass", "ran") else Exit.FAILED
