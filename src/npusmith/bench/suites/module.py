"""The watched process for candidates with a Python class: builds them, boxes them, tells the end.

`main()` reads orders from stdin and leaves reply.json; the outputs lie in `folder`/run<N>.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from npusmith.bench.suites import wire
from npusmith.bench.suites.place import slot
from npusmith.bench.suites.watch import leave_reply, read_orders, told_error
from npusmith.errors import NpusmithError, TwinError
from npusmith.sandbox.box import Boxed, Policy, run_boxed
from npusmith.target.chips import find_chip
from npusmith.task import candidatewire as names
from npusmith.task.cheat import find_cheats
from npusmith.task.trials import package_paths
from npusmith.twin import cheating
from npusmith.twin.formats import Submission, read_submission
from npusmith.twin.module import ModuleBuild, build_module

_START = (
    "import sys; sys.path += sys.argv[1:]; "
    "from npusmith.bench.suites import candidate as run; run.main()"
)
_RESTARTS = 3  # after a crash the other trials still get their turn


def main() -> None:
    orders = read_orders()
    folder = Path(orders["folder"])
    reply: dict[str, Any] = {"compiled": False, "cheats": [], "answers": [], "seconds": {}}
    try:
        with slot() as work:
            _judge(orders, work, folder, reply)
    except NpusmithError as error:
        reply["error"] = told_error(error)
    leave_reply(folder, reply)


def _judge(orders: dict[str, Any], work: Path, folder: Path, reply: dict[str, Any]) -> None:
    submission = read_submission(Path(orders["place"]) / orders["submission"])
    reply["cheats"] = _cheats(submission, own=not orders["given_class"])
    start = time.monotonic()
    built = build_module(submission, find_chip(orders["chip"]), work, ahead=orders["ahead"])
    reply["compiled"] = True
    reply["compiler"] = built.toolchain.compiler.version
    reply["seconds"]["compile"] = round(time.monotonic() - start, 3)
    start = time.monotonic()
    orders["given"] = str(_share_inputs(orders, folder))
    reply["answers"] = _run_all(built, orders, folder)
    reply["seconds"]["run"] = round(time.monotonic() - start, 3)


def _cheats(submission: Submission, *, own: bool) -> list[dict[str, Any]]:
    """`own`: the class is the candidate's, not the suite's."""
    found = find_cheats(submission.model_text, submission.entry, submission.model) if own else []
    for name in submission.bindings:
        found += cheating.find_cheats(submission.files[name], Path(name))
    return [item.model_dump(mode="json") for item in found]


def _share_inputs(orders: dict[str, Any], folder: Path) -> Path:
    """Inputs lie apart from the reference's outputs, which the candidate may not see."""
    given, apart = Path(orders["given"]), folder / "inputs"
    apart.mkdir()
    for leaf in wire.leaves({"list": [{"dict": row} for row in orders["trials"]]}):
        if not (apart / leaf["tensor"]).exists():
            try:
                os.link(given / leaf["tensor"], apart / leaf["tensor"])
            except OSError:
                shutil.copyfile(given / leaf["tensor"], apart / leaf["tensor"])
    return apart


def _run_all(built: ModuleBuild, orders: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """An answer for each trial; a crash costs only the trial that caused it."""
    answers: list[dict[str, Any]] = []
    for attempt in range(_RESTARTS + 1):
        rest = orders["trials"][len(answers) :]
        if not rest:
            break
        answers += _run_once(built, {**orders, "trials": rest}, folder / f"run{attempt}")
    lost = {"error": {"code": "", "message": "not run: the process ended too often before"}}
    return answers + [lost] * (len(orders["trials"]) - len(answers))


def record_once(orders: dict[str, Any], folder: Path) -> Path:
    """Call the class on the first trial alone, with logs; the folder in which it ran.

    Launches inside the process leave logs in the order of launches, which only one trial tells.
    """
    submission, out = read_submission(Path(orders["place"]) / orders["submission"]), folder / "run"
    once = {"trials": orders["trials"][:1], "twice": False, "logs": str(out / names.LOGS)}
    orders = {**orders, **once}
    orders["given"] = str(_share_inputs(orders, folder))
    with slot() as work:
        built = build_module(submission, find_chip(orders["chip"]), work, ahead=orders["ahead"])
        answers = _run_once(built, orders, out)
    if "outputs" not in answers[0]:
        raise TwinError("timing-log", "the recorded run did not come to its end")
    return out


def _run_once(built: ModuleBuild, orders: dict[str, Any], out: Path) -> list[dict[str, Any]]:
    out.mkdir()
    (out / names.CALLS).touch()
    (out / names.LOGS).mkdir()
    _link_cache(built, out / "cache")
    boxed = _start(built, orders, out)
    record = _record(out)
    calls = _rows(wire.read_plain(out / names.CALLS, 64 << 20))
    launches = _rows(wire.read_plain(out / names.REPORT, 16 << 20))
    ends = [int(end) for end in record["calls"] if isinstance(end, int)]
    answers = []
    for at, tree in enumerate(record["outputs"][: len(ends)]):
        mine = calls[ends[at - 1] if at else 0 : ends[at]]
        touched = {name: _at(record[name], at) for name in ("alias", "writes", "unsteady")}
        error = tree.get("error") if isinstance(tree, dict) else None
        found = {"folder": str(out), "outputs": tree} if error is None else {"error": _words(error)}
        answers.append({**found, **touched, **_told(mine)})
    if answers and launches:  # of the whole process
        told = _told(launches)
        answers[0]["findings"] += told["findings"]
        answers[0]["apis"] += told["apis"]
        answers[0]["ran"] += [len(told["apis"])]
    if len(answers) < len(orders["trials"]):
        left = _told([*calls[ends[-1] if ends else 0 :], *([] if answers else launches)])
        answers.append({"error": _ended(record, boxed, orders["seconds"]), **left})
        if record.get("error") and record["started"] < 0:  # before the first: no other will do
            answers += [answers[-1]] * (len(orders["trials"]) - len(answers))
    return answers


def _link_cache(built: ModuleBuild, cache: Path) -> None:
    """A cache of the run's own, in which what has been built already is found."""
    for part, folders in (("twin", (built.toolchain.folder,)), ("build", built.builds)):
        (cache / part).mkdir(parents=True)
        for folder in folders:
            (cache / part / folder.name).symlink_to(folder)


def _start(built: ModuleBuild, orders: dict[str, Any], out: Path) -> Boxed:
    paths = package_paths()
    policy = Policy(
        write=(out,),
        read=(
            *map(Path, (sys.prefix, sys.base_prefix, *paths, orders["given"])),
            built.root, built.modules, built.toolchain.folder, *built.builds,
        ),
        seconds=orders["whole_seconds"],
        memory_bytes=int(orders["memory_mb"] * (1 << 20)),
        file_bytes=int(orders["disk_bytes"]),
        processes=True,  # operators run in the twin's runner
    )  # fmt: skip
    wanted = ("given", "trials", "seed", "training", "seconds", "twice")
    told = {name: orders[name] for name in wanted} | {
        "out": str(out),
        "modules": str(built.modules),
        "libraries": [str(path) for path in built.libraries],
        "model": str(built.model),
        "entry": built.submission.entry,
    }
    env = {
        "NPUSMITH_CACHE": str(out / "cache"),
        "NPUSMITH_FINDINGS": str(out / names.CALLS),
        "NPUSMITH_SECONDS": str(orders["seconds"]),
        **({"NPUSMITH_LOGS": orders["logs"]} if "logs" in orders else {}),
    }
    argv = [sys.executable, "-I", "-B", "-c", _START, *paths]
    return run_boxed(argv, policy, stdin=json.dumps(told).encode(), env=env, cwd=out)


def _record(out: Path) -> dict[str, Any]:
    """The candidate's own account, in the form that it should have."""
    names_of = ("outputs", "calls", "alias", "writes", "unsteady")
    empty: dict[str, Any] = {"started": -1, **{name: [] for name in names_of}}
    with contextlib.suppress(ValueError):
        found = json.loads(wire.read_plain(out / names.RESULT, 16 << 20))
        found = {**empty, **found} if isinstance(found, dict) else empty
        if all(isinstance(found[name], type(empty[name])) for name in empty):
            return found
    return empty


def _at(rows: list[Any], place: int) -> Any:
    return rows[place] if place < len(rows) else None


def _rows(data: bytearray) -> list[dict[str, Any]]:
    found = []
    for line in data.decode(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            found.append(row if isinstance(row, dict) else {})
    return found


def _told(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    findings = [item for row in rows for item in row.get("findings", []) if isinstance(item, dict)]
    apis = [str(name) for row in rows for name in row.get("apis", [])]
    return {"findings": findings, "apis": sorted(set(apis)), "ran": [len(rows)]}


def _words(error: Any) -> dict[str, str]:
    """What the candidate's process says of an error."""
    said = error if isinstance(error, dict) else {}
    return {name: str(said.get(name, ""))[:2000] for name in ("code", "message", "seen")}


def _ended(record: dict[str, Any], boxed: Boxed, seconds: float) -> dict[str, Any]:
    """Why a trial has no outputs."""
    if record.get("error") is not None:
        return _words(record["error"])
    log = boxed.stderr.decode(errors="replace").strip()[-500:]
    if boxed.timed_out:
        code, message = "kernel-hang", f"the candidate had not ended after {seconds:g} s"
    elif boxed.out_of_memory:
        code, message = "kernel-memory", "the candidate used more memory than it may"
    else:
        code, message = "kernel-crash", f"the candidate's process ended ({boxed.returncode})"
    return {"code": code, "message": message, "seen": log}
