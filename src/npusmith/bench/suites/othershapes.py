"""One more check of what is right at an item's own shapes: as `run` judges it, at other ones.

Only of operators that say what they take (bindings.json): they mean to serve other sizes or to
refuse them. Sets of other shapes, ranks and branches that no set took are those of task/judge.py.
"""

from __future__ import annotations

import time
from pathlib import Path

from npusmith.bench.model import Candidate, Limits, Record
from npusmith.bench.suites import place
from npusmith.bench.suites.orders import Orders
from npusmith.bench.suites.trials import Order, limits_of
from npusmith.bench.suites.watch import run_watched
from npusmith.errors import Level, NpusmithError
from npusmith.lower import BINDINGS
from npusmith.sandbox.folder import temporary_folder
from npusmith.task.composition import COMPOSITION
from npusmith.task.references import keep_references
from npusmith.task.trials import SEEDS, Sets
from npusmith.task.verdict import Verdict
from npusmith.task.wire import EVAL_MODE

RIGHT, WRONG, NOT_RUN = "right", "wrong", "not run"
DISK_BYTES = 4 << 30


def wants_check(record: Record, candidate: Candidate) -> bool:
    right = bool(record.official and record.strict) and not record.cheating
    one = BINDINGS in candidate.files and COMPOSITION not in candidate.files
    return right and candidate.dynamic and one


def add_check(record: Record, order: Order, candidate: Candidate, limits: Limits) -> None:
    """Say in the record's provenance what the check gave; what is wrong there is not right.

    The suite's own verdict stays: it asks for the item's shapes alone.
    """
    clock = time.monotonic()
    try:
        verdict, words = _check(record, order, candidate, limits)
    except NpusmithError as error:
        verdict, words = NOT_RUN, f"{error.code}: {error.message}"
    record.provenance["other_shapes"] = f"{verdict}: {words}"[:400]
    record.seconds["other_shapes"] = round(time.monotonic() - clock, 3)
    if verdict == WRONG:
        record.strict = record.precise = False
        record.error = f"at other shapes: {words}"[:700]


def _check(record: Record, order: Order, candidate: Candidate, limits: Limits) -> tuple[str, str]:
    prepared = keep_references(
        order.task,
        limits=limits_of(limits.seconds, limits.memory_mb),
        sets=Sets(seeds=SEEDS[:1], edges=False),
    )
    if prepared is None:
        return NOT_RUN, "the references were removed while they were read"
    if record.provenance["mode"] == "training" and any(
        note.startswith(EVAL_MODE) for note in prepared.notes
    ):
        return NOT_RUN, "the model is captured in eval mode, and would differ"
    folder, _ = place.unpack(candidate, limits.chip)
    orders = Orders(
        place=str(folder), given=str(prepared.folder), path=order.path, text=order.text, stop=True,
        chip=limits.chip, seconds=limits.seconds,
    )  # fmt: skip
    with temporary_folder("npusmith-shapes-") as work:
        most = 4 * limits.seconds
        ended = run_watched("judged", orders, Path(work).resolve(), seconds=most,
                            disk_bytes=DISK_BYTES)  # fmt: skip
    if ended.error:
        return NOT_RUN, ended.error
    return _told(record, Verdict.model_validate(ended.reply))


def _told(record: Record, verdict: Verdict) -> tuple[str, str]:
    if verdict.error is not None:
        return NOT_RUN, f"{verdict.error['code']}: {verdict.error['message']}"
    ran = [trial for trial in verdict.trials if trial.kind == "shape" and not trial.skipped]
    if verdict.correct:
        return RIGHT, f"{len(ran)} sets"
    errors = [item for item in verdict.findings if item.level is Level.ERROR]
    for item in errors:
        record.findings[item.code] = record.findings.get(item.code, 0) + item.count
    record.clean = record.clean and not errors
    said = [f"{trial.name}: {trial.message}" for trial in verdict.trials if trial.message]
    return WRONG, next(iter([*said, *(f"{item.code}: {item.message}" for item in errors)]), "")
