"""The knowledge store: items with their history in one SQLite file, searched and judged by effect.

`with open_knowledge(path) as base:`. Several processes may share a file; each sees what the others
added when it next searches. Only verified items are served. `search` and `credit` are what the
agent uses (seam.py); `add`, `retire` and `narrow` write history.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from npusmith.errors import CODES, NpusmithError, Place
from npusmith.knowledge.circumstance import admits, circumstances, kind_of
from npusmith.knowledge.edit import (
    Template,
    candidates,
    edits_of,
    given_names,
    quoted_names,
)
from npusmith.knowledge.effect import WITH, Record, contains, facts_of
from npusmith.knowledge.embed import embed, message_words, plain_words
from npusmith.knowledge.index import Axes, Entry, Index
from npusmith.knowledge.item import (
    OPTIMISE,
    OWN_CODES,
    REPAIR,
    Item,
    Proof,
    Rationale,
    State,
    Trigger,
    prompt_text,
)
from npusmith.knowledge.learn import best_template
from npusmith.knowledge.pattern import compile_pattern
from npusmith.knowledge.seam import Outcome, Query, Served, Use
from npusmith.knowledge.tokens import Kind, words
from npusmith.knowledge.traits import read_traits
from npusmith.store.database import File, Layout, open_file
from npusmith.timing.bottleneck import NAMES

FILE = "knowledge.db"
_LAYOUT = Layout("knowledge", 0x4E50534B, "knowledge-file")  # "NPSK"
_MORE = 3  # times as many items are looked at as are served: some do not fit
_FASTER = 1.02  # below that a change of time counts as none
_CODE_WEIGHT = 3
_AWAY = 0.6  # weight of an item whose edit lies on another line than the findings


@dataclass(frozen=True, slots=True)
class Policy:
    """What takes part in a search and in learning; all on but where that is measured."""

    axes: Axes = field(default_factory=Axes)
    distil: bool = True  # credit, retirement, merging, and no item without proof


@dataclass(frozen=True, slots=True)
class Kept:
    """An item with its state."""

    item: Item
    state: State


def open_knowledge(path: Path, *, seeds: bool = True, policy: Policy = Policy()) -> Base:
    """The store in that file, or in knowledge.db of that folder; a new one gets the seeds."""
    file = path / FILE if path.is_dir() or not path.suffix else path
    base = Base(file, open_file(file, _LAYOUT), policy)
    if not base.begun():
        from npusmith.knowledge.exchange import read_seeds

        base.begin(read_seeds() if seeds else [])
    return base


class Base(File):
    """An open knowledge store."""

    def __init__(self, path: Path, link: sqlite3.Connection, policy: Policy) -> None:
        super().__init__(path, link)
        self.policy = policy
        self._index = Index()
        self._kept: dict[str, Kept] = {}
        self._records: dict[str, Record] = {}
        self._seen = (0, 0)  # last rows of history and number of uses that are in memory
        self._read()

    # ---- the first items

    def begun(self) -> bool:
        """Whether anything has ever been put in."""
        return bool(self._rows("SELECT 1 FROM history LIMIT 1"))

    def begin(self, items: Sequence[Item]) -> None:
        """The items of a new store, all or none of them, whoever of several processes is first."""
        with self._writing() as link:
            if link.execute("SELECT 1 FROM history LIMIT 1").fetchone():
                return
            link.execute(
                "INSERT INTO history (item, what, detail) VALUES ('', 'begun', ?)",
                (f"{len(items)} seeds",),
            )
            for item in items:
                self._write(link, item, State.VERIFIED, "added", "seed")

    # ---- items

    def items(self, state: State | None = None) -> list[Kept]:
        """All items, or those of one state, by name."""
        self._read()
        rows = (self._kept[name] for name in sorted(self._kept))
        return [row for row in rows if state is None or row.state is state]

    def item(self, name: str) -> Kept:
        self._read()
        if name not in self._kept:
            raise NpusmithError("knowledge-unknown", f"there is no item {name}", seen=name[:100])
        return self._kept[name]

    def record(self, name: str) -> Record:
        """How its uses went."""
        record = self._records.get(name, Record())
        record.proven = name in self._kept and bool(self._kept[name].item.proofs)
        return record

    def history(self, name: str) -> list[tuple[str, str]]:
        """What happened to an item, in order: what, and a detail."""
        rows = self._rows("SELECT what, detail FROM history WHERE item = ? ORDER BY seq", name)
        return [(str(what), str(detail)) for what, detail in rows]

    def add(self, item: Item, state: State, why: str) -> str:
        """Adds an item and gives its name; the same edit again is merged into the first one."""
        with self._writing() as link:
            self._read()  # in the transaction: nobody can add the same edit in between
            twin = self._twin(link, item) if self.policy.distil else None
            if twin is not None:
                merged, better = _merge(twin, item, state)
                self._write(link, merged, better, "merged", f"{item.name}: {why}")
                return merged.name
            name = _free_name(link, item.name)
            named = item.model_copy(update={"name": name})
            self._write(link, named, state, "added", why)
            return name

    def mark(self, name: str, state: State, why: str, beside: Sequence[Item] = ()) -> bool:
        """Gives an item another state, with the reason; see `_serves` for `beside`."""
        with self._writing() as link:
            kept = self.item(name)
            if not self._serves(beside):
                return False
            self._write(link, kept.item, state, state.value, why)
            return True

    def narrow(self, name: str, only: Sequence[str], why: str, beside: Sequence[Item] = ()) -> bool:
        """Keeps an item to these conditions, to none where there are none; its state stays."""
        with self._writing() as link:
            kept = self.item(name)
            if not self._serves(beside):
                return False
            trigger = kept.item.trigger.model_copy(update={"only": tuple(only)})
            item = kept.item.model_copy(update={"trigger": trigger})
            self._write(link, item, kept.state, "narrowed" if only else "widened", why)
            return True

    # ---- search

    def search(self, query: Query, most: int = 6) -> list[Served]:
        """Verified items that fit the situation, the best first."""
        served = []
        for kept in self.find(query, most):
            made = self.apply(kept.item, query, most=1)
            version = f"{kept.item.name}@{kept.item.digest}"
            edit, codes = made[0] if made else None, kept.item.trigger.codes
            served.append(Served(version, prompt_text(kept.item), edit, codes))
        return served

    def find(self, query: Query, most: int = 6) -> list[Kept]:
        """The same as `search`, as items: those whose template fits the text come first."""
        self._read()
        aim = OPTIMISE if query.aim == OPTIMISE else REPAIR
        words_of, vector = _situation(query)
        hits = self._index.search(
            words_of, vector, aim, query.route, query.chip, most * _MORE, self.policy.axes
        )
        facts, known = facts_of(situation_of(query), query.dtypes), circumstances(query)
        ranked = []
        for place, hit in enumerate(hits):
            if not admits(self._kept[hit.id].item.trigger.only, known):
                continue
            trust = self.record(hit.id).trust(facts) if self.policy.distil else 1.0
            if trust > 0:
                idle, near = self._reach(self._kept[hit.id].item, query)
                ranked.append((idle, -hit.score * trust * near, place, hit.id))
        return [self._kept[name] for *_, name in sorted(ranked)[:most]]

    @staticmethod
    def apply(item: Item, query: Query, most: int = 3) -> list[str]:
        """Candidates that the item makes of the query's text."""
        said, hinted = given_names(query.messages, query.hints, query.route)
        return candidates(item.template, query.text, query.lines, most, said, hinted)

    @staticmethod
    def _reach(item: Item, query: Query) -> tuple[bool, float]:
        """Whether it makes nothing of the text, and its weight: less away from the findings."""
        if not query.text:
            return False, 1.0
        said, hinted = given_names(query.messages, query.hints, query.route)
        made = edits_of(item.template, query.text, query.lines, 1, said, hinted)
        return not made, 1.0 if made and made[0][1] == 0 else _AWAY

    # ---- effect

    def credit(self, use: Use, before: Outcome, after: Outcome) -> None:
        """Counts a use for the items whose edit can be found in `after`; learns from a step."""
        if not self.policy.distil:
            return
        self._read()
        effect, speedup = effect_of(use.query.aim, before, after)
        names = [id.rpartition("@")[0] or id for id in use.items]
        traced = [name for name in names if name in self._kept and self.traces(name, use)]
        for name in traced:
            self.note(use.key, name, use.query, effect, speedup)
        further = after.rung > before.rung and not before.correct
        if (effect > 0 or further) and not traced:
            self._learn(use, before, speedup, State.VERIFIED if after.correct else State.NEW)

    def note(
        self, key: str, name: str, query: Query, effect: int, speedup: float | None = None
    ) -> None:
        """Counts one use of an item, once for each key; retires what does harm."""
        facts = facts_of(situation_of(query), query.dtypes)
        facts = (*facts, WITH, *(WITH + known for known in circumstances(query)))
        fits = self._fits(self.item(name).item.trigger, query)
        with self._writing() as link:
            done = link.execute(
                "INSERT OR IGNORE INTO uses VALUES (?, ?, ?, ?, ?)",
                (key, name, json.dumps([*facts, fits]), effect, speedup),
            )
            if not done.rowcount:
                return
        self._read()
        record, kept = self.record(name), self._kept[name]
        if record.harmful and kept.state is State.VERIFIED:
            why = f"{record.own.won:g} of {record.own.won + record.own.lost:g} uses helped"
            self.mark(name, State.RETIRED, why)

    def traces(self, name: str, use: Use) -> bool:
        """Whether the item's edit is in `after`: the words that it changes, with their neighbours,
        stand there and did not before."""
        template = self._kept[name].item.template
        said, hinted = given_names(use.query.messages, use.query.hints, use.query.route)
        made = candidates(template, use.before, use.query.lines, 8, said, hinted)
        old, new = words(use.before, template.route), words(use.after, template.route)
        return any(contains(new, old, words(text, template.route)) for text in made)

    # ---- below

    def _learn(self, use: Use, before: Outcome, speedup: float | None, state: State) -> None:
        """A step forward that no item made becomes an item, if it can be replayed.

        It is served when the kernel became right: taking out what was refused is a step, too.
        """
        query = use.query
        item = learn_item(query, use.before, use.after, before.codes, speedup, ())
        if item is not None:
            self.add(item, state, f"learnt, replayed word for word, {use.key}")

    @staticmethod
    def _fits(trigger: Trigger, query: Query) -> bool:
        """Whether the situation is one that the trigger names."""
        frames = {word for word in trigger.words if word.startswith("said ")}
        if frames and query.messages:
            return situation_of(query) in frames
        return not trigger.codes or not query.codes or query.codes[0] in trigger.codes

    def _serves(self, items: Sequence[Item]) -> bool:
        """Whether all of these are verified, and no process changed them since they were read."""
        return all(self._kept[item.name] == Kept(item, State.VERIFIED) for item in items)

    def _twin(self, link: sqlite3.Connection, item: Item) -> Kept | None:
        row = link.execute(
            "SELECT name FROM items WHERE shape = ? ORDER BY seq", (item.shape,)
        ).fetchone()
        return None if row is None else self._kept.get(str(row[0]))

    def _write(
        self, link: sqlite3.Connection, item: Item, state: State, what: str, detail: str
    ) -> None:
        link.execute(
            "INSERT INTO items (name, shape, state, data) VALUES (?, ?, ?, ?) ON CONFLICT (name)"
            " DO UPDATE SET shape = excluded.shape, state = excluded.state, data = excluded.data",
            (item.name, item.shape, state.value, item.model_dump_json()),
        )
        link.execute(
            "INSERT INTO history (item, what, detail) VALUES (?, ?, ?)", (item.name, what, detail)
        )

    def _read(self) -> None:
        """Takes over what was written since the last time, by whom ever."""
        seq, uses = self._rows(
            "SELECT (SELECT coalesce(max(seq), 0) FROM history), (SELECT count(*) FROM uses)"
        )[0]
        if seq > self._seen[0]:
            rows = self._rows(
                "SELECT name, state, data FROM items WHERE name IN"
                " (SELECT item FROM history WHERE seq > ?) ORDER BY seq", self._seen[0],
            )  # fmt: skip
            for name, state, data in rows:
                self._take(str(name), str(state), str(data))
        if uses != self._seen[1]:
            self._count()
        self._seen = (int(seq), int(uses))

    def _take(self, name: str, told: str, data: str) -> None:
        try:
            item, state = Item.model_validate_json(data), State(told)
            if item.name != name:
                raise ValueError(f"it calls itself {item.name}")
        except ValueError as error:  # of pydantic, too
            raise self._damaged(f"item {name} is not whole", error) from error
        self._kept[name] = Kept(item, state)
        served = state is State.VERIFIED or (not self.policy.distil and state is State.NEW)
        if served:
            self._index.add(_entry(item))
        else:
            self._index.remove(name)

    def _count(self) -> None:
        self._records = {}
        for name, context, effect in self._rows("SELECT item, context, effect FROM uses"):
            try:
                *facts, fits = json.loads(context)
                self._records.setdefault(str(name), Record()).add(facts, int(effect), bool(fits))
            except (ValueError, TypeError) as error:
                raise self._damaged(f"a use of item {name} is not whole", error) from error

    def _damaged(self, what: str, error: Exception) -> NpusmithError:
        errors = error.errors() if isinstance(error, ValidationError) else []
        seen = str(errors[0]["msg"] if errors else error)[:200]
        place = Place(str(self.path))
        return NpusmithError("knowledge-damaged", f"{self.path}: {what}", place, seen=seen)


# -------------------------------------------------------------------------------- items from steps


def learn_item(
    query: Query,
    before: str,
    after: str,
    codes: Sequence[str],
    speedup: float | None,
    proofs: Sequence[Proof],
    template: Template | None = None,
) -> Item | None:
    """The item that turns `before` into `after`; None where no edit of ours replays that."""
    said = quoted_names(query.messages)
    found = template or best_template(before, after, query.route, query.lines, said)
    if found is None:
        return None
    traits = read_traits(before, query.route, query.lines)
    codes = [code for code in codes if code in CODES or code in OWN_CODES]
    aim = OPTIMISE if query.aim == OPTIMISE else REPAIR
    label = codes[0] if codes else aim
    change = "faster" if speedup else "accepted"
    trigger = Trigger(
        aim=aim, codes=tuple(codes[:3]), apis=traits.apis[:8], dtypes=traits.dtypes[:4],
        categories=(query.category,) if query.category else (),
        words=tuple(dict.fromkeys(message_words(query.messages[:3])))[:24],
        bottleneck=query.bottleneck,
    )  # fmt: skip
    why = "; ".join(query.messages[:2]) or f"a kernel with this was refused ({label})"
    if speedup:
        why = f"a kernel without this took {speedup:.2f} times as long on the timing model"
    rest = () if proofs else (Proof(before=before, after=after),)
    gain = Proof.model_fields["gain"].default if not speedup else min(speedup, 1.05)
    kept = tuple(proof.model_copy(update={"gain": gain}) for proof in proofs) or rest
    return Item(
        name=_slug(f"{query.route} {label} {_first_word(found)}"),
        title=f"{label}: {_headline(found)}"[:200],
        trigger=trigger,
        rationale=Rationale(why=why[:4000], source=f"learnt: this edit made a kernel {change}"),
        template=found,
        proofs=kept,
        origin="learnt",
    )


def effect_of(aim: str, before: Outcome, after: Outcome) -> tuple[int, float | None]:
    """1, 0 or -1: did the step help? And how many times faster it made a correct kernel.

    A kernel that got further and is not right yet speaks neither for an edit nor against it.
    """
    if before.correct and not after.correct:
        return -1, None
    if after.correct and not before.correct:
        return 1, None
    if before.correct and before.us and after.us:
        ratio = before.us / after.us
        return (ratio >= _FASTER) - (
            ratio < 1 / _FASTER or (aim == OPTIMISE and ratio < _FASTER)
        ), ratio
    gone = set(before.codes[:1]) - set(after.codes)
    return (0 if after.rung > before.rung or (gone and after.rung == before.rung) else -1), None


def _merge(old: Kept, new: Item, state: State) -> tuple[Item, State]:
    """The older item, with what the newer one knows of where it applies, and its proofs.

    What was not verified teaches one that was nothing, and a retired item stays so.
    """
    if state is State.NEW and old.state is not State.NEW:
        return old.item, old.state
    if state is State.VERIFIED and old.state is State.NEW:
        return new.model_copy(update={"name": old.item.name}), state
    a, b = old.item.trigger, new.trigger

    def both(name: str, most: int = 24) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*getattr(a, name), *getattr(b, name))))[:most]

    trigger = a.model_copy(
        update={
            **{name: both(name) for name in ("codes", "apis", "dtypes", "categories", "words")},
            "chips": both("chips") if a.chips and b.chips else (),
            "bottleneck": a.bottleneck or b.bottleneck,
            "only": tuple(text for text in a.only if not _speaks_against(b, text)),
        }
    )
    known = old.item.proofs
    proofs = (*known, *(proof for proof in new.proofs if proof not in known))
    return old.item.model_copy(update={"trigger": trigger, "proofs": proofs[:3]}), old.state


def _speaks_against(trigger: Trigger, condition: str) -> bool:
    """Whether the edit was seen to help where the condition does not let it be served."""
    seen = trigger.known[kind_of(condition)]
    return bool(seen) and not admits((condition,), seen)


def situation_of(query: Query) -> str:
    """One word for what happened: the first message without its names, or the first code."""
    if query.messages:
        return message_words(query.messages[:1])[0]
    if query.aim == OPTIMISE and query.bottleneck:
        return f"slow by {_limit(query.bottleneck)}"
    return f"code {query.codes[0]}" if query.codes else query.aim


def _limit(bottleneck: Sequence[float]) -> str:
    """What takes most of the time: a pipe that works, or a reason to wait."""
    shares = [
        (value, name)
        for value, name in zip(bottleneck, NAMES, strict=False)
        if name.startswith(("busy_", "wait_"))
    ]
    return max(shares, default=(0.0, "nothing known"))[1]


def _situation(query: Query) -> tuple[list[str], Any]:
    """What a query is searched by: words, and a vector."""
    traits = read_traits(query.text, query.route, query.lines)
    said = message_words(query.messages[:3])
    names = [*query.apis, *traits.apis]
    found = [*_weighted((*query.codes, *said)), *names, *said]
    if query.lines or not query.codes:
        found += traits.words[:80]
    texts = (*query.codes, *query.messages, *([] if query.messages else [" ".join(names)]))
    vector = embed(texts, query.bottleneck, _static(query.text, query.route))
    return found, vector


def _entry(item: Item) -> Entry:
    trigger = item.trigger
    pattern = [
        token.text
        for edit in item.template.edits
        for token in compile_pattern(edit.find, item.route).tokens
        if token.kind in (Kind.NAME, Kind.TEXT)
    ]
    found = (*_weighted((*trigger.codes, *trigger.words)), *trigger.apis, *trigger.words, *pattern)
    found = (*found, *plain_words(item.title))
    texts = (*trigger.codes, " ".join(trigger.words) or item.title, item.rationale.why[:300])
    before = item.proofs[0].before if item.proofs else ""
    vector = embed(texts, trigger.bottleneck, _static(before, item.route))
    return Entry(item.name, trigger.aim, item.route, trigger.chips, found, vector)


def _weighted(found: Sequence[str]) -> list[str]:
    """Codes and messages count more than names: they say what happened."""
    strong = [word for word in found if word.startswith("said ") or word in CODES]
    return [word for word in strong for _ in range(_CODE_WEIGHT)]


def _static(text: str, route: str) -> tuple[float, ...]:
    return read_traits(text, route).vector if text else ()


def _free_name(link: sqlite3.Connection, name: str) -> str:
    number, free = 1, name
    while link.execute("SELECT 1 FROM items WHERE name = ?", (free,)).fetchone():
        number += 1
        free = f"{name}-{number}"
    return free


def _slug(text: str) -> str:
    plain = "-".join(plain_words(text))[:60].strip("-")
    return plain or "item"


def _first_word(template: Template) -> str:
    tokens = compile_pattern(template.edits[0].find, template.route).tokens
    return next((item.text for item in tokens if item.kind is Kind.NAME), "edit")


def _headline(template: Template) -> str:
    """The first line that the edit changes."""
    edit = template.edits[0]
    old = edit.find.split("\n")
    line = next((line for line in edit.put.split("\n") if line not in old), edit.put or "(nothing)")
    return " ".join(line.split())
