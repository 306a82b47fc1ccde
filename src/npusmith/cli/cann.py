"""`npusmith build` and `npusmith device`: with the CANN and the NPU of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.options import Json
from npusmith.cli.reply import Job, Reply
from npusmith.cli.screen import Screen
from npusmith.cli.steps import Steps

Project = Annotated[
    Path, typer.Argument(metavar="PROJECT", help="An operator project folder with a build.sh.")
]


def build(project: Project, json: Json = False) -> Job:
    """Build a project's operator package with the installed CANN.

    Calls the project's build.sh, which uses CANN's CMake package or msopgen, whatever is there.
    What the compilers print goes to build.log in the project; its errors are named as elsewhere.
    """

    def job(steps: Steps) -> Reply:
        from npusmith.cann.build import build_package
        from npusmith.cann.toolkit import ROUTES, find_toolkit

        toolkit = find_toolkit()
        steps.step("build", f"{project}, with {toolkit.home} {ROUTES[toolkit.route]}")
        package = build_package(project, toolkit)

        def show(screen: Screen) -> None:
            screen.line(str(package.path))
            screen.pair("CANN", f"{toolkit.home}, {ROUTES[toolkit.route]}")
            screen.pair("log", str(package.log))

        data = {
            "package": str(package.path),
            "toolkit": str(toolkit.home),
            "route": toolkit.route,
            "log": str(package.log),
            "seconds": package.seconds,
        }
        return Reply(Exit.PASS, data, show)

    return job


COMMANDS = (build,)
