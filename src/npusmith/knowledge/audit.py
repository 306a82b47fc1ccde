"""Replaying proofs: does an item still do what it says?"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from npusmith.knowledge.circumstance import admits, circumstances, kind_of, listed
from npusmith.knowledge.edit import candidates, given_names
from npusmith.knowledge.item import OPTIMISE, Item, Proof
from npusmith.knowledge.seam import Query
from npusmith.knowledge.tokens import words
from npusmith.knowledge.trial import Bench, Judged
from npusmith.target.chips import CHIPS, Chip

_LEFT_OUT = "its conditions leave out the kernel of its proof"
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
        if not _served_there(item, proof, item.trigger.codes, ""):
            return Replay(item.name, False, _LEFT_OUT, True)
        made = candidates(item.template, proof.before, (), PLACES * 2)
        same = any(words(text, item.route) == words(proof.after, item.route) for text in made)
        return Replay(item.name, same, "word for word" if same else "it gives another text", True)
    chip = chip_for(item, chip)
    key = hashlib.sha256(proof.case.model_dump_json().encode()).hexdigest()[:16]
    bench = Bench(proof.case, chip, folder / key)
    before = bench.judge(item.route, proof.before)
    if not _served_there(item, proof, before.codes or item.trigger.codes, chip.name):
        return Replay(item.name, False, _LEFT_OUT)
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


def chip_for(item: Item, chip: Chip) -> Chip:
    """That chip, or another one where the item's conditions leave it out."""
    asked = [text for text in item.trigger.only if kind_of(text) == "chip"]
    rows = (chip, *CHIPS.values())
    return next((row for row in rows if admits(asked, listed("chip", [row.name]))), chip)


def _served_there(item: Item, proof: Proof, codes: Sequence[str], chip: str) -> bool:
    """Whether the item's conditions let it be served to what its own proof repairs."""
    category = proof.case.category if proof.case else ""
    query = Query(
        route=item.route, aim=item.trigger.aim, text=proof.before, codes=tuple(codes), chip=chip,
        category=category or next(iter(item.trigger.categories), ""),
    )  # fmt: skip
    only = [text for text in item.trigger.only if chip or kind_of(text) != "chip"]
    return admits(only, circumstances(query))


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
