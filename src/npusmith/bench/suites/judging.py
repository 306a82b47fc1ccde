"""One candidate on one reference: `judge(plan, item, candidate, limits) -> Record`.

The reference's trials come from trials.py; the candidate is built and run in a watched process
(module.py, operator.py); what it left is compared here, by the suite's rule and by ours.
"""

from __future__ import annotations

import json
import math
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from npusmith import __version__
from npusmith.bench.model import Candidate, Item, Limits, Record, TrialNote, unit_key
from npusmith.bench.suites import place, wire
from npusmith.bench.suites.rules import Rule, narrow
from npusmith.bench.suites.times import add_times, wants_time
from npusmith.bench.suites.trials import Order, Trials, make_trials
from npusmith.bench.suites.watch import Ended, run_watched
from npusmith.conformance import rules as ours
from npusmith.device.tensors import array
from npusmith.errors import CODES, Level, NpusmithError, TaskError
from npusmith.sandbox.folder import remove_tree
from npusmith.target.chips import find_chip
from npusmith.task.verdict import Rung, right_rung
from npusmith.task.weak import find_null_kernels
from npusmith.twin.toolchain import find_toolchain

_CHEATS = ("cheat-compute", "cheat-binding", "cheat-alias")
_KEPT = 12  # trials and messages in a record
DISK_BYTES = 4 << 30  # what a unit may write: outputs of all trials, builds, what it likes
# What this machine lacks is nobody's failure: the unit has no verdict then.
_OURS = ("cache-unusable", "disk-full", "compiler-missing", "toolchain-failed", "torch-missing")
_ANY_ERROR = (Exception,)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a suite judges one item."""

    order: Order  # of the reference
    rule: Rule
    rule_name: str
    official: int = 0  # trials that the suite itself looks at; 0: all
    profile: str = "strict"  # the tolerance of the null kernels
    disk_bytes: int = DISK_BYTES


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
    record.provenance["mode"] = str(trials.record["mode"])
    record.provenance["trial_seeds"] = ",".join(str(row["seed"]) for row in trials.rows)[:200]
    record.provenance |= {
        f"note_{at}": str(note)[:300] for at, note in enumerate(trials.record["notes"][:5])
    }
    record.weak_task = _weak(trials, plan.profile)
    if record.weak_task:
        plan, trials = _more(plan, trials, record, limits)
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


def _more(plan: Plan, trials: Trials, record: Record, limits: Limits) -> tuple[Plan, Trials]:
    """The trials with values that tell kernels apart; the suite's verdict is on its own alone."""
    order = replace(plan.order, more=True)
    try:
        found = make_trials(order, seconds=limits.seconds, memory_mb=limits.memory_mb)
    except TaskError as error:
        record.provenance["more"] = f"no further values: {error.code}: {error.message}"[:300]
        return plan, trials
    names = [str(row["name"]) for row in found.rows[len(trials.rows) :]]
    if names:
        said = "a do-nothing kernel passes the task's own values; judged on these as well"
        record.provenance["more"] = f"{said}: {', '.join(names)}"
    return replace(plan, official=plan.official or len(trials.rows)), found


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
    plan: Plan, trials: Trials, record: Record, candidate: Candidate, limits: Limits, work: Path
) -> None:
    folder, kind, extra = place.put(candidate, limits.chip)
    orders = {
        "place": str(folder),
        "given": str(trials.folder),
        "init": trials.record["init"],
        "parameters": trials.record["parameters"],
        "seed": plan.order.seed,
        "training": trials.record["mode"] == "training",
        "seconds": limits.seconds,
        "memory_mb": limits.memory_mb,
        "disk_bytes": plan.disk_bytes,
        "chip": limits.chip,
        **extra,
    }
    rows = [{"inputs": row["inputs"], "outputs": row["outputs"]} for row in trials.rows]
    # a Python class sees inputs only; an operator project has no code that could look
    orders["trials"] = rows if kind == "operator" else [row["inputs"] for row in rows]
    ended = run_watched(
        kind, orders, work, seconds=2 * limits.seconds + 30, disk_bytes=plan.disk_bytes
    )
    start = time.monotonic()
    _take(plan, trials, record, ended)
    record.seconds["compare"] = round(time.monotonic() - start, 3)
    if wants_time(record, limits):
        orders |= {"kind": kind, "sample": limits.sample}
        _time(plan, trials, record, limits, orders, work)


def _time(
    plan: Plan,
    trials: Trials,
    record: Record,
    limits: Limits,
    orders: dict[str, Any],
    work: Path,
) -> None:
    """One more run, on the first trial, in a process of its own."""

    def start(folder: Path) -> Ended:
        return run_watched(
            "timed", orders, folder, seconds=2 * limits.seconds + 30, disk_bytes=plan.disk_bytes
        )

    remove_tree(work)  # what the judged run left; the disk may be small
    work.mkdir()
    inputs = trials.rows[0]["inputs"]
    add_times(record, limits, work / "time", task=Path(plan.order.path), inputs=inputs, start=start)


def _take(plan: Plan, trials: Trials, record: Record, ended: Ended) -> None:
    reply = ended.reply
    record.compiled = bool(reply.get("compiled"))
    record.seconds |= {name: float(value) for name, value in reply.get("seconds", {}).items()}
    cheats = [str(item["code"]) for item in reply.get("cheats", ())]
    record.cheating = list(dict.fromkeys(code for code in cheats if code in CODES))
    if "compiler" in reply:
        record.provenance["compiler"] = str(reply["compiler"])
    if ended.error:
        record.seconds.setdefault("run", ended.seconds)
        fail(record, ended.error)
        return
    if "error" in reply:
        error = reply["error"]
        if error["code"] in _OURS:
            raise NpusmithError(error["code"], error["message"])
        record.messages = [str(line) for line in error["lines"]]
        fail(record, f"{error['code']}: {error['message']}")
        return
    _weigh(plan, trials, record, reply["answers"])


# ------------------------------------------------------------------------------------------ values


def _weigh(plan: Plan, trials: Trials, record: Record, answers: Sequence[dict[str, Any]]) -> None:
    notes, official, strict, precise = [], [], [], []
    for row, answer in zip(trials.rows, answers, strict=False):
        note, verdicts = _compare(plan, trials, row, answer)
        notes.append(note)
        official.append(verdicts[0])
        strict.append(verdicts[1])
        precise.append(verdicts[2])
    whole = len(notes) == len(trials.rows)
    findings = [item for answer in answers for item in answer.get("findings", ())]
    errors = _count(record, findings)
    looked = official[: plan.official or len(official)]
    if handed := _handed_back(trials, answers):
        record.cheating = list(dict.fromkeys([*record.cheating, "cheat-alias"]))
        record.messages.append(handed)
    cheated = any(code in _CHEATS for code in record.cheating)
    idle = whole and all(not sum(answer.get("ran", [0])) for answer in answers)
    if idle and all(official):  # right values, and neither an operator nor a launch was seen
        record.cheating = list(dict.fromkeys([*record.cheating, "cheat-compute"]))
        record.messages.append("no operator ran: the outputs were computed elsewhere")
        cheated = True
    record.official = whole and bool(looked) and all(looked)
    record.strict = whole and bool(strict) and all(strict) and not cheated
    record.precise = record.strict and all(precise)
    record.clean = bool(record.compiled) and not errors
    if len(notes) > 1:
        record.accuracy = round(sum(looked) / len(looked), 6)
    notes.sort(key=lambda note: note.passed)
    record.trials = notes[:_KEPT]
    _name_rung(record, answers, whole, strict)
    failed = [f"{note.name}: {note.message}" for note in notes if note.message]
    if not (record.official and record.strict):
        record.error = "; ".join(failed[:3])[:700]


def _handed_back(trials: Trials, answers: Sequence[dict[str, Any]]) -> str:
    """The trial in which an output was an untouched input, and was none in the reference."""
    for row, answer in zip(trials.rows, answers, strict=False):
        mine = answer.get("alias") or []
        if set(mine) - set(row.get("alias", ())) and not answer.get("writes"):
            return f"cheat-alias: {row['name']}: output {mine[0]} is an input, as it came"
    return ""


def _name_rung(
    record: Record, answers: Sequence[dict[str, Any]], whole: bool, strict: Sequence[bool]
) -> None:
    if not record.compiled:
        return
    record.rung = Rung.COMPILED.value
    if whole and all("outputs" in answer for answer in answers):
        record.rung = Rung.RAN.value
        if strict and all(strict):
            record.rung = right_rung(record.findings).value


def _count(record: Record, findings: Sequence[dict[str, Any]]) -> list[str]:
    """Fill in codes and messages; the codes of level error."""
    counts: Counter[str] = Counter()
    errors = []
    for item in findings:
        code = str(item.get("code", ""))
        if code not in CODES:
            continue
        counts[code] += int(item.get("count", 1) or 1)
        if item.get("level", CODES[code].level.value) == Level.ERROR.value:
            errors.append(code)
        where = f"{Path(str(item.get('file', ''))).name}:{item.get('line', 0)}"
        said = f"{code}: {item.get('message', '')} ({where})"[:300]
        if said not in record.messages and len(record.messages) < _KEPT:
            record.messages.append(said)
    record.findings = dict(counts)
    return errors


def _compare(
    plan: Plan, trials: Trials, row: dict[str, Any], answer: dict[str, Any]
) -> tuple[TrialNote, tuple[bool, bool, bool]]:
    """A trial's note, and whether it is right officially, strictly and precisely."""
    note = TrialNote(name=str(row["name"]), seed=int(row["seed"]))
    if "outputs" not in answer:
        error = answer.get("error", {})
        code = f"{error['code']}: " if error.get("code") else ""
        note.message = f"{code}{error.get('message', '')}"[:400]
        return note, (False, False, False)
    wanted = trials.value(row["outputs"])
    golden = trials.value(row["golden"])
    try:
        found = _shaped(wanted, wire.get(answer["outputs"], Path(answer["folder"])), answer)
    except (ValueError, RecursionError) as error:
        note.message = f"the candidate left {error}"[:300]
        return note, (False, False, False)
    try:
        more = row["kind"] == "more"  # not the suite's, whose rules take no NaN to be right
        given = trials.value(row["inputs"])
        said = "" if more else plan.rule(wanted, found, golden, given)
        said = said or (_precise(wanted, found, golden) if more else "")
        wide = ours.listed(golden) if plan.rule is narrow and golden is not None else None
        form = ours.strict(wanted, found, wide) or _overwrites(row, answer)
        values = "" if said or form else _precise(wanted, found, golden)
        _figures(note, wanted, found)
    except _ANY_ERROR as error:  # of a rule, on values of a kind that it does not expect
        said, form, values = f"{type(error).__name__}: {error}"[:300], "", ""
    note.passed = not said
    note.message = (said or form or values)[:400]
    return note, (not said, not said and not form, not (said or form or values))


def _overwrites(row: dict[str, Any], answer: dict[str, Any]) -> str:
    """The caller's tensors are not the candidate's to write to, where the reference does not."""
    return "an input was overwritten" if answer.get("writes") and not row.get("writes") else ""


def _precise(wanted: Any, found: Any, golden: Any) -> str:
    said = ours.precise(wanted, found, None)
    if not said or golden is None:
        return said
    wide = ours.listed(golden)
    shapes = [getattr(item, "shape", None) for item in ours.listed(wanted)]
    if [getattr(item, "shape", None) for item in wide] != shapes:
        return said
    return ours.precise(wanted, found, wide)


def _shaped(wanted: Any, found: Any, answer: dict[str, Any]) -> Any:
    """An operator's outputs in the reference's structure; a class has its own."""
    if answer["folder"].rpartition("/")[2].startswith("run"):
        return found
    rest = iter(found)

    def fill(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            got = next(rest)
            return got.reshape(item.shape) if got.numel() == item.numel() else got
        if isinstance(item, (list, tuple)):
            return type(item)(fill(part) for part in item)
        return item

    return fill(wanted)


def _figures(note: TrialNote, wanted: Any, found: Any) -> None:
    """The differences of the worst output."""
    for want, got in zip(_tensors(wanted), _tensors(found), strict=False):
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


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


# ------------------------------------------------------------------------------------ null kernels


@dataclass(frozen=True, slots=True)
class _Sample:
    inputs: list[Any]
    references: list[Any]
    goldens: list[Any]


def _weak(trials: Trials, profile: str) -> list[str]:
    """The do-nothing kernels that pass every trial; found once, and kept beside the trials."""
    kept = trials.folder / f"weak-{profile}.json"
    if kept.exists():
        return [str(name) for name in json.loads(kept.read_text(encoding="utf-8"))]
    try:
        samples = [_sample(trials, row) for row in trials.rows]
        names = find_null_kernels(samples, profile)
    except NpusmithError:  # types that the chip does not have
        names = []
    fresh = Path(tempfile.mkdtemp(prefix=".weak-", dir=trials.folder))
    (fresh / "names").write_text(json.dumps(names), encoding="utf-8")
    (fresh / "names").replace(kept)
    remove_tree(fresh)
    return names


def _sample(trials: Trials, row: dict[str, Any]) -> _Sample:
    references = [array(item) for item in _tensors(trials.value(row["outputs"]))]
    wide = _tensors(trials.value(row["golden"]))
    fit = [item.shape for item in wide] == [item.shape for item in references]
    goldens = [item.double().numpy() for item in wide] if fit else [None] * len(references)
    return _Sample(
        [array(item) for item in _tensors(trials.value(row["inputs"]))], references, goldens
    )
