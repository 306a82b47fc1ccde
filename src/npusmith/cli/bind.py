"""`npusmith bind`: a project's PyTorch binding, compiled for a machine without an NPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.option_groups import expand_groups
from npusmith.cli.options import ChipName, HeaderChoices
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps
from npusmith.target.chips import DEFAULT_CHIP, find_chip


@expand_groups
def bind(
    *,
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="An Ascend C project folder.")],
    source: Annotated[
        Path,
        typer.Option(
            "--pybind", metavar="FILE", help="The binding: an aclnn call, PYBIND11_MODULE."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the module and its note go.")
    ],
    module: Annotated[
        str,
        typer.Option(
            "--module", metavar="NAME", help="Name of the module, as PYBIND11_MODULE has it."
        ),
    ] = "kernel_gen_ops",
    chip: ChipName = DEFAULT_CHIP,
    sources: HeaderChoices,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")
    ] = False,
) -> Job:
    """Compile a PyTorch binding so that its operator runs on the twin.

    With the output folder on PYTHONPATH and torch imported, the module can be imported and called
    in plain Python. A binding that computes with PyTorch itself is reported.
    """
    row = find_chip(chip)
    if not module.isidentifier():
        raise typer.BadParameter("--module takes a Python name")

    def job(steps: Steps) -> Reply:
        from npusmith.twin.bind import build_binding
        from npusmith.twin.cheating import find_cheats
        from npusmith.twin.project import read_projects, read_text

        options = sources.read()
        found = read_projects(project, options)
        cheats = find_cheats(read_text(source), source)
        steps.step("compile", str(source))
        library = build_binding([source], found, out, module, chip=row, options=options)

        def show(screen: Screen) -> None:
            screen.line(str(library))
            for finding in cheats:
                screen.line(finding.render())

        data = {
            "module": str(library),
            "operator": ", ".join(found),
            "project": str(project.resolve()),
            "findings": [finding.model_dump(mode="json") for finding in cheats],
        }
        return Reply(Exit.FAILED if cheats else Exit.PASS, data, show)

    return job
