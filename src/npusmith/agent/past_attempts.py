"""What a prompt says of earlier attempts, so that none is made twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from npusmith.agent.policy import Attempt, is_forward, no_better
from npusmith.agent.prompt import fence

_MOST_ATTEMPTS = 4  # the latest
_MOST_LINES = 24  # of what an attempt changed
_MOST_CHARS = 300  # of one finding


def failed_changes_part(parent: Attempt, attempts: Sequence[Attempt]) -> str:
    """Changes of a candidate that made it no better: what was changed, and what came of it."""
    found = no_better(parent, attempts)
    if not found:
        return ""
    rows = (_failed_change(item, parent) for item in found[-_MOST_ATTEMPTS:])
    head = (
        f"{len(found)} changes of this candidate made it no better. Do not send one of them again: "
        "where one came close, correct it; else change something else."
    )
    return "## Tried\n\n" + "\n\n".join([head, *rows])


def given_up_part(attempts: Sequence[Attempt]) -> str:
    """What was found of candidates that were given up, for a draft from a new plan."""
    given_up = [item for item in attempts if is_forward(item, attempts)]
    if not given_up:
        return ""
    rows = [f"- turn {item.number + 1}: {_found(item)}" for item in given_up[-_MOST_ATTEMPTS:]]
    head = (
        "None of these candidates led to a right one. Choose another plan: other stages, another "
        "way to cut the work, simpler tiles."
    )
    return "## Given up\n\n" + "\n".join([head, "", *rows])


def _failed_change(item: Attempt, parent: Attempt) -> str:
    told = f"Turn {item.number + 1}: {_found(item)}."
    if not item.text:
        return told
    if item.text == parent.text:
        return f"{told} It was the candidate itself, unchanged."
    return f"{told} It changed:\n\n{fence(_changes(parent.text, item.text), 'diff')}"


def _changes(before: str, after: str) -> str:
    lines = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    kept = [line for line in lines if not line.startswith(("---", "+++"))]
    rest = len(kept) - _MOST_LINES
    return "\n".join([*kept[:_MOST_LINES], *([f"and {rest} more lines"] if rest > 0 else [])])


def _found(item: Attempt) -> str:
    """How far it got, and the first thing that was wrong."""
    return "; ".join(_facts(item))


def _facts(item: Attempt) -> Iterator[str]:
    assessment = item.assessment
    if assessment.correct:
        yield "right" if assessment.us is None else f"right, {assessment.us:.2f} us"
        return
    if assessment.share:
        yield f"right on {assessment.share:.0%} of the sets of inputs"
    for note in assessment.errors[:1]:
        where = f" at line {note.line}" if note.line else ""
        yield f"{note.code}{where}: {note.message[:_MOST_CHARS]}"
