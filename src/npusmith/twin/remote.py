"""A launch that another process asks for: `ask(...)` there, `Launcher.answer(...)` here.

The binding of a candidate runs in a process that its author controls. It sends the tensors, and
whoever judges runs the kernel on the twin, in a box of its own, with its own files: how many
launches there were, of which operators, on which values and with which findings is known here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.errors import CODES, NpusmithError, Place, TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import frames
from npusmith.twin.compile import build
from npusmith.twin.finding import Finding
from npusmith.twin.launch import Input, LaunchOptions, Outputs, Run, run
from npusmith.twin.orders import Array, Attr
from npusmith.twin.project import Project

LAUNCHER = "NPUSMITH_LAUNCHER"  # descriptors to read and to write, where launches go elsewhere
_MOST_LOGS = 64
_MOST_BYTES = 16 << 30  # of one output


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of twin.run, for the operator of this type, built for these element types."""

    op: str
    dtypes: tuple[DType, ...]
    inputs: Sequence[Input]
    outputs: Sequence[Outputs]
    attrs: Mapping[str, Attr]
    writable: Collection[int] = ()
    initial: Mapping[int, Sequence[Array]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Launch:
    """What is known of one launch. Without `run` it failed before the kernel began."""

    op: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]  # what it wrote, changed inputs included
    run: Run | None
    error: NpusmithError | None = None
    scalars: tuple[object, ...] = ()  # numbers and words among its arguments


# ------------------------------------------------------------------------------ the asking process


def remote() -> tuple[int, int] | None:
    """The descriptors of a launcher outside of this process, where there is one."""
    words = os.environ.get(LAUNCHER, "").split(",")
    return (int(words[0]), int(words[1])) if len(words) == 2 else None


def ask(request: Request, pipes: tuple[int, int]) -> Run:
    """Have the launch made outside; TwinError as it was raised there."""
    blobs: list[Any] = []
    head = {
        "kind": "launch",
        "op": request.op,
        "dtypes": [item.value for item in request.dtypes],
        "inputs": [_told(item, blobs) for item in request.inputs],
        "outputs": [_wanted(item) for item in request.outputs],
        "attrs": dict(request.attrs),
        "writable": sorted(request.writable),
        "initial": [[at, [_array(row, blobs) for row in rows]]
                    for at, rows in request.initial.items()],
    }  # fmt: skip
    frames.send(pipes[1], head, blobs)
    reply, data = frames.receive(pipes[0])
    if "error" in reply:
        raise _raised(reply["error"])
    outputs = [_plain(row, data) for row in reply["outputs"]]
    changed = [_plain(row, data) for row in reply["changed"]]
    return Run(
        outputs, [], 0, 0, 0, 0.0, bool(reply["completed"]), 0.0, 0.0, b"", str(reply["log"]), (),
        inputs=changed,
    )  # fmt: skip


def error_record(error: NpusmithError) -> dict[str, Any]:
    """An error of ours as it crosses to another process."""
    place = error.place
    return {
        "code": error.code, "message": error.message, "file": place.file, "line": place.line,
        "seen": error.seen[:2000],
    }  # fmt: skip


def _raised(row: Mapping[str, Any]) -> TwinError:
    return TwinError(row["code"], row["message"], Place(row["file"], row["line"]), seen=row["seen"])


# ------------------------------------------------------------------------------- the launching side


@dataclass(slots=True)
class Launcher:
    """Runs the operators of one candidate for whoever asks."""

    projects: Mapping[str, Project]
    chip: Chip
    seconds: float
    logs: Path | None = None  # the folder of the logs for the timing model
    launches: list[Launch] = field(default_factory=list)

    def answer(self, head: frames.Head, blobs: list[bytearray]) -> tuple[frames.Head, list[Any]]:
        """The reply to a request; ValueError when it is none."""
        request = _request(head, blobs)
        given = tuple(array for item in request.inputs for array in _arrays(item))
        given += tuple(array for rows in request.initial.values() for array in rows)
        scalars = tuple(f"{name} {value!r}" for name, value in request.attrs.items())
        try:
            done = self._run(request)
        except NpusmithError as error:
            self.launches.append(Launch(request.op, given, (), None, error, scalars))
            return {"error": error_record(error)}, []
        wrote = (*done.outputs, *done.inputs)
        self.launches.append(Launch(request.op, given, wrote, done, None, scalars))
        data: list[Any] = []
        reply = {
            "outputs": [_array(array, data) for array in done.outputs],
            "changed": [_array(array, data) for array in done.inputs],
            "completed": done.completed,
            "log": done.log[-500:],
        }
        return reply, data

    def _run(self, request: Request) -> Run:
        project = self.projects.get(request.op)
        if project is None:
            raise TwinError("binding-call", f"there is no operator {request.op[:80]!r} to launch")
        built = build(project, self.chip, request.dtypes)
        return run(
            built,
            request.inputs,
            request.outputs,
            request.attrs,
            writable=request.writable,
            initial=request.initial,
            options=LaunchOptions(seconds=self.seconds, record=self._log()),
        )

    def _log(self) -> Path | None:
        at = len(self.launches)
        return self.logs / str(at) if self.logs is not None and at < _MOST_LOGS else None


def findings_of(launch: Launch) -> list[Finding]:
    """What was found in a launch, its own failure included."""
    if launch.run is not None:
        return list(launch.run.findings)
    error = launch.error
    if error is None or error.code not in CODES:
        return []
    place = error.place
    return [
        Finding(
            code=error.code, message=error.message, file=place.file, line=place.line,
            seen=error.seen, legal=error.legal,
        )
    ]  # fmt: skip


def _request(head: frames.Head, blobs: list[bytearray]) -> Request:
    try:
        return Request(
            str(head["op"]),
            tuple(DType(name) for name in head["dtypes"]),
            [_given(item, blobs) for item in head["inputs"]],
            [_output(item) for item in head["outputs"]],
            {str(name): _attr(value) for name, value in head["attrs"].items()},
            [int(at) for at in head["writable"]],
            {int(at): [_plain(row, blobs) for row in rows] for at, rows in head["initial"]},
        )
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"no request for a launch: {error}") from error


def _attr(value: Any) -> Attr:
    numbers = value if isinstance(value, list) else [value]
    if isinstance(value, str) or all(isinstance(item, (bool, int, float)) for item in numbers):
        return value  # type: ignore[no-any-return]
    raise ValueError("an attribute that is none")


# ---- arrays


def _told(item: Input, blobs: list[Any]) -> Any:
    if item is None:
        return None
    if isinstance(item, np.ndarray):
        return _array(item, blobs)
    assert isinstance(item, Sequence)
    return {"list": [_array(row, blobs) for row in item]}


def _given(item: Any, blobs: list[bytearray]) -> Input:
    if item is None:
        return None
    if isinstance(item, dict):
        return [_plain(row, blobs) for row in item["list"]]
    return _plain(item, blobs)


def _arrays(item: Input) -> list[Array]:
    if item is None:
        return []
    return [item] if isinstance(item, np.ndarray) else list(item)  # type: ignore[arg-type]


def _array(array: Array, blobs: list[Any]) -> list[Any]:
    blobs.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return [len(blobs) - 1, list(array.shape), DType.of(array.dtype).value]


def _plain(row: Any, blobs: list[bytearray]) -> Array:
    at, shape, name = row
    dtype = DType(name).numpy
    found = np.frombuffer(blobs[at], dtype)
    if any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("a tensor without a shape")
    return found.reshape(shape)


def _wanted(item: Outputs) -> Any:
    return {"list": [_said(one) for one in item]} if isinstance(item, list) else _said(item)


def _said(output: Any) -> list[Any]:
    return [list(output[0]), output[1].value]


def _output(item: Any) -> Outputs:
    if isinstance(item, dict):
        return [_output(row) for row in item["list"]]  # type: ignore[misc]
    shape, name = item
    if any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("an output without a shape")
    if math.prod(shape) * DType(name).bytes > _MOST_BYTES:
        raise ValueError("an output that is too large")
    return tuple(shape), DType(name)
