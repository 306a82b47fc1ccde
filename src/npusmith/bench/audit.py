"""Whether a run can be believed: its file, its keys, its figures, and some candidates run again.

- the store's own check, and each record against the unit that it is of: the key is computed again
  from item, candidate, trial, limits and judge;
- every count, and every rate for one sample, computed again from the raw texts by a few lines
  that share nothing with metrics.py, and the stored summary compared with the present one;
- a sample of the candidates judged again: what they did then must be what they do now.
"""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from npusmith.bench.archive import SUMMARY, Run
from npusmith.bench.metrics import CONVENTIONS, THRESHOLDS, Group, Summary
from npusmith.bench.model import Candidate, Item, Record, Suite
from npusmith.bench.plan import judge_of
from npusmith.bench.work import key_of

COMPARED = ("compiled", "official", "strict", "precise", "clean", "cheating", "findings")
_NEAR = 1e-9


class Audit(BaseModel):
    """What was looked at, and what was wrong."""

    model_config = ConfigDict(extra="forbid")

    records: int = 0
    figures: int = 0  # computed in two ways
    again: int = 0  # candidates judged again
    wrong: list[str] = []  # empty: the run is what it says
    notes: list[str] = []  # what could not be looked at


def audit(
    run: Run, rerun: int = 5, root: Path | None = None, step: Callable[[str], None] = lambda _: None
) -> Audit:
    """Looks at everything; judges `rerun` candidates again, on the checkout at `root`."""
    found = Audit()
    step("store")
    verify(run, found)
    step("figures")
    summary = run.summary()
    _check_figures(run, summary, found)
    _check_summary(run, summary, found)
    if rerun:
        _judge_again(run, rerun, root, found, step)
    return found


def verify(run: Run, found: Audit | None = None) -> Audit:
    """The store's file, and each record's key."""
    found = found or Audit()
    found.wrong += run.store.verify()
    _check_keys(run, found)
    return found


def _check_keys(run: Run, found: Audit) -> None:
    """Each record against its unit, and its key against what it is of."""
    items = {item.name: item for item in run.items()}
    known: dict[tuple[str, int], Candidate] = {}
    place: tuple[str, int] | None = None
    for kept in run.store.records():
        record = Record.model_validate_json(kept.data)
        found.records += 1
        if place != (kept.item, kept.sample):  # one candidate in memory at a time
            place = kept.item, kept.sample
            known = {place: run.candidate(record)}
        candidate = known[place]
        if (record.item, record.sample, record.trial) != (kept.item, kept.sample, kept.trial):
            found.wrong.append(f"record {kept.key[:12]} is of another unit than it says")
            continue
        key = key_of(run.plan, items[kept.item], candidate, kept.trial)
        if not key == kept.key == record.key or record.candidate != candidate.digest:
            found.wrong.append(
                f"record {kept.key[:12]} of {kept.item} sample {kept.sample}: its key is not that "
                "of its task, candidate and limits"
            )


def _check_figures(run: Run, summary: Summary, found: Audit) -> None:
    """Counts and shares once more, from the texts."""
    groups: dict[tuple[str, str], Group] = {("", ""): summary.overall}
    for kind in ("levels", "categories", "dtypes"):
        groups |= {(kind, name): group for name, group in getattr(summary, kind).items()}
    units: dict[str, dict[int, list[dict[str, object]]]] = defaultdict(lambda: defaultdict(list))
    for kept in run.store.records():
        data = json.loads(kept.data)
        units[kept.item][kept.sample].append({name: data.get(name) for name in _READ})
    for (kind, name), group in groups.items():
        field = {"levels": "level", "categories": "category", "dtypes": "dtype"}.get(kind, "")
        samples = [
            [_plain(trials) for trials in units[item.name].values()]
            for item in run.items()
            if not kind or getattr(item, field) == name
        ]
        for label, ours, theirs in _pairs(group, samples):
            found.figures += 1
            if not _same(ours, theirs):
                where = f"{kind} {name}" if kind else "all tasks"
                found.wrong.append(f"{label} of {where} is {ours}, the records say {theirs}")


_READ = ("compiled", "official", "strict", "precise", "clean", "cheating", "time_us", "eager_us")
_Sample = dict[str, bool | float | None]


def _plain(trials: list[dict[str, object]]) -> _Sample:
    """One sample: no when any trial says no, not measured when any does not say."""
    answers: _Sample = {}
    for event in ("compiled", "official", "strict", "precise", "clean"):
        values = [False if trial["compiled"] is False else trial[event] for trial in trials]
        known = all(value is not None for value in values)
        answers[event] = False if False in values else all(values) if known else None
    cheats = any(trial["cheating"] for trial in trials)
    answers["cheating"] = cheats if answers["compiled"] is not None else None
    answers["correct"] = False if cheats and answers["official"] else answers["official"]
    answers["trusted"] = (
        False
        if False in (answers["correct"], answers["strict"], answers["clean"])
        else None
        if None in (answers["correct"], answers["strict"], answers["clean"])
        else True
    )
    pairs = [(trial["eager_us"], trial["time_us"]) for trial in trials]
    speedups = sorted(float(str(a)) / float(str(b)) for a, b in pairs if a is not None and b)
    half = len(speedups) // 2
    middle = (speedups[half] + speedups[~half]) / 2 if speedups else None
    answers["speedup"] = middle if len(speedups) == len(pairs) else None
    return answers


def _pairs(
    group: Group, tasks: list[list[_Sample]]
) -> Iterator[tuple[str, float | None, float | None]]:
    """Each figure: its name, as the summary has it, and as counted here."""
    yield "tasks", group.tasks, len(tasks)
    measured = [any(s["compiled"] is not None for s in task) for task in tasks]
    yield "n", group.n, sum(measured)
    for event in ("compiled", "official", "strict", "precise", "correct", "trusted", "cheating"):
        yield event, getattr(group, event), sum(any(s[event] for s in task) for task in tasks)
    for label, event in (("compile@1", "compiled"), ("pass@1", "correct"), ("strict@1", "strict")):
        shares = [_share([s[event] for s in task]) for task in tasks]
        yield label, group.rates[label].value, _average(shares)
    timed = any(s["correct"] and s["speedup"] is not None for task in tasks for s in task)
    right = any(s["correct"] for task in tasks for s in task)
    for how in CONVENTIONS:
        for p in THRESHOLDS:
            fast = [[_fast(s, p, how) for s in task] for task in tasks]
            label = f"fast_{p:g}_{how}"
            count = sum(any(row) for row in fast) if timed or not right else None
            yield f"{label} count", group.fast[how][f"{p:g}"], count
            shares = [_share(row) for row in fast] if timed or not right else []
            yield label, group.rates[label].value, _average(shares)


def _fast(sample: _Sample, p: float, how: str) -> bool | None:
    if not sample["correct"]:
        return False if sample["correct"] is False else None
    speedup = sample["speedup"]
    if speedup is None:
        return None
    return speedup > p or (how == "at_least" and speedup == p)


def _share(values: Sequence[bool | float | None]) -> float | None:
    known = [bool(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _average(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return math.fsum(known) / len(known) if known else None


def _same(ours: float | None, theirs: float | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return math.isclose(ours, theirs, rel_tol=_NEAR, abs_tol=_NEAR)


def _check_summary(run: Run, summary: Summary, found: Audit) -> None:
    """The document that the run left, against the one that its records give now."""
    text = run.store.setting(SUMMARY)
    if not text:
        found.notes.append("the run did not end, so it left no summary to compare")
        return
    stored, now = json.loads(text), json.loads(json.dumps(run.document(summary)))
    for name in sorted(set(stored) | set(now)):
        if stored.get(name) != now.get(name):
            found.wrong.append(f"the summary's {name!r} is not what the records give")


def _judge_again(
    run: Run, most: int, root: Path | None, found: Audit, step: Callable[[str], None]
) -> None:
    """Judges records drawn at random, with a fixed seed; passing ones first."""
    if run.plan.judge != judge_of(run.plan.limits.chip):
        found.notes.append("this npusmith is not the one that judged: differences may be its own")
    plan = run.plan if root is None else run.plan.model_copy(update={"root": root.resolve()})
    suite = plan.open_suite()
    items = {item.name: item for item in run.items()}
    drawn = _draw(run, most)
    wanted = {record.item for record in drawn}
    present = {item.name: item.digest for item in suite.items() if item.name in wanted}
    for record in drawn:
        step(f"judge again: {record.item} sample {record.sample}")
        item = items[record.item]
        if present.get(item.name) != item.digest:
            found.wrong.append(f"{item.name}: the checkout has another task of that name, or none")
            continue
        _compare(run, suite, item, record, found)


def _compare(run: Run, suite: Suite, item: Item, record: Record, found: Audit) -> None:
    limits = run.plan.limits
    limits = limits.model_copy(update={"seed": limits.seed + record.trial})
    again = suite.evaluate(item, run.candidate(record), limits)
    found.again += 1
    for name in COMPARED:
        then, now = getattr(record, name), getattr(again, name)
        if then != now:
            found.wrong.append(
                f"{record.item} sample {record.sample}: {name} was {then}, is {now} now"
            )
    if not _close(record.time_us, again.time_us):
        found.wrong.append(
            f"{record.item} sample {record.sample}: time was {record.time_us} us, "
            f"is {again.time_us} us now"
        )


def _close(then: float | None, now: float | None) -> bool:
    """Estimates on the twin do not vary; the last digits may."""
    if then is None or now is None:
        return then is now
    return math.isclose(then, now, rel_tol=1e-6)


def _draw(run: Run, most: int) -> list[Record]:
    """Half of them of those that count as correct; one pass, nothing held but the draw."""
    chance = random.Random(0)
    draws: dict[bool, list[Record]] = {True: [], False: []}
    seen = {True: 0, False: 0}
    for record in run.records():
        if record.compiled is None or run.candidate(record).refusal:
            continue
        kind = bool(record.official)
        seen[kind] += 1
        if len(draws[kind]) < most:
            draws[kind].append(record)
        elif (place := chance.randrange(seen[kind])) < most:
            draws[kind][place] = record
    half = draws[True][: most - min(len(draws[False]), most // 2)]
    return [*half, *draws[False][: most - len(half)]]
