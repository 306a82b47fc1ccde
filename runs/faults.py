"""The fault bench: how much does knowledge help a mechanical repairer, and what does each part do?

    python runs/faults.py --json FILE [--work DIR] [--half 100] [--seed 7] [--only none,full]

Correct kernels of 22 operators, as tile programs and as Ascend C, are broken by seeded faults of
the kinds that models make (runs/faults_kinds.py). What the judge accepts all the same is no fault.
One half may be learnt from; the other half is over other operators and is only repaired.

The repairer has no judgement of its own: it searches, applies what it is served, has the result
judged, and goes on to the next, at most TRIES times for a kernel. Without knowledge it makes random
edits of the text, as many: what chance gives. Settings:

    none            random edits
    seeds           the items that ship with npusmith
    full            seeds, and what was learnt from the first half
    kept            seeds, and the items of the folder --keep as somebody imports them
    no-words        full, without the syntactic axis
    no-hardware     full, without the hardware-aligned axis
    no-distil       learnt without verification, merging, credit and retirement
    wrong           full, with 5 % wrong items put in before learning begins
    wrong-no-distil the same without distillation

With --engine the faults are not of those kinds: faults_engine.py mutates nodes of syntax trees,
kinds are drawn in turn, and a third of the held-out kernels have kinds that nothing was learnt from
("new" in the table by family; Ascend C needs tree-sitter and tree-sitter-cpp). Take it with
--tries 2: then ranking counts.

Judging is cached in the work folder by the text and the sources that judge it, so that a run that
was killed goes on where it was and writes the same FILE, and a change of language, lowering, twin
or timing judges anew. Several processes may share a folder. Another `--seed` puts other
faults into the same operators. Times are estimates of the timing model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from faults_cases import HELD, LEARN, make_case
from faults_engine import Site, is_unseen, sites
from faults_kinds import KINDS, SHARES, SLOW, Kind

import npusmith
from npusmith.bench.pool import stay_with
from npusmith.knowledge.base import Base, Policy, learn_item, open_knowledge
from npusmith.knowledge.edit import quoted_names
from npusmith.knowledge.exchange import read_items, read_seeds, write_items
from npusmith.knowledge.index import Axes
from npusmith.knowledge.item import OPTIMISE, REPAIR, Item, Proof, State
from npusmith.knowledge.learn import best_template, drafts
from npusmith.knowledge.seam import Query
from npusmith.knowledge.tokens import ROUTES, TILE, read_tokens
from npusmith.knowledge.tokens import Kind as TokenKind
from npusmith.knowledge.traits import read_traits
from npusmith.knowledge.trial import SLOW as SLOW_CODE
from npusmith.knowledge.trial import Bench, Judged, Timed
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")
TRIES = 12  # texts that are judged for one kernel
SERVED = 6  # items that are tried in turn; then the next as many, while tries are left
PAGES = 3
PLACES = 3  # candidates of one item
SLOWER = 1.08  # a slow kernel takes at least this many times as long
WRONG_SHARE = 0.05
NO_DIRECT = ("cumsum_exclusive", "cumprod_reverse")  # their kernel is a template class of ours
JUDGES = (
    "errors.py", "ir", "target", "lang", "lower", "twin", "timing", "knowledge/trial.py",
)  # fmt: skip
SETTINGS = (
    "full", "seeds", "kept", "no-words", "no-hardware", "wrong", "no-distil", "wrong-no-distil",
    "none",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Broken:
    """A kernel with one fault in it."""

    id: str
    operator: str
    route: str
    family: str
    kind: str
    text: str
    slow: float = 1.0  # how many times as long it takes as the correct one


@dataclass
class Judge:
    """Verdicts and times, cached by text; counts what it had to do anew."""

    work: Path
    tries: int = TRIES
    made: int = 0
    benches: dict[str, Bench] = field(default_factory=dict)

    def bench(self, operator: str) -> Bench:
        if operator not in self.benches:
            folder = self.work / "cases" / judge_version() / operator  # with the lowered kernel
            self.benches[operator] = Bench(make_case(operator), CHIP, folder)
        return self.benches[operator]

    def good(self, operator: str, route: str) -> str:
        bench = self.bench(operator)
        return bench.case.program if route == TILE else bench.kernel

    def judge(self, operator: str, route: str, text: str) -> Judged:
        bench = self.bench(operator)
        kept = self._kept("judged", bench, route, text, lambda: bench.judge(route, text))
        return Judged.model_validate_json(kept)

    def time(self, operator: str, route: str, text: str) -> Timed | None:
        bench = self.bench(operator)
        nothing = Timed(us=0, vector=())
        kept = self._kept("timed", bench, route, text, lambda: bench.time(route, text) or nothing)
        timed = Timed.model_validate_json(kept)
        return timed if timed.us else None

    def _kept(
        self, what: str, bench: Bench, route: str, text: str, make: Callable[[], Judged | Timed]
    ) -> str:
        whole = f"{judge_version()}\0{bench.case.model_dump_json()}\0{route}\0{text}".encode()
        path = self.work / what / f"{hashlib.sha256(whole).hexdigest()[:24]}.json"
        if not path.exists():
            self.made += 1
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(f".{os.getpid()}")
            fresh.write_text(make().model_dump_json(), encoding="utf-8")
            fresh.replace(path)
        return path.read_text(encoding="utf-8")


@cache
def judge_version() -> str:
    """Of everything that decides what a text is worth: what was judged before it is not reused."""
    root = Path(npusmith.__file__).parent
    found = [root / name for name in JUDGES if (root / name).is_file()]
    found += [path for name in JUDGES for path in (root / name).rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted(path for path in found if path.suffix not in (".pyc", ".gch")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


# ------------------------------------------------------------------------------- broken kernels


def break_half(
    operators: Sequence[str], size: int, judge: Judge, routes: Sequence[str], seed: int
) -> list[Broken]:
    """That many kernels: the families in their shares, over routes and operators in turn."""
    slow = max(2, round(size * 0.14))
    wanted = {name: round((size - slow) * share) for name, share in SHARES.items()}
    wanted["api"] += size - slow - sum(wanted.values())
    wanted[SLOW] = slow
    made: list[Broken] = []
    for family, count in wanted.items():
        rng = random.Random(f"{seed} {family} {operators[0]}")
        made += _break_family(family, count, operators, judge, routes, rng)
    return made


def _break_family(
    family: str,
    count: int,
    operators: Sequence[str],
    judge: Judge,
    routes: Sequence[str],
    rng: random.Random,
) -> list[Broken]:
    spots = [(kind, name) for kind in KINDS for name in operators if kind.family == family]
    spots = [
        (kind, name)
        for kind, name in spots
        if kind.route in routes and (kind.route == TILE or name not in NO_DIRECT)
    ]
    rng.shuffle(spots)
    made: list[Broken] = []
    used: Counter[str] = Counter()
    texts: set[str] = set()
    while spots and len(made) < count:
        # the route, kind and operator that were used least come first
        spots.sort(key=lambda spot: (used[spot[0].route], used[spot[0].name], used[spot[1]]))
        kind, operator = spots.pop(0)
        broken = break_kernel(kind, operator, judge, rng)
        if broken is None or broken.text in texts:
            continue
        texts.add(broken.text)
        made.append(broken)
        used.update((kind.route, kind.name, operator))
    return made


def break_kernel(kind: Kind, operator: str, judge: Judge, rng: random.Random) -> Broken | None:
    """One site of that kind at which the fault shows, None where there is none."""
    good = judge.good(operator, kind.route)
    sites = kind.sites(good)
    rng.shuffle(sites)
    for site in sites[:2]:
        put = kind.change(site, rng)
        if put is None or put == site.group(0):
            continue
        text = good[: site.start()] + put + good[site.end() :]
        slow = _slowness(kind, operator, text, judge)
        if slow is not None:
            id = f"{operator}/{kind.route}/{kind.name}".replace(" ", "-")
            return Broken(id, operator, kind.route, kind.family, kind.name, text, slow)
    return None


def draw_half(
    operators: Sequence[str], size: int, judge: Judge, routes: Sequence[str], seed: int, new: bool
) -> list[Broken]:
    """That many kernels with faults that faults_engine.py makes: kinds in turn, each least used.

    `new`: a third of them of kinds that nothing was learnt from; else of the other kinds alone.
    """
    rng = random.Random(f"{seed} engine {operators[0]}")
    pools: dict[tuple[str, bool], list[tuple[str, Site]]] = {}
    for route in routes:
        for name in operators:
            if route == TILE or name not in NO_DIRECT:
                for site in sites(judge.good(name, route), route):
                    pools.setdefault((route, is_unseen(site.kind)), []).append((name, site))
    made: list[Broken] = []
    used: Counter[str] = Counter()
    for at in range(size):
        route, unseen = routes[at % len(routes)], new and at // len(routes) % 3 == 0
        pool = pools[route, unseen]
        rng.shuffle(pool)
        pool.sort(key=lambda row: (used[f"{route} {row[1].kind}"], used[row[0]]), reverse=True)
        while pool:
            name, site = pool.pop()
            broken = _break_at(site, name, route, judge)
            if broken is not None:
                used.update((f"{route} {site.kind}", name))
                made.append(broken)
                break
    return made


def _break_at(site: Site, operator: str, route: str, judge: Judge) -> Broken | None:
    """None where the change makes no fault."""
    text = site.changed(judge.good(operator, route))
    if judge.judge(operator, route, text).accepted:
        return None
    family = f"{site.kind.partition(':')[0]}{', new' if is_unseen(site.kind) else ''}"
    id = f"{operator}/{route}/{site.kind}/{site.start}".replace(" ", "-")
    return Broken(id, operator, route, family, site.kind, text)


def _slowness(kind: Kind, operator: str, text: str, judge: Judge) -> float | None:
    """How much slower (1 for a fault); None when it is no fault, or not slow."""
    verdict = judge.judge(operator, kind.route, text)
    if kind.family != SLOW:
        return None if verdict.accepted else 1.0
    if not verdict.accepted:
        return None
    before = judge.time(operator, kind.route, judge.good(operator, kind.route))
    after = judge.time(operator, kind.route, text)
    if before is None or after is None or after.us < SLOWER * before.us:
        return None
    return round(after.us / before.us, 3)


# ------------------------------------------------------------------------------------ repairing


@dataclass
class Repair:
    """What became of one broken kernel."""

    id: str
    family: str
    route: str
    kind: str
    fixed: bool
    tries: int
    speedup: float = 1.0
    slow: float = 1.0
    items: list[str] = field(default_factory=list)  # that led there
    text: str = ""


Note = Callable[[str, str, Query, int, float | None], None]


def _ignore(key: str, name: str, query: Query, effect: int, speedup: float | None) -> None:
    """A frozen store: what is measured does not change it."""


def repair(broken: Broken, base: Base | None, judge: Judge, note: Note = _ignore) -> Repair:
    """Search, apply, judge, next."""
    worker = _optimise if broken.family == SLOW else _repair
    result = Repair(broken.id, broken.family, broken.route, broken.kind, False, 0, slow=broken.slow)
    worker(broken, base, judge, note, result)
    return result


def _repair(broken: Broken, base: Base | None, judge: Judge, note: Note, result: Repair) -> None:
    text, seen = broken.text, {broken.text}
    verdict = judge.judge(broken.operator, broken.route, text)
    while result.tries < judge.tries:
        query = query_of(broken, text, verdict, judge)
        step: tuple[str, Judged, str] | None = None
        made = proposals(broken, base, query, result.tries)
        effects: dict[str, int] = {}
        for name, candidate in in_turn(made):
            if candidate in seen or result.tries >= judge.tries:
                continue
            effects.setdefault(name, -1)
            seen.add(candidate)
            result.tries += 1
            after = judge.judge(broken.operator, broken.route, candidate)
            if after.accepted:
                note(f"{broken.id} {result.tries}", name, query, 1, None)
                result.fixed, result.text = True, candidate
                result.items.append(name)
                return
            if forward(verdict, after):
                effects[name] = 0
                step = step or (candidate, after, name)
        for name, effect in effects.items():
            note(f"{broken.id} {result.tries}", name, query, effect, None)
        if step is None:
            return
        text, verdict = step[0], step[1]
        result.items.append(step[2])


def _optimise(broken: Broken, base: Base | None, judge: Judge, note: Note, result: Repair) -> None:
    """Keeps the fastest text that is right; goes on from there until nothing helps."""
    start = judge.time(broken.operator, broken.route, broken.text)
    assert start is not None
    text, best, seen = broken.text, start, {broken.text}
    while result.tries < judge.tries:
        query = query_of(broken, text, Judged(accepted=True, rung=3), judge, best.vector)
        found: tuple[str, Timed, str] | None = None
        for name, made in proposals(broken, base, query, result.tries):
            if result.tries >= judge.tries:
                break
            helped: float | None = None
            for candidate in made:
                if candidate in seen or result.tries >= judge.tries:
                    continue
                seen.add(candidate)
                result.tries += 1
                if not judge.judge(broken.operator, broken.route, candidate).accepted:
                    continue
                timed = judge.time(broken.operator, broken.route, candidate)
                if timed is None or timed.us * 1.02 > best.us:
                    continue
                helped = max(helped or 0, best.us / timed.us)
                if found is None or timed.us < found[1].us:
                    found = (candidate, timed, name)
            if made:
                note(f"{broken.id} {result.tries}", name, query, 1 if helped else -1, helped)
        if found is None:
            break
        text, best = found[0], found[1]
        result.items.append(found[2])
    result.speedup = round(start.us / best.us, 4)
    result.fixed, result.text = result.speedup >= SLOWER, text


def in_turn(made: Sequence[tuple[str, list[str]]]) -> list[tuple[str, str]]:
    """The first text of each item of a page, then the second ones ...; then the next page."""
    pages = [made[start : start + SERVED] for start in range(0, len(made), SERVED)]
    return [
        (name, texts[place])
        for page in pages
        for place in range(max(len(texts) for _, texts in page))
        for name, texts in page
        if place < len(texts)
    ]


def forward(before: Judged, after: Judged) -> bool:
    """Whether a text that is not accepted got further."""
    return after.rung > before.rung


def query_of(
    broken: Broken, text: str, verdict: Judged, judge: Judge, vector: Sequence[float] = ()
) -> Query:
    """The situation, as the agent would put it."""
    traits = read_traits(text, broken.route, verdict.lines)
    slow = broken.family == SLOW
    return Query(
        route=broken.route,
        aim=OPTIMISE if slow else REPAIR,
        text=text,
        codes=(SLOW_CODE,) if slow else verdict.codes,
        apis=traits.apis[:8],
        dtypes=traits.dtypes[:4],
        category=judge.bench(broken.operator).case.category,
        chip=CHIP.name,
        bottleneck=tuple(vector),
        messages=verdict.messages,
        lines=verdict.lines,
        hints=verdict.hints,
    )


def proposals(
    broken: Broken, base: Base | None, query: Query, done: int
) -> list[tuple[str, list[str]]]:
    """What to try, by item; without a store, random edits."""
    if base is None:
        rng = random.Random(f"{broken.id} {done}")
        return [("chance", [random_edit(query, rng) for _ in range(TRIES)])]
    found = base.find(query, SERVED * PAGES)
    return [(kept.item.name, base.apply(kept.item, query, PLACES)) for kept in found]


def random_edit(query: Query, rng: random.Random) -> str:
    """A word of the line that a finding names, or of any line, put out, doubled or exchanged."""
    tokens = [token for token in read_tokens(query.text, query.route) if token.end > token.start]
    near = [token for token in tokens if token.line in query.lines] or tokens
    token = rng.choice(near)
    same = [item for item in tokens if item.kind is token.kind] or tokens
    put = rng.choice(
        ("", f"{token.text} {token.text}", rng.choice(same).text, rng.choice(same).text)
    )
    if token.kind is TokenKind.NUMBER and rng.random() < 0.5:
        put = str(rng.choice((0, 1, 2, 8, 64, 1024, 4096)))
    return query.text[: token.start] + put + query.text[token.end :]


# ------------------------------------------------------------------------------------- learning


def learn_half(half: Sequence[Broken], base: Base, judge: Judge) -> None:
    """Repair each kernel with what is known; learn from its fix where that does not do.

    A second pass counts how the items do on all kernels of the half, with everything known.
    """
    for broken in half:
        outcome = repair(broken, base, judge, partial(_note, base, "first"))
        if not outcome.fixed or not base.policy.distil:
            learn_fix(broken, base, judge)
    if base.policy.distil:
        for broken in half:
            repair(broken, base, judge, partial(_note, base, "second"))


def _note(
    base: Base, phase: str, key: str, name: str, query: Query, effect: int, speedup: float | None
) -> None:
    if base.policy.distil:
        base.note(f"{phase} {key} {name}", name, query, effect, speedup)


def learn_fix(broken: Broken, base: Base, judge: Judge) -> None:
    """An item from a broken kernel and the correct one, replayed before it is believed."""
    good = judge.good(broken.operator, broken.route)
    verdict = judge.judge(broken.operator, broken.route, broken.text)
    slow = judge.time(broken.operator, broken.route, broken.text) if broken.family == SLOW else None
    query = query_of(broken, broken.text, verdict, judge, slow.vector if slow else ())
    said = quoted_names(query.messages)

    def accept(text: str) -> bool:
        return judge.judge(broken.operator, broken.route, text).accepted

    if base.policy.distil:
        template = best_template(broken.text, good, broken.route, query.lines, said, accept)
    else:  # the first idea, whether it holds or not
        template = next(iter(drafts(broken.text, good, broken.route, said)), None)
    if template is None:
        return
    proof = Proof(case=judge.bench(broken.operator).case, before=broken.text, after=good)
    item = learn_item(
        query, broken.text, good, query.codes, broken.slow if slow else None, (proof,), template
    )
    if item is not None:
        base.add(item, State.VERIFIED, f"learnt from {broken.id}")


def wrong_items(base: Base) -> list[Item]:
    """Items that say they are verified and are not: the edits of good ones turned round.

    Those of the items that were used most, so that they come up often.
    """
    kept = [row.item for row in base.items(State.VERIFIED)]
    kept.sort(key=lambda item: (-base.record(item.name).own.won, item.name))
    wrong: list[Item] = []
    for item in kept:
        if len(wrong) >= math.ceil(WRONG_SHARE * len(kept)):
            break
        edit = item.template.edits[0]
        turned = {"find": edit.put, "put": edit.find, "every": False}
        data = item.model_dump()
        data["template"] = {"route": item.route, "edits": [turned], "where": []}
        data.update(name=f"wrong-{item.name}"[:80].strip("-"), proofs=[])
        try:
            wrong.append(Item.model_validate(data))
        except ValueError:
            continue
    return wrong


# ------------------------------------------------------------------------------------ measuring


def make_base(
    setting: str,
    folder: Path,
    learn: Sequence[Broken],
    judge: Judge,
    full: Base | None,
    kept: Path | None = None,
) -> Base | None:
    """The store of a setting, after learning. `kept`: a folder with items, of that setting."""
    if setting == "none":
        return None
    if setting in ("no-words", "no-hardware"):
        assert full is not None
        axes = Axes(words=setting != "no-words", hardware=setting != "no-hardware")
        return open_knowledge(full.path, policy=Policy(axes))
    policy = Policy(distil="no-distil" not in setting)
    base = open_knowledge(folder / f"{setting}.db", policy=policy)
    if setting.startswith("wrong"):
        assert full is not None
        for item in wrong_items(full):
            base.add(item, State.VERIFIED, "put in wrong")
    if setting == "kept":
        for item in read_items(kept) if kept is not None else ():
            base.add(item, State.VERIFIED, "kept")
    elif setting != "seeds":
        learn_half(learn, base, judge)
    return base


def measure(base: Base | None, held: Sequence[Broken], judge: Judge, jobs: int) -> list[Repair]:
    """Repairs of the held-out half; the store is not changed, so their order means nothing."""
    if jobs == 1:
        return [repair(broken, base, judge) for broken in held]
    place = None if base is None else (base.path, base.policy)
    asked = judge.work, judge.tries
    with ProcessPoolExecutor(jobs, initializer=stay_with, initargs=(os.getpid(),)) as pool:
        return list(pool.map(partial(_remote, place, asked), held))


def _remote(place: tuple[Path, Policy] | None, asked: tuple[Path, int], broken: Broken) -> Repair:
    base = None if place is None else open_knowledge(place[0], policy=place[1])
    return repair(broken, base, Judge(*asked))


def summary(rows: Sequence[Repair]) -> dict[str, object]:
    wrong = [row for row in rows if row.family != SLOW]
    slow = [row for row in rows if row.family == SLOW]

    def share(part: Sequence[Repair]) -> float:
        return round(sum(row.fixed for row in part) / max(len(part), 1), 4)

    def by(field: str) -> dict[str, float]:
        names = sorted({getattr(row, field) for row in wrong})
        return {
            name: share([row for row in wrong if getattr(row, field) == name]) for name in names
        }

    def mean(values: Sequence[float]) -> float:
        return round(math.exp(sum(map(math.log, values)) / max(len(values), 1)), 4)

    return {
        "kernels": len(wrong),
        "correct": share(wrong),
        "at_once": round(
            sum(row.fixed and row.tries == 1 for row in wrong) / max(len(wrong), 1), 4
        ),
        "tries": round(sum(row.tries for row in wrong) / max(len(wrong), 1), 2),
        "by_family": by("family"),
        "by_route": by("route"),
        "slow_kernels": len(slow),
        "slow_tries": round(sum(row.tries for row in slow) / max(len(slow), 1), 2),
        "speedup": mean([row.speedup for row in slow]),
        "slowdown": mean([row.slow for row in slow]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("faults-work"))
    parser.add_argument("--half", type=int, default=100, help="broken kernels of each half")
    parser.add_argument("--seed", type=int, default=7, help="of the choice of faults")
    parser.add_argument(
        "--only",
        default=",".join(item for item in SETTINGS if item != "kept"),
        help="settings, with commas",
    )
    parser.add_argument("--routes", default=",".join(ROUTES), help="tile, direct or both")
    parser.add_argument(
        "--engine", action="store_true", help="faults that faults_engine.py draws, not our kinds"
    )
    parser.add_argument("--tries", type=int, default=TRIES, help="texts judged for one kernel")
    parser.add_argument(
        "--keep",
        type=Path,
        help="write what `full` has learnt into this folder, for `npusmith knowledge import`",
    )
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    wanted = [name for name in SETTINGS if name in options.only.split(",")]
    judge, routes = Judge(options.work, options.tries), options.routes.split(",")
    if options.engine:
        learn, held = (
            draw_half(tuple(names), options.half, judge, routes, options.seed, names is HELD)
            for names in (LEARN, HELD)
        )
    else:
        learn, held = (
            break_half(tuple(names), options.half, judge, routes, options.seed)
            for names in (LEARN, HELD)
        )
    report = {**describe(learn, held), "tries": judge.tries, "served": SERVED, "seed": options.seed}
    say(json.dumps(report["kernels"]))
    say(f"{len(learn) + len(held)} kernels, {judge.made} judged anew")
    report["settings"] = answers = {}
    rows: dict[str, list[Repair]] = {}
    with tempfile.TemporaryDirectory(prefix="faults-", dir=options.work) as folder:
        full: Base | None = None
        if set(wanted) - {"none", "seeds", "kept", "no-distil"}:
            full = make_base("full", Path(folder), learn, judge, None)
            if options.keep is not None and full is not None:
                keep(full, options.keep)
        for setting in wanted:
            clock = time.monotonic()
            base = (
                full
                if setting == "full"
                else make_base(setting, Path(folder), learn, judge, full, options.keep)
            )
            rows[setting] = measure(base, held, judge, options.jobs)
            answers[setting] = {
                **summary(rows[setting]), **_count(base),
                "misses": misses(rows[setting], learn, judge.tries),
            }  # fmt: skip
            say(f"{setting}: {json.dumps(answers[setting])} ({time.monotonic() - clock:.0f} s)")
            _write(options.json, report, rows)


def keep(base: Base, folder: Path) -> None:
    """The learnt items that are in service, in the place of those that were there."""
    seeds = {item.name for item in read_seeds()}
    found = [row.item for row in base.items(State.VERIFIED) if row.item.name not in seeds]
    for old in folder.glob("*.toml"):
        old.unlink()
    write_items(found, folder)
    say(f"{len(found)} learnt items in {folder}")


def describe(learn: Sequence[Broken], held: Sequence[Broken]) -> dict[str, Any]:
    """What the kernels are: how many of each family, route and kind, over which operators."""

    def counted(half: Sequence[Broken], name: str) -> dict[str, int]:
        return dict(sorted(Counter(getattr(broken, name) for broken in half).items()))

    halves = {"learn": learn, "held": held}
    return {
        "kernels": {
            name: {"all": len(half), **counted(half, "family"), **counted(half, "route")}
            for name, half in halves.items()
        },
        "operators": {name: sorted({b.operator for b in half}) for name, half in halves.items()},
        "kinds": {name: counted(half, "kind") for name, half in halves.items()},
    }


def misses(rows: Sequence[Repair], learn: Sequence[Broken], tries: int) -> dict[str, int]:
    """Why kernels were not mended: was the kind to be learnt, and was there more to try?"""
    known = {(broken.route, broken.kind) for broken in learn}
    found = Counter(
        ("kind seen while learning" if (row.route, row.kind) in known else "kind never seen")
        + (", tries spent" if row.tries >= tries else ", nothing more that fits")
        for row in rows
        if not row.fixed and row.family != SLOW
    )
    return dict(sorted(found.items()))


def _count(base: Base | None) -> dict[str, object]:
    if base is None:
        return {"items": 0}
    states = Counter(kept.state.value for kept in base.items())
    return {"items": states["verified"], "retired": states["retired"]}


def _write(path: Path, report: dict[str, Any], rows: dict[str, list[Repair]]) -> None:
    kept = {name: [asdict(row) | {"text": ""} for row in part] for name, part in rows.items()}
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps({**report, "rows": kept}, indent=1) + "\n", encoding="utf-8")
    fresh.replace(path)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
