"""What the uses of an item say about it: trust, and when it is retired. Rules, no model.

A use counts in its situation: what the first message says, or the first code; and the element type
with it. An item that only ever failed in a situation is not served there any more, though it may
help elsewhere: that is how two items that contradict each other are kept apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

LOST = 3  # failures without one success after which a situation is given up ...
PROVEN = 5  # ... of an item with a proof, which counts as one success elsewhere
_TWICE = 2  # times as many failures retire the item: it may only have met the wrong situation
_SHARE = 0.12  # of successes below which an item is retired, after this many uses
_USES = 8
WITH = "with "  # before a circumstance of a use: kept for arbitration, no part of the trust
_BESIDE = 4  # words on either side of a change by which its place is known
_PRIOR = 2.0  # successes of the proof that it was verified by


@dataclass(slots=True)
class Tally:
    """Uses that helped and that did not, of one item in one situation or in all."""

    won: float = 0.0
    lost: float = 0.0

    @property
    def used(self) -> float:
        return self.won + self.lost

    def add(self, effect: int) -> None:
        self.won += effect > 0
        self.lost += effect < 0

    def hopeless(self, proven: bool, times: int = 1) -> bool:
        return self.won == 0 and self.lost >= times * (PROVEN if proven else LOST)

    @property
    def trust(self) -> float:
        """Between 0 and 1, 1 for what has not failed yet."""
        return (self.won + _PRIOR) / (self.used + _PRIOR)


@dataclass(slots=True)
class Record:
    """All uses of one item."""

    own: Tally = field(default_factory=Tally)  # where its trigger says that it applies
    whole: Tally = field(default_factory=Tally)  # anywhere
    proven: bool = False
    by_fact: dict[str, Tally] = field(default_factory=dict)

    def add(self, facts: Iterable[str], effect: int, fits: bool) -> None:
        self.whole.add(effect)
        if fits:
            self.own.add(effect)
        for fact in facts:
            self.by_fact.setdefault(fact, Tally()).add(effect)

    def situations(self) -> dict[str, Tally]:
        """What was said, or what the limit was, without the element type and circumstances."""
        return {
            fact: tally
            for fact, tally in self.by_fact.items()
            if not fact.startswith(WITH) and fact.rpartition(" on ")[0] not in self.by_fact
        }

    def helped(self, circumstance: str) -> float:
        """Uses that helped while this was known; with "", those of which anything is kept."""
        return self.by_fact.get(WITH + circumstance, Tally()).won

    def names_of(self, kind: str) -> set[str]:
        """The names of that kind of circumstance with which it helped."""
        lead = f"{WITH}{kind} "
        found = (fact for fact, tally in self.by_fact.items() if tally.won)
        return {fact.removeprefix(lead) for fact in found if fact.startswith(lead)}

    def trust(self, facts: Sequence[str]) -> float:
        """0 in a situation where it only failed; else the least of what its facts say."""
        known = [self.by_fact[fact] for fact in facts if fact in self.by_fact]
        if any(tally.hopeless(self.proven) for tally in known):
            return 0.0
        return min((tally.trust for tally in [self.own, *known]), default=1.0)

    @property
    def harmful(self) -> bool:
        """To be retired: it fails where it says that it applies."""
        return self.own.hopeless(self.proven, _TWICE) or (
            self.own.used >= _USES and self.own.won < _SHARE * self.own.used
        )


def contains(after: Sequence[str], before: Sequence[str], made: Sequence[str]) -> bool:
    """Whether `after` holds what an edit that makes `made` out of `before` changes.

    The changed words, with some neighbours on either side, stand more often in `after` than in
    `before`: a kernel that was written anew and has the same words elsewhere owes nothing to them.
    """
    before, made, after = (("", *words, "") for words in (before, made, after))  # ends count
    least = min(len(before), len(made))
    head = next((at for at in range(least) if before[at] != made[at]), least)
    tail = next(
        (at for at in range(least - head) if before[-1 - at] != made[-1 - at]), least - head
    )
    piece = tuple(made[max(head - _BESIDE, 0) : len(made) - max(tail - _BESIDE, 0)])
    return _count(piece, after) > _count(piece, before)


def _count(piece: Sequence[str], text: Sequence[str]) -> int:
    size = len(piece)
    return sum(tuple(text[at : at + size]) == piece for at in range(len(text) - size + 1))


def facts_of(situation: str, dtypes: Sequence[str]) -> tuple[str, ...]:
    """The facts of a use that tallies are kept by: what was said, and for which element type."""
    return (situation, f"{situation} on {dtypes[0]}") if dtypes else (situation,)
