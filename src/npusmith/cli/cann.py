"""`npusmith build` and `npusmith device`: with the CANN and the NPU of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npusmith.cli.exits import Exit
from npusmith.cli.option_groups import expand_groups
from npusmith.cli.options import Json, JudgedOptions
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
    The script runs as it is, outside of the sandbox: build only what you trust.
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


@expand_groups
def device(
    project: Project,
    *,
    task: Annotated[Path, typer.Option("--task", metavar="TASK", help="The task it must solve.")],
    judged: JudgedOptions,
    npu: Annotated[int, typer.Option("--npu", metavar="N", min=0, help="Which NPU.")] = 0,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Also run what is wrong on the twin; it can hang the device."
        ),
    ] = False,
    calibrate: Annotated[
        Path | None,
        typer.Option(
            "--calibrate",
            metavar="FILE",
            help="Append what was measured to this CSV, in the columns of the calibration.",
        ),
    ] = None,
    json: Json = False,
) -> Job:
    """Judge a project of npusmith's on the twin, then build it and judge it on this machine's NPU.

    The same sets of inputs, the same rule. The operator is installed below the project's build_out
    and called through the project's PyTorch binding; msprof times the first set of inputs. Its
    scripts and its kernel run as they are, outside of the sandbox.
    """
    row = judged.row

    def job(steps: Steps) -> Reply:
        from npusmith.cann.device import DeviceOptions, find_machine, measure
        from npusmith.cli.verdict import verdict_reply

        machine = find_machine(npu)
        verdict = measure(
            project,
            task,
            row,
            judged.tolerance,
            steps,
            machine,
            options=DeviceOptions(seed=judged.seed, anyway=anyway, calibrate=calibrate),
        )
        return verdict_reply(verdict)

    return job


COMMANDS = (build, device)
