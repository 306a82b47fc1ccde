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

from npusmith.bench.suites import alias, wire
from npusmith.conformance import stubs
from npusmith.errors import NpusmithError
from npusmith.task import candidatewire as names
from npusmith.task import user
from npusmith.task.candidate import MEMORY
from npusmith.twin.cache import cache_root


def main() -> None:
    orders = json.loads(sys.stdin.buffer.read())
    torch.set_num_threads(2)
    folder = Path(orders["out"])
    record: dict[str, Any] = {"outputs": [], "calls": [], "alias": [], "writes": [], "started": -1}
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
    given = Path(orders["given"])
    settings = wire.get(orders["init"], given)
    model = _build(orders, settings)
    for at, tree in enumerate(orders["trials"]):
        record["started"] = at
        _save(folder, record)
        plain = wire.get(tree, given)
        inputs = _known(plain)
        with torch.no_grad(), user.user_code(orders["model"], "forward()"):
            outputs = model(*inputs)
        record["alias"].append(alias.shared(outputs, inputs))
        record["writes"].append(alias.changed(plain, inputs))
        record["outputs"].append(wire.put(outputs, folder, f"out{at}"))
        record["calls"].append(_lines(folder / names.CALLS))


def _prepare(orders: dict[str, Any], folder: Path) -> None:
    sys.path.insert(0, orders["modules"])
    for name in orders["libraries"]:
        ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    if orders["libraries"]:
        memory = importlib.import_module(MEMORY)
        memory.start(str(folder / names.REPORT), orders["seconds"])
    stubs.install()
    cache_root().mkdir(parents=True, exist_ok=True)


def _build(orders: dict[str, Any], settings: list[Any]) -> Any:
    spec = importlib.util.spec_from_file_location("npusmith_candidate", orders["model"])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with user.user_code(orders["model"], "the model's file"):
        spec.loader.exec_module(module)
    kind = getattr(module, orders["entry"], None)
    if kind is None:
        raise NpusmithError("module-failed", f"the candidate has no class {orders['entry']}")
    user.set_seed(orders["seed"])
    with user.user_code(orders["model"], f"{orders['entry']}()"):
        model = kind(*settings)
    return model if orders["training"] else model.eval()


def _known(item: Any) -> Any:
    """Tensors in memory that the twin knows."""
    if isinstance(item, torch.Tensor):
        return torch.empty(item.shape, dtype=item.dtype).copy_(item)
    if isinstance(item, (list, tuple)):
        return type(item)(_known(part) for part in item)
    return item


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


if __name__ == "__main__":
    main()
