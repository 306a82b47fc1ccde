"""Completions on the twin: `judge_on_twin(text, opened, work)`, as the agent's routes judge.

A tile program is lowered and compiled; Ascend C is one source, or the files of a project. The judge
runs every set of inputs, with its findings; a right candidate is timed by the timing model.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from npusmith.agent.assessment import Assessment, Step
from npusmith.agent.direct import DirectRoute
from npusmith.agent.signatures import Signatures
from npusmith.agent.talk import Answer, Usage
from npusmith.agent.tile import TileRoute
from npusmith.errors import LangError, NpusmithError
from npusmith.lang import check_all, parse
from npusmith.train.boxed import notes_as_data
from npusmith.train.levels import Level
from npusmith.train.opened import Opened

_TILE = re.compile(r"^@kernel\b", re.MULTILINE)
_PROJECT = re.compile(r"\bop_kernel/")


def judge_on_twin(text: str, opened: Opened, work: Path) -> dict[str, Any]:
    """What was found of it; `work` is an empty folder."""
    answer = Answer(text=text, usage=Usage(prompt=0, completion=0))
    try:
        if _TILE.search(text):
            return _tile(answer, opened, work)
        return _direct(answer, opened, work, "project" if _PROJECT.search(text) else "kernel")
    except NpusmithError as error:  # no code in the reply
        return _found(Level.NOTHING, error=error)


def _tile(answer: Answer, opened: Opened, work: Path) -> dict[str, Any]:
    route = TileRoute(opened.prepared, opened.chip, opened.profile, [], timed=True)
    draft = route.read(answer)
    try:
        program = parse(draft.text, route.file)
    except LangError as error:
        return _found(Level.NOTHING, error=error)
    if wrong := check_all(program, opened.chip, route.file):
        return _found(Level.PARSED, error=wrong[0])
    try:
        spec = route.ports.spec(program)
    except LangError as error:
        return _found(Level.PARSED, error=error)
    return _assessed(Level.LEGAL, route.build(program, spec, draft, work / "project"))


def _direct(answer: Answer, opened: Opened, work: Path, rules: str) -> dict[str, Any]:
    route = DirectRoute(
        opened.prepared, opened.chip, opened.profile, Signatures(""), [], True, rules
    )
    draft = route.read(answer)
    return _assessed(Level.NOTHING, route.assess(draft, work / "project"))


def _assessed(least: Level, found: Assessment) -> dict[str, Any]:
    level = Level.LEGAL if found.step >= Step.COMPILED else least
    level = Level.RAN if found.step >= Step.RAN else level
    level = Level.RIGHT if found.correct else level
    sets = len(found.verdict["trials"]) if found.verdict else 0
    notes = notes_as_data((*found.errors, *found.notes)[:3])
    share = found.share if level >= Level.RAN else 0.0
    return {"level": level, "share": share, "us": found.us, "notes": notes, "sets": sets}


def _found(level: Level, error: NpusmithError) -> dict[str, Any]:
    notes = [
        {"code": error.code, "line": error.place.line if error.place else 0,
         "message": error.message, "seen": error.seen}
    ]  # fmt: skip
    return {"level": level, "share": 0.0, "us": None, "notes": notes}
