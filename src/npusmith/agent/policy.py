"""What to do next: candidate -> verdict -> next action. All of the policy is on this page.

First `samples` drafts at once. Then one at a time: the best candidate that is not given up is
repaired, or, once something is right and speed is wanted, made faster. A candidate is given up
after `patience` children of it that were no better. Where all are given up and none is right, a
draft is written from a new plan. The run stops at its target, when it has used its rounds, or when
a right candidate does not get faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from npusmith.agent.assessment import Assessment
from npusmith.agent.route import Goal

GAIN = 0.98  # of the time: what is not faster by 2 % is not faster


class Terms(BaseModel):
    """How long a session goes on, and how its model is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    samples: int = Field(default=4, ge=1)
    rounds: int = Field(default=8, ge=0)  # after the first drafts
    patience: int = Field(default=3, ge=1)
    optimise: bool = False
    target: float = Field(default=1.2, ge=1)  # times the roof: fast enough
    seed: int = 0
    temperature: float = Field(default=0.7, ge=0, allow_inf_nan=False)
    max_tokens: int = Field(default=8192, ge=1)
    conversation: bool = False  # go on in the talk that gave a candidate; else a prompt of its own


@dataclass(frozen=True, slots=True)
class Attempt:
    """A turn that was judged. `asked`: by the model, not by an edit of the knowledge store."""

    number: int
    parent: int | None
    goal: Goal
    assessment: Assessment
    text: str = ""
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """A turn to take; `parent`: the candidate to go on from."""

    goal: Goal
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The end, and why: "target", "rounds", "stagnation" or "budget"."""

    why: str


def decide(attempts: Sequence[Attempt], terms: Terms) -> tuple[Ask, ...] | Stop:
    """The next turns, from everything that was judged so far and from nothing else."""
    asked = sum(item.asked for item in attempts)
    if asked < terms.samples:
        return (Ask(Goal.WRITE),) * (terms.samples - asked)
    ranked = rank(attempts)
    best = ranked[0]
    if best.assessment.correct and (not terms.optimise or is_fast(best.assessment, terms)):
        return Stop("target")
    if asked >= terms.samples + terms.rounds:
        return Stop("rounds")
    alive = [
        item
        for item in ranked
        if item.assessment.correct == best.assessment.correct
        and is_forward(item, attempts)
        and futile(item, attempts) < terms.patience
    ]
    if not alive:
        return Stop("stagnation") if best.assessment.correct else (Ask(Goal.WRITE),)
    return (Ask(Goal.OPTIMISE if best.assessment.correct else Goal.REPAIR, alive[0].number),)


def rank(attempts: Sequence[Attempt]) -> list[Attempt]:
    """The best first; of equals the earlier."""
    return sorted(
        attempts, key=lambda item: (tuple(-part for part in item.assessment.score), item.number)
    )


def is_forward(item: Attempt, attempts: Sequence[Attempt]) -> bool:
    """A draft, or better than what it was made of: nothing else is gone on from."""
    parent = next((other for other in attempts if other.number == item.parent), None)
    return parent is None or better(item.assessment, parent.assessment)


def no_better(parent: Attempt, attempts: Sequence[Attempt]) -> list[Attempt]:
    """Changes of a candidate that made it no better, by the model or by the knowledge store."""
    children = (item for item in attempts if item.parent == parent.number)
    return [item for item in children if not better(item.assessment, parent.assessment)]


def futile(parent: Attempt, attempts: Sequence[Attempt]) -> int:
    """How often the model was asked to better this candidate, and did not."""
    return sum(item.asked for item in no_better(parent, attempts))


def better(new: Assessment, old: Assessment) -> bool:
    """A step forward: of two right ones the one that is faster by more than the noise of words."""
    if new.correct and old.correct:
        return new.us is not None and old.us is not None and new.us < GAIN * old.us
    return new.score > old.score


def is_fast(assessment: Assessment, terms: Terms) -> bool:
    """At the target, or without a time that could be bettered."""
    if assessment.us is None or assessment.bound_us is None:
        return True
    return assessment.us <= terms.target * assessment.bound_us
