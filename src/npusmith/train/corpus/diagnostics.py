"""Samples out of mutants: what npusmith says of a broken program, where, why, and the fix.

Three kinds come of judging: illegal ones, with the checker's findings; those that break a rule when
they run; and right-looking ones that compute something else, with the set of inputs that tells.
The last also make preferences: the right program over one that is legal and wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from npusmith.agent.assessment import Note, notes_of, render
from npusmith.agent.prompt import fence
from npusmith.errors import CODES, LangError
from npusmith.lm.prompt import NAME
from npusmith.train.corpus.mutants import Mutant, mutants
from npusmith.train.corpus.program_hash import program_hash
from npusmith.train.corpus.sample import Kind, Sample
from npusmith.train.corpus.subject import Subject

_MUTANTS = 24  # of a subject
_NOTES = 3  # findings that a prompt shows
_ILLEGAL, _RUN = "npusmith check FILE.tile.py", "npusmith run PROJECT --task TASK"
_FILE = f"{NAME}.tile.py"


def broken_programs(subject: Subject, outcomes: Counter[str]) -> Iterator[Sample]:
    """Counts in `outcomes` what became of the mutants."""
    for mutant in mutants(subject.first.text, subject.random, _MUTANTS):
        said, errors = subject.judge(mutant.text)
        word = said.partition(":")[0]
        outcomes[f"mutant {word}"] += 1
        if errors:
            yield _repair(subject, mutant, _notes(errors), errors[0], word)
        elif word == "wrong":
            note = Note(code="agent-values", message=said.partition(": ")[2][:600])
            yield _repair(subject, mutant, [note], None, word)
            yield _preference(subject, mutant)


def _notes(errors: list[LangError]) -> list[Note]:
    found = [note for error in errors[:_NOTES] for note in notes_of(error.record())]
    return [
        note if note.file else note.model_copy(update={"file": _FILE}) for note in found
    ]  # fmt: skip


def _repair(
    subject: Subject, mutant: Mutant, notes: list[Note], error: LangError | None, word: str
) -> Sample:
    """Of a wrong one the task stands in the prompt, too: the program alone does not tell."""
    shown = render(notes, {_FILE: mutant.text})
    task = f"{subject.task}\n\n" if word == "wrong" else ""
    ask = (
        f"{task}This tile program has one fault.\n\n{fence(mutant.text, 'python')}\n\n"
        f"npusmith says:\n\n{fence(shown)}\n\nName the place, what is wrong, and the fix."
    )
    code = error.code if error is not None else "agent-values"
    row = CODES[code]
    lines = [
        f"Place: {_place(mutant, error)}",
        f"Finding: {code}. {row.meaning} Legal: {row.legal}.",
        f"Fault: {_fault(mutant)}",
        f"Fix: {_fix(mutant)}",
    ]
    return subject.sample(
        Kind.ERROR, ask, "\n".join(lines), f"error {word}",
        program_hash=program_hash(mutant.text),
        verified_by=_ILLEGAL if word == "illegal" else _RUN,
        meta={"code": code, "fault": mutant.fault, "line": mutant.line},
    )  # fmt: skip


def _place(mutant: Mutant, error: LangError | None) -> str:
    line = error.place.line if error is not None else 0
    if line and line != mutant.line:
        return f"line {mutant.line}; it shows in line {line}"
    return f"line {mutant.line}"


def _fault(mutant: Mutant) -> str:
    if not mutant.after:
        return f"before line {mutant.line} a statement is missing."
    return f"line {mutant.line} is `{mutant.after.strip()}`."


def _fix(mutant: Mutant) -> str:
    if not mutant.after:
        return f"insert before line {mutant.line}: `{mutant.before.strip()}`"
    return f"line {mutant.line} becomes `{mutant.before.strip()}`"


def _preference(subject: Subject, mutant: Mutant) -> Sample:
    """Of two legal programs, the right one."""
    right = fence(subject.first.text, "python")
    return subject.sample(
        Kind.PREFERENCE, f"{subject.task}\n\nWrite the tile program.", right, "preference",
        chosen=right, rejected=fence(mutant.text, "python"),
        program_hash=program_hash(mutant.text), meta={"fault": mutant.fault},
    )  # fmt: skip
