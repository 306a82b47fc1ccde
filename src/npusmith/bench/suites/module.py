"""The watched process for candidates with a Python class: builds them, calls them, tells the end.

`main()` reads orders from stdin and leaves reply.json. The class runs in boxed processes of its own
(task/isolated) and gets one call's values at a time; what it returns lies in `folder`/run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.bench.suites import wire
from npusmith.bench.suites.place import slot
from npusmith.bench.suites.watch import leave_reply, read_orders, told_error
from npusmith.errors import NpusmithError, TwinError
from npusmith.target.chips import find_chip
from npusmith.task.cheat import find_cheats
from npusmith.task.isolated import arrays, origin
from npusmith.task.isolated.attempt import Answer, Attempt, Candidate, Limits, Value, init_value
from npusmith.task.judge import same_bits
from npusmith.task.recording import MOST_LAUNCHES, find_logs
from npusmith.twin import cheating
from npusmith.twin.formats import Submission, read_submission
from npusmith.twin.module import ModuleBuild, build_module

_RESTARTS = 3  # after a crash the other trials still get their turn
_INSIDE = "direct"  # the log of the first launch inside of the candidate's processes
_LOST = {"error": {"code": "", "message": "not run: the process ended too often before"}}


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
    found = _cheats(submission, own=not orders["given_class"])
    reply["cheats"] = [item.model_dump(mode="json") for item in found]
    start = time.monotonic()
    built = build_module(submission, find_chip(orders["chip"]), work, ahead=orders["ahead"])
    reply["compiled"] = True
    reply["compiler"] = built.toolchain.compiler.version
    reply["seconds"]["compile"] = round(time.monotonic() - start, 3)
    start = time.monotonic()
    run = _Run(orders, folder / "run")
    reply["answers"] = run.all(built)
    if not orders["given_class"]:
        traced = origin.trace(run.calls, submission.model, orders["handed"])
        reply["cheats"] += [item.model_dump(mode="json") for item in traced]
    reply["seconds"]["run"] = round(time.monotonic() - start, 3)


def _cheats(submission: Submission, *, own: bool) -> list[Any]:
    """`own`: the class is the candidate's, not the suite's."""
    found = find_cheats(submission.model_text, submission.entry, submission.model) if own else []
    for name in submission.bindings:
        found += cheating.find_cheats(submission.files[name], Path(name))
    return found


def record_once(orders: dict[str, Any], folder: Path) -> list[Path]:
    """Call the class on the first trial alone; the logs of its launches, in their order.

    Launches inside the processes leave logs in the order of launches, which only one trial tells.
    """
    submission = read_submission(Path(orders["place"]) / orders["submission"])
    orders = {**orders, "trials": orders["trials"][:1], "twice": False}
    run, logs = _Run(orders, folder / "run"), folder / "logs"
    logs.mkdir()
    with slot() as work:
        built = build_module(submission, find_chip(orders["chip"]), work, ahead=orders["ahead"])
        answers = run.all(built, logs)
    if "outputs" not in answers[0]:
        raise TwinError("timing-log", "the recorded run did not come to its end")
    made = [path for at in range(MOST_LAUNCHES) if (path := logs / str(at)).is_file()]
    return made or find_logs(run.out / _INSIDE)


class _Run:
    """The trials of one candidate on their way through its processes."""

    def __init__(self, orders: dict[str, Any], out: Path) -> None:
        self.orders = orders
        self.given = Path(orders["given"])
        self.trials: list[dict[str, Any]] = orders["trials"]
        self.out = out
        self.calls: list[origin.Call] = []

    def all(self, built: ModuleBuild, logs: Path | None = None) -> list[dict[str, Any]]:
        """An answer for each trial; a crash costs only the trial that caused it."""
        orders = self.orders
        self.out.mkdir()
        limits = Limits(
            orders["whole_seconds"], int(orders["memory_mb"] * (1 << 20)), int(orders["disk_bytes"])
        )
        chip = find_chip(orders["chip"])
        answers: list[dict[str, Any]] = []
        with Candidate(built, chip, self.out, limits, logs=logs) as candidate:
            crashes = 0
            while len(answers) < len(self.trials) and candidate.boxed is None:
                if crashes > _RESTARTS:
                    break
                first = len(answers)
                with self._start(candidate, first) as attempt:
                    answers += self._call_all(attempt, first)
                crashes += "error" in answers[-1]
            if orders["twice"] and orders["given_class"]:
                with self._start(candidate, 0) as attempt:  # settings that were not written to
                    self._compare(answers[0], attempt)
        return answers + [_LOST] * (len(self.trials) - len(answers))

    def _start(self, candidate: Candidate, at: int) -> Any:
        built, settings = candidate.built, self._value(self.trials[at]["init"])
        return candidate.start(
            built.model, built.submission.entry, self.orders["seed"], init_value(settings),
            training=self.orders["training"],
        )  # fmt: skip

    def _call_all(self, attempt: Attempt, first: int) -> Iterator[dict[str, Any]]:
        """The trials with the settings of the first one, as far as the processes live."""
        init = self.trials[first]["init"]
        for at in range(first, len(self.trials)):
            if self.trials[at]["init"] != init:
                return
            answer = self._call(attempt, at)
            attempt.candidate.launcher.logs = None  # the first trial is behind
            told = self._told(answer, at)
            if at == 0 and self.orders["twice"] and not self.orders["given_class"]:
                self._compare(told, attempt)
            yield told
            if answer.over:  # before the first one: no other will do better
                yield from [told] * (len(self.trials) - at - 1)
            if answer.error is not None:
                return

    def _call(self, attempt: Attempt, at: int) -> Answer:
        row = self.trials[at]
        arguments, drawn = self._value(row["inputs"]), self._drawn(row)
        answer = attempt.call(arguments, drawn)
        if answer.error is None:
            taken = [*arguments.tensors, *drawn.values()]
            self.calls.append(origin.Call(taken, answer.launches, answer.outputs))
        return answer

    def _compare(self, told: dict[str, Any], attempt: Attempt) -> None:
        """The first trial once more: the same inputs must give the same bits."""
        if "outputs" not in told:
            return
        first = self.calls[0].outputs
        again = attempt.call(self._value(self.trials[0]["inputs"]), self._drawn(self.trials[0]))
        told["unsteady"] = len(again.outputs) != len(first) or not same_bits(first, again.outputs)

    def _told(self, answer: Answer, at: int) -> dict[str, Any]:
        told: dict[str, Any] = {
            "findings": [item.model_dump(mode="json") for item in answer.findings],
            "apis": sorted(set(answer.apis)),
            "ran": [len(answer.launches)],
            "alias": answer.alias if isinstance(answer.alias, list) else [],
            "writes": bool(answer.writes),
        }
        if answer.error is not None:
            error = answer.error
            seen = {"code": error.code, "message": error.message, "seen": error.seen}
            return told | {"error": seen}
        if answer.fixed and "drawn" in self.trials[at]:
            message = f"the class has no {', '.join(answer.fixed)} of the reference's shape"
            return told | {"error": {"code": "parameters-fixed", "message": message[:300]}}
        tree = _leave(answer.tree, iter(answer.outputs), self.out, f"out{at}")
        return told | {"folder": str(self.out), "outputs": tree}

    def _drawn(self, row: dict[str, Any]) -> dict[str, arrays.Array]:
        drawn = row.get("drawn", {})
        return {name: self._value(leaf).tensors[0] for name, leaf in drawn.items()}

    def _value(self, tree: wire.Tree) -> Value:
        """What lies on the disk, as it goes to the class."""
        tensors: list[arrays.Array] = []

        def walk(item: wire.Tree) -> arrays.Tree:
            if "tensor" in item:
                data = np.fromfile(self.given / item["tensor"], np.uint8)
                tensors.append(data.view(arrays.numpy_type(item["dtype"])).reshape(item["shape"]))
                return arrays.leaf(len(tensors) - 1, tensors[-1], item["dtype"])
            for key in ("list", "tuple"):
                if key in item:
                    return {key: [walk(part) for part in item[key]]}
            if "dict" in item:
                return {"dict": [[key, walk(part)] for key, part in item["dict"].items()]}
            return item

        return Value(walk(tree), tensors)


def _leave(tree: Any, tensors: Iterator[arrays.Array], folder: Path, stem: str) -> wire.Tree:
    """What the class returned, as files; the tree is checked before it comes here."""
    if "tensor" in tree:
        array = next(tensors)
        (folder / f"{stem}.bin").write_bytes(arrays.raw(array))
        return {"tensor": f"{stem}.bin", "shape": list(array.shape), "dtype": tree["dtype"]}
    for key in ("list", "tuple"):
        if key in tree:
            rows = enumerate(tree[key])
            return {key: [_leave(part, tensors, folder, f"{stem}_{at}") for at, part in rows]}
    if "dict" in tree:
        rows = enumerate(tree["dict"])
        return {"dict": {str(key): _leave(part, tensors, folder, f"{stem}_{at}")
                         for at, (key, part) in rows}}  # fmt: skip
    return {key: tree[key] for key in ("plain", "torch", "other") if key in tree}
