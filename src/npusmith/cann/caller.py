"""Calls of a built operator on the NPU, each in a process of its own: `Caller(...).ask(calls)`.

The process (runner.py) has torch_npu and the operator; tensors cross as files of their bytes.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.cann.msprof import Times, read_times
from npusmith.cann.process import LATE, call
from npusmith.cann.toolkit import Toolkit
from npusmith.errors import CannError
from npusmith.ir.dtypes import DType
from npusmith.task.isolated.arrays import numpy_type

MODULE = "custom_ops_lib"  # that a project's setup.py builds
WARMUP, REPEATS = 5, 20  # of the timed set, as the published tables have them
_SECONDS = 900.0  # of one program
_LINES = 12  # of what it printed, in a message
_RUNNER = Path(__file__).with_name("runner.py")


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine's CANN and NPU, and the environment of programs that use them."""

    toolkit: Toolkit
    environment: Mapping[str, str]
    number: int  # of the device
    python: str


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls torch.ops.<module>.<operator> on a device."""

    machine: Machine
    work: Path
    operator: str = ""
    module: str = MODULE

    def name(self) -> str:
        """What the driver calls the device; CannError device-torch where PyTorch finds none."""
        reply, code = self._run("look", [], "")
        if reply is None:
            raise CannError(
                "device-torch", f"PyTorch cannot use the NPU: {_ended(code)}",
                seen=tail(self.work / "look.log"),
            )  # fmt: skip
        return str(reply["device"])

    def ask(self, calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The reply to each call; CannError device-run where the program does not end well."""
        reply, code = self._run("calls", calls, "")
        if reply is None:
            raise CannError(
                "device-run", f"the program on the device {_ended(code)}",
                seen=tail(self.work / "calls.log"),
            )  # fmt: skip
        return list(reply["calls"])

    def time(self, first: dict[str, Any], op_type: str, entry: str) -> Times:
        """That call under msprof; CannError device-times."""
        path = self.machine.environment.get("PATH", "")
        msprof = self.machine.toolkit.program("msprof", path)
        if msprof is None:
            raise CannError("device-times", "msprof is not installed", seen=path)
        timed = {**first, "warmup": WARMUP, "repeats": REPEATS}
        _, code = self._run("timed", [timed], str(msprof))
        if code:
            message = f"the program under msprof {_ended(code)}"
            raise CannError("device-times", message, seen=tail(self.work / "timed.log"))
        return read_times(self.work / "msprof", op_type, entry, REPEATS)

    def _run(
        self, name: str, calls: Sequence[dict[str, Any]], msprof: str
    ) -> tuple[dict[str, Any] | None, int]:
        """The runner's reply, where there is one, and how the program ended."""
        order, reply = self.work / f"{name}.json", self.work / f"{name}_reply.json"
        said = {
            "device": self.machine.number, "module": self.module, "operator": self.operator,
            "calls": list(calls), "reply": str(reply),
        }  # fmt: skip
        order.write_text(json.dumps(said), encoding="utf-8")
        argv = [self.machine.python, str(_RUNNER), str(order)]
        if msprof:  # it splits the command at blanks
            script, out = self.work / "timed.sh", self.work / "msprof"
            script.write_text(f"exec {shlex.join(argv)}\n", encoding="utf-8")
            out.mkdir(exist_ok=True)
            argv = [msprof, f"--application=bash {script}", f"--output={out}"]
        log = self.work / f"{name}.log"
        code = call(argv, self.work, self.machine.environment, log, _SECONDS)
        found = json.loads(reply.read_text(encoding="utf-8")) if reply.is_file() else None
        return found, code


def write_inputs(inputs: Sequence[object], folder: Path) -> dict[str, Any]:
    """One call: its tensors as files of their bytes."""
    folder.mkdir(exist_ok=True)
    rows = []
    for at, value in enumerate(inputs):
        array = np.asarray(value)
        file = folder / f"input{at}"
        file.write_bytes(array.tobytes())
        shape, dtype = list(array.shape), DType.of(array.dtype).value
        rows.append({"file": str(file), "dtype": dtype, "shape": shape})
    return {"inputs": rows, "folder": str(folder), "warmup": 0, "repeats": 1}


def read_output(item: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """A tensor that the runner left."""
    data = np.frombuffer(Path(item["file"]).read_bytes(), dtype=numpy_type(item["dtype"]))
    return data.reshape(item["shape"])


def tail(log: Path) -> str:
    """The last lines of what a program printed."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return "; ".join(line.strip() for line in lines[-_LINES:])[-1000:] or "it printed nothing"


def _ended(code: int) -> str:
    return f"did not end within {_SECONDS:g} s" if code == LATE else f"ended with code {code}"
