"""The options that several commands share, each written once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from npusmith.target.chips import CHIPS


class Writer(str, Enum):
    """Who proposes the kernel."""

    PLAN = "plan"
    AGENT = "agent"
    LM = "lm"


ChipName = Annotated[
    str,
    typer.Option(
        "--chip",
        metavar="NAME",
        autocompletion=lambda: list(CHIPS),
        help=f"Target chip: {', '.join(CHIPS)}; or a file of your own, NAME.toml (docs/chips.md).",
    ),
]
WriterName = Annotated[Writer, typer.Option("--writer", help="Who writes the kernel.")]
ToleranceName = Annotated[
    str,
    typer.Option(
        "--tolerance",
        metavar="NAME",
        help="Accuracy rule: strict, multikernelbench, npukernelbench or cann-bench; "
        "default means strict, which is all of them that apply.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=(1 << 31) - 1, help="Seed of the random trials.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")
]
TaskFile = Annotated[
    Path,
    typer.Argument(
        metavar="TASK",
        help="A task file: Model, get_inputs and get_init_inputs; FILE:CLASS where the model's "
        "class has another name.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="A warning fails the verdict like an error.")
]
AutoSync = Annotated[
    bool | None,
    typer.Option(
        "--auto-sync/--no-auto-sync",
        help="Whether the compiler adds barriers by itself (--cce-auto-sync); default: what the "
        "project's CMake files say, which is yes if they say nothing.",
    ),
]
OperatorName = Annotated[
    str,
    typer.Option(
        "--op",
        metavar="NAME",
        help="Which operator of a project or library with several: its type, or its name in snake "
        "case.",
    ),
]
Include = Annotated[
    list[Path] | None,
    typer.Option(
        "--include",
        "-I",
        metavar="FOLDER",
        help="A folder of headers, searched before those that the project's CMake names; may be "
        "repeated.",
    ),
]
Define = Annotated[
    list[str] | None,
    typer.Option(
        "--define",
        "-D",
        metavar="NAME=VALUE",
        help="A macro for host and kernel, and for a program a variable of the CMakeLists.txt "
        "beside it; may be repeated.",
    ),
]
Notes = Annotated[
    bool,
    typer.Option("--notes", help="Also report what costs time, and barriers that auto-sync adds."),
]
Shuffle = Annotated[
    int,
    typer.Option(
        "--shuffle", min=0, max=(1 << 31) - 1,
        help="Start the blocks in an order drawn from this seed; 0 is their own.",
    ),
]  # fmt: skip
Timed = Annotated[
    bool,
    typer.Option(
        "--time",
        help="Also estimate how long the first set of inputs would take on the chip; "
        "`npusmith profile` says more.",
    ),
]
Search = Annotated[
    int,
    typer.Option(
        "--search", metavar="N", min=1, max=1000,
        help="Schedules of the kernel to try on the timing model, which says how long each would "
        "take; the best is kept (writer plan).",
    ),
]  # fmt: skip
NoSearch = Annotated[
    bool, typer.Option("--no-search", help="Keep the schedule that the writer chose at once.")
]
Whole = Annotated[
    bool,
    typer.Option(
        "--whole",
        help="Refuse a module of which a part cannot be written; else PyTorch computes that part, "
        "between operators (writer plan).",
    ),
]
Backward = Annotated[
    bool,
    typer.Option(
        "--backward",
        help="Also write the operator of the module's gradients, into backward/, and both as a "
        "package that autograd can train, into training/ (writer plan).",
    ),
]
ScheduleFile = Annotated[
    Path | None,
    typer.Option(
        "--schedule", metavar="FILE",
        help="Write the kernel with this schedule instead of a search: a result.json of npusmith "
        "generate, or its part provenance.schedule (writer plan).",
    ),
]  # fmt: skip
Attrs = Annotated[
    list[str] | None,
    typer.Option(
        "--attr", metavar="NAME=VALUE",
        help="Value of an attribute of the operator, as JSON or plain text; may be repeated.",
    ),
]  # fmt: skip

Prepare = Annotated[
    list[str] | None,
    typer.Option(
        "--prepare", metavar="COMMAND",
        help="Run this before a program, in the copy of its folder and in the sandbox, e.g. "
        "'python3 scripts/gen_data.py'; may be repeated.",
    ),
]  # fmt: skip
Verify = Annotated[
    list[str] | None,
    typer.Option(
        "--verify", metavar="COMMAND",
        help="Run this after a program, likewise; its values count as right when this ends with 0 "
        "and prints of no failure. Without it the verdict is \"ran\"; may be repeated.",
    ),
]  # fmt: skip

Watched = Annotated[
    bool,
    typer.Option("--watch", help="Run again whenever a file of the project changes, until Ctrl-C."),
]
Gdb = Annotated[
    bool,
    typer.Option(
        "--gdb",
        help="Run the task's first random set of inputs, or the program, under gdb, which stops at "
        "each finding of level error and shows the line, its variables and what tensors hold.",
    ),
]
DebuggedCore = Annotated[
    int | None,
    typer.Option("--core", metavar="N", min=0, help="With --gdb: stop where block N begins, too."),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option(
        "--arg", metavar="TEXT", help="An argument of a program's main function; may be repeated."
    ),
]


def read_attrs(texts: Sequence[str]) -> dict[str, bool | int | float | str | list[float]]:
    """The values of --attr: `alpha=0.5`, `axes=[0,1]`, `keep=true`, `mode=plain`."""
    values: dict[str, bool | int | float | str | list[float]] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name.isidentifier() or not sign:
            raise typer.BadParameter(f"--attr takes NAME=VALUE, not {text[:80]!r}")
        if name in values:
            raise typer.BadParameter(f"--attr gives {name} twice")
        values[name] = _attr(value)
    return values


def _attr(text: str) -> bool | int | float | str | list[float]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, list) and all(isinstance(item, (bool, int, float)) for item in value):
        return value
    return value if isinstance(value, (bool, int, float, str)) else text
