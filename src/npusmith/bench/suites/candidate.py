"""The boxed child that runs a candidate's Python class on the inputs of each trial.

It sees neither the reference nor its outputs. It leaves a record of outputs after every trial;
nothing that it writes is believed before it has been checked.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from npusmith.bench.suites import wire
from npusmith.errors import NpusmithError
from npusmith.task import alias, draws, stubs, user
from npusmith.task import candidatewire as names
from npusmith.twin.cache import cache_root
from npusmith.twin.module import MEMORY

_TOLD = ("outputs", "alias", "writes", "unsteady")
_ANY_ERROR = (Exception,)


def main() -> None:
    orders = json.loads(sys.stdin.buffer.read())
    torch.set_num_threads(2)
    folder = Path(orders["out"])
    record: dict[str, Any] = {"calls": [], "started": -1, **{name: [] for name in _TOLD}}
    try:
        _run(orders, folder, record)
    except BaseException as error:
        record["error"] = _words(error, orders)
    if orders["libraries"] and MEMORY in sys.modules:
        sys.modules[MEMORY].report()
    _save(folder, record)
    os._exit(0)


def _words(error: BaseException, orders: dict[str, Any]) -> dict[str, Any]:
    """Code, words and line of what went wrong."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, NpusmithError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None and not cause.code.startswith("task-"):
        return {"code": cause.code, "message": cause.message, "seen": cause.seen[:300]}
    blamed = user.blame(error, orders["model"], "the candidate", "task-raised")
    text = f"{type(error).__name__}: {error}".partition("\n")[0]
    text = cause.message if cause is not None else text
    return {"code": "module-failed", "message": text[:500], "seen": f"line {blamed.place.line}"}


def _save(folder: Path, record: dict[str, Any]) -> None:
    (folder / names.RESULT).write_text(json.dumps(record), errors="replace")


def _run(orders: dict[str, Any], folder: Path, record: dict[str, Any]) -> None:
    _prepare(orders, folder)
    kind = _load(orders)
    built: list[Any] = [None, None]  # settings and parameters, and the class made with them
    for at, trial in enumerate(orders["trials"]):
        record["started"] = at
        _save(folder, record)
        try:
            found = _call(kind, orders, trial, built, f"out{at}")
        except _ANY_ERROR as error:  # costs this trial alone
            found = {"error": _words(error, orders)}, [], False, False
        for name, value in zip(_TOLD, found, strict=True):
            record[name].append(value)
        record["calls"].append(_lines(folder / names.CALLS))


def _call(
    kind: Any, orders: dict[str, Any], trial: dict[str, Any], built: list[Any], stem: str
) -> tuple[wire.Tree, list[int], bool, bool]:
    """A trial's outputs; which of them are inputs; were inputs written to; do bits differ?"""
    given = Path(orders["given"])
    made = trial["init"], trial.get("drawn", {})
    first = built[0] is None
    if made != built[0]:
        built[:] = made, _build(kind, orders, *made)
    plain = wire.get(trial["inputs"], given)
    inputs = alias.mapped(_known, plain)
    with torch.no_grad(), user.user_code(orders["model"], "forward()"):
        outputs = built[1](*inputs)
        again = outputs
        if first and orders["twice"]:  # the same inputs must give the same bits
            again = _build(kind, orders, *made)(*alias.mapped(_known, plain))
    tree = wire.put(outputs, Path(orders["out"]), stem)
    shared, writes = alias.shared(outputs, inputs), alias.changed(plain, inputs)
    return tree, shared, writes, alias.changed(outputs, again)


def _prepare(orders: dict[str, Any], folder: Path) -> None:
    sys.path.insert(0, orders["modules"])
    for name in orders["libraries"]:
        ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    if orders["libraries"]:
        memory = importlib.import_module(MEMORY)
        memory.start(str(folder / names.REPORT), orders["seconds"])
    stubs.install()
    cache_root().mkdir(parents=True, exist_ok=True)


def _load(orders: dict[str, Any]) -> Any:
    spec = importlib.util.spec_from_file_location("npusmith_candidate", orders["model"])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with user.user_code(orders["model"], "the model's file"):
        spec.loader.exec_module(module)
    kind = getattr(module, orders["entry"], None)
    if kind is None:
        raise NpusmithError("module-failed", f"the candidate has no class {orders['entry']}")
    return kind


def _build(kind: Any, orders: dict[str, Any], init: wire.Tree, drawn: dict[str, Any]) -> Any:
    given = Path(orders["given"])
    user.set_seed(orders["seed"])
    with user.user_code(orders["model"], f"{orders['entry']}()"):
        model = kind(*wire.get(init, given))
    held = draws.tensors_of(model) if drawn else {}
    if any(
        name not in held or [*held[name].shape] != leaf["shape"] for name, leaf in drawn.items()
    ):
        raise NpusmithError("parameters-fixed", "the class has other parameters than the reference")
    if drawn:
        draws.put(model, {name: wire.get(leaf, given) for name, leaf in drawn.items()})
    return model if orders["training"] else model.eval()


def _known(tensor: Any) -> Any:
    """A copy in memory that the twin knows."""
    return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


if __name__ == "__main__":
    main()
