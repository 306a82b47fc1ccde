"""The judge for programs: sources with a main function, run in a copy of their folder.

What such a program reads and writes by relative paths is in that copy. Commands of the caller may
make its data before and check its results after; without a check, nobody knows whether its values
are right, and the verdict says that it ran.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.errors import CODES, Level, NpusmithError, Place, TaskError
from npusmith.sandbox.box import Boxed, Policy, run_boxed
from npusmith.sandbox.folder import temporary_folder, walk
from npusmith.target.chips import Chip
from npusmith.task.judge import find_doubts
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.trials import python_places
from npusmith.task.verdict import Rung, Verdict, right_rung
from npusmith.twin.direct import build_program, run_program
from npusmith.twin.finding import Finding
from npusmith.twin.launch import LaunchOptions
from npusmith.version import __version__

SECONDS = 120.0  # of a program, by itself
_OPTIONS = JudgeOptions(seconds=SECONDS)
_MOST_BYTES = 2 << 30  # of a program's folder
_MOST_ENTRIES = 20_000
_SECONDS = 300.0  # of one command of the caller
_PRINTED = 4000  # characters kept of what each step printed
# What a program that checks itself prints when it is not content, and the same words in praise.
_FAILURE = re.compile(
    r"\b(fail(s|ed|ure|ures)?|mismatch(es|ed)?|incorrect|wrong|not equal|no such file"
    r"|(can ?not|can't|could not|unable to) (open|read|load|find))\b"
    r"|\berror\b(?!( (ratio|rate|percentage))?\s*[:=]?\s*-?[\d.])",
    re.IGNORECASE,
)
_NONE_FAILED = re.compile(
    r"\b(0|no|none|without|zero) (\w+ )?(fail\w*|mismatch\w*|wrong\w*|errors?)\b"
    r"|\b(fail\w*|mismatch\w*|wrong|errors?)(\s+\w+)?\s*[:=]?\s*(0\b(?!\.)|none\b|no\b)"
    r"|\b(max\w*|mean|abs\w*|rel\w*|average|avg)([ _.-]\w+)*[ _-]error\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Around:
    """What the caller says around a program: shell commands in the copy of its folder, arguments.

    `prepare` make its data; `verify` check what it left: its values are right when all end well.
    `arguments`: of the main function.
    """

    prepare: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.prepare or self.verify or self.arguments)


def judge_program(
    source: Path,
    chip: Chip,
    around: Around | None = None,
    options: JudgeOptions = _OPTIONS,
) -> Verdict:
    """Run the main function of a source in a copy of its folder.

    The verdict is "fail" by the twin's findings, the program's status, what it printed, or a check;
    "pass" when the caller's check was content with what the program wrote; else "ran".
    """
    verdict = Verdict(
        verdict="fail", rung=Rung.NONE, compiled=False, correct=False, task="", tolerance="",
        chip=chip.name, project=str(source), provenance={"npusmith": __version__},
    )  # fmt: skip
    try:
        with temporary_folder("npusmith-program-") as work:
            _judge(source, chip, around or Around(), work, verdict, options)
    except NpusmithError as error:
        verdict.error = error.record()
    return verdict


def _judge(
    source: Path,
    chip: Chip,
    around: Around,
    work: Path,
    verdict: Verdict,
    options: JudgeOptions,
) -> None:
    step = options.step
    step("compile", str(source))
    built = build_program(source, chip, options.watch.build)
    verdict.compiled, verdict.rung = True, Rung.COMPILED
    verdict.provenance["compiler"] = built.toolchain.compiler.version
    _copy(source.resolve().parent, work)
    for command in around.prepare:
        step("prepare", command)
        boxed = _call(command, work, verdict)
        if boxed.returncode != 0 or boxed.timed_out:
            raise TaskError("prepare-failed", f"{command} {_ended(boxed)}", Place(str(source)),
                            seen=_last_line(boxed))  # fmt: skip
    step("run", f"main of {source}")
    before = _state(work)
    logged = options.recording.options() if options.recording else {}
    result = run_program(
        built,
        around.arguments,
        work=work,
        options=LaunchOptions(seconds=options.seconds, watch=options.watch, **logged),
    )
    verdict.findings = list(result.findings)
    verdict.prints = list(result.prints)
    verdict.doubts = find_doubts(result.apis)
    verdict.seconds["run"] = round(result.seconds, 3)
    verdict.provenance["printed"] = result.log[-_PRINTED:]
    verdict.findings += _complaints("program-complains", result.log)
    if not result.completed:
        return
    verdict.rung = Rung.RAN
    checked = _verify(around.verify, work, _state(work) != before, verdict, step)
    right = checked and not any(item.level is Level.ERROR for item in verdict.findings)
    if right:
        verdict.rung = right_rung(item.code for item in verdict.findings)
    verdict.correct = right
    failed = any(item.level is Level.ERROR for item in verdict.findings)
    verdict.verdict = "fail" if failed else "pass" if right else "ran"


def _verify(
    commands: Sequence[str],
    work: Path,
    wrote: bool,
    verdict: Verdict,
    step: Callable[[str, str], None],
) -> bool:
    """Run the caller's checks; whether there are some, and all are content.

    `wrote`: the program changed a file. A check of files that were there before says nothing.
    """
    if commands and not wrote:
        verdict.findings.append(Finding(
            code="verify-nothing",
            message="the program wrote no file, so the check has nothing of it to read",
        ))  # fmt: skip
        return False
    for command in commands:
        step("verify", command)
        boxed = _call(command, work, verdict)
        if boxed.returncode != 0 or boxed.timed_out:
            message = f"{command} {_ended(boxed)}"
            found = [Finding(code="verify-failed", message=message, seen=_last_line(boxed))]
        else:
            found = _complaints("verify-failed", _text(boxed))
        verdict.findings += found
        if found:
            return False
    return bool(commands)


def _call(command: str, work: Path, verdict: Verdict) -> Boxed:
    """A command of the caller in the box, with the Python that npusmith runs on as `python3`."""
    policy = Policy(write=(work,), read=(work, *python_places()), seconds=_SECONDS, processes=True)
    programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    boxed = run_boxed(["/bin/sh", "-c", command], policy, cwd=work, env={"PATH": programs})
    said = verdict.provenance.setdefault("commands", [])
    said.append(
        {"command": command, "status": boxed.returncode, "printed": _text(boxed)[-_PRINTED:]}
    )
    return boxed


def _text(boxed: Boxed) -> str:
    return (boxed.stdout + boxed.stderr).decode(errors="replace")


def _ended(boxed: Boxed) -> str:
    if boxed.timed_out:
        return f"had not ended after {_SECONDS:g} s"
    return f"ended with status {boxed.returncode}"


def _last_line(boxed: Boxed) -> str:
    return next(iter(_text(boxed).strip().splitlines()[::-1]), "")[:300]


def _complaints(code: str, log: str) -> list[Finding]:
    row, line = CODES[code], complaint(log)
    return [Finding(code=code, level=row.level, message=row.meaning, seen=line)] if line else []


def complaint(log: str) -> str:
    """The first line of a program's output that tells of a failure; empty when there is none."""
    lines = (line.strip() for line in log.splitlines())
    found = (line for line in lines if _FAILURE.search(_NONE_FAILED.sub("", line)))
    return next(found, "")[:200]


# ------------------------------------------------------------------------------- the folder's copy


def _copy(folder: Path, work: Path) -> None:
    """Copy the plain files and folders of a program; hidden ones and links stay behind.

    What begins with a dot belongs to tools (.git, .venv, .env), and a link may lead anywhere.
    TaskError program-folder for one that is no folder of a program.
    """
    count = size = 0
    for entry in walk(folder):
        place = Path(entry.path).relative_to(folder)
        if entry.is_symlink() or any(part.startswith(".") for part in place.parts):
            continue
        count += 1
        size += entry.stat(follow_symlinks=False).st_size if entry.is_file() else 0
        if count > _MOST_ENTRIES or size > _MOST_BYTES:
            raise TaskError(
                "program-folder",
                f"the folder of the program holds more than {_MOST_ENTRIES} entries or "
                f"{_MOST_BYTES >> 30} GB",
                Place(str(folder)),
            )
        if entry.is_dir():
            (work / place).mkdir(parents=True, exist_ok=True)
        elif entry.is_file():
            (work / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(entry.path, work / place)


def _state(work: Path) -> frozenset[tuple[str, int, int]]:
    """The files of the copy with their sizes and times."""
    found = ((entry, entry.stat(follow_symlinks=False)) for entry in walk(work))
    return frozenset(
        (entry.path, stat.st_size, stat.st_mtime_ns)
        for entry, stat in found
        if not entry.is_dir(follow_symlinks=False)
    )
