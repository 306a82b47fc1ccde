"""The options that several commands share, each written once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npusmith.cli.option_groups import panel
from npusmith.target.chips import CHIPS, DEFAULT_CHIP, find_chip

if TYPE_CHECKING:
    from npusmith.target.chips import Chip
    from npusmith.task.program import Around
    from npusmith.twin.options import BuildOptions


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
Timed = Annotated[
    bool,
    typer.Option(
        "--time",
        help="Also estimate how long the first set of inputs would take on the chip; "
        "`npusmith profile` says more.",
    ),
]
Attrs = Annotated[
    list[str] | None,
    typer.Option(
        "--attr", metavar="NAME=VALUE",
        help="Value of an attribute of the operator, as JSON or plain text; may be repeated.",
    ),
]  # fmt: skip
Workers = Annotated[
    int,
    typer.Option(
        "--workers", "--jobs", min=0, help="Units of work at a time; 0: one for each CPU."
    ),
]
_to_build, _of_program = panel("Building"), panel("Programs with a main function")
_to_write = panel("Writer plan")
_SEARCH = 16  # as plan.search.DEFAULT, which is too heavy to import for a help text


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedOptions:
    """For which chip, by which rule, on which draw."""

    chip: ChipName = DEFAULT_CHIP
    tolerance: ToleranceName = "default"
    seed: Seed = 0

    @property
    def row(self) -> Chip:
        """The chip's description. Raises chip-unknown and chip-file."""
        return find_chip(self.chip)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderChoices:
    """Headers and macros of a project's sources."""

    include: Annotated[
        list[Path] | None,
        _to_build(
            ("--include", "-I"),
            "A folder of headers, searched before those that the project's CMake names; may be "
            "repeated.",
            metavar="FOLDER",
        ),
    ] = None
    define: Annotated[
        list[str] | None,
        _to_build(
            ("--define", "-D"),
            "A macro for host and kernel, and for a program a variable of the CMakeLists.txt "
            "beside it; may be repeated.",
            metavar="NAME=VALUE",
        ),
    ] = None

    def read(self, debug: bool = False) -> BuildOptions:
        """As the twin takes them; `debug`: for gdb."""
        from npusmith.twin.options import BuildOptions

        return BuildOptions("", tuple(self.include or ()), tuple(self.define or ()), debug)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildChoices(HeaderChoices):
    """How a project's sources are compiled."""

    op: Annotated[
        str,
        _to_build(
            "--op",
            "Which operator of a project or library with several: its type, or its name in snake "
            "case.",
            metavar="NAME",
        ),
    ] = ""

    def read(self, debug: bool = False) -> BuildOptions:
        """The same, with the operator."""
        return replace(HeaderChoices.read(self, debug), op=self.op)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBuild(BuildChoices):
    """How they are compiled to be run, barriers included."""

    auto_sync: Annotated[
        bool | None,
        _to_build(
            "--auto-sync/--no-auto-sync",
            "Whether the compiler adds barriers by itself (--cce-auto-sync); default: what the "
            "project's CMake files say, which is yes if they say nothing.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOptions:
    """What a program with a main function is given, and the commands around it."""

    prepare: Annotated[
        list[str] | None,
        _of_program(
            "--prepare",
            "Run this before a program, in the copy of its folder and in the sandbox, e.g. "
            "'python3 scripts/gen_data.py'; may be repeated.",
            metavar="COMMAND",
        ),
    ] = None
    verify: Annotated[
        list[str] | None,
        _of_program(
            "--verify",
            "Run this after a program, likewise; its values count as right when this ends with 0 "
            'and prints of no failure. Without it the verdict is "ran"; may be repeated.',
            metavar="COMMAND",
        ),
    ] = None
    arg: Annotated[
        list[str] | None,
        _of_program(
            "--arg",
            "An argument of a program's main function; may be repeated.",
            metavar="TEXT",
        ),
    ] = None

    def read(self) -> Around:
        """As the judge takes them."""
        from npusmith.task.program import Around

        return Around(tuple(self.prepare or ()), tuple(self.verify or ()), tuple(self.arg or ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The one policy of search: how many schedules the deterministic writer tries.

    `generate` and `bench` take the same options, and records say how many were tried of how many.
    """

    search: Annotated[
        int | None,
        _to_write(
            "--search",
            "Schedules of the kernel to try on the timing model, which says how long each would "
            f"take; the best is kept. Default: {_SEARCH}. 0 is --no-search.",
            metavar="N", min=0, max=1000,
        ),
    ] = None  # fmt: skip
    no_search: Annotated[
        bool, _to_write("--no-search", "Keep the schedule that the writer chose at once.")
    ] = False

    def schedules(self) -> int:
        """How many are tried; 0: none."""
        asked = _SEARCH if self.search is None else self.search
        return 0 if self.no_search else asked


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
