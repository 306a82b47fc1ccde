"""`measure(project, task, ...) -> Verdict`: the twin's judgement, then the same on a device.

The operator is built with CANN, installed below the project (nothing of the system's is touched),
bound to PyTorch by the project's setup.py, called on every set of inputs in a process of its own,
and compared by the judge's rule. msprof times the first set. What CANN's tools print stays in
build_out/.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from npusmith.cann.build import BuildError, Package, build_package, read_errors
from npusmith.cann.calibrate import write_row
from npusmith.cann.caller import Caller, Machine, read_output, tail, write_inputs
from npusmith.cann.process import call
from npusmith.cann.toolkit import Toolkit, find_devices, find_toolkit
from npusmith.errors import CannError, Place
from npusmith.ir.spec import OpSpec
from npusmith.lower import read_bindings
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.task.judge import bind_inputs, judge
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.recording import Recording
from npusmith.task.running import UNSTEADY, start_trial
from npusmith.task.tolerance import check_profile
from npusmith.task.trials import Sets, prepare, seeds_for
from npusmith.task.verdict import OnDevice, Rung, Trial, Verdict
from npusmith.task.weighing import Criterion, Pair, reject, value_of, weigh
from npusmith.timing.rung import give_rung, time_logs
from npusmith.twin import read_project
from npusmith.twin.project import Project

_SECONDS = 900.0  # of the installer and of setup.py
_DEV = Path("/dev")


class Progress(Protocol):
    """Told at the beginning of each step."""

    def step(self, name: str, detail: str = "") -> None: ...


def find_machine(
    number: int = 0, environment: Mapping[str, str] | None = None, nodes: Path = _DEV
) -> Machine:
    """CannError cann-missing, device-missing."""
    given = dict(os.environ if environment is None else environment)
    toolkit = find_toolkit(given)
    found = find_devices(nodes)
    if f"davinci{number}" not in found:
        raise CannError(
            "device-missing", f"there is no NPU {number}", Place(str(nodes)),
            seen=", ".join(found) or "no davinci node",
        )  # fmt: skip
    return Machine(toolkit, _with_toolkit(toolkit, given), number, sys.executable)


def _with_toolkit(toolkit: Toolkit, given: dict[str, str]) -> dict[str, str]:
    """What set_env.sh of the toolkit sets, where the user has not sourced it."""
    scripts = [toolkit.home / "set_env.sh", toolkit.home.parent / "set_env.sh"]
    script = next((path for path in scripts if path.is_file()), None)
    if "ASCEND_HOME_PATH" in given or script is None:
        return {"ASCEND_HOME_PATH": str(toolkit.home), **given}
    done = subprocess.run(
        ["bash", "-c", 'source "$1" >/dev/null && env -0', "bash", str(script)],
        env=given, capture_output=True, timeout=60,
    )  # fmt: skip
    pairs = (text.partition("=") for text in done.stdout.decode(errors="replace").split("\0"))
    said = {name: value for name, _, value in pairs if name}
    return {"ASCEND_HOME_PATH": str(toolkit.home), **given, **said}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOptions:
    """What a user may say about a run on a device.

    anyway: also where the twin says that it is wrong, which can hang or crash a device.
    calibrate: the table that gets a row of what was measured (calibrate.py).
    """

    seed: int = 0
    anyway: bool = False
    calibrate: Path | None = None


_OPTIONS = DeviceOptions()


def measure(
    project: Path,
    task: Path,
    chip: Chip,
    tolerance: str,
    progress: Progress,
    machine: Machine,
    options: DeviceOptions = _OPTIONS,
) -> Verdict:
    """Judge on the twin, then on the device; the last rung is for what is right on both."""
    profile = check_profile(tolerance)
    project = project.resolve()
    spec = _read_binding(project)
    with temporary_folder("npusmith-") as name:
        work = Path(name).resolve()
        progress.step("look", f"device {machine.number}")
        device = Caller(machine, work).name()
        progress.step("reference", "PyTorch on every set of inputs")
        prepared = prepare(open_task(task), work, sets=Sets(seeds=seeds_for(options.seed)))
        recording = Recording(work / "log")
        verdict = judge(
            project,
            prepared,
            chip,
            profile,
            spec=spec,
            options=JudgeOptions(step=progress.step, recording=recording),
        )
        verdict.provenance["seed"] = options.seed
        if logs := recording.logs():
            give_rung(verdict, time_logs(logs, chip))
        if not verdict.compiled or not (verdict.correct or options.anyway):
            return verdict
        add_device(verdict, prepared, spec, machine, progress, work, device)
        calibrate = options.calibrate
        if calibrate is not None and verdict.rung is Rung.DEVICE and verdict.device is not None:
            if verdict.device.median_us is not None and logs:
                write_row(verdict, calibrate, logs[0])
            else:
                verdict.device.notes.append(f"nothing was measured for {calibrate}")
    return verdict


def add_device(
    verdict: Verdict,
    prepared: Prepared,
    spec: OpSpec,
    machine: Machine,
    progress: Progress,
    work: Path,
    device: str,
) -> None:
    """Builds the judged project, and adds what it does on the device to the twin's verdict."""
    built = _build(Path(verdict.project), machine, progress)
    progress.step("run on the device", f"{device}, {len(prepared.trials)} sets of inputs")
    _judge_there(verdict, prepared, spec, Caller(built, work, spec.name), device)


def _read_binding(project: Path) -> OpSpec:
    """What npusmith wrote beside the operator, so that it can be called from PyTorch."""
    spec = read_bindings(project)
    if spec is None or not (project / "setup.py").is_file():
        raise CannError(
            "cann-script", f"{project.name} has no binding of npusmith's", Place(str(project)),
            seen="bindings.json and setup.py are not both there",
        )  # fmt: skip
    return spec


# ------------------------------------------------------------------------------ building


def _build(project: Path, machine: Machine, progress: Progress) -> Machine:
    """The machine with the operator and its binding in its environment."""
    progress.step("build", f"with {machine.toolkit.home}")
    package = build_package(project, machine.toolkit, machine.environment)
    progress.step("install", str(package.path.parent / "opp"))
    installed = _install(package, machine)
    progress.step("bind", "setup.py")
    return _bind(project, installed)


def _install(package: Package, machine: Machine) -> Machine:
    """Unpacks the package below build_out/: the system's operators stay as they are."""
    target, log = package.path.parent / "opp", package.path.parent / "install.log"
    argv = ["bash", str(package.path), f"--install-path={target}"]
    code = call(argv, package.path.parent, machine.environment, log, _SECONDS)
    vendors = sorted(path for path in (target / "vendors").glob("*") if path.is_dir())
    if code or not vendors:
        raise CannError(
            "cann-build", f"the package does not install: code {code}", Place(str(package.path)),
            seen=tail(log),
        )  # fmt: skip
    own = vendors[0]
    return _before(machine, ASCEND_CUSTOM_OPP_PATH=own, LD_LIBRARY_PATH=own / "op_api" / "lib")


def _bind(project: Path, machine: Machine) -> Machine:
    """Builds the project's PyTorch binding, and puts it where it is imported from."""
    out = project / "build_out"
    target, log = out / "binding", out / "binding.log"
    argv = [
        machine.python, "setup.py", "build_ext", "--build-lib", str(target),
        "--build-temp", str(out / "binding_temp"),
    ]  # fmt: skip
    code = call(argv, project, machine.environment, log, _SECONDS)
    if code:
        text = log.read_text(encoding="utf-8", errors="replace")
        raise BuildError(read_errors(text, project), log, code)
    return _before(machine, PYTHONPATH=target)


def _before(machine: Machine, **paths: Path) -> Machine:
    """The same machine with these paths in front of its variables."""
    given = machine.environment
    more = {
        name: os.pathsep.join(filter(None, [str(path), given.get(name, "")]))
        for name, path in paths.items()
    }
    return replace(machine, environment={**given, **more})


# ------------------------------------------------------------------------------- judging


def _judge_there(
    verdict: Verdict, prepared: Prepared, spec: OpSpec, caller: Caller, device: str
) -> None:
    """Every set of inputs on the device, and what that does to the verdict.

    The first set is called twice: the same inputs must give the same bits.
    """
    source, toolkit = read_project(Path(verdict.project)), caller.machine.toolkit
    bind = bind_inputs(prepared, spec, source.op)
    judged = [item for item in prepared.trials if not item.skipped]
    calls = [
        write_inputs(bind(trial), caller.work / f"call{at}")
        for at, trial in enumerate([*judged[:1], *judged])
    ]
    held = OnDevice(
        device=device, toolkit=str(toolkit.home), route=toolkit.route, trials=[], right=False
    )
    verdict.device = held
    try:
        again, *rows = caller.ask(calls)
        held.trials = [
            _compare(*pair, verdict.tolerance) for pair in zip(judged, rows, strict=True)
        ]
        _check_bits(held.trials[0], again, rows[0])
        held.right = all(trial.passed for trial in held.trials)
        if held.right:
            _time(held, caller, calls[0], source)
    except CannError as error:
        verdict.error = error.record()
    if held.right and verdict.correct:
        verdict.rung = Rung.DEVICE
    elif not held.right:
        verdict.correct, verdict.verdict = False, "fail"


def _compare(trial: TrialData, row: dict[str, Any], profile: str) -> Trial:
    """By the judge's comparison."""
    record = start_trial(trial)
    if row["error"]:
        record.message = f"the call raised: {row['error']}"
    else:
        outputs = [read_output(item) for item in row["outputs"]]
        weigh(record, Pair(trial, value_of(outputs, trial)), Criterion(profile))
    return record


def _check_bits(record: Trial, first: dict[str, Any], second: dict[str, Any]) -> None:
    pairs = zip(first["outputs"], second["outputs"], strict=False)
    if any(_bytes(a) != _bytes(b) for a, b in pairs):
        reject(record, UNSTEADY, Criterion())


def _bytes(item: dict[str, Any]) -> bytes:
    return Path(item["file"]).read_bytes()


def _time(held: OnDevice, caller: Caller, first: dict[str, Any], source: Project) -> None:
    """Times of the first set; what cannot be timed is a note, the values stand."""
    try:
        found = caller.time(first, source.op.type, source.name)
    except CannError as error:
        held.notes.append(f"{error.code}: {error.message} ({error.seen})")
        return
    held.task_us, held.median_us = list(found.task_us), round(found.median_us, 3)
    held.cores, held.pipes = found.cores, dict(found.pipes)
    held.notes.append(f"times: {found.table}, the last {len(found.task_us)} calls")
