"""A task with a graph: its model is captured, and runs on every set of inputs in eval mode.

Behind the task's own sets come edge values, other shapes that the model takes, and other ranks.
"""

from __future__ import annotations

import contextlib
import copy
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from npusmith.errors import Place, TaskError
from npusmith.task import alias, compare, edges, files, shapes
from npusmith.task.casts import UNDEFINED, Casts, has_casts
from npusmith.task.error_bounds import LONG, find_bounds
from npusmith.task.export import export_graph
from npusmith.task.golden import Golden
from npusmith.task.graph import Graph
from npusmith.task.isolated.values import take_apart
from npusmith.task.parameter_draws import Draws, drawn_names, put, tensors_of
from npusmith.task.preparing import Preparation, stay_finite
from npusmith.task.recurrent_layers import MOST_STEPS, as_loops, steps_in_time
from npusmith.task.resized import joined, rerank, resize
from npusmith.task.sort_ties import (
    TIES,
    LastWrites,
    StableSorts,
    has_sorts,
    has_writes,
    open_elements,
)
from npusmith.task.unit_axes import find_units, is_longer
from npusmith.task.unused_inputs import ReferenceCall, find_idle, keep
from npusmith.task.user import (
    Inputs,
    Tensor,
    build_model,
    call_init,
    call_inputs,
    call_model,
    check_inputs,
    dtype_name,
    known_dtype,
    load_file,
    run_model,
    set_seed,
    settle,
    user_code,
)
from npusmith.task.varying_sizes import Model, at_given, find_varying, most_elements_at
from npusmith.task.wire import (
    BRANCH,
    EVAL_MODE,
    GRAPH,
    RAISES,
    FreeAxes,
    Kind,
    Manifest,
    Orders,
    TensorFile,
    TrialRecord,
    ValueFiles,
)

# How closely the captured graph must give the model's own values: only rounding may differ.
_CLOSE = {torch.float16: 2e-2, torch.bfloat16: 1e-1}
_ROWS = 3  # sets of inputs that rows of a longer batch of one are drawn from
_MODES = ("Dropout", "BatchNorm", "InstanceNorm", "RReLU")  # modules that train differently


class Captured(Preparation):
    """A task whose graph is captured, with what its model gives on every set of inputs."""

    def __init__(self, orders: Orders, folder: Path) -> None:
        super().__init__(orders, folder)
        self.ranks: list[TrialRecord] = []
        self.free: tuple[FreeAxes, ...] = ()
        self.rows: Inputs | None = None  # several sets, joined along axes of size 1
        self.has_sorts = False  # whether sorts are among the operations
        self.has_writes = True  # ... or values are put at places; unknown until the capture
        self.sized: list[list[shapes.Shape]] = []  # shapes that a kernel has to serve
        self.effects: dict[str, Any] = {}  # of the last call on its arguments
        self.graphs: dict[str, Graph | str] = {}  # at other shapes, by shapes and types
        self.is_long = False  # a call has thousands of operations: bounds take seconds

    def run(self) -> Manifest:
        self.stage("running the task file")
        module = load_file(self.path, self.orders.text)
        self.module = module
        self.stage("building the model")
        self.model = build_model(module, self.path, self.orders.model_seed)
        self._note_modes()
        groups = self.groups(module) if self.orders.has_groups else []
        self.make = self._maker(module, groups)
        self.stage("running get_inputs()")
        self.base = call_inputs(self.make, self.path, self._seeds()[0], "get_inputs()")
        self.notes += self.base.notes
        self._capture()
        if self.orders.longer:
            self._lengthen()
        self._extend()
        parameters = self._write_parameters()
        init, random_state = self._write_init()
        sets = self._find_sets() if self.orders.shapes else []
        if self.orders.seeds:
            self._leave_graph()
            self._draw_parameters()
            self.casts = has_casts(self.captured.graph)
            self._try_all(groups, sets)
        return Manifest(
            graph=self.captured.graph,
            model_seed=self.orders.model_seed,
            trials=tuple(self.trials),
            ranks=tuple(self.ranks),
            free=self.free,
            arguments=len(self.base.tensors),
            parameters=parameters,
            draws=tuple(self.draw_files),
            idle=tuple(self._idle()) if self.orders.seeds else (),
            init=init,
            random_state=random_state,
            call=take_apart(self.base.args())[0],
            notes=tuple(self.notes),
            versions={"torch": str(torch.__version__)},
        )

    def _leave_graph(self) -> None:
        """For whoever waits for it, whole at once."""
        fresh = self.folder / f"{GRAPH}.new"
        fresh.write_text(self.captured.graph.model_dump_json(), encoding="utf-8", errors="replace")
        fresh.replace(self.folder / GRAPH)

    def _seeds(self) -> tuple[int, ...]:
        return self.orders.seeds or (self.orders.model_seed,)

    def _note_modes(self) -> None:
        """The model runs in eval mode; say where training would give other values."""
        names = {
            type(item).__name__
            for item in self.model.modules()
            if getattr(item, "track_running_stats", True)  # else statistics are the batch's
        }
        found = sorted(name for name in names if name.startswith(_MODES))
        if found:
            self.notes.append(f"{EVAL_MODE}: {', '.join(found)} would differ in training")

    def _maker(self, module: types.ModuleType, groups: list[Any]) -> Callable[[], object]:
        """get_inputs(), or the first group where a task has only groups."""
        if self.orders.has_inputs:
            make: Callable[[], object] = module.get_inputs
            return make
        self.notes.append("no get_inputs(): the first input group stands in for it")
        first = [groups[0]]  # used once; later seeds ask the task again
        return lambda: first.pop() if first else module.get_input_groups()[0]

    # --- the graph -------------------------------------------------------------------------------

    def _capture(self) -> None:
        self.stage("running forward()")
        references = self.base_references = self._reference(self.base)
        self._check_outputs(references)
        self._check_steady(references)
        self.stage("capturing the graph")
        self.captured = export_graph(self.model, self.base, self.path)
        self.has_sorts = has_sorts(self.captured.graph)
        self.has_writes = has_writes(self.captured.graph)
        if self.has_sorts:
            references = self._reference(self.base)
        self.notes += self.captured.notes
        self._check_capture(references)

    def _lengthen(self) -> None:
        """From here on get_inputs() gives longer axes of 1."""
        own = self.base.shapes
        units, size = find_units(own, self.captured.graph, self._refusal)
        sized = shapes.resize(own, dict.fromkeys(units, size))
        make = self.make

        def rows() -> object:
            sets = [check_inputs(make(), self.path, "get_inputs()") for _ in range(size)]
            return list(resize(joined(sets), sized, self._seeds()[0]).args())

        self.make = rows
        self.base = call_inputs(rows, self.path, self._seeds()[0], "get_inputs()")
        self._capture()

    def _extend(self) -> None:
        """For outputs besides the model's own (captured_intermediates.py)."""

    def _try_all(self, groups: list[Any], sets: Sequence[tuple[str, list[shapes.Shape]]]) -> None:
        if self.orders.given:
            self._given_trials()
            return
        self._random_trials()
        self._group_trials(groups)
        self._edge_trials()
        self._shape_trials(sets)
        self._rank_trials()

    def _reference(self, inputs: Inputs, draw: int = 0) -> list[Tensor]:
        model = self.draws.models[draw] if draw else self.model
        args = inputs.args()
        with self._in_order():
            found = call_model(model, args, self.path, self.notes)
        self.effects = {
            "alias": tuple(alias.shared(found, args)),
            "writes": alias.changed(inputs.tensors, args),
        }
        return [settle(tensor) for tensor in found]

    @contextlib.contextmanager
    def _in_order(self, reverse: bool = False) -> Iterator[None]:
        """What PyTorch leaves open goes one way; `reverse`: repeated places keep their first."""
        with (
            StableSorts() if self.has_sorts else nullcontext(),
            LastWrites(reverse) if self.has_writes else nullcontext(),
        ):
            yield

    def _is_open(self, inputs: Inputs, draw: int, references: list[Tensor]) -> bool:
        """Whether the outputs depend on the order of equal elements."""
        model = self.draws.models[draw]
        with StableSorts(reverse=True):
            return not _all_close(
                references, run_model(model, inputs.args(), self.path), exact=True
            )

    def _check_outputs(self, references: list[Tensor]) -> None:
        for i, tensor in enumerate(references):
            if known_dtype(tensor) is None:
                kind = dtype_name(tensor)
                message = f"output {i} is {kind}, which the chip does not have"
                raise TaskError("task-dtype", message, Place(self.path), seen=kind)
            if tensor.numel() == 0:
                seen = f"shape {tuple(tensor.shape)}"
                raise TaskError("task-empty", f"output {i} is empty", Place(self.path), seen=seen)

    def _check_steady(self, references: list[Tensor]) -> None:
        """The same inputs give the same outputs, whatever the random state."""
        set_seed(self.orders.model_seed + 1)
        references = [tensor.clone() for tensor in references]  # one may be a buffer that changes
        again = self._reference(self.base)
        if not _all_close(references, again, exact=True):
            message = "forward() gives other values when it is called again on the same inputs"
            raise TaskError("task-random", message, Place(self.path))

    def _check_capture(self, references: list[Tensor]) -> None:
        with user_code(self.path, "the captured graph", "task-export"):
            module = as_loops(self.captured.program.module())
        with self._in_order():
            found = run_model(module, self.base.args(), self.path)
        if not _all_close(references, found, exact=False):
            message = "the captured graph gives other values than the model"
            raise TaskError("task-export", message, Place(self.path))

    def _write_parameters(self) -> dict[str, TensorFile]:
        values = self.captured.values.items()
        return {name: self.write(f"parameter_{i}", value) for i, (name, value) in enumerate(values)}

    # --- parameters ------------------------------------------------------------------------------

    def _draw_parameters(self) -> None:
        """Other values for what the graph reads of parameters and buffers."""
        self.stage("drawing parameters")
        names = drawn_names(self.model, self.captured.values)
        self.draws = Draws(self.model, names, self.orders.seeds[0], self._agrees)
        self.write_draws(self.draws)
        self.goldens = [Golden(model, self.path) for model in self.draws.models]

    def _agrees(self, model: Any, names: Sequence[str]) -> bool:
        """Does the captured graph give what the model gives with these values, and is it finite?

        It does not where a value was read while the graph was captured, or kept by the model.
        """
        given = tensors_of(model)
        try:
            with user_code(self.path, "the captured graph", "task-export"), quiet():
                graph = copy.deepcopy(as_loops(self.captured.program.module()))
            put(graph, {name: given[name] for name in names})
            found = run_model(graph, self.base.args(), self.path)
            wanted = run_model(model, self.base.args(), self.path)
        except TaskError:
            return False
        return stay_finite(wanted, self.base_references) and _all_close(wanted, found, exact=False)

    # --- arguments -------------------------------------------------------------------------------

    def _write_init(self) -> tuple[ValueFiles, TensorFile | None]:
        """What a candidate's class is built with; it never sees the task's file itself."""
        set_seed(self.orders.model_seed)
        before = torch.get_rng_state()
        settings = call_init(self.module, self.path, self.orders.model_seed)
        after = torch.get_rng_state()
        state = None if torch.equal(before, after) else self.write("random_state", after)
        return files.put(settings, self.folder, "init"), state

    # --- trials ----------------------------------------------------------------------------------

    def _random_trials(self) -> None:
        for i, seed in enumerate(self.orders.seeds):
            self.stage(f"random trial {i}")
            fresh = i and call_inputs(self.make, self.path, seed, "get_inputs()")
            inputs = fresh or self.base
            self._try(f"random {i}", "random", seed, inputs)

    def _group_trials(self, groups: list[Any]) -> None:
        seed = self.orders.seeds[0]
        while groups:
            i = len([trial for trial in self.trials if trial.kind == "group"])
            self.stage(f"input group {i}")
            name = f"group {i}"
            try:
                inputs = check_inputs(groups.pop(0), self.path, f"get_input_groups(), {name}")
            except TaskError as error:
                if error.code != "task-empty":
                    raise
                self.skip(name, "group", seed, error.message)
            else:
                self._try(name, "group", seed, inputs)

    def _edge_trials(self) -> None:
        if not self.orders.edges or not edges.applies(self.base):
            return
        seed = self.orders.seeds[0]
        for name, edge in edges.EDGES:
            self.stage(f"edge set {name}")
            self._try(name, "edge", seed, edges.change(self.base, edge, seed))

    def _shape_trials(self, sets: Sequence[tuple[str, list[shapes.Shape]]]) -> None:
        """The sets, and of those that the model refuses each class of sizes by itself."""
        first, planned = self.orders.seeds[0], list(sets)
        classes = [item.axes for item in self.free]
        for i, (pattern, sized) in enumerate(planned):  # which grows
            self.stage(f"shape set {pattern}")
            inputs, name = self._resized(sized, first + i + 1), f"shape {shapes.show(sized)}"
            if self._is_long(inputs):
                self.skip(name, "shape", first + i + 1, f"more than {MOST_STEPS:,} steps in time")
                continue
            self._try(name, "shape", first + i + 1, inputs, pattern)
            if not self.trials[-1].skipped:
                self.sized.append(sized)
            elif len(planned) < 2 * shapes.MAX_SETS and self.trials[-1].skipped.startswith(RAISES):
                limit, known = self.orders.shape_elements, [item for _, item in planned]
                found = shapes.one_by_one(self.base.shapes, classes, sized, limit)
                planned += [(pattern, one) for one in found if one not in known]
        edged = [item for pattern, item in planned if pattern in shapes.EDGED]
        if sets and self.orders.edges and edges.applies(self.base):
            self._edges_at([item for item in edged if item in self.sized] or edged)

    def _is_long(self, inputs: Inputs) -> bool:
        """Whether loops in time have more steps than references are computed for."""
        if not steps_in_time(self.captured.graph):
            return False
        found = self._capture_at(inputs)
        return not isinstance(found, str) and steps_in_time(found) > MOST_STEPS

    def _find_sets(self) -> list[tuple[str, list[shapes.Shape]]]:
        """Sets of shapes that vary every size that may change and is no number in the graph."""
        self.stage("finding sizes that may change")
        found = find_varying(self._at_sizes(), self.base.shapes, self.captured.graph)
        self.captured = replace(self.captured, graph=found.graph)
        self.notes += dict.fromkeys(found.notes)
        self.free = tuple(
            FreeAxes(size=item.size, axes=tuple(sorted(item.axes)), step=item.step)
            for item in found.free
        )
        return found.sets

    def _at_sizes(self) -> Model:
        def capture(sized: list[shapes.Shape]) -> Graph | str:
            return self._capture_at(self._resized(sized, self._seeds()[0]))

        limits = self.orders.shape_elements, self.orders.value_elements
        return Model(capture, self._refusal, self._seeds()[0], *limits)

    def _resized(self, sized: list[shapes.Shape], seed: int) -> Inputs:
        """Inputs of these shapes; what was a single row is drawn from those of several sets."""
        return resize(
            self._rows() if is_longer(self.base.shapes, sized) else self.base, sized, seed
        )

    def _rows(self) -> Inputs:
        """Several sets of inputs, joined along axes of size 1; the first where they do not fit."""
        if self.rows is None:
            sets = [self.base]
            with contextlib.suppress(TaskError):
                for seed in range(self._seeds()[0] + 1, self._seeds()[0] + _ROWS):
                    sets.append(call_inputs(self.make, self.path, seed, "get_inputs()"))
            self.rows = joined(sets)
        return self.rows

    def _edges_at(self, sets: list[list[shapes.Shape]]) -> None:
        """Edge values at other shapes, where rows end within a block and other branches are taken.

        Each value at one of the sets: all of them at all would say little more.
        """
        seed = self.orders.seeds[0]
        chosen = [item for item in edges.EDGES if sets and item[0] not in edges.PLAIN]
        for i, (name, edge) in enumerate(chosen):
            sized = sets[i % len(sets)]
            self.stage(f"edge set {name} at another shape")
            inputs = edges.change(self._resized(sized, seed + i + 1), edge, seed)
            self._try(f"{name} at {shapes.show(sized)}", "shape", seed, inputs, edged=True)

    def _given_trials(self) -> None:
        """Shapes that the parent asks for, because they take a kernel's other branches."""
        given = [list(sized) for sized in self.orders.given]
        model = self._at_sizes()
        graph = at_given(model, self.base.shapes, self.captured.graph, given)
        self.captured = replace(self.captured, graph=graph)
        for i, sized in enumerate(given):
            self.stage(f"shapes {shapes.show(sized)}")
            seed, name = self.orders.seeds[0] + i + 1, f"{BRANCH} {shapes.show(sized)}"
            if most_elements_at(model, sized) > self.orders.value_elements:
                self.skip(name, "shape", seed, "values on the way have too many elements there")
                continue
            self._try(name, "shape", seed, self._resized(sized, seed))

    def _rank_trials(self) -> None:
        """Inputs with an axis more and with one fewer, where the model takes them."""
        if not self.orders.shapes:
            return
        self.stage("trying other ranks")
        seed = self.orders.seeds[0]
        sized = shapes.smallest(self.base.shapes, self.sized)
        inputs = self._resized(sized, seed)
        for name, choices in (
            ("an axis more", shapes.raise_rank(sized, seed)),
            ("an axis fewer", shapes.lower_rank(sized)),
        ):
            any(
                self._try_rank(f"{name}: {shapes.show(choice)}", inputs, choice)
                for choice in choices
            )

    def _try_rank(self, name: str, inputs: Inputs, sized: list[shapes.Shape]) -> bool:
        """Does the model take the inputs with these shapes? Then that set is written down."""
        seed = self.orders.seeds[0]
        other = rerank(inputs, sized, seed)
        try:
            references = self._reference(other)
        except TaskError:
            return False
        if not all(tensor.numel() for tensor in references) or _types(references) != _types(
            self.base_references
        ):
            return False
        goldens, note = self.goldens[0].run(other, references)
        notes = (note,) if note else ()
        bounds = [] if self.is_long else self._bounds(other, 0, references, goldens)
        self.ranks.append(
            self.record(
                name, "rank", seed, other, references, goldens, bounds, required=False, notes=notes
            )
        )
        return True

    def _refusal(self, sized: list[shapes.Shape]) -> str:
        """Why the reference does not take these shapes; empty when it does."""
        try:
            outputs = self._reference(self._resized(sized, self._seeds()[0]))
        except TaskError as error:
            return error.message
        return "" if all(tensor.numel() for tensor in outputs) else "an output is empty"

    def _try(
        self,
        name: str,
        kind: Kind,
        seed: int,
        inputs: Inputs,
        note: str = "",
        *,
        edged: bool = False,
    ) -> None:
        """Run one set of inputs and write it down; a reference that raises is a skipped trial."""
        notes = [note] if note else []
        optional = self._mismatch(inputs, kind)
        draw = self.draws.number(len(self.trials))
        try:
            self._check_types(inputs)
            with Casts() if self.casts and (edged or kind == "edge") else nullcontext() as casts:
                references = self._reference(inputs, draw)
                effects = self.effects
        except TaskError as error:
            if kind in ("random", "group"):
                raise
            why = f"{RAISES}: {error.message}"
            self.skip(name, kind, seed, why, notes=tuple(notes))
            return
        if casts is not None and casts.undefined:
            self.skip(name, kind, seed, UNDEFINED, notes=tuple(notes))
            return
        if self.has_sorts and (edged or kind == "edge") and self._is_open(inputs, draw, references):
            self.skip(name, kind, seed, TIES, notes=tuple(notes))
            return
        with StableSorts() if self.has_sorts else nullcontext():
            goldens, golden_note = self.goldens[draw].run(inputs, references)
        heavy = self.is_long or not self.orders.bounds
        heavy = heavy and name not in self.orders.bounded
        none = optional or heavy
        bounds = [] if none else self._bounds(inputs, draw, references, goldens)
        if not optional:
            keep(self.tried, ReferenceCall(inputs, references, self.draws.models[draw]))
        self.trials.append(
            self.record(
                name, kind, seed, inputs, references, goldens, bounds,
                required=not optional, skipped=f"not required: {optional}" if optional else "",
                notes=tuple(text for text in (*notes, golden_note) if text), draw=draw,
                heavy=heavy, **effects,
            )
        )  # fmt: skip

    def _bounds(
        self, inputs: Inputs, draw: int, references: list[Tensor], goldens: list[Tensor]
    ) -> list[Tensor]:
        """How far right answers lie apart: by rounding, and where values are put at one place."""
        model = self.draws.models[draw]
        calls: list[int] = []
        bounds = find_bounds(
            model, inputs, references, goldens, self.path,
            patient=bool(self.orders.bounded), calls=calls,
        )  # fmt: skip
        self.is_long |= max(calls, default=0) > LONG
        if not self.has_writes:
            return bounds
        with self._in_order(reverse=True):
            turned = run_model(model, inputs.args(), self.path)
        found = open_elements(references, turned)
        if not bounds or not found:
            return bounds or found
        return [torch.maximum(*pair) for pair in zip(bounds, found, strict=True)]

    def _check_types(self, inputs: Inputs) -> None:
        """Every call has the arguments of the first one: tensors and numbers at the same places."""
        if inputs.tree != self.base.tree or len(inputs.tensors) != len(self.base.tensors):
            message = "this set has other arguments than the first call of get_inputs()"
            raise TaskError("task-inputs", message, Place(self.path))

    def _mismatch(self, inputs: Inputs, kind: Kind) -> str:
        """Why a kernel for the captured graph need not serve these inputs; empty when it must."""
        if inputs.literals != self.base.literals:
            return f"numbers differ from the captured ones: {inputs.literals}"[:200]
        same_types = [t.dtype for t in inputs.tensors] == [t.dtype for t in self.base.tensors]
        if same_types and inputs.shapes == self.base.shapes:
            return ""
        other = self._capture_at(inputs)
        if isinstance(other, str):
            return f"capture fails for these inputs: {other}"
        return compare.difference(self.captured.graph, other)

    @staticmethod
    def _key(inputs: Inputs) -> str:
        """Of what a capture depends on."""
        return str([(tensor.dtype, tensor.shape) for tensor in inputs.tensors])

    def _capture_at(self, inputs: Inputs) -> Graph | str:
        """The graph that these inputs are captured as, or why there is none."""
        key = self._key(inputs)
        if key not in self.graphs:
            try:
                own = self.captured.graph
                self.graphs[key] = export_graph(self.model, inputs, self.path, own).graph
            except TaskError as error:
                self.graphs[key] = error.message
        return self.graphs[key]

    def _idle(self) -> list[str]:
        """Inputs and parameters of the graph whose change never changes an output."""
        self.stage("changing one input after the other")
        names = drawn_names(self.model, self.captured.values)
        users = [item.position for item in self.captured.graph.inputs if item.kind == "user"]
        return find_idle(users, names, self.tried, self.path)

    def write(self, stem: str, tensor: Tensor) -> TensorFile:
        """An argument of a type that the chip does not have is unused: its bytes."""
        if known_dtype(tensor) is None and tensor.dtype != torch.float64:
            tensor = alias.flat_bytes(tensor)
        return super().write(stem, tensor)


def _types(tensors: Sequence[Tensor]) -> list[Any]:
    return [tensor.dtype for tensor in tensors]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Copying a graph warns of what PyTorch itself has deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _all_close(left: list[Tensor], right: list[Tensor], *, exact: bool) -> bool:
    if [(t.shape, t.dtype) for t in left] != [(t.shape, t.dtype) for t in right]:
        return False
    return all(_close(a, b, exact) for a, b in zip(left, right, strict=True))


def _close(a: Tensor, b: Tensor, exact: bool) -> bool:
    """Equal but for rounding: sums are split over threads, and export rewrites expressions."""
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    tolerance = _CLOSE.get(a.dtype, 1e-3) * (0.01 if exact else 1.0)
    wide = (a.double(), b.double())
    return bool(torch.allclose(*wide, rtol=tolerance, atol=tolerance, equal_nan=True))
