"""One more check of what was judged at reduced shapes: some of its cores at the task's own ones.

The reference runs on the first and last slices alone (sliced_reference.py), the operator on sparse
files (sparse_run.py), so that addresses go up to the end of every tensor: past 2^31 elements and 4
GB where it is so large. What it leaves in these slices is compared by the item's own rule. What
cannot be checked that way says why, and changes no verdict.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from npusmith.bench.model import TRUE_SHAPE, Candidate, Limits, Record
from npusmith.bench.suites import place
from npusmith.bench.suites.orders import Holed, Orders
from npusmith.bench.suites.sliced import Ends
from npusmith.bench.suites.sliced_reference import WAYS
from npusmith.bench.suites.trials import Order, make_ends
from npusmith.bench.suites.watch import Ended, run_watched
from npusmith.device.tensors import array
from npusmith.errors import Level, NpusmithError, TaskError
from npusmith.sandbox.folder import remove_tree
from npusmith.task.composition import COMPOSITION
from npusmith.task.files import read
from npusmith.task.rules import Rule
from npusmith.task.tolerance import compare

RIGHT, WRONG, NOT_RUN = TRUE_SHAPE
_SPARE = 1 << 30  # of the disk, beside the outputs


@dataclass(frozen=True, slots=True)
class Shape:
    """The reference at the task's own shapes, its rule, and how much the cores may touch."""

    order: Order
    rule: Rule
    most_bytes: int


def wants_check(record: Record, candidate: Candidate) -> bool:
    """Only what is right at the reduced shapes, and one operator: a class runs where it likes."""
    one = candidate.format in _FORMATS and COMPOSITION not in candidate.files
    return bool(record.official) and not record.cheating and one


_FORMATS = ("project", "program")


def add_check(record: Record, shape: Shape, candidate: Candidate, limits: Limits) -> None:
    """Say in the record what the check gave; what is wrong there is not right.

    Of a weak task the suite's verdict stays: it takes kernels that are right for its own values
    alone, and those of the check are signed.
    """
    clock = time.monotonic()
    try:
        verdict, words = _check(shape, candidate, limits)
    except NpusmithError as error:
        verdict, words = NOT_RUN, f"{error.code}: {error.message}"
    record.true_shape = f"{verdict}: {words}"[:400]
    record.seconds["true_shape"] = round(time.monotonic() - clock, 3)
    if verdict == WRONG:
        record.official = bool(record.weak_task)
        record.strict = record.precise = False
        record.error = f"at the true shape: {words}"[:700]


def _check(shape: Shape, candidate: Candidate, limits: Limits) -> tuple[str, str]:
    try:
        folder, ends = make_ends(shape.order, seconds=limits.seconds, memory_mb=limits.memory_mb)
    except TaskError as error:
        return NOT_RUN, f"{error.code}: {error.message}"
    if ends.error:
        return NOT_RUN, ends.error
    total = sum(item.bytes for item in (*ends.inputs, *ends.outputs))
    work = Path(tempfile.mkdtemp(prefix="npusmith-true-")).resolve()
    try:
        ended = _start(shape, candidate, limits, folder, total, work)
        verdict, words = _weigh(shape, ends, folder, ended, work)
    finally:
        remove_tree(work)
    return verdict, f"{words}; {total / 1e9:.1f} GB on memory with holes"


def _start(
    shape: Shape,
    candidate: Candidate,
    limits: Limits,
    folder: Path,
    total: int,
    work: Path,
) -> Ended:
    spot, _ = place.unpack(candidate, limits.chip)
    orders = Orders(
        place=str(spot), given=str(folder), chip=limits.chip, seconds=limits.seconds, bytes=total,
        most_bytes=shape.most_bytes,
    )  # fmt: skip
    seconds, room = 4 * limits.seconds, total + _SPARE
    return run_watched("sparse_run", orders, work, seconds=seconds, disk_bytes=room)


def _weigh(shape: Shape, ends: Ends, folder: Path, ended: Ended, work: Path) -> tuple[str, str]:
    reply = Holed.model_validate(ended.reply)
    if ended.error:
        return NOT_RUN, ended.error
    if reply.error or reply.left:
        return NOT_RUN, reply.error or reply.left
    errors = [item for item in reply.findings if item.level is Level.ERROR]
    if any(item.code == "kernel-hang" for item in errors):
        return NOT_RUN, "the time was up"
    if found := [item for item in errors if item.code == "workspace-size"]:
        return NOT_RUN, f"{found[0].message}; {found[0].legal}"  # a device has more
    if errors:
        return WRONG, f"{errors[0].code}: {errors[0].message}"
    if not reply.completed:
        return WRONG, "the kernel did not run to its end"
    said = _compare(shape, ends, folder, work)
    where = f"first and last {ends.filled} of {ends.size} slices along dimension {ends.dim}"
    how = f"{where} ({WAYS[ends.way]}), {reply.cores}"
    return (WRONG, f"{said} in the {how}") if said else (RIGHT, how)


def _compare(shape: Shape, ends: Ends, folder: Path, work: Path) -> str:
    """What is wrong at the slices; "" when nothing."""
    known = [piece.file for item in ends.outputs for piece in item.pieces]
    left = [item.model_copy(update={"file": f"piece{at}.bin"}) for at, item in enumerate(known)]
    wanted, found = [read(item, folder) for item in known], [read(item, work) for item in left]
    if ends.limit is not None:
        gap = float((wanted[0].double() - found[0].double()).abs().max())
        return "" if gap <= ends.limit else f"off by {gap:.3g}, {ends.limit:.3g} is allowed"
    golden, bounds = ([read(item, folder) for item in row] for row in (ends.goldens, ends.bounds))
    return _joined(shape.rule, wanted, found, golden or None, bounds or None)


def _joined(
    rule: Rule, wanted: list[Any], found: list[Any], golden: list[Any] | None,
    bounds: list[Any] | None,
) -> str:  # fmt: skip
    """The rule on all slices of one type at once: counts are of elements, not of pieces.

    What breaks it is right where the strict profile excuses it, which knows how far right answers
    lie apart.
    """
    for dtype in dict.fromkeys(item.dtype for item in wanted):
        chosen = [at for at, item in enumerate(wanted) if item.dtype == dtype]

        def flat(items: list[Any] | None, chosen: list[int] = chosen) -> Any:
            return None if items is None else torch.cat([items[at].reshape(-1) for at in chosen])

        want, got, wide, bound = map(flat, (wanted, found, golden, bounds))
        if said := rule(want, got, wide, ()):
            if wide is None or bound is None:
                return said
            sides = array(got), array(want), wide.numpy()
            if not compare(*sides, "strict", bound.numpy()).passed:
                return said
    return ""
