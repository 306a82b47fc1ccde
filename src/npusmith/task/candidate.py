"""The process in which a candidate's Python part runs: `python -c START` with orders on stdin.

It builds the class under the seed under which the reference was built, calls it on each set of
inputs, and leaves the outputs as raw tensors with a record beside them. It is started in the
sandbox; nothing that it writes is believed before it has been checked.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

import torch

from npusmith.errors import NpusmithError, TaskError
from npusmith.task import candidatewire as wire
from npusmith.task import draws, user

MEMORY = "npusmith_memory"


def main() -> None:
    """Entry of the child; always leaves a record."""
    orders = wire.Orders.model_validate_json(sys.stdin.buffer.read())
    folder = Path(orders.folder)
    torch.set_num_threads(2)
    record = wire.Result()
    try:
        _run(orders, folder, record)
    except BaseException as error:
        _note(record, error, orders)
    if orders.libraries and MEMORY in sys.modules:
        sys.modules[MEMORY].report()
    _save(folder, record)
    os._exit(0)


def _note(record: wire.Result, error: BaseException, orders: wire.Orders) -> None:
    found = error if isinstance(error, NpusmithError) else None
    if found is None:
        cause: BaseException | None = error
        while cause is not None and found is None:
            found = cause if isinstance(cause, NpusmithError) else None
            cause = cause.__cause__ or cause.__context__
    if isinstance(found, TaskError) and found.code.startswith("task-"):
        record.error = wire.Error(
            code="module-failed", message=found.message, file=found.place.file,
            line=found.place.line, seen=found.seen,
        )  # fmt: skip
    elif found is not None:
        record.error = wire.Error(
            code=found.code, message=found.message, file=found.place.file, line=found.place.line,
            seen=found.seen,
        )  # fmt: skip
    else:
        place = user.blame(error, orders.model, "the candidate", "task-raised").place
        message = f"{type(error).__name__}: {error}".partition("\n")[0]
        record.error = wire.Error(
            code="module-failed", message=message[:500], file=place.file, line=place.line
        )


def _save(folder: Path, record: wire.Result) -> None:
    (folder / wire.RESULT).write_text(record.model_dump_json(), errors="replace")


def _run(orders: wire.Orders, folder: Path, record: wire.Result) -> None:
    _prepare_device(orders)
    task = user.load_file(orders.task, orders.task_text)
    base = user.call_inputs(_maker(task, orders), orders.task, orders.seed, "get_inputs()")
    model = _build(orders, task)
    held = _Parameters(model, orders)
    record.fixed = held.fixed
    for number, trial in enumerate(orders.trials):
        record.started = number
        _save(folder, record)
        tensors = [_load(item) for item in trial]
        held.take(orders.draw[number] if orders.draw else 0)
        inputs = base.replace(tensors)
        result = user.run_model(model, inputs.args(_fresh), orders.model)
        record.calls.append(_lines(folder / wire.CALLS))
        record.trials.append([_write(folder, number, i, out) for i, out in enumerate(result)])


class _Parameters:
    """The class's own parameters and buffers, and the drawn values that it is given instead."""

    def __init__(self, model: Any, orders: wire.Orders) -> None:
        self._model, self._draws, self._now = model, orders.draws, 0
        held = draws.tensors_of(model)
        wanted = {name: item.shape for draw in orders.draws for name, item in draw.items()}
        self.fixed = [
            name
            for name, shape in wanted.items()
            if name not in held or tuple(held[name].shape) != shape
        ]
        self._own = {name: held[name].detach().clone() for name in wanted if name in held}

    def take(self, number: int) -> None:
        """The values of a draw; 0 for the class's own."""
        if number == self._now or self.fixed:
            return
        draw = self._draws[number - 1] if number else {}
        drawn = {name: _load(item) for name, item in draw.items()}
        draws.put(self._model, self._own | drawn)
        self._now = number


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _maker(task: types.ModuleType, orders: wire.Orders) -> Any:
    if orders.has_inputs:
        return task.get_inputs
    return lambda: task.get_input_groups()[0]


def _prepare_device(orders: wire.Orders) -> None:
    """Modules to import, libraries to load first, and what stands for torch_npu."""
    sys.path.insert(0, orders.modules)
    for name in orders.libraries:
        ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    if orders.libraries:
        memory = importlib.import_module(MEMORY)
        memory.start(str(Path(orders.folder) / wire.REPORT), orders.seconds)
    if importlib.util.find_spec("torch_npu") is None:
        _stub_npu()


def _stub_npu() -> None:
    """`import torch_npu` does nothing here, and .npu() stays where it is."""
    stub = types.ModuleType("torch_npu")
    stub.npu = types.SimpleNamespace(  # type: ignore[attr-defined]
        synchronize=lambda *_: None, set_device=lambda *_: None, is_available=lambda: False
    )
    sys.modules["torch_npu"] = stub
    contrib = types.ModuleType("torch_npu.contrib")
    sys.modules["torch_npu.contrib"] = contrib
    sys.modules["torch_npu.contrib.transfer_to_npu"] = types.ModuleType("transfer_to_npu")
    torch.Tensor.npu = lambda self, *_, **__: self


def _build(orders: wire.Orders, task: types.ModuleType) -> Any:
    spec = importlib.util.spec_from_file_location("npusmith_candidate", orders.model)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with user.user_code(orders.model, "the model's file"):
        spec.loader.exec_module(module)
    kind = getattr(module, orders.entry, None)
    if kind is None:
        raise NpusmithError("module-failed", f"the candidate has no class {orders.entry}")
    user.set_seed(orders.seed)
    with user.user_code(orders.task, "get_init_inputs()"):
        settings = task.get_init_inputs()
    with user.user_code(orders.model, f"{orders.entry}()"):
        return kind(*settings).eval()


def _fresh(tensor: Any) -> Any:
    """A copy in memory that the twin knows."""
    return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)


def _load(item: wire.Tensor) -> Any:
    kind = getattr(torch, item.dtype)
    if 0 in item.shape:
        return torch.empty(item.shape, dtype=kind)
    flat = torch.from_file(item.file, shared=False, size=item.count, dtype=kind)
    return flat.reshape(item.shape)


def _write(folder: Path, trial: int, index: int, tensor: Any) -> wire.Tensor:
    path = folder / f"out_{trial}_{index}.bin"
    path.write_bytes(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return wire.Tensor(
        file=path.name, shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch.")
    )
