"""What to do next: candidate -> verdict -> next action. All of the policy is on this page.

First `samples` drafts at once. Then one at a time: the best candidate that is not given up is
repaired, or, once something is right and speed is wanted, made faster. A candidate is given up
after `patience` children of it that were no better. The run stops at its target, when it has used
its rounds, or when nothing is left to go on from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from npusmith.agent.route import Aim
from npusmith.agent.weighed import Weighed

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


@dataclass(frozen=True, slots=True)
class Tried:
    """A turn that was judged. `asked`: by the model, not by an edit of the knowledge store."""

    number: int
    parent: int | None
    aim: Aim
    weighed: Weighed
    text: str = ""
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """A turn to take; `parent`: the candidate to go on from."""

    aim: Aim
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The end, and why: "target", "rounds", "stagnation" or "budget"."""

    why: str


def decide(tried: Sequence[Tried], terms: Terms) -> tuple[Ask, ...] | Stop:
    """The next turns, from everything that was judged so far and from nothing else."""
    asked = sum(item.asked for item in tried)
    if asked < terms.samples:
        return (Ask(Aim.WRITE),) * (terms.samples - asked)
    ranked = rank(tried)
    best = ranked[0]
    if best.weighed.correct and (not terms.optimise or is_fast(best.weighed, terms)):
        return Stop("target")
    if asked >= terms.samples + terms.rounds:
        return Stop("rounds")
    alive = [
        item
        for item in ranked
        if item.weighed.correct == best.weighed.correct
        and is_forward(item, tried)
        and futile(item, tried) < terms.patience
    ]
    if not alive:
        return Stop("stagnation")
    return (Ask(Aim.OPTIMISE if best.weighed.correct else Aim.REPAIR, alive[0].number),)


def rank(tried: Sequence[Tried]) -> list[Tried]:
    """The best first; of equals the earlier."""
    return sorted(
        tried, key=lambda item: (tuple(-part for part in item.weighed.score), item.number)
    )


def is_forward(item: Tried, tried: Sequence[Tried]) -> bool:
    """A draft, or better than what it was made of: nothing else is gone on from."""
    parent = next((other for other in tried if other.number == item.parent), None)
    return parent is None or better(item.weighed, parent.weighed)


def futile(parent: Tried, tried: Sequence[Tried]) -> int:
    """How often the model was asked to better this candidate, and did not."""
    children = [item for item in tried if item.parent == parent.number and item.asked]
    return sum(not better(item.weighed, parent.weighed) for item in children)


def better(new: Weighed, old: Weighed) -> bool:
    """A step forward: of two right ones the one that is faster by more than the noise of words."""
    if new.correct and old.correct:
        return new.us is not None and old.us is not None and new.us < GAIN * old.us
    return new.score > old.score


def is_fast(weighed: Weighed, terms: Terms) -> bool:
    """At the target, or without a time that could be bettered."""
    if weighed.us is None or weighed.bound_us is None:
        return True
    return weighed.us <= terms.target * weighed.bound_us
