"""The boxed child that runs a reference: inputs and outputs of each trial, as files.

Orders come on stdin. The model is built under `seed`; trial i is drawn under `seeds[i]`, or is
group i of get_input_groups(). It is called as the suite calls it: in training mode, unless its
outputs then differ from call to call (dropout), or the orders say otherwise. Behind the suite's own
sets come those with values that kernels get wrong ("more") and with drawn parameters. A text with
get_cases() has a model for each case: its rows (name, draw), where draw(device) gives the settings
and the arguments; a case that cannot be drawn or called is skipped.
"""

from __future__ import annotations

import copy
import json
import os
import random
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from npusmith.bench.suites import wire
from npusmith.errors import TaskError
from npusmith.task import alias, lacking, stubs
from npusmith.task import parameter_draws as draws
from npusmith.task.edges import MORE, changed
from npusmith.task.golden import Golden
from npusmith.task.user import load_file, set_seed, user_code

_GOLDEN_BYTES = 64 << 20  # of inputs; above this float64 costs more than it tells
_EDGE_BYTES = 8 << 20  # of inputs that are also changed to values that kernels get wrong
_MARGIN = 8  # inputs are at most so many times what a case's table says
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
        reply = Reference(orders, folder).run()
    except TaskError as error:
        where = f" (line {error.place.line})" if error.place.line else ""
        reply = {"code": error.code, "error": f"{error.message}{where}"}
    except MemoryError as error:
        reply = {"code": "task-memory", "error": f"the reference ran out of memory: {error}"}
    except _ANY_ERROR as error:
        reply = {"code": "task-raised", "error": f"{type(error).__name__}: {error}"[:500]}
    (folder / "trials.json").write_text(json.dumps(reply), encoding="utf-8")
    os._exit(0)


class Reference:
    """A model, and what is written about it."""

    def __init__(self, orders: dict[str, Any], folder: Path) -> None:
        self.orders = orders
        self.folder = folder
        self.path = str(orders["path"])
        self.notes: list[str] = []

    def run(self) -> dict[str, Any]:
        module = load_file(self.path, self.orders["text"])
        self.mode = "training" if self.orders["training"] else "eval"
        parameters: dict[str, wire.Tree] = {}
        if hasattr(module, "get_cases"):
            trials = list(self._cases(module))
        else:
            self.init = self._settings(module)
            self.model = self._build(module).train(self.orders["training"])
            init = wire.put(self.init, self.folder, "init")
            rows = enumerate(self._inputs(module))
            trials = [self._trial(at, *given) for at, given in rows]
            parameters = self._parameters()
            trials += self._drawn(trials)
            trials = [{"init": init, **row} for row in trials]
        if not trials:
            raise TaskError("task-inputs", "the task has no set of inputs")
        return {
            "parameters": parameters,
            "trials": trials,
            "mode": self.mode,
            "notes": self.notes,
            "torch": str(torch.__version__),
        }

    def _settings(self, module: types.ModuleType) -> list[Any]:
        set_seed(self.orders["seed"])
        with user_code(self.path, "get_init_inputs()"):
            return _sequence(module.get_init_inputs(), "get_init_inputs()")

    def _build(self, module: types.ModuleType) -> Any:
        set_seed(self.orders["seed"])
        with user_code(self.path, "Model()"):
            return module.Model(*copy.deepcopy(self.init))

    def _inputs(self, module: types.ModuleType) -> Iterator[tuple[str, str, int, list[Any]]]:
        """(name, kind, seed, arguments) of each trial."""
        first = seed = self.orders["seeds"][0]
        if hasattr(module, "get_input_groups"):
            set_seed(seed)
            with user_code(self.path, "get_input_groups()"):
                groups = list(module.get_input_groups())
            for at, group in enumerate(groups):
                yield f"group {at}", "group", seed, list(group)
            return
        kept: list[Any] = []
        for at, seed in enumerate(self.orders["seeds"]):
            set_seed(seed)
            with user_code(self.path, "get_inputs()"):
                made = _sequence(module.get_inputs(), "get_inputs()")
            kept = kept or made
            yield f"random {at}", "random", seed, made
        small = sum(item.nbytes for item in alias.tensors(kept)) <= _EDGE_BYTES
        for name, change in MORE if small or self.orders["more"] else ():
            yield name, "more", first, [changed(item, change, first) for item in kept]

    def _drawn(self, trials: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The first set of inputs again, with other values in parameters and buffers."""
        if not trials or not self.orders["seeds"]:
            return
        inputs = wire.get(trials[0]["inputs"], self.folder)
        own = alias.tensors(self._call(copy.deepcopy(inputs), copy.deepcopy(self.model)))

        def agrees(model: Any, names: Sequence[str]) -> bool:
            found = alias.tensors(self._call(copy.deepcopy(inputs), copy.deepcopy(model)))
            pairs = zip(found, own, strict=True)
            return all(_finite(new) or not _finite(old) for new, old in pairs)

        made = draws.Draws(self.model, draws.drawn_names(self.model), self.orders["seed"], agrees)
        self.notes += made.notes
        for number, held in enumerate(made.values):
            if number:
                self.model = made.models[number]
                stem = f"drawn{number}"
                row = self._trial(stem, f"drawn {number}", "drawn", trials[0]["seed"], inputs)
                yield row | {"drawn": self._put(held, f"{stem}_p")}

    def _cases(self, module: types.ModuleType) -> Iterator[dict[str, Any]]:
        first = self.orders["seeds"][0]
        for seed in self.orders["seeds"]:
            for number, (name, size, draw) in enumerate(module.get_cases()):
                said = name if seed == first else f"{name}, seed {seed}"
                row = {"name": said, "kind": "case", "case": number, "seed": seed}
                try:
                    yield row | self._case(module, f"{seed}_{number}", said, size, seed, draw)
                except TaskError as error:
                    yield row | {"skipped": f"{error.code}: {error.message}"[:400]}

    def _case(
        self, module: types.ModuleType, at: str, name: str, size: int, seed: int, draw: Any
    ) -> dict[str, Any]:
        """A trial with a model of its own; `size`: bytes of the inputs, as the table says."""
        size, most = self._size(size, seed, draw), self.orders["most_bytes"]
        if size > most:
            return {"skipped": f"{size / 1e6:.0f} MB of inputs"}
        set_seed(seed)
        with user_code(self.path, name):
            init, inputs = draw("cpu")
            self.model = module.Model(*copy.deepcopy(init)).train(self.orders["training"])
        init = wire.put(list(init), self.folder, f"t{at}_init")
        return {"init": init, **self._trial(at, name, "case", seed, list(inputs))}

    def _size(self, guess: int, seed: int, draw: Any) -> int:
        """Bytes of the inputs, by what is drawn without memory where the table may be wrong."""
        if 0 < guess * _MARGIN <= self.orders["most_bytes"]:
            return guess
        try:
            set_seed(seed)
            return sum(item.numel() * item.element_size() for item in alias.tensors(draw("meta")))
        except _ANY_ERROR:
            return guess

    def _call(self, inputs: list[Any], model: Any = None) -> Any:
        with torch.no_grad(), user_code(self.path, "forward()"):
            return lacking.call(self.model if model is None else model, inputs, self.notes)

    def _settle(self, inputs: list[Any]) -> None:
        """Training mode gives the same twice, or it says nothing about a kernel."""
        model = copy.deepcopy(self.model)
        set_seed(1)
        before = _random_state()
        first = self._call(copy.deepcopy(inputs), model)
        if _random_state() == before:  # a call that draws nothing gives the same twice
            return
        set_seed(2)
        if not _same(first, self._call(copy.deepcopy(inputs), model)):
            self.notes.append("eval mode: in training mode two calls give different outputs")
            self.mode = "eval"
            self.model.eval()

    def _trial(
        self, at: int | str, name: str, kind: str, seed: int, inputs: list[Any]
    ) -> dict[str, Any]:
        if at == 0 and self.mode == "training":
            self._settle(inputs)
        tree = wire.put(inputs, self.folder, f"t{at}_in")
        golden = None
        if wire.size_of(tree) <= _GOLDEN_BYTES:
            golden = Golden(self.model, self.path).call(inputs)
        # the same object for all trials, as in the suites: running statistics go on
        given = copy.deepcopy(inputs)
        outputs = self._call(given)
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

    def _parameters(self) -> dict[str, wire.Tree]:
        """What an operator may take besides forward's arguments, by attribute path."""
        found = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        for path, module in self.model.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, torch.Tensor):
                    found[f"{path}.{name}".lstrip(".")] = value
        return self._put(found, "p")

    def _put(self, held: dict[str, Any], stem: str) -> dict[str, wire.Tree]:
        rows = enumerate(held.items())
        return {name: wire.put(value, self.folder, f"{stem}{at}") for at, (name, value) in rows}


def _finite(tensor: torch.Tensor) -> bool:
    return bool(torch.isfinite(tensor).all())


def _sequence(made: Any, what: str) -> list[Any]:
    if not isinstance(made, (list, tuple)):
        raise TaskError("task-inputs", f"{what} returned a {type(made).__name__}")
    return list(made)


def _random_state() -> tuple[Any, ...]:
    drawn: Any = np.random.get_state()
    return torch.get_rng_state().tolist(), random.getstate(), drawn[1].tolist(), drawn[2]


def _same(first: Any, second: Any) -> bool:
    """The same but for rounding."""
    one, other = alias.tensors(first), alias.tensors(second)
    if [(item.shape, item.dtype) for item in one] != [(item.shape, item.dtype) for item in other]:
        return False
    close = {"rtol": 1e-4, "atol": 1e-4, "equal_nan": True}
    return all(
        torch.allclose(a.double(), b.double(), **close) for a, b in zip(one, other, strict=True)
    )


if __name__ == "__main__":
    main()
