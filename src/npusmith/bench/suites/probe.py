"""The boxed child that sizes tasks: `get_inputs()` on meta tensors, which take no memory.

Orders come on stdin: texts of task files; a line for each is left in the file of results. With
`scale_bytes` it also looks for smaller shapes; scale.py says by which rule.
"""

from __future__ import annotations

import ast
import json
import math
import sys
import types
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from npusmith.bench.suites import scale
from npusmith.task import stubs
from npusmith.task.isolated.arrays import width
from npusmith.task.work import ManyOperations, Work, count_work

_ANY_ERROR = (Exception,)
_OPERATIONS = 10_000  # of a call that is counted: one has a second or so on meta tensors


def main() -> None:
    orders = json.loads(sys.stdin.read())
    torch.set_num_threads(1)
    torch.set_default_device("meta")
    torch.empty(0)  # PyTorch notes now which functions obey the device: before they are wrapped
    stubs.install()
    out = Path(orders["out"])
    for at, (name, text) in enumerate(orders["tasks"]):
        _say(out, {"start": at})
        try:
            found = _probe(name, text, int(orders["scale_bytes"]))
        except _ANY_ERROR as error:
            found = {"error": f"{type(error).__name__}: {error}"[:200]}
        _say(out, {"at": at, **found})


def _say(out: Path, line: dict[str, Any]) -> None:
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _probe(name: str, text: str, most: int) -> dict[str, Any]:
    module = _load(name, text)
    if hasattr(module, "get_input_groups"):
        return _groups(module, Path(name).with_suffix(".json"), most)
    made = module.get_inputs()
    size, types = _measure(made)
    found: dict[str, Any] = {"bytes": size, "dtypes": types}
    if most and (size > most or _is_heavy(module, made)):
        found |= _scaled(name, text, most)
    return found


def _is_heavy(module: types.ModuleType, made: Any) -> bool:
    """Too many weights, or too much work; not where that cannot be told on meta tensors.

    Nor of a loop in time, which has too many operations to be counted: steps take long there.
    """
    try:
        model = module.Model(*module.get_init_inputs())
        return _bytes(model) > scale.WEIGHTS or _work(model, made).elements > scale.WORK
    except _ANY_ERROR:
        return False


def _work(model: Any, made: Any) -> Work:
    with torch.no_grad():
        return count_work(lambda: model(*made), _OPERATIONS)


def _run(model: Any, made: Any) -> Work:
    with torch.no_grad():
        model(*made)
    return Work(0, 0)


def _bytes(model: Any) -> int:
    if not isinstance(model, torch.nn.Module):
        return 0
    return _measure([*model.parameters(), *model.buffers()])[0]


def _load(name: str, text: str) -> types.ModuleType:
    module = types.ModuleType("npusmith_probe")
    module.__file__ = name
    sys.modules[module.__name__] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def _measure(values: Any) -> tuple[int, list[str]]:
    tensors = [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    names = [str(tensor.dtype).removeprefix("torch.") for tensor in tensors]
    return size, list(dict.fromkeys(names))


def _shapes(values: Any) -> tuple[scale.Shape, ...]:
    leaves = pytree.tree_leaves(values)
    return tuple(tuple(leaf.shape) for leaf in leaves if isinstance(leaf, torch.Tensor))


def _groups(module: types.ModuleType, lines: Path, most: int) -> dict[str, Any]:
    """Sizes of all groups; with a limit, which of them fit, the smallest first."""
    try:
        measured = [_measure(group) for group in module.get_input_groups()]
    except _ANY_ERROR:
        if not lines.is_file():
            raise
        measured = [_written(json.loads(line)) for line in lines.open() if line.strip()]
    sizes = [size for size, _ in measured]
    names = list(dict.fromkeys(name for _, found in measured for name in found))
    found: dict[str, Any] = {"bytes": sum(sizes), "dtypes": names, "groups": sizes}
    if most and sum(sizes) > most:
        found["kept"] = scale.keep_groups(sizes, most)
    return found


def _written(item: Any) -> tuple[int, list[str]]:
    """Size and types of the tensors that a line of shapes describes."""
    if isinstance(item, list):
        rows = [_written(part) for part in item]
        return sum(size for size, _ in rows), [name for _, names in rows for name in names]
    if not isinstance(item, dict):
        return 0, []
    shape, name = item.get("shape"), str(item.get("dtype", ""))
    if isinstance(shape, list) and all(isinstance(size, int) for size in shape):
        return math.prod(shape) * width(name), [name]
    return _written(list(item.values()))


def _scaled(name: str, text: str, most: int) -> dict[str, Any]:
    """A text with smaller sizes that the reference accepts, or why there is none."""

    def look(fresh: str) -> scale.Measure:
        module = _load(name, fresh)
        made = module.get_inputs()
        model = module.Model(*module.get_init_inputs())
        work = call(model, made)
        return scale.Measure(_measure(made)[0], _shapes(made), _bytes(model), *work)

    call = _work
    try:
        try:
            look(text)
        except ManyOperations:
            call = _run
            look(text)
    except _ANY_ERROR:  # the reference says nothing about shapes on meta tensors
        return {"unscaled": "the reference does not run on meta tensors"}
    fresh, changes, size = scale.reduce_sizes(ast.parse(text), text, most, look)
    if not changes:
        return {"unscaled": "nothing smaller by the rule for smaller shapes"}
    return {"text": fresh, "changes": changes, "scaled": size}


if __name__ == "__main__":
    main()
