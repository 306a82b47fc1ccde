"""Conflicts: two items that are served for the same and disagree about the same place.

Same route and aim, codes and chips that overlap, no conditions that keep them apart, and templates
of which one puts something else in the place of the same pattern, or undoes the other. Measured
effect decides a conflict where both were used often enough in the same situation and one of them
helped clearly more: the store acts on that by itself (effect.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from npusmith.knowledge.base import Base
from npusmith.knowledge.circumstance import KINDS, listed, opposite
from npusmith.knowledge.edit import Template
from npusmith.knowledge.effect import LOST, Record, Tally
from npusmith.knowledge.item import Item, State
from npusmith.knowledge.pattern import HINT, SAID
from npusmith.knowledge.traits import read_traits

MARGIN = 0.25  # of the shares of uses that helped; smaller differences count as none
OTHER, UNDONE = "the same pattern, another replacement", "one undoes the other"
_USE = re.compile(r"(\$\(?)(\w+)(?::\w+)?")
_TEST = re.compile(r"(\$\w+)\s*(not in|in|[<>=!]=|<|>)\s+(.+)|(has|lacks)\s+(.+)", re.DOTALL)
_CONTRARY = {
    ("in", "not in"), ("==", "!="), ("<", ">="), (">", "<="), ("<", ">"), ("<", "=="),
    (">", "=="), ("has", "lacks"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two items, in the order of their names, and how they disagree."""

    first: Item
    second: Item
    how: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What the uses of two items say. `decides`: what is served follows from that."""

    decides: bool
    says: str


def find_conflicts(base: Base) -> list[Conflict]:
    """All of them among the items that are served."""
    items = [kept.item for kept in base.items(State.VERIFIED)]
    places: dict[tuple[object, ...], list[Item]] = {}
    for item in items:
        ways = (tuple(_plain(item.template, back)[0]) for back in (False, True))
        for way in dict.fromkeys(ways):
            places.setdefault((item.route, item.trigger.aim, way), []).append(item)
    pairs = {
        (one.name, two.name): (one, two)
        for found in places.values()
        for one, two in combinations(found, 2)
    }
    return [Conflict(*pair, how) for pair in pairs.values() if (how := disagreement(*pair))]


def disagreement(one: Item, two: Item) -> str:
    """How two items disagree; "" where they do not, or where their conditions keep them apart."""
    a, b = one.trigger, two.trigger
    if (one.route, a.aim) != (two.route, b.aim):
        return ""
    if not (_overlap(a.codes, b.codes) and _overlap(a.chips, b.chips)):
        return ""
    if any(opposite(text) in b.only for text in a.only):
        return ""
    (finds, puts), (others, new) = _plain(one.template), _plain(two.template)
    if finds == others:
        return OTHER if puts != new and not _exclude(one.template, two.template) else ""
    put, back = _plain(two.template, back=True)
    return UNDONE if (finds, puts) == (put, back) else ""


def by_effect(conflict: Conflict, first: Record, second: Record) -> Measured:
    """Whether measured effect decides, and what it says."""
    left, right = first.situations(), second.situations()
    both = [
        (fact, left[fact], right[fact])
        for fact in left
        if fact in right and min(left[fact].used, right[fact].used) >= LOST
    ]
    names = conflict.first.name, conflict.second.name
    if not both:
        return Measured(False, f"too few uses: not {LOST} of each in any one situation")
    said = [f"{_share(names, one, two)} ({fact})" for fact, one, two in both]
    decided = [abs(_helps(one) - _helps(two)) >= MARGIN for _, one, two in both]
    return Measured(all(decided), "; ".join(said[:4]))


def helps_alone(one: Record, two: Record) -> str:
    """A situation in which the first one helped and the second one did not, or clearly less."""
    rest = two.situations()
    for fact, tally in one.situations().items():
        other = rest.get(fact, Tally())
        less = min(tally.used, other.used) >= LOST and _helps(tally) - _helps(other) >= MARGIN
        if tally.won and (less or not other.won):
            return fact
    return ""


def conditions(one: Item, two: Item, first: Record, second: Record) -> Iterator[str]:
    """Circumstances of all that the first one was seen to help in, and of nothing of the second."""
    if any(record.helped("") != record.whole.won for record in (first, second)):
        return  # uses whose circumstances nobody kept
    mine, theirs = _seen(one, first), _seen(two, second)
    for kind in KINDS:
        for text in listed(kind, sorted(mine[kind] - theirs[kind])):
            if first.helped(text) == first.whole.won and not second.helped(text):
                yield text


# ------------------------------------------------------------------------------------------ below


def _seen(item: Item, record: Record) -> dict[str, set[str]]:
    """By kind, the names that it was learnt with, proven with, and helped with."""
    found = {kind: {text.partition(" ")[2] for text in item.trigger.known[kind]} for kind in KINDS}
    for proof in item.proofs:
        traits = read_traits(proof.before, item.route)
        found["dtype"] |= set(traits.dtypes)
        found["api"] |= set(traits.apis)
        found["category"] |= {proof.case.category} if proof.case and proof.case.category else set()
    for kind in KINDS:
        found[kind] |= record.names_of(kind)
    return found


def _plain(template: Template, back: bool = False) -> tuple[list[str], list[str]]:
    """Patterns and replacements with their holes numbered, their kinds left out.

    `back`: of the template that undoes this one.
    """
    finds = [edit.find for edit in template.edits]
    puts = [edit.put for edit in template.edits]
    names: dict[str, str] = {SAID: SAID, HINT: HINT}

    def rename(match: re.Match[str]) -> str:
        return match.group(1) + names.setdefault(match.group(2), f"h{len(names)}")

    def plain(text: str) -> str:
        return " ".join(_USE.sub(rename, text).split())

    old, new = (puts, finds) if back else (finds, puts)
    return [plain(text) for text in old], [plain(text) for text in new]


def _overlap(one: Sequence[str], two: Sequence[str]) -> bool:
    """An empty field says nothing."""
    return not one or not two or bool(set(one) & set(two))


def _exclude(one: Template, two: Template) -> bool:
    """Whether no place meets the conditions of both; their holes are matched by their order."""
    return any(
        _contrary(left, right) or _contrary(right, left)
        for left in _tests(one)
        for right in _tests(two)
    )


def _tests(template: Template) -> list[tuple[str, str, str]]:
    """Hole, sign and value of each condition; a pattern that is looked for has no hole of its own.

    The kinds of holes are conditions, too.
    """
    names: dict[str, str] = {SAID: SAID, HINT: HINT}
    kinds: dict[str, str] = {}
    for edit in template.edits:
        for match in re.finditer(r"\$\(?(\w+)(?::(\w+))?", edit.find):
            name = names.setdefault(match.group(1), f"h{len(names)}")
            kinds.setdefault(name, match.group(2) or "")
    found = [(f"${name}", "is", kind) for name, kind in kinds.items() if kind]
    for text in template.where:
        plain = re.sub(r"\$(\w+)", lambda match: "$" + names.get(match[1], match[1]), text)
        if test := _TEST.fullmatch(plain):
            hole, sign, value, look, pattern = test.groups()
            found.append((hole or "", sign or look, " ".join((value or pattern).split())))
    return found


def _contrary(one: tuple[str, str, str], two: tuple[str, str, str]) -> bool:
    if one[0] != two[0]:
        return False
    signs = (one[1], two[1])
    if signs == ("is", "is"):
        return one[2] != two[2] and "name" in (one[2], two[2])
    if signs == ("in", "in"):
        return not set(one[2].split()) & set(two[2].split())
    if signs == ("==", "=="):
        return one[2] != two[2] and "$" not in one[2] + two[2]
    return signs in _CONTRARY and one[2] == two[2]


def _helps(tally: Tally) -> float:
    return tally.won / tally.used


def _share(names: tuple[str, str], one: Tally, two: Tally) -> str:
    first, second = f"{one.won:g} of {one.used:g}", f"{two.won:g} of {two.used:g}"
    return f"{names[0]} helped in {first} uses, {names[1]} in {second}"
