"""`run(build, inputs, outputs, attrs) -> Run`: one call of a compiled operator, in the sandbox.

Arrays cross as raw files that the runner maps: inputs are written once, outputs are mapped back.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npusmith.errors import Place, TwinError
from npusmith.ir.dtypes import DType
from npusmith.sandbox.box import Boxed, Policy, run_boxed
from npusmith.twin import wrapper
from npusmith.twin.compile import Build
from npusmith.twin.finding import Finding
from npusmith.twin.opdef import PortText

Array = np.ndarray[Any, Any]
Input = Array | Sequence[Array] | None  # None: an absent optional one; a sequence: a DYNAMIC one
Output = tuple[tuple[int, ...], DType]
Attr = int | float | bool | str | Sequence[int] | Sequence[float] | Sequence[bool]

_GRACE = 10.0  # seconds that the sandbox allows beyond the runner's own alarm
_BASE_MEMORY = 1 << 30  # of a run, beside workspace: UB images, stacks, libraries
_WORKSPACE_CAP = 4 << 30
_LOG_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Run:
    """What one call did. `completed`: the kernel came to its end on every core."""

    outputs: list[Array]
    findings: list[Finding]
    blocks: int
    tiling_key: int
    workspace_bytes: int
    seconds: float  # of the whole call, files and sandbox included
    completed: bool
    host_seconds: float
    kernel_seconds: float
    tiling: bytes
    log: str  # what the project printed
    missing: tuple[str, ...]  # sandbox layers that this machine lacks


class _Report(BaseModel):
    model_config = ConfigDict(extra="forbid")

    completed: bool
    op: str
    blocks: int
    tiling_key: int
    workspace_bytes: int
    tiling: str = Field(pattern=r"^([0-9a-f]{2})*$")
    host_seconds: float
    kernel_seconds: float
    findings: list[Finding]


def run(
    build: Build,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    attrs: Mapping[str, Attr] | None = None,
    *,
    seconds: float = 60,
    workspace_cap: int = _WORKSPACE_CAP,
) -> Run:
    """Call the operator once with inputs and outputs in OpDef order.

    What the project does wrong is a finding; TwinError inputs-mismatch is the caller's mistake.
    """
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="npusmith-run-"))
    try:
        orders, files = _orders(build, inputs, outputs, attrs or {}, folder)
        limits = [f"seconds {seconds}", f"cap {workspace_cap}"]
        (folder / "orders").write_text("\n".join([*orders, *limits]) + "\n")
        size = sum(path.stat().st_size for path in folder.iterdir())
        boxed = _start(build, folder, seconds, workspace_cap + size)
        report = _read_report(folder, boxed, seconds)
        arrays = [_map(*file) for file in files]
    except OSError as error:
        raise TwinError(
            "run-failed",
            "the tensors could not be handed over",
            Place(str(folder)),
            seen=str(error),
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    log = _log(boxed)
    return Run(
        arrays,
        [_explain(finding, log) for finding in report.findings],
        report.blocks,
        report.tiling_key,
        report.workspace_bytes,
        time.monotonic() - start,
        report.completed,
        report.host_seconds,
        report.kernel_seconds,
        bytes.fromhex(report.tiling),
        log,
        boxed.missing,
    )


# ---- orders


def _orders(
    build: Build,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    attrs: Mapping[str, Attr],
    folder: Path,
) -> tuple[list[str], list[tuple[Path, tuple[int, ...], DType]]]:
    """The runner's orders, and for each output its file, shape and type."""
    op = build.project.op
    _check_count("inputs", op.inputs, inputs)
    _check_count("outputs", op.outputs, outputs)
    lines = [
        f"kernel {_hex(str(build.kernel))}",
        f"host {_hex(str(build.host))}",
        f"soc {_hex(_soc(build.chip.soc_version))}",
    ]
    places: dict[str, tuple[int, Path]] = {}  # input name -> position among the tensors, file
    position = 0
    for port, value in enumerate(inputs):
        for array in _tensors(value):
            path = folder / f"in{position}"
            lines.append(f"in {port} {_write(array, path)}")
            places[op.inputs[port].name] = (position, path)
            position += 1
    files = []
    for port, (shape, dtype) in enumerate(outputs):
        ref, path = places.get(op.outputs[port].name, (-1, folder / f"out{port}"))
        size = int(np.prod(shape, dtype=np.int64)) * dtype.bytes
        if ref < 0:
            _reserve(path, size)
        lines.append(
            f"out {port} {wrapper.type_number(dtype)} {size} {_hex(str(path))} {ref} {_dims(shape)}"
        )
        files.append((path, tuple(shape), dtype))
    lines += [f"attr {_hex(name)} {_values(value)}" for name, value in attrs.items()]
    return lines, files


def _check_count(what: str, ports: Sequence[PortText], given: Sequence[object]) -> None:
    if len(ports) != len(given):
        raise TwinError(
            "inputs-mismatch",
            f"the operator has {len(ports)} {what}, {len(given)} were given",
            seen=", ".join(port.name for port in ports),
        )


def _tensors(value: Input) -> Sequence[Array]:
    if value is None:
        return ()
    return (value,) if isinstance(value, np.ndarray) else value


def _write(array: Array, path: Path) -> str:
    """The array's bytes into a file; the tensor's words in the orders."""
    try:
        dtype = DType.of(array.dtype)
    except KeyError as error:
        raise TwinError(
            "inputs-mismatch", f"arrays of {array.dtype} have no element type on the chip"
        ) from error
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    with path.open("wb") as file:
        file.write(flat.data)
    number = wrapper.type_number(dtype)
    return f"{number} {flat.size} {_hex(str(path))} {_dims(array.shape)}"


def _reserve(path: Path, size: int) -> None:
    """Room for an output; its blocks are taken now, so that a full disk cannot stop the kernel."""
    with path.open("wb") as file:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)


def _dims(shape: Sequence[int]) -> str:
    return " ".join(map(str, (len(shape), *shape)))


def _hex(text: str) -> str:
    return "x" + text.encode().hex()


def _values(value: Attr) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return f"scalar {_value(value)}"
    return " ".join(["list", *map(_value, value)])


def _value(value: int | float | bool | str) -> str:
    if isinstance(value, str):
        return f"s:{_hex(value)}"
    if isinstance(value, bool):
        return f"b:{int(value)}"
    return f"i:{value}" if isinstance(value, int) else f"f:{float(value).hex()}"


def _soc(soc_version: str) -> str:
    """`Ascend910B2` -> `ascend910b`, as AddConfig and msopgen spell the family."""
    return soc_version.lower().rstrip("0123456789")


# ---- the run


def _start(build: Build, folder: Path, seconds: float, extra: int) -> Boxed:
    policy = Policy(
        write=(folder,),
        read=(build.folder, build.toolchain.folder, folder),
        seconds=seconds + _GRACE,
        memory_bytes=_BASE_MEMORY + extra,
    )
    argv = [str(build.toolchain.runner), str(folder / "orders"), str(folder / "report")]
    return run_boxed(argv, policy, cwd=folder)


def _read_report(folder: Path, boxed: Boxed, seconds: float) -> _Report:
    path = folder / "report"
    try:
        if path.exists():
            return _Report.model_validate_json(path.read_bytes())
    except ValidationError:
        pass  # the candidate can write there too: what cannot be read is as good as nothing
    return _Report(
        completed=False,
        op="",
        blocks=0,
        tiling_key=0,
        workspace_bytes=0,
        tiling="",
        host_seconds=0,
        kernel_seconds=0,
        findings=[_lost(folder, boxed, seconds)],
    )


def _lost(folder: Path, boxed: Boxed, seconds: float) -> Finding:
    """The runner left no report: what its note and its end tell."""
    note = folder / "report.note"
    words = note.read_text(errors="replace").split("\n") if note.exists() else []
    phase, number, file, line, core, api = (words + [""] * 6)[:6]
    if boxed.timed_out:
        code, message = "kernel-hang", f"the run had not ended after {seconds:g} s"
    elif boxed.out_of_memory:
        code, message = "kernel-memory", "the run used more memory than it may"
    else:
        code, message = "kernel-crash", f"the run ended without a result ({_ended(boxed, number)})"
    seen = [f"during {phase}" if phase else "", f"last call: {api}" if api else ""]
    return Finding(
        code=code,
        message=message,
        file=file,
        line=_number(line),
        core=_number(core) if core.isdecimal() else None,
        seen=", ".join(filter(None, seen)),
    )


def _number(word: str) -> int:
    """The candidate can write the note too: what is no number counts as none."""
    return int(word) if word.isdecimal() and len(word) < 10 else 0


def _ended(boxed: Boxed, number: str) -> str:
    first = _number(number) or boxed.signal
    return signal.strsignal(first) or str(first) if first else f"exit status {boxed.returncode}"


def _map(path: Path, shape: tuple[int, ...], dtype: DType) -> Array:
    """The output file as an array; the mapping outlives the file's name."""
    if 0 in shape:
        return np.empty(shape, dtype.numpy)
    flat = np.memmap(path, dtype=np.uint8, mode="c")
    return np.asarray(flat).view(dtype.numpy).reshape(shape)


def _log(boxed: Boxed) -> str:
    return (boxed.stdout + boxed.stderr).decode(errors="replace")


def _explain(finding: Finding, log: str) -> Finding:
    """Host code that fails has usually said why."""
    if finding.code not in ("tiling-failed", "host-crash") or not log.strip():
        return finding
    said = log.strip()[-_LOG_CHARS:]
    return finding.model_copy(update={"seen": "; ".join(filter(None, [finding.seen, said]))})
