"""The watched process for operator projects: builds the project and runs it on each trial.

No Python of the candidate is involved; its kernel and host code run in the twin's own box.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.bench.suites import wire
from npusmith.bench.suites.watch import leave_reply, read_orders, told_error
from npusmith.errors import NpusmithError, TwinError
from npusmith.ir.dtypes import DType
from npusmith.lower import read_bindings
from npusmith.target.chips import find_chip
from npusmith.task.judge import same_bits
from npusmith.task.ports import deal, share_outputs, take_inputs, types
from npusmith.twin import Build, Project, build, read_project, run

Array = np.ndarray[Any, Any]
Load = Callable[[wire.Tree, Path], Any]


def main() -> None:
    orders = read_orders()
    folder = Path(orders["folder"])
    reply: dict[str, Any] = {"compiled": False, "cheats": [], "answers": [], "seconds": {}}
    try:
        project = read_project(Path(orders["place"]) / "project")
        _run_all(project, orders, folder, reply)
    except NpusmithError as error:
        reply["error"] = told_error(error)
    leave_reply(folder, reply)


@dataclass(frozen=True, slots=True)
class Call:
    """What the operator is called with on one trial."""

    kinds: tuple[DType, ...]
    inputs: list[Any]
    outputs: list[Any]


def prepare(
    project: Project, orders: dict[str, Any], trial: dict[str, Any], load: Load | None = None
) -> Call:
    """The operator's inputs, and the shapes and types of its outputs, in its own order.

    `load`: how a leaf of the trial becomes a tensor, where its file does not hold all of it.
    """
    held = orders["parameters"] | trial.get("drawn", {})
    takes = take_inputs(
        project.op, read_bindings(project.root), [*wire.leaves(trial["inputs"])], held
    )

    def loaded(item: Any) -> Any:
        if isinstance(item, list):
            return [loaded(part) for part in item]
        return None if item is None else (load or _load)(item, Path(orders["given"]))

    inputs = [loaded(item) for item in takes]
    wanted = [(tuple(leaf["shape"]), dtype_of(leaf)) for leaf in wire.leaves(trial["outputs"])]
    shared = share_outputs(project.op, len(wanted))
    samples = [np.empty(0, dtype.numpy) for _, dtype in wanted]
    kinds = types(project.op, [*inputs, *deal(project.op.outputs, shared, samples)])
    return Call(kinds, inputs, deal(project.op.outputs, shared, wanted))


def _run_all(project: Project, orders: dict[str, Any], folder: Path, reply: dict[str, Any]) -> None:
    chip = find_chip(orders["chip"])
    seconds = reply["seconds"]
    builds: dict[tuple[DType, ...], Build] = {}
    for at, trial in enumerate(orders["trials"]):
        start = time.monotonic()
        call = prepare(project, orders, trial)
        if call.kinds not in builds:
            builds[call.kinds] = build(project, chip, call.kinds)
            reply["compiled"] = True
            reply["compiler"] = builds[call.kinds].toolchain.compiler.version
            spent = time.monotonic() - start
            seconds["compile"] = round(seconds.get("compile", 0) + spent, 3)
            start = time.monotonic()
        result = run(builds[call.kinds], call.inputs, call.outputs, seconds=orders["seconds"])
        answer: dict[str, Any] = {
            "findings": [item.model_dump(mode="json") for item in result.findings],
            "apis": list(result.apis),
            "ran": [1],
        }
        if result.completed:
            again = None
            if at == 0:  # the same inputs must give the same bits
                again = run(
                    builds[call.kinds], call.inputs, call.outputs, seconds=orders["seconds"]
                )
            same = again is None or same_bits(result.outputs, again.outputs)
            answer |= {"folder": str(folder), "flat": True, "unsteady": not same}
            answer["outputs"] = _leave(result.outputs, folder, at)
        else:
            answer["error"] = {"code": "", "message": "the kernel did not run to its end"}
        reply["answers"].append(answer)
        seconds["run"] = round(seconds.get("run", 0) + time.monotonic() - start, 3)


def dtype_of(leaf: wire.Tree) -> DType:
    try:
        return DType(leaf["dtype"])
    except ValueError as error:
        raise TwinError(
            "inputs-mismatch", f"tensors of {leaf['dtype']} have no element type on the chip"
        ) from error


def _load(leaf: wire.Tree, folder: Path) -> Array:
    data = np.fromfile(folder / leaf["tensor"], dtype=np.uint8)
    found: Array = data.view(dtype_of(leaf).numpy).reshape(leaf["shape"])
    return found


def _leave(outputs: list[Array], folder: Path, at: int) -> wire.Tree:
    leaves = []
    for number, array in enumerate(outputs):
        name = f"out{at}_{number}.bin"
        (folder / name).write_bytes(np.ascontiguousarray(array).tobytes())
        dtype = DType.of(array.dtype).value
        leaves.append({"tensor": name, "shape": list(array.shape), "dtype": dtype})
    return {"list": leaves}
