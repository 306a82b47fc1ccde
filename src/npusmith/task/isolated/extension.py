"""The process that loads a candidate's compiled module and calls it for the model's process.

It stands between the model and the judge: calls of the module are made here, everything else is
passed on. Of the candidate only the compiled module runs here.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import torch

from npusmith.errors import NpusmithError
from npusmith.task.isolated import REPORT, values
from npusmith.twin import frames, remote
from npusmith.twin.module import MEMORY

_RELAYED = ("init", "ready", "outputs", "failed")
_PLAIN = (bool, int, float, str, type(None))


def main(orders: dict[str, Any], judge: tuple[int, int], model: tuple[int, int]) -> None:
    """Serve until the model or the judge is gone."""
    os.environ[remote.LAUNCHER] = f"{judge[0]},{judge[1]}"
    server = _Server(orders, judge, model)
    server.prepare()
    try:
        while True:
            server.step()
    except EOFError:
        server.report()


class _Server:
    def __init__(
        self, orders: dict[str, Any], judge: tuple[int, int], model: tuple[int, int]
    ) -> None:
        self.orders = orders
        self.judge = judge
        self.model = model
        self.inside = bool(orders["libraries"])  # kernels run in this process
        self.functions: dict[str, Any] = {}  # the only ones that the model may have called

    def prepare(self) -> None:
        sys.path.insert(0, self.orders["modules"])
        for name in self.orders["libraries"]:
            ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
        if self.inside:
            report = str(Path(self.orders["folder"]) / REPORT)
            importlib.import_module(MEMORY).start(report, float(self.orders["seconds"]))

    def report(self) -> None:
        if self.inside:
            sys.modules[MEMORY].report()

    def step(self) -> None:
        """One message of the model."""
        head, blobs = frames.receive(self.model[0])
        kind = head.get("kind")
        if kind == "open":
            self._answer(self._open)
        elif kind == "call":
            self._answer(lambda: self._call(head, blobs))
        elif kind in _RELAYED:  # a launch is asked for by this process alone
            self.report()
            frames.send(self.judge[1], head, blobs)
            frames.send(self.model[1], *frames.receive(self.judge[0]))
        else:
            raise EOFError("the model does not keep to the protocol")

    def _answer(self, work: Any) -> None:
        try:
            head, blobs = work()
        except Exception as error:
            head, blobs = {"error": _record(error)}, []
        frames.send(self.model[1], head, blobs)

    # --- the module

    def _open(self) -> tuple[dict[str, Any], list[Any]]:
        """What the module offers: functions, plain values, and operators registered with torch."""
        before = set(torch._C._dispatch_get_all_op_names())
        module = importlib.import_module(self.orders["module"])
        names = [name for name in dir(module) if not name.startswith("__")]
        members = {name: getattr(module, name) for name in names}
        fresh = set(torch._C._dispatch_get_all_op_names()) - before
        self.functions = {name: item for name, item in members.items() if callable(item)}
        listed = list(self.functions)
        schemas = sorted(str(_operator(name)._schema) for name in fresh)
        self.functions |= {f"torch.ops.{name.partition('(')[0]}": None for name in schemas}
        plain = {name: item for name, item in members.items() if isinstance(item, _PLAIN)}
        return {"functions": listed, "values": plain, "operators": schemas}, []

    def _call(
        self, head: dict[str, Any], blobs: list[bytearray]
    ) -> tuple[dict[str, Any], list[Any]]:
        """Call a function; the reply has its result and the memory of arguments that it changed."""
        pieces = values.hold(blobs, copy=True)
        args, named = values.unpack(head["args"], pieces)
        result = self._function(str(head["name"]))(*args, **named)
        packed = values.pack(result, pieces)
        changed = [at for at, piece in enumerate(pieces) if piece.view() != blobs[at]]
        fresh = packed.blobs(len(pieces))
        if self.inside:
            self._tell(head, blobs, [pieces[at].view() for at in changed] + fresh, packed, changed)
        reply = {"result": packed.tree, "changed": changed}
        return reply, [pieces[at].view() for at in changed] + fresh

    def _function(self, name: str) -> Any:
        function = self.functions[name]
        return _operator(name.removeprefix("torch.ops.")) if function is None else function

    def _tell(
        self, head: dict[str, Any], blobs: list[bytearray], wrote: list[Any],
        packed: values.Packed, changed: list[int],
    ) -> None:  # fmt: skip
        """The judge learns what went into a call with launches in this process and came out."""
        told = {
            "kind": "called", "name": str(head["name"])[:200], "args": head["args"],
            "result": packed.tree, "changed": changed, "given": len(blobs),
        }  # fmt: skip
        frames.send(self.judge[1], told, [*blobs, *wrote])
        frames.receive(self.judge[0])


def _operator(name: str) -> Any:
    """torch.ops by its qualified name, with or without an overload."""
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")


def _record(error: BaseException) -> dict[str, Any]:
    """An exception as it crosses to the model's process."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, NpusmithError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, NpusmithError):
        return remote.error_record(cause)
    return {"type": type(error).__name__, "message": str(error)[:4000]}
