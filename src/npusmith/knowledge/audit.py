"""Replaying proofs: does an item still do what it says?"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.knowledge.edit import candidates, given_names
from npusmith.knowledge.item import OPTIMISE, Item, Proof
from npusmith.knowledge.tokens import words
from npusmith.knowledge.trial import Bench, Judged
from npusmith.target.chips import Chip

PLACES = 4  # that may be tried; the item as it is used has as many


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of one proof. `weak`: it has no case, so that nothing was judged."""

    item: str
    holds: bool
    why: str
    weak: bool = False


def audit_items(items: Sequence[Item], chip: Chip, folder: Path) -> Iterator[Replay]:
    """Every proof of the items, one after another; an item without one does not hold."""
    for item in items:
        if not item.proofs:
            yield Replay(item.name, False, "it has no proof")
        for proof in item.proofs:
            yield replay(item, proof, chip, folder)


def sample_items(items: Sequence[Item], most: int, seed: int) -> list[Item]:
    """That many of the items, chosen by the seed."""
    if most >= len(items):
        return list(items)
    chosen = random.Random(seed).sample(range(len(items)), most)
    return [items[at] for at in sorted(chosen)]


def replay(item: Item, proof: Proof, chip: Chip, folder: Path) -> Replay:
    """Apply the item to the kernel of the proof, and judge what comes out."""
    if proof.case is None:
        made = candidates(item.template, proof.before, (), PLACES * 2)
        same = any(words(text, item.route) == words(proof.after, item.route) for text in made)
        return Replay(item.name, same, "word for word" if same else "it gives another text", True)
    key = hashlib.sha256(proof.case.model_dump_json().encode()).hexdigest()[:16]
    bench = Bench(proof.case, chip, folder / key)
    before = bench.judge(item.route, proof.before)
    if item.trigger.aim == OPTIMISE:
        return _faster(item, proof, bench, before)
    if before.accepted:
        return Replay(item.name, False, "what it repairs is accepted as it is")
    said, hinted = given_names(before.messages, before.hints, item.route)
    made = candidates(item.template, proof.before, before.lines, PLACES, said, hinted)
    if any(bench.judge(item.route, text).accepted for text in made):
        code = before.codes[0] if before.codes else "refused"
        return Replay(item.name, True, f"{code}: repaired")
    return Replay(item.name, False, f"none of {len(made)} edited texts is accepted")


def _faster(item: Item, proof: Proof, bench: Bench, before: Judged) -> Replay:
    start = bench.time(item.route, proof.before) if before.accepted else None
    if start is None:
        return Replay(item.name, False, "what it makes faster is not accepted, or not timed")
    best = 0.0
    for text in candidates(item.template, proof.before, (), PLACES):
        timed = bench.time(item.route, text) if bench.judge(item.route, text).accepted else None
        best = max(best, start.us / timed.us if timed else 0.0)
    why = f"{best:.2f} times as fast (estimate), {proof.gain:.2f} wanted"
    return Replay(item.name, best >= proof.gain, why)
