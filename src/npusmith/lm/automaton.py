"""From rules to masks: which tokens may come next in a text that a grammar describes.

A rule is an Item; a `Rule` inside another one is a call. The rules become one network of states
with edges over bytes, and a place in a text is the set of all (state, stack of returns) that fit
what was read: places are numbered, and every step is remembered, so that a text like an earlier one
costs one look-up a byte. `Masks` walks the tokens of a vocabulary as a tree of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

DEAD = -1  # the place of a text that no rule fits
_MOST_PLACES = 50_000  # remembered; then all is forgotten


@dataclass(frozen=True, slots=True)
class Text:
    """These characters."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One byte out of some."""

    legal: frozenset[int]


@dataclass(frozen=True, slots=True)
class Seq:
    """One after another."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """One of them."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Star:
    """None, one or several."""

    item: Item


@dataclass(frozen=True, slots=True)
class Word:
    """A word of some bytes that is none of those that are reserved."""

    first: frozenset[int]
    later: frozenset[int]
    reserved: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """What the rule of that name describes."""

    name: str


Item = Text | Chars | Seq | Alt | Star | Word | Rule


@dataclass(slots=True)
class _State:
    """Where edges go; a state without any is the end of its rule."""

    bytes: dict[int, list[int]] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)  # rule, and where it returns to


class Grammar:
    """Rules by name, read when they are first needed. No rule may begin with itself."""

    def __init__(self, rules: Callable[[str], Item], start: str) -> None:
        self._rules = rules
        self._states: list[_State] = []
        self._entries: dict[str, int] = {}
        self._ends: set[int] = set()
        self._forget()
        self._start = start

    def _forget(self) -> None:
        self._stacks: list[tuple[int, int]] = [(DEAD, 0)]  # a return, and the stack below it
        self._stack_ids: dict[tuple[int, int], int] = {}
        self._places: list[frozenset[tuple[int, int]]] = []
        self._place_ids: dict[frozenset[tuple[int, int]], int] = {}
        self._steps: dict[tuple[int, int], int] = {}
        self.generation = getattr(self, "generation", -1) + 1

    # ---- places

    def start(self) -> int:
        """The place before the first byte."""
        if len(self._places) > _MOST_PLACES:
            self._forget()
        return self._place([(self._entry(self._start), 0)])

    def step(self, place: int, byte: int) -> int:
        """The place behind one more byte, or DEAD."""
        key = (place, byte)
        found = self._steps.get(key)
        if found is None:
            reached = [
                (target, stack)
                for state, stack in self._places[place]
                for target in self._states[state].bytes.get(byte, ())
            ]
            found = self._place(reached) if reached else DEAD
            self._steps[key] = found
        return found

    def read(self, place: int, text: bytes) -> int:
        """The place behind a text, or DEAD."""
        for byte in text:
            if place == DEAD:
                break
            place = self.step(place, byte)
        return place

    def is_end(self, place: int) -> bool:
        """Whether the text may end here."""
        return any(state in self._ends and not stack for state, stack in self._places[place])

    def follows(self, place: int) -> bytes:
        """The bytes that may come next."""
        found = {byte for state, _ in self._places[place] for byte in self._states[state].bytes}
        return bytes(sorted(found))

    def _place(self, reached: Iterable[tuple[int, int]]) -> int:
        """The number of a set, with all that is reached from it without a byte."""
        found: set[tuple[int, int]] = set()
        queue = list(reached)
        while queue:
            item = queue.pop()
            if item in found:
                continue
            found.add(item)
            state, stack = item
            node = self._states[state]
            queue += [(target, stack) for target in node.free]
            for name, back in node.calls:
                queue.append((self._entry(name), self._pushed(back, stack)))
            if state in self._ends and stack:
                queue.append(self._stacks[stack])
        # states that only lead on say nothing more
        kept = frozenset(
            item
            for item in found
            if self._states[item[0]].bytes or (item[0] in self._ends and not item[1])
        )
        number = self._place_ids.get(kept)
        if number is None:
            number = self._place_ids[kept] = len(self._places)
            self._places.append(kept)
        return number

    def _pushed(self, back: int, stack: int) -> int:
        key = (back, stack)
        number = self._stack_ids.get(key)
        if number is None:
            number = self._stack_ids[key] = len(self._stacks)
            self._stacks.append(key)
        return number

    # ---- the network

    def _entry(self, name: str) -> int:
        if name not in self._entries:
            first, last = self._new(), self._new()
            self._entries[name] = first
            self._ends.add(last)
            self._build(self._rules(name), first, last)
        return self._entries[name]

    def _new(self) -> int:
        self._states.append(_State())
        return len(self._states) - 1

    def _build(self, item: Item, first: int, last: int) -> None:
        """Edges from the one state to the other that read the item."""
        match item:
            case Text(text):
                data = text.encode()
                ends = [first, *(self._new() for _ in data[1:]), last]
                for at, byte in enumerate(data):
                    self._edge(ends[at], byte, ends[at + 1])
            case Chars(legal):
                for byte in legal:
                    self._edge(first, byte, last)
            case Seq(()):
                self._states[first].free.append(last)
            case Seq(items):
                ends = [first, *(self._new() for _ in items[1:]), last]
                for at, part in enumerate(items):
                    self._build(part, ends[at], ends[at + 1])
            case Alt(items):
                for part in items:
                    self._build(part, first, last)
            case Star(part):
                loop = self._new()
                self._states[first].free.append(loop)
                self._states[loop].free.append(last)
                back = self._new()
                self._build(part, loop, back)
                self._states[back].free.append(loop)
            case Word():
                self._word(item, first, last)
            case Rule(name):
                self._states[first].calls.append((name, last))

    def _edge(self, first: int, byte: int, last: int) -> None:
        self._states[first].bytes.setdefault(byte, []).append(last)

    def _word(self, word: Word, first: int, last: int) -> None:
        """A tree of the reserved words beside one state for all others."""
        other = self._new()
        self._states[other].free.append(last)
        for byte in word.later:
            self._edge(other, byte, other)
        tree = {"": first}
        prefixes = {text[:at] for text in word.reserved for at in range(1, len(text) + 1)}
        for prefix in sorted(prefixes, key=len):
            tree[prefix] = self._new()
            self._edge(tree[prefix[:-1]], ord(prefix[-1]), tree[prefix])
            if prefix not in word.reserved:
                self._states[tree[prefix]].free.append(last)
        for prefix, state in tree.items():
            taken = {ord(text[-1]) for text in prefixes if text[:-1] == prefix}
            for byte in (word.later if prefix else word.first) - taken:
                self._edge(state, byte, other)


def maybe(item: Item) -> Item:
    """Once or not at all."""
    return Alt((Seq(()), item))


def joined(item: Item, between: str) -> Item:
    """One or several with a text between."""
    return Seq((item, Star(Seq((Text(between), item)))))


# ------------------------------------------------------------------------------------------ masks


@dataclass(slots=True)
class _Node:
    ids: list[int] = field(default_factory=list)
    next: dict[int, _Node] = field(default_factory=dict)


class Masks:
    """The tokens that may come at a place, for a vocabulary; `end` where the text may end."""

    def __init__(self, grammar: Grammar, tokens: Iterable[bytes], end: int) -> None:
        self.grammar, self.end = grammar, end
        self.tokens = tuple(tokens)
        self._root = _Node()
        self._known: dict[int, npt.NDArray[np.bool_]] = {}
        self._generation = grammar.generation
        for at, token in enumerate(self.tokens):
            if token:
                node = self._root
                for byte in token:
                    node = node.next.setdefault(byte, _Node())
                node.ids.append(at)

    def allowed(self, place: int) -> npt.NDArray[np.bool_]:
        """For each id, whether some text goes on with it."""
        if self._generation != self.grammar.generation:
            self._known.clear()
            self._generation = self.grammar.generation
        found = self._known.get(place)
        if found is None:
            found = np.zeros(len(self.tokens), bool)
            self._walk(self._root, place, found)
            found[self.end] = self.grammar.is_end(place)
            self._known[place] = found
        return found

    def _walk(self, node: _Node, place: int, found: npt.NDArray[np.bool_]) -> None:
        step = self.grammar.step
        queue = [(node, place)]
        while queue:
            at, where = queue.pop()
            for byte, child in at.next.items():
                reached = step(where, byte)
                if reached != DEAD:
                    found[child.ids] = True
                    if child.next:
                        queue.append((child, reached))


class Guided:
    """A place that moves with the tokens of one answer."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._place = masks.grammar.start()

    def allowed(self) -> npt.NDArray[np.bool_]:
        return self._masks.allowed(self._place)

    def advance(self, at: int) -> None:
        if at != self._masks.end:
            self._place = self._masks.grammar.read(self._place, self._masks.tokens[at])
