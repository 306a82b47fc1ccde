"""A task as a suite calls it: no graph, the suite's mode, and whatever forward gives.

The model is built under one seed; set i is drawn under `seeds[i]`, or is group i. It is called in
training mode where the suite does so, unless its outputs then differ from call to call (dropout).
Behind the suite's own sets come those with values that kernels get wrong ("more") and with drawn
parameters. A text with get_cases() has a model for each case: its rows (name, bytes, draw), where
draw(device) gives the settings and the arguments; a case that cannot be drawn or called is skipped.
"""

from __future__ import annotations

import copy
import random
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from npusmith.errors import TaskError
from npusmith.task import alias, edges, files, lacking, stubs
from npusmith.task import parameter_draws as draws
from npusmith.task.casts import UNDEFINED, Casts
from npusmith.task.error_bounds import find_bounds
from npusmith.task.golden import Golden
from npusmith.task.isolated.sparse import open_up
from npusmith.task.isolated.values import take_apart
from npusmith.task.preparing import Preparation, stay_finite
from npusmith.task.sort_ties import TIES, StableSorts
from npusmith.task.unused_inputs import ReferenceCall, find_idle, keep
from npusmith.task.user import Inputs, call_init, load_file, refuse, set_seed, user_code
from npusmith.task.wire import OURS, RAISES, Calling, Kind, Manifest, TensorFile, ValueFiles
from npusmith.task.work import count_work

_GOLDEN_BYTES = 64 << 20  # of inputs; above this float64 costs more than it tells
_SMALL_BYTES = 8 << 20  # of inputs that are run again with noise, and with values of our own
# elements of a call that is made again for bounds and unused inputs (work.py): a fifth of a second
_LIGHT = 3 << 27
_MARGIN = 8  # inputs are at most so many times what a case's table says
_ANY_ERROR = (Exception,)


@dataclass(frozen=True, slots=True)
class _Own:
    """What distinguishes the sets of one case, or of a task without cases."""

    name: str = ""
    more: dict[str, Any] = field(default_factory=dict)  # of their records

    def named(self, words: str) -> str:
        return f"{self.name}, {words}" if self.name else words


class Called(Preparation):
    """What a suite's model gives, call after call: running statistics go on."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        assert self.orders.calling is not None
        self.calling: Calling = self.orders.calling
        self.mode = "training" if self.calling.training else "eval"
        self.light: dict[Any, bool] = {}
        self.first: tuple[_Own, Inputs, int, Any] | None = None  # case, with its model

    def run(self) -> Manifest:
        self.start()
        module = load_file(self.path, self.orders.text)
        parameters: dict[str, TensorFile] = {}
        init = ValueFiles()
        if hasattr(module, "get_cases"):
            self._cases(module)
        else:
            init = files.put(self.build(module), self.folder, "init")
            first = self._sets(module)
            parameters = self.parameters()
            self._further(_Own(), first, self.orders.seeds[0])
        if not self.trials:
            raise TaskError("task-inputs", "the task has no set of inputs")
        return Manifest.model_validate({
            "model_seed": self.orders.model_seed, "mode": self.mode, "trials": self.trials,
            "parameters": parameters, "draws": self.draw_files, "init": init, "idle": self._idle(),
            "notes": self.notes, "versions": {"torch": str(torch.__version__)},
        })  # fmt: skip

    def start(self) -> None:
        # of two values for one place the last one wins, as on one thread
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False
        stubs.install()

    def build(self, module: types.ModuleType) -> list[Any]:
        """The model in its mode; what it was built with."""
        self.stage("building the model")
        settings = call_init(module, self.path, self.orders.model_seed)
        set_seed(self.orders.model_seed)
        with user_code(self.path, "Model()"):
            model = module.Model(*copy.deepcopy(settings))
        self.model = model.train(self.calling.training)
        return settings

    def parameters(self) -> dict[str, TensorFile]:
        """What an operator may take besides forward's arguments, by attribute path."""
        found = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        for path, module in self.model.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, torch.Tensor):
                    found[f"{path}.{name}".lstrip(".")] = value
        rows = enumerate(found.items())
        return {name: self.write(f"parameter_{at}", value) for at, (name, value) in rows}

    # --- the suite's own sets

    def _sets(self, module: types.ModuleType) -> Inputs:
        """The random sets, or the groups; the first of them."""
        first, own = self.orders.seeds[0], _Own()
        if hasattr(module, "get_input_groups"):
            groups = [_inputs(list(group)) for group in self.groups(module)]
            for at, inputs in enumerate(groups):
                self._settle(inputs, at)
                self._try(own, f"group {at}", "group", first, inputs)
            return groups[0]
        kept = None
        for at, seed in enumerate(self.orders.seeds):
            set_seed(seed)
            with user_code(self.path, "get_inputs()"):
                made = module.get_inputs()
            if not isinstance(made, (list, tuple)):
                refuse(self.path, "get_inputs()", made)
            inputs = _inputs(list(made))
            kept = kept or inputs
            self._settle(inputs, at)
            self._try(own, f"random {at}", "random", seed, inputs)
        assert kept is not None
        return kept

    def _cases(self, module: types.ModuleType) -> None:
        first = self.orders.seeds[0]
        for seed in self.orders.seeds:
            for number, (name, size, draw) in enumerate(module.get_cases()):
                own = _Own(name if seed == first else f"{name}, seed {seed}", {"case": number})
                try:
                    self._case(module, own, size, seed, draw)
                except TaskError as error:
                    why = f"{error.code}: {error.message}"[:400]
                    self.skip(own.name, "case", seed, why, **own.more)
        if self.first is not None:  # further sets are those of one case: the first that there is
            own, inputs, seed, self.model = self.first
            self._further(own, inputs, seed)

    def _case(self, module: types.ModuleType, own: _Own, size: int, seed: int, draw: Any) -> None:
        """The sets of a case, with a model of its own; `size`: bytes, as the table says."""
        size, most = self._size(size, seed, draw), self.calling.most_bytes
        if size > most:
            self.skip(own.name, "case", seed, f"{size / 1e6:.0f} MB of inputs", **own.more)
            return
        set_seed(seed)
        with user_code(self.path, own.name):
            init, given = draw("cpu")
            self.model = module.Model(*copy.deepcopy(init)).train(self.calling.training)
        stem = f"init_{self.written}"
        own = _Own(own.name, own.more | {"init": files.put(list(init), self.folder, stem)})
        inputs = _inputs(list(given))
        model = copy.deepcopy(self.model)
        self._try(own, "", "case", seed, inputs)
        self.first = self.first or (own, inputs, seed, model)

    def _size(self, guess: int, seed: int, draw: Any) -> int:
        """Bytes of the inputs, by what is drawn without memory where the table may be wrong."""
        if 0 < guess * _MARGIN <= self.calling.most_bytes:
            return guess
        try:
            set_seed(seed)
            return sum(item.numel() * item.element_size() for item in alias.tensors(draw("meta")))
        except _ANY_ERROR:
            return guess

    # --- further sets

    def _further(self, own: _Own, inputs: Inputs, seed: int) -> None:
        """The first inputs with values that kernels get wrong, then with drawn parameters."""
        groups = any(item.kind == "group" for item in self.trials)
        small = sum(item.numel() * item.itemsize for item in inputs.tensors) <= _SMALL_BYTES
        for name, edge in edges.MORE if (small or self.calling.more) and not groups else ():
            self._try(own, name, "more", seed, edges.change(inputs, edge, seed, numbers=False))
        self._drawn(own, inputs, seed)

    def _drawn(self, own: _Own, inputs: Inputs, seed: int) -> None:
        """The first set of inputs again, with other values in parameters and buffers."""
        before = alias.tensors(self.call(copy.deepcopy(self.model), _copies(inputs)))

        def agrees(model: Any, names: Sequence[str]) -> bool:
            found = alias.tensors(self.call(copy.deepcopy(model), _copies(inputs)))
            return stay_finite(found, before)

        names = draws.drawn_names(self.model)
        made = draws.Draws(self.model, names, self.orders.model_seed, agrees)
        count = len(self.draw_files)
        self.write_draws(made)
        for number, model in enumerate(made.models[1:], 1):
            self.model = model
            self._try(own, f"drawn {number}", "drawn", seed, inputs, draw=count + number)

    # --- one set

    def call(self, model: Any, given: Sequence[Any]) -> Any:
        """What the model gives; it may write into `given`."""
        with torch.no_grad(), user_code(self.path, "forward()"):
            return lacking.call(model, given, self.notes)

    def _settle(self, inputs: Inputs, at: int) -> None:
        """Training mode gives the same twice, or it says nothing about a kernel."""
        if at or self.mode != "training":
            return
        model = copy.deepcopy(self.model)
        set_seed(1)
        before = _random_state()
        first = self.call(model, _copies(inputs))
        if _random_state() == before:  # a call that draws nothing gives the same twice
            return
        set_seed(2)
        if not _same(first, self.call(model, _copies(inputs))):
            self.notes.append("eval mode: in training mode two calls give different outputs")
            self.mode = "eval"
            self.model.eval()

    def _try(
        self, own: _Own, name: str, kind: Kind, seed: int, inputs: Inputs, draw: int = 0
    ) -> None:
        """One set of inputs; of those that the suite does not have, one may be skipped."""
        name = own.named(name) if name else own.name
        self.stage(name)
        try:
            self._write(name, kind, seed, inputs, {"draw": draw, **own.more})
        except TaskError as error:
            if kind not in OURS:
                raise
            self.skip(name, kind, seed, f"{RAISES}: {error.message}", **own.more)

    def _write(
        self, name: str, kind: Kind, seed: int, inputs: Inputs, more: dict[str, Any]
    ) -> None:
        size = sum(tensor.numel() * tensor.itemsize for tensor in inputs.tensors)
        golden = Golden(self.model, self.path) if size <= _GOLDEN_BYTES else None
        light = size <= _SMALL_BYTES and self._is_light(inputs)
        wanted = name in self.calling.bounded
        before = copy.deepcopy(self.model) if light or wanted else None
        given = _copies(inputs)
        if kind == "more":
            outputs, why = self._try_values(inputs, given)
            if why:
                self.skip(name, kind, seed, why, **more)
                return
        else:  # the same object for all sets, as in the suites: running statistics go on
            outputs = self.call(self.model, given)
        result, references = take_apart(outputs)
        goldens = golden.run(inputs, references)[0] if golden is not None else references
        bounds: Sequence[Any] = ()
        if before is not None and self._is_steady(before, inputs, references):
            bounds = find_bounds(
                before, inputs, references, goldens, self.path, self._flat, patient=wanted
            )
            if light:
                keep(self.tried, ReferenceCall(inputs, references, before))
        self.trials.append(
            self.record(
                name, kind, seed, inputs, references, goldens, bounds, result=result,
                call=take_apart(list(inputs.args(_itself)))[0],
                alias=alias.shared(outputs, given), writes=alias.changed(inputs.tensors, given),
                heavy=before is None and golden is not None,
                **more,
            )
        )  # fmt: skip

    def _try_values(self, inputs: Inputs, given: Sequence[Any]) -> tuple[Any, str]:
        """What values of ours give, and why they say nothing about a kernel."""
        other = copy.deepcopy(self.model)
        with Casts() as casts, StableSorts() as sorts:
            outputs = self.call(self.model, given)
        if casts.undefined:
            return outputs, UNDEFINED
        if not sorts.met:
            return outputs, ""
        with StableSorts(reverse=True):
            turned = self.call(other, _copies(inputs))
        return outputs, TIES if alias.changed(outputs, turned) else ""

    def _is_light(self, inputs: Inputs) -> bool:
        """Whether a call may be made a hundred times more within the time of a reference."""
        key = (type(self.model), tuple(inputs.shapes))
        if key not in self.light:
            probe, given = copy.deepcopy(self.model), _copies(inputs)
            work = count_work(lambda: self._flat(probe, given, self.path))
            self.light[key] = work.elements <= _LIGHT
        return self.light[key]

    def _is_steady(self, before: Any, inputs: Inputs, references: Sequence[Any]) -> bool:
        """Whether a call leaves the model as it was, as far as outputs tell."""
        old, new = before.state_dict().values(), self.model.state_dict().values()
        if not alias.changed(list(old), list(new)):
            return True
        again = self._flat(copy.deepcopy(self.model), _copies(inputs), self.path)
        return len(again) == len(references) and not alias.changed(list(references), again)

    def _flat(self, model: Any, arguments: Sequence[Any], path: str) -> list[Any]:
        with torch.no_grad(), user_code(path, "forward()"):
            return take_apart(lacking.call(model, arguments, []))[1]

    def _idle(self) -> list[str]:
        """Inputs and parameters whose change never changes an output."""
        self.stage("changing one input after the other")
        count = min((len(item.inputs.tensors) for item in self.tried), default=0)
        cases = any(item.case >= 0 for item in self.trials)  # each with a model of its own
        names = draws.drawn_names(self.tried[0].model) if self.tried and not cases else []
        return find_idle(range(count), names, self.tried, self.path, self._flat)


def _inputs(given: list[Any]) -> Inputs:
    leaves, tree = pytree.tree_flatten(open_up(given))
    return Inputs(tuple(leaves), tree)


def _itself(tensor: Any) -> Any:
    return tensor


def _copies(inputs: Inputs) -> list[Any]:
    """Fresh arguments; two that share memory still do."""
    return copy.deepcopy(list(inputs.args(_itself)))


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
