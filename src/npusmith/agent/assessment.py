"""What was found of a candidate, in the one form that prompts, journal and policy read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from npusmith.errors import CODES, Level, NpusmithError
from npusmith.knowledge.seam import Outcome
from npusmith.task.running import NOT_SERVED
from npusmith.task.verdict import Rung, Trial, Verdict
from npusmith.twin.finding import Finding

_MOST_NOTES = 8  # shown to a model; more of the same helps nobody
_MOST_SHAPES = 3  # of the inputs that a candidate is wrong on
_MOST_CHARS = 400  # of one field
_SERVE = "serve these sizes as well: loops over tiles along every axis"
_PARTS = ("op_host", "op_kernel")  # folders of a project


class Step(IntEnum):
    """How far a candidate got. The judge's rungs, with the stages before the twin between them."""

    NOTHING = 0
    READ = 1  # the reply held code
    PARSED = 2
    LEGAL = 3
    MEANT = 4  # right in the NumPy interpreter
    LOWERED = 5
    COMPILED = 6
    RAN = 7
    VALUES = 8
    RACE_FREE = 9


_STEPS = {
    Rung.NONE: Step.READ,
    Rung.PARSED: Step.PARSED,
    Rung.LEGAL: Step.LEGAL,
    Rung.COMPILED: Step.COMPILED,
    Rung.RAN: Step.RAN,
    Rung.VALUES: Step.VALUES,
    Rung.RACE_FREE: Step.RACE_FREE,
    Rung.TIMED: Step.RACE_FREE,
    Rung.DEVICE: Step.RACE_FREE,
}


def step_of(rung: Rung) -> Step:
    """How far a candidate on that rung of the judge got."""
    return _STEPS[rung]


NO_FILES: Mapping[str, str] = {}


class Note(BaseModel):
    """A finding in its stable form; `file` has no folder before it but op_host or op_kernel."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    message: str
    level: Level = Level.ERROR
    file: str = ""
    line: int = 0
    seen: str = ""
    legal: str = ""
    hint: str = ""

    def render(self, files: Mapping[str, str] = NO_FILES) -> str:
        """The text for a prompt; the line itself too, where one of the files holds it."""
        row = CODES[self.code]
        spot = f"{self.file}:{self.line}" if self.file and self.line else self.file
        spot = spot or (f"line {self.line}" if self.line else "")
        lines = [f"{self.level.value}[{self.code}]{f' at {spot}' if spot else ''}: {self.message}"]
        own = _line_of(files.get(self.file, ""), self.line)
        lines += [f"  line {self.line}: {own}"] if own else []
        lines += [f"  seen: {self.seen}"] if self.seen not in ("", own) else []
        return "\n".join(
            [*lines, f"  legal: {self.legal or row.legal}", f"  try: {self.hint or row.hint}"]
        )


class Assessment(BaseModel):
    """All that is known of one candidate. Times are estimates of the timing model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: Step
    correct: bool = False
    share: float = 0.0  # of the sets of inputs that pass
    notes: tuple[Note, ...] = ()
    us: float | None = None
    bound_us: float | None = None  # the roof of the task's graph
    bottleneck: tuple[float, ...] = ()
    profile: tuple[str, ...] = ()  # what limits it, in lines for a prompt
    verdict: dict[str, Any] | None = None

    @property
    def errors(self) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if note.level is Level.ERROR)

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(note.code for note in self.notes))

    @property
    def score(self) -> tuple[float, ...]:
        """Larger is better: right, then far, then the share of sets, then few errors, then fast."""
        fast = -self.us if self.correct and self.us is not None else float("-inf")
        return (self.correct, self.step, self.share, -len(self.errors), fast)

    @property
    def outcome(self) -> Outcome:
        return Outcome(int(self.step), self.correct, self.codes, self.us, self.bottleneck)


def _line_of(text: str, number: int) -> str:
    """Line `number` of a text, from 1; "" where there is none."""
    rows = text.split("\n")
    return _plain(rows[number - 1], None) if 0 < number <= len(rows) else ""


def render(notes: Iterable[Note], files: Mapping[str, str] = NO_FILES) -> str:
    """The findings as a model reads them: errors first, each once, a bounded number."""
    order = sorted(notes, key=lambda note: note.level is not Level.ERROR)
    texts = list(dict.fromkeys(note.render(files) for note in order))
    rest = len(texts) - _MOST_NOTES
    return "\n".join([*texts[:_MOST_NOTES], *([f"and {rest} more"] if rest > 0 else [])])


def failed(step: Step, error: NpusmithError, folder: Path | None = None) -> Assessment:
    """A candidate that did not get past a stage."""
    return Assessment(step=step, notes=notes_of(error.record(), folder))


def notes_of(record: Mapping[str, Any], folder: Path | None = None) -> tuple[Note, ...]:
    """The notes of an error's record; a compiler's errors one by one."""
    rows = record.get("errors") or [record]
    return tuple(
        _note({**record, "seen": "" if row is not record else record.get("seen"), **row}, folder)
        for row in rows
    )


def _note(row: Mapping[str, Any], folder: Path | None) -> Note:
    return Note(
        code=str(row["code"]),
        level=Level(row.get("level") or Level.ERROR),
        file=_file(str(row.get("file") or "")),
        line=int(row.get("line") or 0),
        **{
            name: _plain(str(row.get(name) or ""), folder)
            for name in ("message", "seen", "legal", "hint")
        },
    )


def _file(path: str) -> str:
    """Host and kernel of a project are files of one name."""
    own = Path(path)
    return f"{own.parent.name}/{own.name}" if own.parent.name in _PARTS else own.name


def _plain(text: str, folder: Path | None) -> str:
    """Without the folder that only this run knows, on few lines, and not endless."""
    for name in {str(folder), str(folder.resolve())} if folder else ():
        text = text.replace(f"{name}/", "").replace(name, "")
    text = " ".join(text.split())
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."


def assess_verdict(verdict: Verdict, least: Step, folder: Path | None = None) -> Assessment:
    """What the judge said; `least`: the stage that was reached before it was asked."""
    notes = list(notes_of(verdict.error, folder)) if verdict.error else []
    notes += [_finding(item, folder) for item in verdict.findings]
    judged = [item for item in verdict.trials if not item.skipped]
    notes += _trials([item for item in judged if item.message and not item.passed])
    passed = sum(item.passed for item in judged)
    return Assessment(
        step=max(step_of(verdict.rung), least),
        correct=verdict.correct,
        share=passed / len(judged) if judged else 0.0,
        notes=tuple(notes),
        us=verdict.task_us if verdict.correct else None,
        verdict=_settled(verdict, folder),
    )


def _settled(verdict: Verdict, folder: Path | None) -> dict[str, Any]:
    """Without what another run of the same candidate would say otherwise: times, folders."""
    trials = [item.model_copy(update={"seconds": 0.0}) for item in verdict.trials]
    kept = {name: at for name, at in verdict.provenance.items() if not name.endswith("_bytes")}
    error = {name: at for name, at in (verdict.error or {}).items() if name != "log"} or None
    settled = verdict.model_copy(
        update={"seconds": {}, "trials": trials, "provenance": kept, "error": error, "project": ""}
    )
    text = settled.model_dump_json()
    for name in {str(folder), str(folder.resolve())} if folder else ():
        text = text.replace(f"{name}/", "").replace(name, "")
    data: dict[str, Any] = json.loads(text)
    return data


def _finding(item: Finding, folder: Path | None) -> Note:
    return _note(item.model_dump(mode="json"), folder)


def _trials(failed: Sequence[Trial]) -> list[Note]:
    """A note for each shape of the inputs that fails: other values of it say nothing more."""
    groups: dict[tuple[tuple[int, ...], ...], list[Trial]] = {}
    for item in failed:
        groups.setdefault(tuple(map(tuple, item.shapes)), []).append(item)
    return [_trial(group[0], len(group) - 1) for group in groups.values()][:_MOST_SHAPES]


def _trial(item: Trial, more: int) -> Note:
    shapes = ", ".join("x".join(map(str, shape)) or "scalar" for shape in item.shapes)
    seen = f"inputs {shapes}"
    if item.elements:
        seen += f"; {item.mismatched:,} of {item.elements:,} elements are wrong"
    refused = _SERVE if item.message.endswith(NOT_SERVED) else ""
    lines = [*item.wrong, *([f"{more} more sets of these shapes fail"] if more else [])]
    return Note(
        code="agent-values",
        message=f"set of inputs {item.name!r}: {item.message}"[:_MOST_CHARS],
        seen="; ".join([seen, *lines]),
        hint=item.likely or refused,
    )
