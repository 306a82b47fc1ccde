"""The boxed child that captures graphs for the replay: many tasks, PyTorch loaded once.

Orders come on standard input as JSON: `folder`, and `tasks` with `key`, `path` (where the text is
said to stand), `text`, `training` and `values`. For each task a file `<key>.json` is left in the
folder: the graph, or why there is none; with `values` also how the values of every input lie, so
that others like them can be drawn.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from npusmith.errors import NpusmithError
from npusmith.task.export import Captured, export_graph, warm_up
from npusmith.task.user import Inputs, build_model, load_file, set_seed

SEED = 1024
_EVEN = 3.6  # range over standard deviation: 3.46 of a uniform distribution, more of a normal one
_ANY_ERROR = (Exception,)


def main() -> None:
    orders = json.loads(sys.stdin.read())
    warm_up()
    torch.set_num_threads(1)
    with torch.device("meta"):
        torch.empty(0)  # PyTorch notes which functions obey the device: before a task runs
    for task in orders["tasks"]:
        try:
            found = captured(task)
        except NpusmithError as error:
            found = {"refused": f"{error.code}: {error.message}"}
        except _ANY_ERROR as error:
            found = {"refused": f"{type(error).__name__}: {error}"[:300]}
        path = Path(orders["folder"]) / f"{task['key']}.json"
        path.write_text(json.dumps(found), encoding="utf-8")


def captured(task: dict[str, Any]) -> dict[str, Any]:
    """One task's graph; of a suite's task at its own shapes on tensors without memory."""
    device = "cpu" if task["values"] or not task["training"] else "meta"
    path = task["path"]
    with torch.device(device):
        module = load_file(path, task["text"])
        model = build_model(module, path, SEED).train(task["training"])
        set_seed(SEED)
        leaves, tree = pytree.tree_flatten(list(module.get_inputs()))
        inputs = Inputs(tuple(leaves), tree)
        if task["values"]:
            inputs = taken(model, inputs)
        found = export_graph(model, inputs, path)
    answer: dict[str, Any] = {"graph": found.graph.model_dump(mode="json")}
    if task["values"]:
        answer["draws"] = draws(found, inputs)
    return answer


def taken(model: Any, inputs: Inputs) -> Inputs:
    """Inputs that the model runs on: indices may be too large where sizes were reduced."""
    lengths = {size for tensor in inputs.tensors for size in tensor.shape}
    for length in (None, *sorted(lengths, reverse=True)):
        tensors = [_within(tensor, length) for tensor in inputs.tensors]
        try:
            with torch.no_grad():
                copy.deepcopy(model)(*inputs.replace(tensors).args())
        except (IndexError, RuntimeError):
            continue
        return inputs.replace(tensors)
    return inputs


def _within(tensor: torch.Tensor, length: int | None) -> torch.Tensor:
    whole = tensor.dtype in (torch.int32, torch.int64)
    return tensor.remainder(length) if whole and length is not None else tensor


def draws(found: Captured, inputs: Inputs) -> dict[str, Any]:
    """By name of a graph input, how its values lie."""
    given = inputs.tensors
    return {
        item.name: draw(
            given[item.position] if item.kind == "user" else found.values[item.target],
            fixed=item.kind != "user",
        )
        for item in found.graph.inputs
    }


def draw(values: torch.Tensor, *, fixed: bool) -> dict[str, Any]:
    """Bounds; of a normal distribution mean and deviation; are whole numbers all distinct."""
    if values.dtype == torch.bool:
        return {"low": 0, "high": 1}
    if not values.is_floating_point():
        low, high = int(values.min()), int(values.max())
        once = values.ndim == 1 and values.numel() > 1 and values.unique().numel() == values.numel()
        return {"low": low, "high": high, **({"distinct": True} if once else {})}
    wide = values.double()
    low, high = float(wide.min()), float(wide.max())
    if fixed and low == high:  # ones and zeros of fresh parameters hide a kernel that ignores them
        return {"low": low - 0.5, "high": high + 0.5}
    std = float(wide.std()) if wide.numel() > 1 else 0.0
    if std == 0.0 or (high - low) / std < _EVEN:
        return _round({"low": low, "high": high})
    return _round({"low": low, "high": high, "mean": float(wide.mean()), "std": std})


def _round(items: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in items.items()}
