"""The boxed child that runs a reference: inputs and outputs of each trial, as files.

Orders come on stdin. The model is built under `seed`; trial i is drawn under `seeds[i]`, or is
group i of get_input_groups(). It is called as the suite calls it: in training mode, unless its
outputs then differ from call to call (dropout), or the orders say otherwise.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import torch

from npusmith.bench.suites import alias, wire
from npusmith.bench.suites.edges import MORE, changed
from npusmith.conformance import rules, stubs
from npusmith.errors import TaskError
from npusmith.task import lacking
from npusmith.task.golden import Golden, _Widen, widen
from npusmith.task.user import load_file, set_seed, user_code

_GOLDEN_BYTES = 64 << 20  # of inputs; above this float64 costs more than it tells
_ANY_ERROR = (Exception,)


def main() -> None:
    orders = json.loads(sys.stdin.read())
    torch.set_num_threads(2)
    # of two values for one place the last one wins, as on one thread
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    stubs.install()
    folder = Path(orders["out"])
    try:
        reply = _Reference(orders, folder).run()
    except TaskError as error:
        where = f" (line {error.place.line})" if error.place.line else ""
        reply = {"code": error.code, "error": f"{error.message}{where}"}
    except MemoryError as error:
        reply = {"code": "task-memory", "error": f"the reference ran out of memory: {error}"}
    except _ANY_ERROR as error:
        reply = {"code": "task-raised", "error": f"{type(error).__name__}: {error}"[:500]}
    (folder / "trials.json").write_text(json.dumps(reply), encoding="utf-8")
    os._exit(0)


class _Reference:
    """A model, and what is written about it."""

    def __init__(self, orders: dict[str, Any], folder: Path) -> None:
        self.orders = orders
        self.folder = folder
        self.path = str(orders["path"])
        self.notes: list[str] = []

    def run(self) -> dict[str, Any]:
        module = load_file(self.path, self.orders["text"])
        self.init = self._settings(module)
        self.model = self._build(module)
        mode = self._mode(next(self._inputs(module)))
        trials = [self._trial(at, *given) for at, given in enumerate(self._inputs(module))]
        if not trials:
            raise TaskError("task-inputs", "the task has no set of inputs")
        return {
            "init": wire.put(self.init, self.folder, "init"),
            "parameters": self._parameters(),
            "trials": trials,
            "mode": mode,
            "notes": self.notes,
            "torch": str(torch.__version__),
        }

    def _settings(self, module: types.ModuleType) -> list[Any]:
        set_seed(self.orders["seed"])
        with user_code(self.path, "get_init_inputs()"):
            settings = module.get_init_inputs()
        if not isinstance(settings, (list, tuple)):
            kind = type(settings).__name__
            raise TaskError("task-inputs", f"get_init_inputs() returned a {kind}")
        return list(settings)

    def _build(self, module: types.ModuleType) -> Any:
        set_seed(self.orders["seed"])
        with user_code(self.path, "Model()"):
            return module.Model(*copy.deepcopy(self.init))

    def _inputs(self, module: types.ModuleType) -> Any:
        """(name, kind, seed, arguments) of each trial."""
        if hasattr(module, "get_input_groups"):
            seed = self.orders["seeds"][0]
            set_seed(seed)
            with user_code(self.path, "get_input_groups()"):
                groups = list(module.get_input_groups())
            for at, group in enumerate(groups):
                yield f"group {at}", "group", seed, list(group)
            return
        for at, seed in enumerate(self.orders["seeds"]):
            set_seed(seed)
            with user_code(self.path, "get_inputs()"):
                made = module.get_inputs()
            if not isinstance(made, (list, tuple)):
                raise TaskError("task-inputs", f"get_inputs() returned a {type(made).__name__}")
            yield f"random {at}", "random", seed, list(made)
            if at == 0:
                first = list(made)
        if self.orders["more"]:
            seed = self.orders["seeds"][0]
            for name, change in MORE:
                yield name, "more", seed, [changed(item, change, seed) for item in first]

    def _mode(self, given: tuple[str, str, int, list[Any]]) -> str:
        """Training mode gives the same twice, or it says nothing about a kernel."""
        if not self.orders["training"]:
            self.model.eval()
            return "eval"
        model = copy.deepcopy(self.model)
        found = []
        for seed in (1, 2):
            set_seed(seed)
            found.append(self._call(model, copy.deepcopy(given[3])))
        first, second = map(rules.listed, found)
        same = len(first) == len(second) and all(map(_same, first, second))
        if same:
            return "training"
        self.notes.append("eval mode: in training mode two calls give different outputs")
        self.model.eval()
        return "eval"

    def _call(self, model: Any, inputs: list[Any]) -> Any:
        with torch.no_grad(), user_code(self.path, "forward()"):
            return lacking.call(model, inputs, self.notes)

    def _trial(self, at: int, name: str, kind: str, seed: int, inputs: list[Any]) -> dict[str, Any]:
        tree = wire.put(inputs, self.folder, f"t{at}_in")
        golden = self._golden(inputs) if wire.size_of(tree) <= _GOLDEN_BYTES else None
        # the same object for all trials, as in the suites: running statistics go on
        given = copy.deepcopy(inputs)
        outputs = self._call(self.model, given)
        return {
            "name": name,
            "kind": kind,
            "seed": seed,
            "inputs": tree,
            "outputs": wire.put(outputs, self.folder, f"t{at}_out"),
            "alias": alias.shared(outputs, given),
            "writes": alias.changed(inputs, given),
            "golden": None if golden is None else wire.put(golden, self.folder, f"t{at}_wide"),
        }

    def _golden(self, inputs: list[Any]) -> Any:
        """The outputs in float64; None where the model cannot run so."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            model = Golden(self.model, self.path).model
            if model is None:
                return None
            with _Widen(), torch.no_grad():
                return model(*_wide(copy.deepcopy(inputs)))
        except _ANY_ERROR:
            return None
        finally:
            torch.set_default_dtype(before)

    def _parameters(self) -> dict[str, wire.Tree]:
        """What an operator may take besides forward's arguments, by attribute path."""
        found = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        for path, module in self.model.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, torch.Tensor):
                    found[f"{path}.{name}".lstrip(".")] = value
        rows = enumerate(found.items())
        return {name: wire.put(value, self.folder, f"p{at}") for at, (name, value) in rows}


def _wide(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return widen(item)
    if isinstance(item, (list, tuple)):
        return type(item)(_wide(part) for part in item)
    return item


def _same(first: Any, second: Any) -> bool:
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return type(first) is type(second)
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if not first.is_floating_point():
        return bool(torch.equal(first, second))
    return bool(
        torch.allclose(first.double(), second.double(), rtol=1e-4, atol=1e-4, equal_nan=True)
    )


if __name__ == "__main__":
    main()
