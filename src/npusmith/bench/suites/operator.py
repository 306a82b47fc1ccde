"""The watched process for operator projects: builds the project and runs it on each trial.

No Python of the candidate is involved; its kernel and host code run in the twin's own box.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.bench.suites.orders import Answered, Orders, Reply, Told, tell
from npusmith.bench.suites.watch import leave_reply, read_orders
from npusmith.errors import NpusmithError, TwinError
from npusmith.ir.dtypes import DType
from npusmith.lower import read_bindings
from npusmith.target.chips import find_chip
from npusmith.task.files import write_arrays
from npusmith.task.isolated import arrays
from npusmith.task.judge import same_bits
from npusmith.task.ports import deal, share_outputs, take_inputs, types
from npusmith.task.prepared import Opened, TrialData, map_tensor, open_trials
from npusmith.twin import Build, Project, build, read_project, run


def main() -> None:
    orders = read_orders()
    folder, reply = Path(orders.folder), Reply()
    try:
        _run_all(read_project(Path(orders.place) / "project"), orders, folder, reply)
    except NpusmithError as error:
        reply.error = tell(error)
    leave_reply(folder, reply)


@dataclass(frozen=True, slots=True)
class Call:
    """What the operator is called with on one trial."""

    kinds: tuple[DType, ...]
    inputs: list[Any]
    outputs: list[Any]


def prepare(project: Project, opened: Opened, trial: TrialData) -> Call:
    """The operator's inputs, and the shapes and types of its outputs, in its own order."""
    return prepare_call(
        project, trial.record.inputs, opened.files_of(trial), trial.record.references,
        lambda item: map_tensor(opened.folder, item),
    )  # fmt: skip


def prepare_call(
    project: Project,
    given: Sequence[Any],
    held: Mapping[str, Any],
    results: Sequence[Any],
    load: Callable[[Any], Any],
) -> Call:
    """The same for anything with shape and type; `load` makes a tensor of it."""

    def loaded(item: Any) -> Any:
        if isinstance(item, list):
            return [loaded(part) for part in item]
        if item is None:
            return None
        dtype_of(item)
        return load(item)

    takes = take_inputs(project.op, read_bindings(project.root), given, held)
    inputs = [loaded(item) for item in takes]
    wanted = [(item.shape, dtype_of(item)) for item in results]
    shared = share_outputs(project.op, len(wanted))
    samples = [np.empty(0, dtype.numpy) for _, dtype in wanted]
    kinds = types(project.op, [*inputs, *deal(project.op.outputs, shared, samples)])
    return Call(kinds, inputs, deal(project.op.outputs, shared, wanted))


def _run_all(project: Project, orders: Orders, folder: Path, reply: Reply) -> None:
    chip, opened = find_chip(orders.chip), open_trials(Path(orders.given))
    seconds = reply.seconds
    builds: dict[tuple[DType, ...], Build] = {}
    for at, trial in enumerate(opened.trials):
        start = time.monotonic()
        call = prepare(project, opened, trial)
        if call.kinds not in builds:
            builds[call.kinds] = build(project, chip, call.kinds)
            reply.compiled = True
            reply.compiler = builds[call.kinds].toolchain.compiler.version
            spent = time.monotonic() - start
            seconds["compile"] = round(seconds.get("compile", 0) + spent, 3)
            start = time.monotonic()
        reply.answers.append(_answer(builds[call.kinds], call, orders.seconds, folder, at))
        seconds["run"] = round(seconds.get("run", 0) + time.monotonic() - start, 3)


def _answer(built: Build, call: Call, seconds: float, folder: Path, at: int) -> Answered:
    result = run(built, call.inputs, call.outputs, seconds=seconds)
    answer = Answered(findings=tuple(result.findings), apis=tuple(result.apis), launches=1)
    if not result.completed:
        error = Told(code="", message="the kernel did not run to its end")
        return answer.model_copy(update={"error": error})
    again = None
    if at == 0:  # the same inputs must give the same bits
        again = run(built, call.inputs, call.outputs, seconds=seconds)
    same = again is None or same_bits(result.outputs, again.outputs)
    tree = {"list": [arrays.leaf(*row) for row in enumerate(result.outputs)]}
    left = write_arrays(tree, result.outputs, folder, f"out{at}")
    return answer.model_copy(update={"outputs": left, "flat": True, "unsteady": not same})


def dtype_of(item: Any) -> DType:
    try:
        return DType(item.dtype)
    except ValueError as error:
        raise TwinError(
            "inputs-mismatch", f"tensors of {item.dtype} have no element type on the chip"
        ) from error
