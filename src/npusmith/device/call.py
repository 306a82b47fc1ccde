"""One call of an operator: find its project, build it, run it, write the outputs back."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npusmith.device import arguments, columns, tensors
from npusmith.device.adapters import ADAPTERS, Finish
from npusmith.errors import Level, TwinError
from npusmith.target.chips import DEFAULT_CHIP, Chip, of_record
from npusmith.twin import Finding, LaunchOptions, Project, Run, build, run
from npusmith.twin.options import PLAIN, BuildOptions
from npusmith.twin.project import read_projects
from npusmith.twin.remote import Request, ask, remote

_RECORD = "NPUSMITH_FINDINGS"
_SECONDS = "NPUSMITH_SECONDS"
_LOGS = "NPUSMITH_LOGS"
_MOST_LOGS = 64


@dataclass(frozen=True, slots=True)
class Note:
    """What lies beside an extension: the operators that it may call."""

    chip: Chip
    ops: dict[str, Path]
    fills: bool  # the binding puts values into tensors before it passes them as outputs
    options: BuildOptions = PLAIN  # for the operators' projects


def call(extension: str, name: str, values: Sequence[object]) -> None:
    """Run the operator of aclnn function `name` with its arguments, in the order of the function.

    Raises TwinError: binding-note, binding-call, the first finding of level error once the outputs
    are written, and whatever building the project raises.
    """
    note = read_note(Path(extension).with_suffix(".json"))
    project, values, finish = _find(note, name, list(values))
    bound = arguments.bind(project.op, name, values)
    chosen = columns.choose(project.op, bound)
    inputs = [
        tensors.given(port, value, dtype)
        for port, value, dtype in zip(project.op.inputs, bound.inputs, chosen.inputs, strict=True)
    ]
    outputs = arguments.outputs(project.op, bound)
    request = Request(
        project.op.type,
        chosen.all,
        inputs,
        [tensors.wanted(value) for value in outputs],
        bound.attrs,
        () if project.op.outputs else range(len(inputs)),
        _initial(project, outputs) if note.fills else {},
    )
    pipes = remote()
    result, recorded = (
        _launch(project, note, request) if pipes is None else (ask(request, pipes), True)
    )
    _write(project, bound, outputs, result)
    finish()
    _raise(result, recorded)


def _launch(project: Project, note: Note, request: Request) -> tuple[Run, bool]:
    """Build and run in this process; whether the run was recorded."""
    start = time.monotonic()
    built = build(project, note.chip, request.dtypes)
    compiled = time.monotonic()
    result = run(
        built,
        request.inputs,
        request.outputs,
        request.attrs,
        writable=request.writable,
        initial=request.initial,
        options=LaunchOptions(seconds=float(os.environ.get(_SECONDS, "60")), **_recording()),
    )
    return result, _record(project, result, compiled - start, time.monotonic() - compiled)


def read_note(path: Path) -> Note:
    """The note beside an extension; TwinError binding-note."""
    try:
        return _read_note(path, path.stat().st_mtime_ns)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TwinError(
            "binding-note",
            f"{path} does not say which operators the extension may call",
            seen=str(error),
        ) from error


@functools.lru_cache(maxsize=64)
def _read_note(path: Path, changed: int) -> Note:
    data = json.loads(path.read_text())
    ops = {str(name): Path(root) for name, root in data["ops"].items()}
    include = tuple(Path(str(item)) for item in data.get("include", ()))
    define = tuple(str(item) for item in data.get("define", ()))
    options = BuildOptions(include=include, define=define)
    return Note(of_record(data.get("chip", DEFAULT_CHIP)), ops, bool(data.get("fills")), options)


def _find(note: Note, name: str, values: list[object]) -> tuple[Project, list[object], Finish]:
    """The project behind an aclnn function, its values in the order of the operator, and what the
    function does after the kernel."""
    adapter = ADAPTERS.get(name)
    op = name.removeprefix("aclnn")
    if op not in note.ops and adapter is not None:
        op = adapter.op
    root = note.ops.get(op)
    if root is None:
        raise TwinError(
            "binding-call",
            f"the binding calls {name}, which no operator here provides",
            seen=", ".join(note.ops) or "no operator at all",
        )
    for adapter in (row for row in (ADAPTERS.get(name), ADAPTERS.get(f"aclnn{op}")) if row):
        if adapter.op == op and len(values) == len(adapter.order):
            values = adapter.sort(values)
            if adapter.steps is not None:
                return read_projects(root, note.options)[op], values, adapter.steps(values)
            break
    return read_projects(root, note.options)[op], values, lambda: None


def _initial(
    project: Project, outputs: Sequence[arguments.Value]
) -> dict[int, list[tensors.Array]]:
    """What the output tensors hold before the call."""
    return {
        position: [tensors.array(tensor) for tensor in arguments.listed(value)]
        for position, value in enumerate(outputs)
        if not project.op.is_ref(project.op.outputs[position])
    }


def _write(
    project: Project, bound: arguments.Bound, outputs: Sequence[arguments.Value], result: Run
) -> None:
    arrays = iter(result.outputs)
    for value in outputs:
        for tensor in arguments.listed(value):
            tensors.write(tensor, next(arrays))
    if project.op.outputs:
        return
    changed = iter(result.inputs)
    for value in bound.inputs:
        for tensor in arguments.listed(value):
            tensors.write(tensor, next(changed))
        if arguments.is_number(value):
            next(changed)  # a number reached the kernel as a tensor; nobody sees what it became


def _recording() -> dict[str, Any]:
    """Where this call leaves its log for the timing model, when a folder for logs is named."""
    name = os.environ.get(_LOGS)
    taken = len(list(Path(name).iterdir())) if name else _MOST_LOGS
    return {"record": Path(str(name), str(taken))} if taken < _MOST_LOGS else {}


def _record(project: Project, result: Run, building: float, running: float) -> bool:
    name = os.environ.get(_RECORD)
    if not name:
        return False
    row = {
        "op": project.op.type,
        "completed": result.completed,
        "build_seconds": round(building, 3),
        "run_seconds": round(running, 3),
        "host_seconds": result.host_seconds,
        "kernel_seconds": result.kernel_seconds,
        "blocks": result.blocks,
        "apis": list(result.apis),
        "findings": [finding.model_dump(mode="json") for finding in result.findings],
    }
    with Path(name).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return True


def _raise(result: Run, recorded: bool) -> None:
    errors = [finding for finding in result.findings if finding.level is Level.ERROR]
    if errors and (not recorded or not result.completed):
        raise _as_error(errors[0], len(errors) - 1)
    if not result.completed:
        raise TwinError("run-failed", "the kernel did not come to its end", seen=result.log[-500:])


def _as_error(finding: Finding, more: int) -> TwinError:
    seen = finding.seen + (f"; and {more} more findings" if more else "")
    return TwinError(finding.code, finding.message, finding.place, seen=seen, legal=finding.legal)
