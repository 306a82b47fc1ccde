"""The options that several commands share, each written once."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from npusmith.target.chips import CHIPS


class Writer(str, Enum):
    """Who proposes the kernel."""

    PLAN = "plan"


ChipName = Annotated[
    str, typer.Option("--chip", metavar="NAME", help=f"Target chip: {', '.join(CHIPS)}.")
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
    typer.Argument(metavar="TASK", help="A task file: Model, get_inputs and get_init_inputs."),
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
