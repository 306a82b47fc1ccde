"""One candidate on one reference: `judge(plan, item, candidate, limits) -> Record`.

The reference's trials come from trials.py; the candidate is built, run and compared in a watched
process (judged.py), by the suite's rule and by ours. What its verdict makes of a record is here.
"""

from __future__ import annotations

import platform
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from npusmith.bench.model import Candidate, Item, Limits, Record, unit_key
from npusmith.bench.suites import place
from npusmith.bench.suites.orders import Orders
from npusmith.bench.suites.times import add_times, wants_time
from npusmith.bench.suites.trials import Order, make_trials
from npusmith.bench.suites.watch import DEFECT, Ended, run_watched
from npusmith.errors import Level, NpusmithError, TaskError
from npusmith.sandbox.folder import remove_tree
from npusmith.target.chips import find_chip
from npusmith.task.module import CHEATS
from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.rules import Named
from npusmith.task.verdict import NOT_RUN, Rung, Trial, Verdict, right_rung
from npusmith.task.weak import weak_task
from npusmith.task.wire import OURS
from npusmith.twin.finding import Finding
from npusmith.twin.toolchain import find_toolchain
from npusmith.version import __version__

_CHEATS = (*CHEATS, "cheat-alias")
_KEPT = 12  # trials and messages in a record
_COMPARED = 10  # seconds for the comparison of a set
DISK_BYTES = 4 << 30  # what a unit may write: outputs of all trials, builds, what it likes
# What this machine lacks is nobody's failure: the unit has no verdict then.
_OURS = ("cache-unusable", "disk-full", "compiler-missing", "toolchain-failed", "torch-missing")


@dataclass(frozen=True, slots=True)
class Plan:
    """How a suite judges one item."""

    order: Order  # of the reference
    rule: Named
    rule_name: str
    official: int = 0  # trials that the suite itself looks at; 0: all
    profile: str = "strict"  # the tolerance of the null kernels
    disk_bytes: int = DISK_BYTES
    given_class: bool = False  # the suite's own class calls the operator, not the candidate's
    eager: bool = True  # a time stands beside eager's estimate


def start_record(suite: str, item: Item, candidate: Candidate, limits: Limits) -> Record:
    """A record in which nothing has been evaluated yet."""
    return Record(
        key=unit_key(item, candidate, 0, limits, __version__),
        suite=suite, item=item.name, category=item.category, level=item.level, dtype=item.dtype,
        writer=candidate.writer, sample=candidate.sample, candidate=candidate.digest,
        rung=Rung.NONE.value,
        provenance={
            "npusmith": __version__,
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "chip": limits.chip,
            "seed": str(limits.seed),
            "item_digest": item.digest,
            "format": candidate.format,
        },
    )  # fmt: skip


def judge(plan: Plan, item: Item, candidate: Candidate, limits: Limits) -> Record:
    """The record of a unit; what goes wrong is in it."""
    record = start_record(item.suite, item, candidate, limits)
    record.provenance["rule"] = plan.rule_name
    if item.skipped:
        record.skipped = item.skipped
        return record
    if candidate.refusal:
        return refused(record, candidate)
    find_toolchain(find_chip(limits.chip))  # once for a machine, and not in a unit's time
    start = time.monotonic()
    try:
        trials = make_trials(plan.order, seconds=limits.seconds, memory_mb=limits.memory_mb)
    except TaskError as error:  # the item's fault, not the candidate's
        record.skipped = f"{error.code}: {error.message}"
        return record
    finally:
        record.seconds["reference"] = round(time.monotonic() - start, 3)
    record.provenance["mode"] = trials.manifest.mode
    seeds = [str(item.seed) for item in trials.trials if item.kind not in OURS]
    record.provenance["trial_seeds"] = ",".join(seeds)[:200]
    record.provenance |= {f"note_{at}": note[:300] for at, note in enumerate(trials.notes[:5])}
    if why := _skipped(trials):
        record.skipped = why
        return record
    record.weak_task = weak_task(trials, plan.profile)
    if record.weak_task and trials.trials[0].kind != "case":
        trials = _more(plan, trials, record, limits)
    work = Path(tempfile.mkdtemp(prefix="npusmith-unit-")).resolve()
    try:
        record = _judge_twice(plan, trials, record, candidate, limits, work)
    except NpusmithError as error:
        if error.code in _OURS:
            raise
        fail(record, f"{error.code}: {error.message}")
    finally:
        remove_tree(work)
    return record


def _judge_twice(
    plan: Plan, trials: Prepared, record: Record, candidate: Candidate, limits: Limits, work: Path
) -> Record:
    """Once more with error bounds, where heavy sets have none and right by the suite's rule alone.

    Few candidates need them, and they take as long as many references.
    """
    first = record.model_copy(deep=True)
    orders, failed = _judge(plan, trials, record, candidate, limits, work)
    heavy = {item.name for item in trials.trials if item.record.heavy}
    if record.official and (late := tuple(name for name in failed if name in heavy)):
        order = replace(plan.order, bounded=late, more=bool(_names_of(trials, "more")))
        try:
            bounded = make_trials(order, seconds=limits.seconds, memory_mb=limits.memory_mb)
        except TaskError:
            bounded = None  # the first verdict stands
        if bounded is not None:
            _empty(work)
            trials, record = bounded, first
            record.provenance["bounded"] = ", ".join(late)[:300]
            orders, _ = _judge(plan, trials, record, candidate, limits, work)
    if wants_time(record, limits):
        live = next(item for item in trials.trials if not item.skipped)
        _time(plan, live, record, limits, orders, work)
    return record


def _skipped(trials: Prepared) -> str:
    """Why no trial can be judged; "" where some can."""
    why = [item.skipped for item in trials.trials]
    return why[0] if all(why) else ""


def _more(plan: Plan, trials: Prepared, record: Record, limits: Limits) -> Prepared:
    """The trials with values that tell kernels apart; the suite's verdict is on its own alone."""
    found = trials
    if not _names_of(trials, "more"):
        order = replace(plan.order, more=True)
        try:
            found = make_trials(order, seconds=limits.seconds, memory_mb=limits.memory_mb)
        except TaskError as error:
            record.provenance["more"] = f"no further values: {error.code}: {error.message}"[:300]
    if names := _names_of(found, "more"):
        said = "a do-nothing kernel passes the task's own values; judged on these as well"
        record.provenance["more"] = f"{said}: {', '.join(names)}"
    return found


def _names_of(trials: Prepared, kind: str) -> list[str]:
    return [item.name for item in trials.trials if item.kind == kind]


def refused(record: Record, candidate: Candidate) -> Record:
    """The record of a writer that wrote nothing."""
    record.compiled = record.official = record.strict = False
    record.error = f"refused: {candidate.refusal}"[:700]
    return record


def fail(record: Record, error: str) -> None:
    """The record of a unit that did not come to its end."""
    record.error = error[:700]
    record.compiled = bool(record.compiled)
    record.official = record.strict = False
    if record.clean is None:
        record.clean = False


def _judge(
    plan: Plan, trials: Prepared, record: Record, candidate: Candidate, limits: Limits, work: Path
) -> tuple[Orders, list[str]]:
    """What was asked for, and the sets that are not right by our profile."""
    folder, submission = place.unpack(candidate, limits.chip)
    live = [item for item in trials.trials if not item.skipped]
    seconds = limits.seconds * len({item.record.case for item in live})
    orders = Orders(
        place=str(folder), submission=submission, given=str(trials.folder), path=plan.order.path,
        text=plan.order.text, rule=plan.rule, ours=plan.profile, stop=limits.stop,
        chip=limits.chip, seconds=limits.seconds, whole_seconds=seconds,
        memory_mb=limits.memory_mb, disk_bytes=plan.disk_bytes, given_class=plan.given_class,
        sample=limits.sample,
    )  # fmt: skip
    most = 2 * seconds + 30 + _COMPARED * len(live)
    ended = run_watched("judged", orders, work, seconds=most, disk_bytes=plan.disk_bytes)
    return orders, _take(plan, record, ended)


def _time(
    plan: Plan, trial: TrialData, record: Record, limits: Limits, orders: Orders, work: Path
) -> None:
    """One more run, on the first trial, in a process of its own."""

    def start(folder: Path) -> Ended:
        return run_watched(
            "timed", orders, folder, seconds=2 * limits.seconds + 30, disk_bytes=plan.disk_bytes
        )

    _empty(work)
    task = Path(plan.order.path) if plan.eager else None
    add_times(record, limits, work / "time", task=task, inputs=trial.shapes, start=start)


def _empty(work: Path) -> None:
    """Without what a judged run left; the disk may be small."""
    remove_tree(work)
    work.mkdir()


def _take(plan: Plan, record: Record, ended: Ended) -> list[str]:
    """What the verdict says; a process that left none is an error of the candidate.

    The sets that are not right by our profile.
    """
    if ended.error:
        record.seconds["run"] = ended.seconds
        fail(record, ended.error)
        return []
    if DEFECT in ended.reply:  # ours, and no word about the candidate
        raise RuntimeError(f"the judge failed: {ended.reply[DEFECT]}")
    verdict = Verdict.model_validate(ended.reply)
    record.compiled = verdict.compiled
    record.seconds |= verdict.seconds
    if "compiler" in verdict.provenance:
        record.provenance["compiler"] = str(verdict.provenance["compiler"])
    told = {item.code for trial in verdict.trials for item in trial.findings}
    more = [item for item in verdict.findings if item.code not in told]
    cheats = [item for item in more if item.code.startswith("cheat-")]
    # a trace that is not sure of itself is a warning, and a word in the messages
    sure = [item.code for item in cheats if item.code not in CHEATS or item.level is Level.ERROR]
    record.cheating = list(dict.fromkeys(sure))
    record.messages = [f"{item.code}: {item.message}"[:300] for item in more][:_KEPT]
    if verdict.error is not None:
        code, message = (str(verdict.error[name]) for name in ("code", "message"))
        if code in _OURS:
            raise NpusmithError(code, message)
        record.messages += _lines(verdict.error)
        fail(record, f"{code}: {message}")
        return []
    record.messages += [_words(item) for item in verdict.findings if item.code in told][:_KEPT]
    fold(record, verdict.trials, plan.official)
    counts = Counter(item.code for item in more if item not in cheats)
    record.findings = {**record.findings, **counts}
    return [item.name for item in verdict.trials if item.ended and not item.precise]


def _lines(error: Mapping[str, object]) -> list[str]:
    """Of a compile, what the compiler complained about; else what was seen."""
    rows = error.get("errors")
    lines = [
        f"{Path(str(row['file'])).name}:{row['line']}: {row['message']}"[:300]
        for row in (rows if isinstance(rows, list) else [])
    ]
    return (lines or [line for line in str(error["seen"]).splitlines() if line])[:_KEPT]


def _words(item: Finding) -> str:
    return f"{item.code}: {item.message} ({Path(item.file).name}:{item.line})"[:300]


def fold(record: Record, notes: Sequence[Trial], looked: int = 0) -> None:
    """What the notes of all trials say together; the suite looks at the first `looked` alone."""
    live = [note for note in notes if not note.skipped]
    if notes and not live:
        record.skipped = notes[0].skipped
        return
    own = [note for note in notes if note.own]
    first = notes[0].seed if notes else 0  # of cases the suite draws one set of inputs each
    official = [note for note in own[: looked or len(own)] if not note.case or note.seed == first]
    lost = not own or any(note.skipped and note.result != NOT_RUN for note in own)
    whole = not lost and not any(note.skipped for note in own)
    # edge values count where the task's own values say too little
    told = [note for note in live if note.kind != "more" or record.weak_task]
    cheated = any(code in _CHEATS for code in record.cheating)
    record.compiled = bool(record.compiled) and all(note.compiled for note in live)
    record.official = not lost and bool(official) and all(note.passed for note in official)
    record.strict = whole and all(note.strict for note in told) and not cheated
    record.precise = record.strict and all(note.precise for note in live)
    counts: Counter[str] = Counter()
    for note in notes:
        for item in note.findings:
            counts[item.code] += item.count
    record.findings = dict(counts)
    record.clean = record.compiled and all(note.clean for note in live) and not cheated
    ran = [note.passed for note in official if not note.skipped]
    if len(notes) > 1 and ran:
        record.accuracy = round(sum(ran) / len(ran), 6)
    if record.compiled:
        record.rung = Rung.COMPILED.value
        if not lost and all(note.ended for note in live):
            record.rung = Rung.RAN.value
            if whole and all(note.strict for note in told):
                record.rung = right_rung(record.findings).value
    failed = [note for note in told if note.message]
    if not (record.official and record.strict):
        record.error = "; ".join(f"{note.name}: {note.message}" for note in failed[:3])[:700]
    notes = sorted(map(_brief, notes), key=lambda note: note.passed)
    record.trials = list(notes if any(note.case for note in notes) else notes[:_KEPT])


def _brief(note: Trial) -> Trial:
    """One finding of each code, and no times: records are many, and are compared."""
    found: dict[str, Finding] = {}
    for item in note.findings:
        count = found[item.code].count if item.code in found else 0
        found[item.code] = found.get(item.code, item).model_copy(
            update={"count": count + item.count}
        )
    return note.model_copy(update={"findings": list(found.values()), "seconds": 0.0})


def case_records(record: Record) -> list[Record]:
    """A record of several cases as one for each, in their order; of any other the record itself."""
    cases = {note.case for note in record.trials if note.case}
    return [_of_case(record, case) for case in sorted(cases, key=_number)] or [record]


def _of_case(record: Record, case: str) -> Record:
    notes = [note for note in record.trials if note.case == case]
    notes.sort(key=lambda note: note.name != case)  # the first set of inputs first
    part = record.model_copy(
        update={
            "item": f"{record.item}/{case.replace(' ', '')}",
            "compiled": all(note.compiled for note in notes),
            **dict.fromkeys(("official", "strict", "precise", "clean", "accuracy")),
            "error": "",
        }
    )
    fold(part, notes)
    return part


def _number(case: str) -> int:
    found = re.search(r"\d+", case)
    return int(found.group()) if found else 0
