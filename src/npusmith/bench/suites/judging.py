"""One candidate on one reference: `judge(plan, item, candidate, limits) -> Record`.

The reference's trials come from trials.py; the candidate is built and run in a watched process
(module.py, operator.py); what it left is compared here, by the suite's rule and by ours.
"""

from __future__ import annotations

import math
import platform
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from npusmith import __version__
from npusmith.bench.model import Candidate, Item, Limits, Record, TrialNote, unit_key
from npusmith.bench.suites import place
from npusmith.bench.suites.orders import Answered, Orders, Reply, Told
from npusmith.bench.suites.times import add_times, wants_time
from npusmith.bench.suites.trials import Order, make_trials
from npusmith.bench.suites.watch import Ended, run_watched
from npusmith.errors import Level, NpusmithError, TaskError
from npusmith.sandbox.folder import remove_tree
from npusmith.target.chips import find_chip
from npusmith.task import files, rules
from npusmith.task.alias import mapped, tensors
from npusmith.task.module import CHEATS
from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.rules import Rule
from npusmith.task.verdict import Rung, right_rung
from npusmith.task.weak import kept_names
from npusmith.twin.finding import Finding
from npusmith.twin.toolchain import find_toolchain

_CHEATS = (*CHEATS, "cheat-alias")
# codes of what ends before there is a kernel
_NOT_BUILT = ("compile-", "project-", "tiling-", "dtypes-", "device-cpp", "kind-")
_FIXED = "parameters-fixed"
_OURS_ALONE = ("more", "drawn")  # kinds of trials that the suite does not have
_KEPT = 12  # trials and messages in a record
DISK_BYTES = 4 << 30  # what a unit may write: outputs of all trials, builds, what it likes
# What this machine lacks is nobody's failure: the unit has no verdict then.
_OURS = ("cache-unusable", "disk-full", "compiler-missing", "toolchain-failed", "torch-missing")
_ANY_ERROR = (Exception,)


@dataclass(frozen=True, slots=True)
class Pair:
    """What a trial should have given, and what the candidate gave."""

    trial: TrialData
    wanted: Any
    found: Any


@dataclass(frozen=True, slots=True)
class Plan:
    """How a suite judges one item."""

    order: Order  # of the reference
    rule: Rule
    rule_name: str
    official: int = 0  # trials that the suite itself looks at; 0: all
    profile: str = "strict"  # the tolerance of the null kernels
    disk_bytes: int = DISK_BYTES
    given_class: bool = False  # the suite's own class calls the operator, not the candidate's
    # the rule for all trials at once, for one that must run in a process of its own
    rules: Callable[[Sequence[Pair]], Sequence[str]] | None = None


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
    seeds = [str(item.seed) for item in trials.trials if item.kind not in _OURS_ALONE]
    record.provenance["trial_seeds"] = ",".join(seeds)[:200]
    record.provenance |= {f"note_{at}": note[:300] for at, note in enumerate(trials.notes[:5])}
    if why := _skipped(trials):
        record.skipped = why
        return record
    record.weak_task = _weak(trials, plan.profile)
    if record.weak_task and trials.trials[0].kind != "case":
        trials = _more(plan, trials, record, limits)
    work = Path(tempfile.mkdtemp(prefix="npusmith-unit-")).resolve()
    try:
        _judge(plan, trials, record, candidate, limits, work)
    except NpusmithError as error:
        if error.code in _OURS:
            raise
        fail(record, f"{error.code}: {error.message}")
    finally:
        remove_tree(work)
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
) -> None:
    folder, kind, extra = place.put(candidate, limits.chip)
    live = [item for item in trials.trials if not item.skipped]
    seconds = limits.seconds * len({item.record.case for item in live})
    orders = Orders(
        place=str(folder), given=str(trials.folder), chip=limits.chip, seconds=limits.seconds,
        whole_seconds=seconds, memory_mb=limits.memory_mb, disk_bytes=plan.disk_bytes,
        given_class=plan.given_class, **extra,
    )  # fmt: skip
    ended = run_watched(kind, orders, work, seconds=2 * seconds + 30, disk_bytes=plan.disk_bytes)
    start = time.monotonic()
    _take(plan, trials, record, ended, work)
    record.seconds["compare"] = round(time.monotonic() - start, 3)
    if wants_time(record, limits):
        timed = orders.model_copy(update={"kind": kind, "sample": limits.sample})
        _time(plan, live[0], record, limits, timed, work)


def _time(
    plan: Plan, trial: TrialData, record: Record, limits: Limits, orders: Orders, work: Path
) -> None:
    """One more run, on the first trial, in a process of its own."""

    def start(folder: Path) -> Ended:
        return run_watched(
            "timed", orders, folder, seconds=2 * limits.seconds + 30, disk_bytes=plan.disk_bytes
        )

    remove_tree(work)  # what the judged run left; the disk may be small
    work.mkdir()
    add_times(
        record, limits, work / "time", task=Path(plan.order.path), inputs=trial.shapes, start=start
    )


def _take(plan: Plan, trials: Prepared, record: Record, ended: Ended, work: Path) -> None:
    reply = Reply.model_validate(ended.reply)
    record.compiled = reply.compiled
    record.seconds |= reply.seconds
    # a trace that is not sure of itself is a warning, and a word in the messages
    cheats = reply.cheats
    sure = [item.code for item in cheats if item.code not in CHEATS or _is_error(item)]
    record.cheating = list(dict.fromkeys(sure))
    record.messages += [f"{item.code}: {item.message}"[:300] for item in cheats][:_KEPT]
    if reply.compiler:
        record.provenance["compiler"] = reply.compiler
    if ended.error:
        record.seconds.setdefault("run", ended.seconds)
        fail(record, ended.error)
        return
    if reply.error is not None:
        if reply.error.code in _OURS:
            raise NpusmithError(reply.error.code, reply.error.message)
        record.messages = list(reply.error.lines)
        fail(record, f"{reply.error.code}: {reply.error.message}")
        return
    _weigh(plan, trials, record, reply.answers, work)


# ------------------------------------------------------------------------------------------ values


def _weigh(
    plan: Plan, trials: Prepared, record: Record, answers: Sequence[Answered], work: Path
) -> None:
    """A note for each trial, and what they say together."""
    rest = iter(answers)
    lost = Answered(error=Told(code="", message=""))
    pairs = [_Met(item, Answered() if item.skipped else next(rest, lost)) for item in trials.trials]
    for met in pairs:
        met.read(work)
    said = _official(plan, pairs)
    for met, words in zip(pairs, said, strict=True):
        _compare(plan, met, words)
    if handed := _handed_back(pairs):
        record.cheating = list(dict.fromkeys([*record.cheating, "cheat-alias"]))
        record.messages.append(handed)
    live = [met for met in pairs if not met.note.skipped]
    own = [met for met in live if met.note.own]
    idle = bool(own) and not any(met.answer.launches for met in live)
    if idle and all(met.note.passed for met in own):  # neither an operator nor a launch was seen
        record.cheating = list(dict.fromkeys([*record.cheating, "cheat-compute"]))
        record.messages.append("no operator ran: the outputs were computed elsewhere")
    record.messages += _messages(live)
    fold(record, [met.note for met in pairs], plan.official)
    if unused := trials.manifest.idle:
        record.findings["input-idle"] = len(unused)
        record.messages += [f"input-idle: {name}: no output follows it" for name in unused]


def fold(record: Record, notes: Sequence[TrialNote], looked: int = 0) -> None:
    """What the notes of all trials say together; the suite looks at the first `looked` alone."""
    live = [note for note in notes if not note.skipped]
    if notes and not live:
        record.skipped = notes[0].skipped
        return
    own = [note for note in notes if note.own]
    first = notes[0].seed if notes else 0  # of cases the suite draws one set of inputs each
    official = [
        note
        for note in own[: looked or len(own)]
        if not note.skipped and (not note.case or note.seed == first)
    ]
    whole = bool(own) and not any(note.skipped for note in own)
    # edge values count where the task's own values say too little
    told = [note for note in live if note.kind != "more" or record.weak_task]
    cheated = any(code in _CHEATS for code in record.cheating)
    record.compiled = bool(record.compiled) and all(note.compiled for note in live)
    record.official = whole and bool(official) and all(note.passed for note in official)
    record.strict = whole and all(note.strict for note in told) and not cheated
    record.precise = record.strict and all(note.precise for note in live)
    counts: Counter[str] = Counter()
    for note in notes:
        counts.update(note.findings)
    record.findings = dict(counts)
    record.clean = record.compiled and all(note.clean for note in live) and not cheated
    if len(notes) > 1:
        record.accuracy = round(sum(note.passed for note in official) / len(official), 6)
    if record.compiled:
        record.rung = Rung.COMPILED.value
        if whole and all(note.ended for note in live):
            record.rung = Rung.RAN.value
            if all(note.strict for note in told):
                record.rung = right_rung(record.findings).value
    failed = [note for note in told if note.message]
    if not (record.official and record.strict):
        record.error = "; ".join(f"{note.name}: {note.message}" for note in failed[:3])[:700]
    notes = sorted(notes, key=lambda note: note.passed)
    record.trials = list(notes if any(note.case for note in notes) else notes[:_KEPT])


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


@dataclass(slots=True)
class _Met:
    """One trial: what the reference and the candidate gave."""

    trial: TrialData
    answer: Answered
    note: TrialNote = field(init=False)
    wanted: Any = None
    found: Any = None

    def __post_init__(self) -> None:
        trial = self.trial
        self.note = TrialNote(
            name=trial.name, seed=trial.seed, kind=trial.kind, skipped=trial.skipped,
            case=trial.name.partition(",")[0] if trial.record.case >= 0 else "",
        )  # fmt: skip

    def read(self, work: Path) -> None:
        """The values of both sides; the note says what cannot be read."""
        if self.note.skipped:
            return
        answer, found = self.answer, self.answer.findings
        self.note.findings = dict(sum((Counter({f.code: f.count}) for f in found), Counter()))
        self.note.clean = not any(map(_is_error, found))
        if answer.outputs is None:
            error = answer.error or Told(code="", message="")
            if error.code == _FIXED:
                self.note.skipped, self.note.findings = error.message, {error.code: 1}
                return
            self.note.compiled = not error.code.startswith(_NOT_BUILT)
            self.note.message = ": ".join(filter(None, [error.code, error.message]))[:400]
            return
        self.wanted = files.get(self.trial.wanted, self.trial.folder)
        try:
            values = files.get(answer.outputs, work if answer.flat else work / "run")
            self.found = _shaped(self.wanted, values) if answer.flat else values
            self.note.ended = True
        except (ValueError, RecursionError) as error:
            self.note.message = f"the candidate left {error}"[:300]

    @property
    def golden(self) -> Any:
        """What the reference gives in float64."""
        return files.get(self.trial.wide, self.trial.folder)


def _official(plan: Plan, pairs: Sequence[_Met]) -> list[str]:
    """What the suite's rule says of each trial; of values of ours, which it may not take, we do."""
    asked = [met for met in pairs if met.note.ended and met.trial.kind != "more"]
    if plan.rules is None:
        words = [_by_rule(plan, met) for met in asked]
    else:
        words = list(plan.rules([Pair(met.trial, met.wanted, met.found) for met in asked]))
    said = {met.trial.name: word for met, word in zip(asked, words, strict=True)}
    ours = [met for met in pairs if met.note.ended and met.trial.kind == "more"]
    said |= {met.trial.name: _precise(met, plan.profile) for met in ours}
    return [said.get(met.trial.name, "") for met in pairs]


def _by_rule(plan: Plan, met: _Met) -> str:
    try:
        given = files.get(met.trial.given, met.trial.folder)
        return plan.rule(met.wanted, met.found, met.golden, given)
    except _ANY_ERROR as error:  # of a rule, on values of a kind that it does not expect
        return f"{type(error).__name__}: {error}"[:300]


def _compare(plan: Plan, met: _Met, said: str) -> None:
    """Fill in whether the trial is right officially, strictly and precisely."""
    note, form, values = met.note, "", ""
    if not note.ended:
        return
    try:
        golden = met.golden if plan.rule is rules.narrow else None
        form = rules.form(met.wanted, met.found, golden) or _misdeed(met, plan.given_class)
        values = "" if said or form else _precise(met)
        _figures(note, met.wanted, met.found)
    except _ANY_ERROR as error:
        said = said or f"{type(error).__name__}: {error}"[:300]
    note.passed = not said
    note.strict = not said and not form
    note.precise = note.strict and not values
    note.message = (said or form or values)[:400]


def _precise(met: _Met, profile: str = "strict") -> str:
    """float64 and error bounds are loaded only for what is not close to the reference."""
    said = rules.precise(met.wanted, met.found, profile=profile)
    if not said:
        return said
    return rules.precise(met.wanted, met.found, met.golden, met.trial.bounds, profile)


def _handed_back(pairs: Sequence[_Met]) -> str:
    """The trial in which an output was an untouched input, and was none in the reference."""
    for met in pairs:
        mine = met.answer.alias
        if set(mine) - set(met.trial.record.alias) and not met.answer.writes:
            return f"cheat-alias: {met.note.name}: output {mine[0]} is an input, as it came"
    return ""


def _misdeed(met: _Met, given_class: bool) -> str:
    """The caller's tensors are not the candidate's to write to, where the reference does not."""
    if met.answer.unsteady:
        return "two runs on the same inputs gave different outputs"
    # the suite's own class may have its operator write where it likes
    wrong = met.answer.writes and not met.trial.record.writes and not given_class
    return "an input was overwritten" if wrong else ""


def _is_error(item: Finding) -> bool:
    return item.level is Level.ERROR


def _messages(pairs: Sequence[_Met]) -> list[str]:
    """The first findings in words, with their places."""
    found: dict[str, None] = {}
    for item in (item for met in pairs for item in met.answer.findings):
        if len(found) < _KEPT:
            where = f"{Path(item.file).name}:{item.line}"
            found[f"{item.code}: {item.message} ({where})"[:300]] = None
    return list(found)


def _shaped(wanted: Any, found: Any) -> Any:
    """An operator's outputs in the reference's structure."""
    rest = iter(found)

    def fill(item: torch.Tensor) -> Any:
        got = next(rest)
        return got.reshape(item.shape) if got.numel() == item.numel() else got

    return mapped(fill, wanted)


def _figures(note: TrialNote, wanted: Any, found: Any) -> None:
    """The differences of the worst output."""
    for want, got in zip(tensors(wanted), tensors(found), strict=False):
        if want.shape != got.shape or not want.numel() or want.is_complex():
            continue
        note.elements += want.numel()
        wide, mine = want.double(), got.double()
        gap = (wide - mine).abs()
        gap = torch.where(wide == mine, torch.zeros_like(gap), gap)  # inf - inf
        relative = gap / (wide.abs() + 1e-7)
        for name, value in (
            ("max_abs_error", gap.max()), ("mean_abs_error", gap.mean()),
            ("max_rel_error", relative.max()),
        ):  # fmt: skip
            number = float(value)
            before = getattr(note, name) or 0.0
            setattr(note, name, max(before, number if not math.isnan(number) else math.inf))
        note.mismatched += int((wide != mine).sum())


# ------------------------------------------------------------------------------------ null kernels


def _weak(trials: Prepared, profile: str) -> list[str]:
    """The do-nothing kernels that pass every trial of the suite's own."""
    own = [item for item in trials.trials if item.kind not in _OURS_ALONE and not item.skipped]
    return kept_names(trials.folder, profile, lambda: own)
