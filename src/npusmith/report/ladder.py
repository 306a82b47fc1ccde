"""The rung ladder in words: what was reached, where it stopped, what nobody checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from npusmith.task.verdict import UNORDERED, Rung, Verdict

_NAMED = 4  # of the functions that never ran
LADDER: tuple[Rung, ...] = tuple(rung for rung in Rung if rung is not Rung.NONE)


class State(str, Enum):
    REACHED = "reached"
    FAILED = "failed"
    UNCHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Step:
    rung: Rung
    state: State


def ladder(verdict: Verdict) -> tuple[Step, ...]:
    """Every rung from the lowest up, with what this verdict knows about it."""
    top = LADDER.index(verdict.rung) if verdict.rung in LADDER else -1
    return tuple(Step(rung, _state(index, top, verdict)) for index, rung in enumerate(LADDER))


def reached(verdict: Verdict) -> str:
    """The rung in words, as it must stand wherever "correct" is said."""
    if verdict.rung is Rung.NONE:
        return "nothing was reached"
    if verdict.rung is Rung.DEVICE:
        return f"{verdict.rung.value}{_unreached(verdict)}"
    return f"{verdict.rung.value}{_unreached(verdict)}; a device was not used"


def _unreached(verdict: Verdict) -> str:
    """What of the kernel the rung does not stand for."""
    # the line behind a function's name tells it from others
    names = [name.rpartition("::")[2] for name in verdict.unreached]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f" except {', '.join(names[:_NAMED])}{more}, which no set of inputs reached"
        if names
        else ""
    )


def served(verdict: Verdict) -> str:
    """The sizes that the operator says it serves; empty where it says nothing."""
    found = verdict.provenance.get("serves")
    if not isinstance(found, list):
        return ""
    if not found:
        return "every size that the model takes at these ranks"
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    said = f"sizes with {', '.join(map(str, found[:_NAMED]))}{more} alone"
    if any(map(_is_unit, found)):
        said += "; an axis that is 1 in get_inputs() stays 1: give it another size there"
    return said


def _is_unit(condition: object) -> bool:
    return re.fullmatch(r"\w+\.shape\[\d+\] == 1", str(condition)) is not None


def answer(verdict: Verdict) -> str:
    """Is it correct? A program that compared nothing that was seen here is not said to be."""
    if verdict.verdict == "ran":
        return "not known, the program was run and no values were compared"
    return "yes" if verdict.correct else "no"


def document(verdict: Verdict) -> dict[str, object]:
    """The verdict as plain data with its ladder: what --json prints and result.json holds."""
    rungs = {step.rung.value: step.state.value for step in ladder(verdict)}
    return {**verdict.model_dump(mode="python"), "rungs": rungs}


def _state(index: int, top: int, verdict: Verdict) -> State:
    if index <= top:
        return State.REACHED
    if LADDER[index] is Rung.RACE_FREE and UNORDERED & {item.code for item in verdict.findings}:
        return State.FAILED
    # Past "values right" a rung is missing because nobody looked, not because it failed.
    stopped = index == top + 1 and LADDER.index(Rung.VALUES) >= index
    return State.FAILED if stopped and verdict.verdict not in ("pass", "ran") else State.UNCHECKED
