"""`run(build, inputs, outputs, attrs) -> Run`: one call of a compiled operator, in the sandbox.

Arrays cross as raw files that the runner maps: inputs are written once, outputs are mapped back.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npusmith.errors import CODES, Place, TwinError
from npusmith.ir.dtypes import DType
from npusmith.sandbox.box import Boxed, Policy, run_boxed
from npusmith.sandbox.folder import remove_tree
from npusmith.twin.compile import Build
from npusmith.twin.debug_lines import Spot, first_places
from npusmith.twin.debugger import SESSION_SECONDS, Debugger
from npusmith.twin.finding import Finding, Printed
from npusmith.twin.opdef import OpText, PortText
from npusmith.twin.orders import Array, Attr, Orders, Output, Sparse, Virtual
from npusmith.twin.toolchain import INCLUDE, Toolchain
from npusmith.twin.watch import Watch

# None: an absent optional one; a sequence: a DYNAMIC one
Input = Array | Virtual | Sparse | Sequence[Array] | None
Outputs = Output | Sequence[Output]  # a sequence: a DYNAMIC one

_PATIENCE = 4  # seconds on the clock for one of processor time, as in runtime/host/guard.h
_GRACE = 10.0  # seconds that the sandbox allows beyond the runner's own alarm
_BASE_MEMORY = 1 << 30  # of a run, beside workspace: UB images, stacks, libraries
_WORKSPACE_CAP = 4 << 30
_LOG_CHARS = 2000
_REPORT = "report"  # in the folder of the run: the runner takes the name away
_LOG = "log"  # in the folder of the run
_REPORT_BYTES = 16 << 20
_LOG_BYTES = 1 << 30  # record.cpp keeps less
_MOST_LOGS = 1000  # of one run
MOST_STEPS = 4_000_000  # of the log, for each core: what comes after them is only counted
_WATCH = Watch()
_CODE = {"@kernel": "kernel.so", "@cube": "cube.so"}  # runtime/fence
_NOWHERE = Spot("", 0)


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
    apis: tuple[str, ...] = ()  # names of the APIs that the kernel called, as it spelt them
    peak_bytes: int = 0  # largest resident size of the process that ran the kernel
    inputs: list[Array] = field(default_factory=list)  # the tensors of the writable inputs
    logs: tuple[Path, ...] = ()  # of the launches in their order, where the caller asked for them
    # Blocks of code that ran, as offsets in kernel.so, cube.so and host.so: coverage.py reads them
    ran: Mapping[str, frozenset[int]] = field(default_factory=dict)
    instructions: int = 0  # that cores began which came to their end
    prints: tuple[Printed, ...] = ()  # of the kernel, in the order of the calls


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
    instructions: int = Field(default=0, ge=0)
    findings: list[Finding]
    prints: list[Printed] = []
    apis: list[str] = []
    ran: dict[str, list[int]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """How a launch is made: its limits, what is checked, and what is recorded.

    seconds: of processor time, so that other work on the machine changes no verdict.
    workspace_cap: bytes of workspace that the host side may ask for.
    watch: what the sanitizer assumes and reports.
    saturate: half arithmetic starts in saturating mode (aclrtSetDeviceSatMode); the vendor's
        documents do not agree on the default.
    record: where the log of the first launch goes (runtime/log); those of the next ones go beside
        it, with .1, .2 ... behind. most_steps: of a core in a log.
    dry: values are neither moved nor computed nor checked, and there are no outputs: for the log of
        a big kernel whose control flow does not depend on data. Its inputs may be Virtual: tensors
        of any size that take no memory.
    ends: only so many blocks at either end run, the others do nothing; 0: all of them.
    tick: called every now and then; what it raises ends the run.
    """

    seconds: float = 60
    workspace_cap: int = _WORKSPACE_CAP
    watch: Watch = _WATCH
    saturate: bool = False
    record: Path | None = None
    most_steps: int = MOST_STEPS
    dry: bool = False
    ends: int = 0
    tick: Callable[[], None] | None = None


_OPTIONS = LaunchOptions()


def run(
    build: Build,
    inputs: Sequence[Input],
    outputs: Sequence[Outputs],
    attrs: Mapping[str, Attr] | None = None,
    options: LaunchOptions = _OPTIONS,
    *,
    writable: Collection[int] = (),
    initial: Mapping[int, Sequence[Array | Sparse]] | None = None,
) -> Run:
    """Call the operator once with inputs and outputs in OpDef order.

    `writable`: positions of inputs that the kernel may change; Run.inputs gives them back.
    `initial`: what the tensors of an output hold at first, by its position; else nothing is there.
    Sparse tensors take little memory, whatever their size.
    What the project does wrong is a finding; TwinError inputs-mismatch is the caller's mistake.
    """
    op = build.project.op
    _check_count("inputs", op.inputs, inputs)
    _check_count("outputs", op.outputs, outputs)

    def fill(orders: Orders) -> None:
        if build.kinds.vector:
            orders.say("kernel", str(build.kernel))
        if build.kinds.cube:
            orders.say("cube", str(build.cube))
        orders.lines.append(f"type {int(build.kinds.default)}")
        for key, kind in build.kinds.by_key.items():
            orders.lines.append(f"keytype {key} {int(kind)}")
        orders.say("host", str(build.host))
        orders.say("soc", build.chip.family)
        if options.saturate:
            orders.lines.append("saturate 1")
        if options.ends:
            orders.say("ends", options.ends)
        orders.lines.append(options.watch.line(build.project.root))
        _add_tensors(orders, op, inputs, outputs, initial or {})
        orders.allow([at for at, port in enumerate(orders.ports) if port in writable])
        for name, value in (attrs or {}).items():
            orders.attr(name, value)

    done = call(build.toolchain, build.folder, fill, options)
    return replace(done, findings=[*build.project.findings, *done.findings])


def call(
    chain: Toolchain,
    library: Path,
    fill: Callable[[Orders], None],
    options: LaunchOptions,
    work: Path | None = None,
) -> Run:
    """Start the runner in the sandbox with the orders that `fill` writes, and read what it left.

    `library`: the folder with the compiled project, which the runner may read.
    `work`: a folder that the run may change, its working directory; else it has an empty one.
    Under a debugger of `options.watch` the runner is started by it, and speaks with the user's
    terminal.
    """
    debugger, record = options.watch.debugger, options.record
    seconds = options.seconds if debugger is None else SESSION_SECONDS
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="npusmith-run-"))
    orders = Orders(folder, options.dry)
    slot = os.open(folder / _REPORT, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fill(orders)
        if debugger is not None:
            orders.lines.append("traced")
        orders.say("seconds", seconds)
        orders.say("cap", options.workspace_cap)
        orders.record(None if record is None else folder / _LOG, options.most_steps, options.dry)
        room = options.workspace_cap + orders.write() + (0 if record is None else _LOG_BYTES)
        boxed = _start(
            chain, (library, folder), folder, work, seconds, room, options.tick, debugger
        )
        logs = () if record is None else _take_logs(folder, record)
        report = _read_report(slot)
        if report is None:  # who leaves the debugger early knows why
            report = _nothing(*([] if debugger is not None else [_lost(folder, boxed, seconds)]))
        arrays = [slot.array() for slot in orders.slots]
        changed = [slot.array() for slot in orders.changed]
    except OSError as error:
        raise TwinError(
            "run-failed",
            "the tensors could not be handed over",
            Place(str(folder)),
            seen=str(error),
        ) from error
    finally:
        os.close(slot)
        orders.close()
        remove_tree(folder)
    log = _log(boxed)
    whole = [array for array in arrays if array is not None]
    kept = [array for array in changed if array is not None]
    if len(whole) < len(arrays) or len(kept) < len(changed):
        report = _nothing(_cut_short())
    return Run(
        whole,
        [_explain(finding, log) for finding in _place(library, report.findings)],
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
        tuple(report.apis),
        boxed.peak_bytes,
        kept,
        logs,
        {part: frozenset(blocks) for part, blocks in report.ran.items()},
        report.instructions,
        tuple(report.prints),
    )


def _check_count(what: str, ports: Sequence[PortText], given: Sequence[object]) -> None:
    if len(ports) != len(given):
        raise TwinError(
            "inputs-mismatch",
            f"the operator has {len(ports)} {what}, {len(given)} were given",
            seen=", ".join(port.name for port in ports),
        )


def _add_tensors(
    orders: Orders,
    op: OpText,
    inputs: Sequence[Input],
    outputs: Sequence[Outputs],
    initial: Mapping[int, Sequence[Array | Sparse]],
) -> None:
    places: dict[str, list[int]] = {}  # input name -> positions among all input tensors
    for port, value in enumerate(inputs):
        arrays = [value] if isinstance(value, (np.ndarray, Virtual, Sparse)) else value or ()
        places[op.inputs[port].name] = [orders.input(port, array) for array in arrays]
    for port, wanted in enumerate(outputs):
        shared = places.get(op.outputs[port].name, [])
        held = initial.get(port, ())
        for at, output in enumerate(_listed(wanted)):
            first = held[at] if at < len(held) else None
            orders.output(port, output, shared[at] if at < len(shared) else -1, first)


def _listed(wanted: Outputs) -> Sequence[Output]:
    """One output, or the tensors of a DYNAMIC one."""
    if len(wanted) == 2 and isinstance(wanted[1], DType):
        return [(tuple(wanted[0]), wanted[1])]  # type: ignore[arg-type]
    return wanted  # type: ignore[return-value]


# ---- the run


def _start(
    chain: Toolchain,
    read: tuple[Path, ...],
    folder: Path,
    work: Path | None,
    seconds: float,
    extra: int,
    tick: Callable[[], None] | None,
    debugger: Debugger | None,
) -> Boxed:
    argv = [str(chain.runner), str(folder / "orders"), str(folder / _REPORT)]
    if debugger is not None:
        argv = debugger.command(argv, folder)
        read = (*read, *debugger.sources, INCLUDE)
    policy = Policy(
        write=(folder,) if work is None else (folder, work),
        read=(*read, chain.folder),
        seconds=seconds * _PATIENCE + _GRACE,
        memory_bytes=_BASE_MEMORY + extra,
        processes=True,  # the host side gets one, then the runner allows none (host/cage.cpp)
        trace=debugger is not None,
    )
    live = debugger is not None
    return run_boxed(argv, policy, cwd=work or folder, tick=tick, live=live)


def _read_report(slot: int) -> _Report | None:
    """The runner's report, in the file that was open before the run: its name says nothing.

    What is odd is as good as nothing: None.
    """
    # what a kernel prints may be no UTF-8
    text = os.pread(slot, _REPORT_BYTES, 0).decode(errors="replace")
    with contextlib.suppress(ValidationError, ValueError):
        report = _Report.model_validate_json(text)
        bytes.fromhex(report.tiling)
        if all(finding.code in CODES for finding in report.findings):
            return report
    return None


def _nothing(*findings: Finding) -> _Report:
    return _Report(
        completed=False,
        op="",
        blocks=0,
        tiling_key=0,
        workspace_bytes=0,
        tiling="",
        host_seconds=0,
        kernel_seconds=0,
        findings=list(findings),
    )


def _cut_short() -> Finding:
    return Finding(code="kernel-crash", message="the run cut the file of an output short")


def _read_plain(path: Path) -> bytes:
    """The bytes of a plain file of sane size; empty for a link, a pipe or anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        plain = stat.S_ISREG(os.fstat(handle).st_mode)
        return file.read(_REPORT_BYTES) if plain else b""


def _take_logs(folder: Path, record: Path) -> tuple[Path, ...]:
    """Copy the logs of a run to where they were asked for; what is no plain file is left out."""
    taken = []
    for number in range(_MOST_LOGS):
        ending = f".{number}" if number else ""
        target = record.with_name(record.name + ending)
        target.unlink(missing_ok=True)
        if not _copy_plain(folder / f"{_LOG}{ending}", target):
            break
        taken.append(target)
    return tuple(taken)


def _copy_plain(source: Path, target: Path) -> bool:
    """The candidate can write there: only a plain file of sane size is copied."""
    try:
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode) or state.st_size > _LOG_BYTES:
            return False
        with target.open("wb") as copy:
            shutil.copyfileobj(file, copy)
    return True


def _lost(folder: Path, boxed: Boxed, seconds: float) -> Finding:
    """The runner left no report: what its note and its end tell."""
    words = _read_plain(folder / "report.note").decode(errors="replace").split("\n")
    phase, number, file, line, core, api = (words + [""] * 6)[:6]
    if boxed.timed_out:
        code, message = (
            "kernel-hang",
            f"the run had not ended after {seconds:g} s of processor time",
        )
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


def _place(library: Path, findings: Sequence[Finding]) -> list[Finding]:
    """Findings of accesses without an API know an offset in the kernel's code: here its line."""
    placed = list(findings)
    for code, name in _CODE.items():
        at = [number for number, finding in enumerate(placed) if finding.file == code]
        spots = first_places(library / name, [placed[number].line for number in at]) if at else {}
        for number in at:
            spot = spots.get(placed[number].line, _NOWHERE)
            where = {"file": spot.file, "line": spot.line}
            placed[number] = placed[number].model_copy(update=where)
    return placed


def _log(boxed: Boxed) -> str:
    return (boxed.stdout + boxed.stderr).decode(errors="replace")


def _explain(finding: Finding, log: str) -> Finding:
    """Host code that fails has usually said why."""
    if finding.code not in ("tiling-failed", "host-crash") or not log.strip():
        return finding
    said = log.strip()[-_LOG_CHARS:]
    return finding.model_copy(update={"seen": "; ".join(filter(None, [finding.seen, said]))})
